// Measures what honest clients notice while others flood their coordinator. About a hundred honest clients
// send a ping each second, first undisturbed and then beside each kind of flood, which another process makes.
// The program also measures the coordinator's memory and processor time. bench/daemons/flood.sh starts the
// coordinator.
//   swarm_flood measure DATA_DIR PID HONEST SECONDS KIND...
//   swarm_flood make DATA_DIR HONEST SECONDS KIND
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/daemons/floods.h"
#include "bench/daemons/process.h"
#include "bench/daemons/swarm_client.h"
#include "server/data_directory.h"

namespace {

using namespace fedge;
using namespace fedge::bench;

constexpr double kRest = 15;  // seconds after a flood before the memory is measured again

double seconds_of(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

Target target_in(const std::string& directory, std::size_t honest) {
  const auto key = server::open_coordinator_key(directory);
  if (!key) give_up(key.error().message);
  const auto address = server::last_address(directory);
  if (!address) give_up(address.error().message);
  return {.address = *address, .coordinator = key->public_key(), .enrolled = honest};
}

// Starts the flood in another process: it must not delay the honest clients' thread.
pid_t start_flood(const std::vector<std::string>& arguments) {
  std::vector<char*> words;
  for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  pid_t child = 0;
  if (::posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, words.data(), environ) != 0)
    give_up("cannot start the flood");
  return child;
}

class Measurement {
 public:
  Measurement(std::string directory, std::string pid, std::size_t honest)
      : directory_(std::move(directory)), pid_(std::move(pid)), target_(target_in(directory_, honest)) {
    swarm_.address = target_.address;
    swarm_.coordinator = target_.coordinator;
    swarm_.on_ready = [this](std::size_t) { ++ready_; };
    swarm_.on_work = [](std::size_t) {};
    swarm_.on_pong = [this](std::size_t, Clock::duration taken) { pongs_.push_back(seconds_of(taken)); };
    swarm_.on_gone = [this](std::size_t client, const std::string& why) {
      std::fprintf(stderr, "honest client %zu: %s\n", client, why.c_str());
      ++gone_;
    };
    for (std::size_t i = 0; i < honest; ++i) {
      clients_.push_back(std::make_shared<SwarmClient>(swarm_, i));
      clients_.back()->start();
      while (ready_ <= i) io_.run_one();
    }
  }

  void run(double seconds, const std::vector<std::string>& kinds) {
    std::printf(
        "flood        times    honest pings: p50 ms   p99 ms  longest  processor  RSS MiB highest  after\n");
    measure("none", seconds, nullptr);
    for (const std::string& kind : kinds) {
      const auto make = [&] {
        return start_flood({"swarm_flood", "make", directory_, std::to_string(clients_.size()),
                            std::to_string(seconds), kind});
      };
      measure(kind, seconds, make);
    }
    if (gone_ > 0) std::printf("%zu honest clients were lost\n", gone_);
  }

 private:
  void measure(const std::string& kind, double seconds, const std::function<pid_t()>& make) {
    pongs_.clear();
    highest_ = 0;
    const Process before = look_at(pid_);
    const pid_t child = make ? make() : 0;
    ping_for(seconds);
    const Process after = look_at(pid_);
    std::size_t times = 0;
    if (child != 0) {
      int status = 0;
      ::waitpid(child, &status, 0);
      std::FILE* const said = std::fopen((directory_ + "/flood").c_str(), "r");
      if (said == nullptr || std::fscanf(said, "%zu", &times) != 1)
        give_up("the flood of " + kind + " failed");
      std::fclose(said);
    }
    auto pongs = pongs_;
    std::sort(pongs.begin(), pongs.end());
    const auto quantile = [&](double q) {
      return pongs.empty() ? 0
                           : 1e3 * pongs[static_cast<std::size_t>(q * static_cast<double>(pongs.size() - 1))];
    };
    ping_for(kRest);
    std::printf("%-12s %7zu %21.2f %8.2f %8.1f %8.0f %% %16.1f %6.1f\n", kind.c_str(), times, quantile(0.5),
                quantile(0.99), quantile(1), 100 * (after.cpu_seconds - before.cpu_seconds) / seconds,
                highest_ / 1024, look_at(pid_).resident_kib / 1024);
  }

  // Every client sends a ping each second, evenly spread.
  void ping_for(double seconds) {
    const auto begun = Clock::now();
    const double each = 1.0 / static_cast<double>(clients_.size());
    for (std::size_t sent = 0; seconds_of(Clock::now() - begun) < seconds;) {
      if (seconds_of(Clock::now() - begun) >= each * static_cast<double>(sent)) {
        clients_[sent++ % clients_.size()]->ping();
        if (sent % 10 == 0) highest_ = std::max(highest_, look_at(pid_).resident_kib);
      } else {
        io_.run_one_for(std::chrono::microseconds(200));
      }
    }
  }

  boost::asio::io_context io_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> always_{io_.get_executor()};
  Swarm swarm_{.io = io_};
  std::string directory_;
  std::string pid_;
  Target target_;
  std::vector<std::shared_ptr<SwarmClient>> clients_;
  std::size_t ready_ = 0;
  std::size_t gone_ = 0;
  double highest_ = 0;  // KiB
  std::vector<double> pongs_;
};

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() >= 5 && arguments[0] == "measure") {
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    Measurement(arguments[1], arguments[2], std::stoul(arguments[3]))
        .run(std::stod(arguments[4]), {arguments.begin() + 5, arguments.end()});
  } else if (arguments.size() == 5 && arguments[0] == "make") {
    const std::size_t times =
        flood(arguments[4], target_in(arguments[1], std::stoul(arguments[2])), std::stod(arguments[3]));
    std::FILE* const said = std::fopen((arguments[1] + "/flood").c_str(), "w");
    if (said == nullptr) give_up("cannot write what was done");
    std::fprintf(said, "%zu\n", times);
    std::fclose(said);
  } else {
    give_up(
        "usage: swarm_flood measure DATA_DIR PID HONEST SECONDS KIND... | make DATA_DIR HONEST SECONDS KIND");
  }
}
