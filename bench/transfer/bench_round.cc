// The cost of a federated round of a 100 MB model beside a bare copy of the same bytes, alternately:
//   bare    one server process sends the bytes to each client process and reads as many back from each
//   hashed  the same with SHA-256: the server hashes what it sends once a round and all that it receives,
//           a client both directions; this is the minimum cost of verifying every byte
//   fedge   fedge-sim run --mode concrete: the real coordinator and real clients; each client fetches the
//           model, trains on one sample and sends its update; the round ends with the new model
// All over loopback TLS 1.3, all clients at once. Usage: bench_round [clients...]   (default: 4 16)
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "bench/transfer/bare_tls.h"
#include "core/aligned_buffer.h"
#include "core/crypto/sha256.h"

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using namespace fedge;
using namespace fedge::bench;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kHidden = 4618;  // 784-4618-4618-10
constexpr std::size_t kParameters = 785 * kHidden + (kHidden + 1) * kHidden + (kHidden + 1) * 10;
constexpr std::size_t kModelBytes = kParameters * sizeof(float);
constexpr int kRounds = 6;  // the first one is not counted
constexpr int kTurns = 2;

// --- the bare copy ---

struct BareCopy {
  std::size_t clients;
  bool hashed;
  void look_at(std::span<const std::byte> bytes) const {
    if (hashed && sha256(bytes) == Digest()) give_up("a hash of zeros");
  }
};

class BareRounds {
 public:
  BareRounds(asio::io_context& io, const BareCopy& copy, int results)
      : model_(kModelBytes),
        sink_(kModelBytes),
        context_(bare_context(true)),
        acceptor_(io, {asio::ip::address_v4::loopback(), 0}),
        copy_(copy),
        results_(results) {
    accept();
  }
  std::uint16_t port() const { return acceptor_.local_endpoint().port(); }

 private:
  void accept() {
    streams_.push_back(std::make_unique<TlsSocket>(acceptor_.get_executor(), context_));
    TlsSocket& stream = *streams_.back();
    acceptor_.async_accept(stream.lowest_layer(), [this, &stream](const boost::system::error_code& error) {
      if (error) give_up("cannot accept");
      stream.lowest_layer().set_option(tcp::no_delay(true));
      stream.async_handshake(asio::ssl::stream_base::server, [this](const boost::system::error_code& failed) {
        if (failed) give_up("the bare handshake failed");
        if (streams_.size() < copy_.clients) return accept();
        begin_round();
      });
    });
  }
  void begin_round() {
    if (round_++ == kRounds) return;  // no work is left: the io_context ends
    open_ = copy_.clients;
    started_ = Clock::now();
    for (const auto& stream : streams_)
      write_all(*stream, model_.span(),
                [this, &stream] { read_all(*stream, sink_.span(), [this] { end_one(); }); });
    copy_.look_at(model_.span());
  }
  void end_one() {
    copy_.look_at(sink_.span());
    if (--open_ > 0) return;
    const double taken = std::chrono::duration<double>(Clock::now() - started_).count();
    if (::write(results_, &taken, sizeof taken) != sizeof taken) give_up("cannot report a round");
    begin_round();
  }

  AlignedBuffer<std::byte> model_;
  AlignedBuffer<std::byte> sink_;
  asio::ssl::context context_;
  tcp::acceptor acceptor_;
  BareCopy copy_;
  int results_;
  std::vector<std::unique_ptr<TlsSocket>> streams_;
  int round_ = 0;
  std::size_t open_ = 0;
  Clock::time_point started_;
};

void bare_client(std::uint16_t port, const BareCopy& copy) {
  asio::io_context io;
  auto context = bare_context(false);
  TlsSocket stream(io, context);
  stream.lowest_layer().connect({asio::ip::address_v4::loopback(), port});
  stream.lowest_layer().set_option(tcp::no_delay(true));
  stream.handshake(asio::ssl::stream_base::client);
  AlignedBuffer<std::byte> buffer(kModelBytes);
  int round = 0;
  std::function<void()> next = [&] {
    if (round++ == kRounds) return;
    read_all(stream, buffer.span(), [&] {
      copy.look_at(buffer.span());
      copy.look_at(buffer.span());  // hashes the update before it is sent
      write_all(stream, buffer.span(), next);
    });
  };
  next();
  io.run();
}

template <class Body>
pid_t in_child(Body body) {
  const pid_t child = ::fork();
  if (child < 0) give_up("cannot fork");
  if (child != 0) return child;
  body();
  std::_Exit(0);
}

void wait_for(pid_t child) {
  int status = 0;
  if (::waitpid(child, &status, 0) != child || status != 0) give_up("a process failed");
}

template <class T>
T read_from(int pipe) {
  T value{};
  if (::read(pipe, &value, sizeof value) != sizeof value) give_up("the bare server ended early");
  return value;
}

std::vector<double> run_bare(const BareCopy& copy) {
  int ends[2];
  if (::pipe(ends) != 0) give_up("cannot make a pipe");
  std::vector<pid_t> children{in_child([&] {
    asio::io_context io;
    BareRounds rounds(io, copy, ends[1]);
    const std::uint16_t port = rounds.port();
    if (::write(ends[1], &port, sizeof port) != sizeof port) give_up("cannot report the port");
    io.run();
  })};
  ::close(ends[1]);
  const auto port = read_from<std::uint16_t>(ends[0]);
  for (std::size_t i = 0; i < copy.clients; ++i)
    children.push_back(in_child([&] { bare_client(port, copy); }));
  std::vector<double> seconds;
  for (int round = 0; round < kRounds; ++round) seconds.push_back(read_from<double>(ends[0]));
  ::close(ends[0]);
  for (const pid_t child : children) wait_for(child);
  return seconds;
}

// --- Fedge ---

std::string run_file(std::size_t clients) {
  const std::string n = std::to_string(clients);
  const std::string hidden = std::to_string(kHidden);
  const std::string rounds = std::to_string(kRounds);
  return "[run]\nname = \"bench-round\"\nrounds = " + rounds + "\nevaluate_every = " + rounds +
         "\n[data]\npartition = { kind = \"iid\", clients = " + n + ", samples_per_client = 1 }\n" +
         "[model]\nkind = \"mlp\"\nhidden = [" + hidden + ", " + hidden + "]\n" +
         "[sampling]\nclients_per_round = " + n + "\n";
}

struct FedgeRun {
  std::vector<double> rounds;     // seconds from one round's start to the next
  std::vector<double> exchanges;  // from the round's start to the last update's acceptance, seconds
  std::string server;             // the program's output about the coordinator
  double peak_megabytes = 0;
};

// Parses the time at the head of a log line (2026-11-21T08:37:40.809) into seconds since midnight.
double time_of(const std::string& line) {
  int hours = 0;
  int minutes = 0;
  double seconds = 0;
  if (std::sscanf(line.c_str(), "%*d-%*d-%*dT%d:%d:%lf", &hours, &minutes, &seconds) != 3)
    give_up("a log line without a time");
  return hours * 3600 + minutes * 60 + seconds;
}

FedgeRun read_log(const std::filesystem::path& log) {
  FedgeRun run;
  std::vector<double> started;
  std::ifstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    if (line.find(" round.started ") != std::string::npos) started.push_back(time_of(line));
    if (line.find(" round.closed ") != std::string::npos)
      run.exchanges.push_back(time_of(line) - started.back());
    if (line.starts_with("server ")) run.server = line;
  }
  for (std::size_t i = 1; i < started.size(); ++i) run.rounds.push_back(started[i] - started[i - 1]);
  if (started.size() != kRounds || run.exchanges.size() != kRounds) give_up("the run was cut short");
  if (std::sscanf(run.server.c_str(), "server at most %lf MB", &run.peak_megabytes) != 1)
    give_up("fedge-sim does not say what the coordinator took");
  return run;
}

FedgeRun run_fedge(const std::filesystem::path& programs, const std::filesystem::path& scratch,
                   std::size_t clients) {
  const auto file = scratch / "run.toml";
  const auto out = scratch / "out";
  const auto log = scratch / "log";
  std::ofstream(file) << run_file(clients);
  wait_for(in_child([&] {
    const int to = ::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ::dup2(to, 1);
    ::dup2(to, 2);
    const std::string program = (programs / "fedge-sim").string();
    ::execl(program.c_str(), program.c_str(), "run", file.c_str(), "--mode", "concrete", "--out", out.c_str(),
            "--log-level", "info", nullptr);
    give_up("cannot start fedge-sim, which must lie beside this program");
  }));
  return read_log(log);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// Leaves out the first round, which also loads data or warms the caches.
void add_counted(std::vector<double>& all, const std::vector<double>& rounds) {
  all.insert(all.end(), rounds.begin() + 1, rounds.end());
}

void compare(const std::filesystem::path& programs, const std::filesystem::path& scratch,
             std::size_t clients) {
  std::vector<double> bare;
  std::vector<double> hashed;
  std::vector<double> exchanges;
  std::vector<double> rounds;
  FedgeRun last;
  for (int turn = 0; turn < kTurns; ++turn) {
    add_counted(bare, run_bare({clients, false}));
    add_counted(hashed, run_bare({clients, true}));
    last = run_fedge(programs, scratch, clients);
    add_counted(exchanges, last.exchanges);
    add_counted(rounds, last.rounds);
  }
  const double megabytes = static_cast<double>(2 * clients * kModelBytes) * 1e-6;  // both directions
  const double model = static_cast<double>(kModelBytes) * 1e-6;
  const auto print = [&](const char* what, double seconds) {
    std::printf("  %-36s %6.2f s  %5.0f MB/s  %3.0f %%\n", what, seconds, megabytes / seconds,
                100 * median(bare) / seconds);
  };
  std::printf("%zu clients, %.1f MB down and up for each, medians over rounds\n", clients, model);
  print("bare copy", median(bare));
  print("bare copy, hashed", median(hashed));
  print("plan to last update, with training", median(exchanges));
  print("whole round", median(rounds));
  std::printf("  %s: %.2f times the model\n", last.server.c_str(), last.peak_megabytes / model);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::size_t> counts;
  for (int i = 1; i < argc; ++i) counts.push_back(std::strtoul(argv[i], nullptr, 10));
  if (counts.empty()) counts = {4, 16};
  const auto programs = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  std::string scratch = (std::filesystem::temp_directory_path() / "bench_round-XXXXXX").string();
  if (::mkdtemp(scratch.data()) == nullptr) give_up("cannot make a scratch directory");
  for (const std::size_t clients : counts) compare(programs, scratch, std::max<std::size_t>(clients, 1));
  std::filesystem::remove_all(scratch);
}
