// bench_directory_network [NODES] [PROCESSES] [RECORDS]: real directory nodes on loopback in PROCESSES
// processes. Two more nodes run here: one publishes, the other looks up. Prints the latencies of both,
// messages, bytes, and memory a node; then kills a quarter of the processes and measures again. Use an
// otherwise idle machine: bytes include all traffic on loopback.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "core/platform/calendar.h"
#include "dht/node/directory_node.h"

namespace {

using namespace fedge;
using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

std::unique_ptr<dht::DirectoryNode> open_node(boost::asio::io_context& io, std::uint16_t bootstrap) {
  dht::NodeSettings settings{.listen = {"127.0.0.1", 0}};
  if (bootstrap != 0) settings.bootstrap = {{"127.0.0.1", bootstrap}};
  auto node = dht::DirectoryNode::open(io, settings);
  if (!node) {
    std::fprintf(stderr, "bench_directory_network: %s\n", node.error().message.c_str());
    std::exit(1);
  }
  return std::move(*node);
}

// Starts a process with this many nodes, which runs until it is killed. It begins when it receives the first
// node's port.
pid_t start_process(std::size_t nodes, int port_pipe) {
  const pid_t process = ::fork();
  if (process != 0) return process;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::uint16_t port = 0;
  if (::read(port_pipe, &port, sizeof port) != sizeof port) std::_Exit(1);
  boost::asio::io_context io;
  std::vector<std::unique_ptr<dht::DirectoryNode>> all;
  for (std::size_t i = 0; i < nodes; ++i) all.push_back(open_node(io, port));
  io.run();
  std::_Exit(1);
}

double resident_mb(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/statm");
  std::size_t size = 0, resident = 0;
  file >> size >> resident;
  return static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE)) / 1e6;
}

// Returns all bytes received over IP on any interface.
double received_mb() {
  std::ifstream file("/proc/net/netstat");
  std::string names, values;
  while (std::getline(file, names) && std::getline(file, values)) {
    if (!names.starts_with("IpExt:")) continue;
    std::istringstream name(names), value(values);
    std::string n, v;
    while (name >> n && value >> v)
      if (n == "InOctets") return std::stod(v) / 1e6;
  }
  return 0;
}

struct Timings {
  std::vector<double> milliseconds;
  std::size_t asked = 0;
  void print(const char* what) {
    std::sort(milliseconds.begin(), milliseconds.end());
    const auto at = [&](double q) {
      return milliseconds.empty()
                 ? 0
                 : milliseconds[static_cast<std::size_t>(q * static_cast<double>(milliseconds.size() - 1))];
    };
    std::printf("| %-34s | %4zu of %4zu | %7.2f | %7.2f | %7.1f | %7.1f |\n", what, milliseconds.size(),
                asked, at(0.5), at(0.95), at(0.99), at(1));
    std::fflush(stdout);
  }
};

class Bench {
 public:
  Bench()
      : first_(open_node(io_, 0)),
        second_(open_node(io_, first_->directory().port())),
        writer_(SecretKey::generate()) {}

  std::uint16_t port() { return first_->directory().port(); }
  void wait(double time) {
    const auto end = Clock::now() + std::chrono::duration<double>(time);
    while (Clock::now() < end) io_.run_for(std::chrono::milliseconds(20));
  }
  Timings publish(std::uint64_t begin, std::uint64_t end) {
    Timings timings;
    for (std::uint64_t run = begin; run < end; ++run) {
      const auto record = dht::make_record(writer_, {1, calendar_time() + seconds(600)},
                                           dht::NodeStatus{RunId(run), {.latency_ms = 12.0, .labels = {}}});
      time(timings, [&](auto done) {
        first_->directory().publish(*record, [done](const Result<void>& kept) { done(kept.has_value()); });
      });
    }
    return timings;
  }
  Timings look_up(std::uint64_t end) {
    Timings timings;
    for (std::uint64_t run = 0; run < end; ++run)
      time(timings, [&](auto done) {
        second_->directory().lookup(
            dht::node_key(writer_.public_key(), RunId(run)),
            [done](const Result<std::vector<dht::Record>>& found) { done(found && found->size() == 1); });
      });
    return timings;
  }

 private:
  void time(Timings& timings, const std::function<void(std::function<void(bool)>)>& ask) {
    ++timings.asked;
    const auto outcome = std::make_shared<std::optional<bool>>();
    const auto start = Clock::now();
    ask([outcome](bool well) { *outcome = well; });
    while (!*outcome && milliseconds_since(start) < 10'000) io_.run_one_for(std::chrono::milliseconds(50));
    if (*outcome && **outcome) timings.milliseconds.push_back(milliseconds_since(start));
  }

  boost::asio::io_context io_;
  std::unique_ptr<dht::DirectoryNode> first_;
  std::unique_ptr<dht::DirectoryNode> second_;
  SecretKey writer_;
};

double mean_memory(const std::vector<pid_t>& processes, std::size_t nodes) {
  double sum = 0;
  for (const pid_t process : processes) sum += resident_mb(process);
  return sum / static_cast<double>(nodes);
}

}  // namespace

int main(int argc, char** argv) {
  const auto argument = [&](int index, std::size_t fallback) {
    return argc > index ? static_cast<std::size_t>(std::atoi(argv[index])) : fallback;
  };
  const std::size_t nodes = argument(1, 64), count = argument(2, 8), records = argument(3, 200);
  if (nodes == 0 || count == 0 || records == 0 || nodes % count != 0) return 2;
  int ports[2];
  if (::pipe(ports) != 0) return 1;
  std::vector<pid_t> processes;
  for (std::size_t i = 0; i < count; ++i) processes.push_back(start_process(nodes / count, ports[0]));
  Bench bench;
  const std::uint16_t port = bench.port();
  for (std::size_t i = 0; i < count; ++i)
    if (::write(ports[1], &port, sizeof port) != sizeof port) return 1;
  bench.wait(15);
  std::printf("%zu nodes in %zu processes: %.2f MB a node, joined\n\n", nodes, count,
              mean_memory(processes, nodes));
  std::printf(
      "| one after the other | succeeded | p50 ms | p95 | p99 | longest |\n| --- | --- | --- | --- | --- | "
      "--- |\n");
  double bytes = received_mb();
  bench.publish(0, records).print("publish");
  const double publishing = received_mb() - bytes;
  bytes = received_mb();
  bench.look_up(records).print("look up");
  const double looking = received_mb() - bytes;
  const double full = mean_memory(processes, nodes);
  bytes = received_mb();
  bench.wait(60);
  const double idle = received_mb() - bytes;
  for (std::size_t i = 0; i < count / 4; ++i) ::kill(processes[i], SIGKILL);
  bench.look_up(records).print("look up, a quarter just killed");
  bench.publish(records, 2 * records).print("publish, a quarter just killed");
  bench.wait(30);
  bench.look_up(records).print("look up 30 s later");
  bench.publish(2 * records, 3 * records).print("publish 30 s later");
  const auto each = static_cast<double>(records);
  std::printf(
      "\n%.2f MB a node with %zu records published; loopback: %.1f KB a publish, %.1f KB a look-up, %.0f "
      "bytes a "
      "node and second at rest\n",
      full, records, 1000 * publishing / each, 1000 * looking / each,
      1e6 * idle / 60 / static_cast<double>(nodes + 2));
  for (const pid_t process : processes) ::kill(process, SIGKILL);
  while (::wait(nullptr) > 0) {
  }
  return 0;
}
