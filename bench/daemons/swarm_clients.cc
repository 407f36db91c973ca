// Measures what an idle client costs the coordinator. Opens thousands of real links to a running
// fedge-coordinator, each with its own key, and measures the coordinator's process from outside.
// bench/daemons/idle.sh starts both.
//   swarm_clients enrol DATA_DIR COUNT            before the coordinator starts
//   swarm_clients measure DATA_DIR PID COUNT SECONDS
#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "bench/daemons/process.h"
#include "bench/daemons/swarm_client.h"
#include "core/platform/files.h"
#include "server/access/enrolment_book.h"
#include "server/data_directory.h"
#include "server/store/enrolment_file.h"

namespace {

using namespace fedge;
using namespace fedge::bench;

// Connections at once that are not yet admitted: the coordinator accepts 16 from an address.
constexpr std::size_t kConnecting = 12;
// The arrival rate that the coordinator admits; it rejects faster clients for a while
// (server/access/arrival_rate.h).
constexpr double kArrivals = 900;
constexpr double kArrivalsPerSecond = 190;

double seconds_of(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

// Writes the book in one step: redeeming tokens one by one would sync the file for each.
void enrol(const std::string& directory, std::size_t count) {
  if (const auto made = make_directory(directory, 0700); !made) give_up(made.error().message);
  server::EnrolmentBook book;
  for (std::uint32_t i = 0; i < count; ++i)
    book.clients.push_back({.client = ClientId(i), .key = key_of(i).public_key()});
  const auto written = server::create_enrolment_book(directory, book);
  if (!written) give_up(written.error().message);
}

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))];
}

class Measurement {
 public:
  Measurement(const std::string& directory, std::string pid, std::size_t count)
      : pid_(std::move(pid)), count_(count) {
    const auto key = server::open_coordinator_key(directory);
    if (!key) give_up(key.error().message);
    const auto address = server::last_address(directory);
    if (!address) give_up(address.error().message);
    swarm_.coordinator = key->public_key();
    swarm_.address = *address;
    swarm_.on_ready = [this](std::size_t) {
      ++ready_;
      connect_more();
    };
    swarm_.on_pong = [this](std::size_t, Clock::duration taken) { pongs_.push_back(seconds_of(taken)); };
    swarm_.on_work = [this](std::size_t) { work_.push_back(seconds_of(Clock::now() - announced_)); };
    swarm_.on_gone = [this](std::size_t client, const std::string& why) {
      if (!leaving_) give_up("client " + std::to_string(client) + ": " + why);
    };
  }

  void run(double idle_seconds) {
    const Process before = look_at(pid_);
    std::printf("coordinator alone: RSS %.1f MiB\n", before.resident_kib / 1024);
    const double first = connect_all(before);
    idle(idle_seconds);
    heartbeat(idle_seconds);
    leave_all(idle_seconds, first);
    std::printf("again:\n");
    connect_all(look_at(pid_));
    round();
    leave_all(idle_seconds, look_at(pid_).resident_kib);
  }

 private:
  template <class Happened>
  void run_until(double limit, const char* what, const Happened& happened) {
    const auto deadline =
        Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limit));
    while (!happened()) {
      if (Clock::now() > deadline) give_up(std::string("waited in vain for ") + what);
      swarm_.io.run_one_for(std::chrono::milliseconds(20));
    }
  }
  void run_for(double seconds) {
    swarm_.io.run_for(std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds)));
  }

  void connect_more() {
    const auto now = Clock::now();
    arrivals_ = std::min(kArrivals, arrivals_ + kArrivalsPerSecond * seconds_of(now - counted_));
    counted_ = now;
    while (clients_.size() < wanted_ && clients_.size() < ready_ + kConnecting && arrivals_ >= 1) {
      arrivals_ -= 1;
      clients_.push_back(std::make_shared<SwarmClient>(swarm_, clients_.size()));
      clients_.back()->start();
    }
  }

  // Returns the RSS in KiB with all clients connected.
  double connect_all(const Process& before) {
    const auto begun = Clock::now();
    leaving_ = false;
    ready_ = 0;
    wanted_ = count_;
    connect_more();
    run_until(600, "the connections", [&] {
      connect_more();
      return ready_ == count_;
    });
    const double taken = seconds_of(Clock::now() - begun);
    run_for(5);
    const Process after = look_at(pid_);
    std::printf("%zu clients connected: %.1f s, %.0f a second; coordinator's processor %.2f s\n", count_,
                taken, static_cast<double>(count_) / taken, after.cpu_seconds - before.cpu_seconds);
    std::printf("RSS %.1f MiB, %.1f KiB a client\n", after.resident_kib / 1024,
                (after.resident_kib - before.resident_kib) / static_cast<double>(count_));
    return after.resident_kib;
  }

  void idle(double seconds) {
    const Process before = look_at(pid_);
    run_for(seconds);
    const Process after = look_at(pid_);
    std::printf("idle, with the coordinator's pings: processor %.2f s a minute, RSS %.1f MiB\n",
                (after.cpu_seconds - before.cpu_seconds) * 60 / seconds, after.resident_kib / 1024);
  }

  // Every client sends one Ping within this time, evenly spread.
  void heartbeat(double seconds) {
    pongs_.clear();
    const auto begun = Clock::now();
    for (std::size_t i = 0; i < clients_.size();) {
      const double due = seconds * static_cast<double>(i) / static_cast<double>(clients_.size());
      if (seconds_of(Clock::now() - begun) >= due)
        clients_[i++]->ping();
      else
        swarm_.io.run_one_for(std::chrono::microseconds(200));
    }
    run_until(60, "the pongs", [&] { return pongs_.size() == clients_.size(); });
    std::printf("ping to pong: p50 %.2f ms, p99 %.2f ms, longest %.1f ms\n", quantile(pongs_, 0.5) * 1e3,
                quantile(pongs_, 0.99) * 1e3, quantile(pongs_, 1) * 1e3);
  }

  // Connects the last client that the run waits for, which starts the round.
  void round() {
    const Process before = look_at(pid_);
    work_.clear();
    wanted_ = count_ + 1;
    connect_more();
    run_until(60, "the last client", [&] { return ready_ == count_ + 1; });
    announced_ = Clock::now();
    run_until(120, "the round", [&] { return work_.size() == clients_.size(); });
    const Process after = look_at(pid_);
    std::printf(
        "round announced to %zu clients: half have it after %.3f s, all after %.3f s; processor "
        "%.2f s, RSS %.1f MiB\n",
        clients_.size(), quantile(work_, 0.5), quantile(work_, 1), after.cpu_seconds - before.cpu_seconds,
        after.resident_kib / 1024);
    for (const auto& client : clients_) client->decline();
    run_for(5);
  }

  void leave_all(double seconds, double rss_with_all) {
    leaving_ = true;
    for (const auto& client : clients_) client->leave();
    clients_.clear();
    run_for(std::min(seconds, 15.0));
    const Process after = look_at(pid_);
    std::printf("all have left: RSS %.1f MiB, from %.1f\n", after.resident_kib / 1024, rss_with_all / 1024);
  }

  boost::asio::io_context io_;
  // Keeps the io_context running while no client is connected.
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> always_{io_.get_executor()};
  Swarm swarm_{.io = io_};
  std::string pid_;
  std::size_t count_;
  std::vector<std::shared_ptr<SwarmClient>> clients_;
  std::size_t wanted_ = 0;
  std::size_t ready_ = 0;
  double arrivals_ = kArrivals;
  Clock::time_point counted_ = Clock::now();
  bool leaving_ = false;
  Clock::time_point announced_;
  std::vector<double> pongs_;
  std::vector<double> work_;
};

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() == 3 && arguments[0] == "enrol") {
    enrol(arguments[1], std::stoul(arguments[2]));
  } else if (arguments.size() == 5 && arguments[0] == "measure") {
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    Measurement(arguments[1], arguments[2], std::stoul(arguments[3])).run(std::stod(arguments[4]));
  } else {
    give_up("usage: swarm_clients enrol DATA_DIR COUNT | measure DATA_DIR PID COUNT SECONDS");
  }
}
