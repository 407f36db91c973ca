// Speed of a link for one object, compared with a bare Asio TLS copy of the same bytes. Two processes on
// loopback, the two ways alternately, the best of several runs of each:
//   bare  boost::asio::ssl::stream, memory to memory, nothing checked
//   link  a file chunk store served over a Link, every chunk verified into memory
// Usage: bench_link [MB] [runs] [bare|link]   (only one of the two, for a profiler)
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "bench/transfer/bare_tls.h"
#include "protocol/chunks/chunk_store.h"
#include "protocol/session/endpoint.h"

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using namespace fedge;
using namespace fedge::bench;
using namespace fedge::protocol;

SecretKey fixed_key(std::uint8_t number) {
  std::array<std::uint8_t, 32> seed{};
  seed[0] = number;
  return SecretKey::from_seed(seed);
}

// Sends all the bytes for each byte that it receives.
class BareServer {
 public:
  BareServer(asio::io_context& io, std::span<const std::byte> bytes)
      : bytes_(bytes),
        context_(bare_context(true)),
        acceptor_(io, {asio::ip::address_v4::loopback(), 0}),
        stream_(io, context_) {
    acceptor_.async_accept(stream_.lowest_layer(), [this](const boost::system::error_code& error) {
      if (error) return;
      stream_.lowest_layer().set_option(tcp::no_delay(true));
      stream_.async_handshake(asio::ssl::stream_base::server,
                              [this](const boost::system::error_code& failed) {
                                if (!failed) wait();
                              });
    });
  }
  std::uint16_t port() const { return acceptor_.local_endpoint().port(); }

 private:
  void wait() {
    asio::async_read(stream_, asio::buffer(&order_, 1),
                     [this](const boost::system::error_code& error, std::size_t) {
                       if (!error) write_all(stream_, bytes_, [this] { wait(); });
                     });
  }

  std::span<const std::byte> bytes_;
  asio::ssl::context context_;
  tcp::acceptor acceptor_;
  TlsSocket stream_;
  char order_ = 0;
};

struct Ports {
  std::uint16_t bare = 0;
  std::uint16_t link = 0;
};

int run_sender(std::span<const std::byte> bytes, const Manifest& manifest, int ports_out) {
  asio::io_context io;
  BareServer bare(io, bytes);
  const auto directory =
      std::filesystem::temp_directory_path() / ("bench_link." + std::to_string(::getpid()));
  auto store = open_file_chunk_store(directory, {.max_bytes = bytes.size() + (1 << 20)});
  if (!store) give_up(store.error().message.c_str());
  auto object = (*store)->build(manifest, [&](std::size_t i, std::span<std::byte> out) -> Result<void> {
    std::memcpy(out.data(), bytes.data() + i * manifest.chunk_size, out.size());
    return {};
  });
  if (!object) give_up(object.error().message.c_str());
  std::shared_ptr<Link> held;
  auto listener = listen(
      io, *make_tls_identity(fixed_key(1)), {.address = {"127.0.0.1", 0}}, [&](std::shared_ptr<Link> link) {
        held = link;
        link->authorise();
        link->serve(manifest, *object);
        link->set_callbacks({.on_message = {}, .on_closed = [&](const Error&) { io.stop(); }});
      });
  if (!listener) give_up(listener.error().message.c_str());
  const Ports ports{bare.port(), (*listener)->local_address().port};
  if (::write(ports_out, &ports, sizeof ports) != sizeof ports) return 1;
  io.run();
  *object = nullptr;
  store->reset();
  std::filesystem::remove_all(directory);
  return 0;
}

// Returns a process's processor time so far, which varies less than wall time on a busy machine.
double cpu_seconds(pid_t process) {
  clockid_t clock = 0;
  timespec time{};
  if (::clock_getcpuclockid(process, &clock) != 0 || ::clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Writes chunks into memory whose pages are already mapped, as the bare copy does.
class MemorySink final : public ChunkSink {
 public:
  MemorySink(const Manifest& manifest, std::span<std::byte> out)
      : chunk_size_(manifest.chunk_size), out_(out), here_(manifest.chunk_count()) {}
  bool has(std::size_t chunk) const override { return here_[chunk]; }
  Result<void> write(std::size_t chunk, std::span<const std::byte> bytes) override {
    std::memcpy(out_.data() + chunk * chunk_size_, bytes.data(), bytes.size());
    here_[chunk] = true;
    return {};
  }

 private:
  std::size_t chunk_size_;
  std::span<std::byte> out_;
  std::vector<bool> here_;
};

class Receiver {
 public:
  Receiver(asio::io_context& io, const Ports& ports, const Manifest& manifest)
      : io_(io),
        manifest_(manifest),
        context_(bare_context(false)),
        bare_(io, context_),
        buffer_(static_cast<std::size_t>(manifest.payload_size)) {
    bare_.lowest_layer().connect({asio::ip::address_v4::loopback(), ports.bare});
    bare_.lowest_layer().set_option(tcp::no_delay(true));
    bare_.handshake(asio::ssl::stream_base::client);
    connect(io, *make_tls_identity(fixed_key(2)), {"127.0.0.1", ports.link}, fixed_key(1).public_key(),
            [&](Result<std::shared_ptr<Link>> link) {
              if (!link) give_up(link.error().message.c_str());
              link_ = *link;
              link_->authorise();
            });
    while (!link_) io.run_one();
  }

  double bare_seconds() {
    const auto start = std::chrono::steady_clock::now();
    bool done = false;
    asio::async_write(bare_, asio::buffer("g", 1), [&](const boost::system::error_code&, std::size_t) {
      read_all(bare_, buffer_.span(), [&] { done = true; });
    });
    while (!done) io_.run_one();
    return seconds_since(start);
  }

  double link_seconds() {
    bool done = false;
    const auto sink = std::make_shared<MemorySink>(manifest_, buffer_.span());
    const auto start = std::chrono::steady_clock::now();
    link_->fetch(manifest_, sink, [&](Result<void> result) {
      if (!result) give_up(result.error().message.c_str());
      done = true;
    });
    while (!done) io_.run_one();
    return seconds_since(start);
  }

  void close() {
    link_->close("done");
    io_.run_for(std::chrono::seconds(2));
  }

 private:
  asio::io_context& io_;
  const Manifest& manifest_;
  asio::ssl::context context_;
  TlsSocket bare_;
  AlignedBuffer<std::byte> buffer_;
  std::shared_ptr<Link> link_;
};

// The best of the runs of one way.
struct Score {
  const char* name;
  double wall = 1e9;
  double sending = 1e9;
  double receiving = 1e9;

  template <class Run>
  void add(pid_t sender, Run run) {
    const double sender_before = cpu_seconds(sender);
    const double own_before = cpu_seconds(::getpid());
    wall = std::min(wall, run());
    sending = std::min(sending, cpu_seconds(sender) - sender_before);
    receiving = std::min(receiving, cpu_seconds(::getpid()) - own_before);
  }
  void print(std::size_t size) const {
    const double gigabytes = static_cast<double>(size) / 1e9;
    std::printf("%s  %5.0f MB/s   processor seconds per GB: sender %.2f, receiver %.2f\n", name,
                1e3 * gigabytes / wall, sending / gigabytes, receiving / gigabytes);
  }
};

}  // namespace

int main(int argc, char** argv) {
  const std::size_t megabytes = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 100;
  const int runs = argc > 2 ? std::atoi(argv[2]) : 9;
  const std::string only = argc > 3 ? argv[3] : "";
  const std::size_t size = megabytes * 1'000'000;
  AlignedBuffer<std::byte> payload(size);
  for (std::size_t i = 0; i < size; ++i)
    payload.data()[i] = static_cast<std::byte>((i * 2654435761U) >> 13 & 0xff);
  const Manifest manifest = make_manifest(sha256("bench"), Coverage::all(size / sizeof(float)),
                                          payload.span(), static_cast<std::uint32_t>(kDefaultChunkSize));
  int pipe_ends[2];
  if (::pipe(pipe_ends) != 0) return 1;
  const pid_t sender = ::fork();
  if (sender == 0) return run_sender(payload.span(), manifest, pipe_ends[1]);
  Ports ports;
  if (::read(pipe_ends[0], &ports, sizeof ports) != sizeof ports) return 1;
  asio::io_context io;
  Receiver receiver(io, ports, manifest);
  Score bare{"bare"};
  Score link{"link"};
  for (int run = 0; run < runs; ++run) {
    if (only != "link") bare.add(sender, [&] { return receiver.bare_seconds(); });
    if (only == "bare") continue;
    link.add(sender, [&] { return receiver.link_seconds(); });
  }
  if (only != "link") bare.print(size);
  if (only != "bare") link.print(size);
  const double ratio = bare.wall / link.wall;
  if (only.empty())
    std::printf("best of %d, %zu MB in chunks of 256 KiB: link / bare = %.2f\n", runs, megabytes, ratio);
  receiver.close();
  int status = 0;
  ::waitpid(sender, &status, 0);
  return ratio >= 0.6 || !only.empty() ? 0 : 2;
}
