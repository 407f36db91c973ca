// The cost of a secure sum. The coordinator's state machine runs in this process, the clients' in another,
// with real keys, secret shares and masks between them. Prints one row: a client's seconds and bytes (mean
// over the clients that stay), the coordinator's own seconds, and its memory.
//   bench_secure_costs CLIENTS PARAMETERS DROPOUT complete|sparse|curious [64]
// DROPOUT: fraction of clients that drop out after the masks are established, when dropout costs the
// coordinator most.
#include <sys/resource.h>
#include <sys/wait.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <string_view>
#include <thread>

#include "bench/secure_aggregation/wire.h"
#include "core/platform/thread_pool.h"
#include "privacy/secure_aggregation/server.h"
#include "run/secure_update.h"

namespace fedge::bench {
namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

double peak_mb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

class Server {
 public:
  Server(int socket, const Setting& setting) : socket_(socket), setting_(setting) {
    spec_.codec = setting.wide ? protocol::Codec::kMasked64 : protocol::Codec::kMasked32;
    spec_.max_abs = 1;
    spec_.uniform_weight = spec_.max_weight = 1;
    spec_.fraction_bits = setting.wide ? 28 : *privacy::fraction_bits_of(setting.clients, 1, 1);
    privacy::SecureServer::Terms terms;
    terms.session = {RunId(1), RoundNumber(1), TrackId(), 1};
    terms.rules.assumptions.corrupt = setting.corrupt;
    terms.rules.assumptions.dropout = setting.dropout;
    if (setting.curious) terms.rules.assumptions.adversary = privacy::Adversary::kCurious;
    terms.rules.complete_below = setting.complete ? UINT32_MAX : 0;
    std::vector<privacy::SecureServer::Member> members;
    for (std::uint32_t i = 0; i < setting.clients; ++i) {
      Head head;
      read_all(socket_, &head, sizeof head);
      privacy::SecureServer::Member member{ClientId(i), {}, Coverage::all(setting.parameters)};
      read_all(socket_, member.identity.bytes.data(), 32);
      members.push_back(std::move(member));
    }
    server_.emplace(terms, std::move(members), Time());
  }

  void run() {
    while (!done_) {
      Head head;
      read_all(socket_, &head, sizeof head);
      if (head.kind == Kind::kEnd)
        summed();
      else if (head.kind == Kind::kScalars || head.kind == Kind::kWords)
        fold(head);
      else
        hear(head);
    }
    send(socket_, {0, Kind::kEnd}, nullptr, 0);
    for (;;) {
      Head head;
      read_all(socket_, &head, sizeof head);
      if (head.kind == Kind::kFigures) break;
      std::vector<char> late(head.size);
      read_all(socket_, late.data(), late.size());
    }
    read_all(socket_, &figures, sizeof figures);
  }

  Figures figures;
  double agreeing_seconds = 0;  // signatures, routing of secret shares and consents
  double folding_seconds = 0;
  double recovering_seconds = 0;  // reconstructing secrets, deriving shared secrets
  double unmasking_seconds = 0;   // expanding and subtracting masks
  std::size_t masks = 0;
  std::uint32_t degree = 0;
  std::uint32_t threshold = 0;

 private:
  void hear(const Head& head) {
    const protocol::Message message = receive_message(socket_, head);
    const ClientId client(head.client);
    step([&](auto& effects) {
      if (const auto* m = std::get_if<protocol::SecureKeys>(&message))
        server_->receive(client, *m, Time(), effects);
      if (const auto* m = std::get_if<protocol::SecureShares>(&message))
        server_->receive(client, *m, Time(), effects);
      if (const auto* m = std::get_if<protocol::SecureConsent>(&message))
        server_->receive(client, *m, Time(), effects);
      if (const auto* m = std::get_if<protocol::SecureUnmask>(&message))
        server_->receive(client, *m, Time(), effects);
    });
  }

  template <class Step>
  void step(const Step& take) {
    std::vector<privacy::SecureServer::Effect> effects;
    const auto begin = Clock::now();
    take(effects);
    agreeing_seconds += since(begin);
    for (const auto& effect : effects) {
      if (const auto* word = std::get_if<privacy::SecureServer::Send>(&effect))
        outgoing_.emplace_back(word->client.value(),
                               std::visit([](const auto& m) { return protocol::Message(m); }, word->message));
      if (std::holds_alternative<privacy::SecureServer::Agreed>(effect)) agreed();
      if (std::holds_alternative<privacy::SecureServer::Unmaskable>(effect)) unmask();
      if (const auto* failed = std::get_if<privacy::SecureServer::Failed>(&effect)) {
        std::fprintf(stderr, "failed: %s\n", failed->error.message.c_str());
        std::exit(1);
      }
    }
    // Sends on another thread: two processes that both block in write() would deadlock.
    const auto batch = std::make_shared<std::vector<std::pair<std::uint32_t, protocol::Message>>>(
        std::exchange(outgoing_, {}));
    if (batch->empty()) return;
    if (sender_.joinable()) sender_.join();
    sender_ = std::jthread([this, batch] {
      for (const auto& [client, message] : *batch)
        client == UINT32_MAX ? send(socket_, {0, Kind::kMask}, nullptr, 0) : send(socket_, client, message);
    });
  }

  void agreed() {
    degree = server_->graph().degree;
    threshold = server_->graph().threshold;
    sum_.emplace(spec_, server_->cells());
    outgoing_.emplace_back(UINT32_MAX, protocol::Goodbye{});  // tells all clients to mask
  }

  void fold(const Head& head) {
    if (head.kind == Kind::kScalars) {
      scalars_.resize(head.size / sizeof(std::uint64_t));
      return read_all(socket_, scalars_.data(), head.size);
    }
    words_.resize(head.size);
    read_all(socket_, words_.data(), head.size);
    const auto begin = Clock::now();
    const auto added = sum_->add({.coverage = server_->coverage_of(ClientId(head.client)),
                                  .read = [&](std::uint64_t first, std::span<std::byte> out) -> Result<void> {
                                    std::memcpy(out.data(), words_.data() + first, out.size());
                                    return {};
                                  },
                                  .scalars = scalars_});
    folding_seconds += since(begin);
    if (!added) std::exit(1);
    survivors_.push_back(ClientId(head.client));
  }

  void summed() {
    std::ranges::sort(survivors_);
    step([&](auto& effects) { server_->summed(survivors_, Time(), effects); });
    for (std::uint32_t i = 0; i < setting_.clients; ++i)
      if (vanishes(setting_, i)) step([&](auto& effects) { server_->left(ClientId(i), Time(), effects); });
  }

  void unmask() {
    ThreadPool threads(std::thread::hardware_concurrency());
    auto begin = Clock::now();
    const auto recovered = server_->take_unmasking().recover(threads);
    recovering_seconds = since(begin);
    if (!recovered) std::fprintf(stderr, "%s\n", recovered.error().message.c_str()), std::exit(1);
    masks = recovered->masks.size();
    begin = Clock::now();
    const auto plain = std::move(*sum_).unmask(recovered->masks, threads);
    unmasking_seconds = since(begin);
    if (!plain) std::fprintf(stderr, "%s\n", plain.error().message.c_str()), std::exit(1);
    check(*plain);
    done_ = true;
  }

  // Every client's value is its number / clients, each rounded by less than a unit.
  void check(const run::SecureSum::Plain& plain) const {
    double expected = 0;
    for (const ClientId client : survivors_)
      expected +=
          static_cast<double>(static_cast<float>(client.value()) / static_cast<float>(setting_.clients));
    const double unit = std::ldexp(1, spec_.fraction_bits);
    for (const std::int64_t sum : plain.sums.span())
      if (std::abs(static_cast<double>(sum) / unit - expected) * unit >
          static_cast<double>(survivors_.size()))
        std::fprintf(stderr, "a wrong sum\n"), std::exit(1);
  }

  int socket_;
  Setting setting_;
  privacy::MaskingSpec spec_;
  std::optional<privacy::SecureServer> server_;
  std::optional<run::SecureSum> sum_;
  std::vector<std::uint64_t> scalars_;
  std::vector<std::byte> words_;
  std::vector<ClientId> survivors_;
  std::vector<std::pair<std::uint32_t, protocol::Message>> outgoing_;
  std::jthread sender_;
  bool done_ = false;
};

int measure(const Setting& setting) {
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0) return std::perror("socketpair"), 1;
  const pid_t child = fork();
  if (child == 0) {
    close(sockets[0]);
    run_clients(sockets[1], setting);
  }
  close(sockets[1]);
  Server server(sockets[0], setting);
  server.run();
  waitpid(child, nullptr, 0);
  const Figures& f = server.figures;
  std::printf(
      "| %u | %zu | %.0f %% | %u / %u | %d | %.3f | %.3f | %.0f | %.0f | %.2f | %.2f | %.2f | %.2f | %.2f | "
      "%zu | %.0f |\n",
      setting.clients, setting.parameters, 100 * setting.dropout, server.degree, server.threshold,
      setting.wide ? 64 : 32, f.client_seconds, f.masking_seconds, f.bytes_up / 1000, f.bytes_down / 1000,
      server.agreeing_seconds, server.folding_seconds, server.recovering_seconds, server.unmasking_seconds,
      server.agreeing_seconds + server.folding_seconds + server.recovering_seconds + server.unmasking_seconds,
      server.masks, peak_mb());
  return 0;
}

}  // namespace
}  // namespace fedge::bench

int main(int count, char** values) {
  fedge::bench::Setting setting;
  if (count < 5) {
    std::fprintf(stderr,
                 "usage: bench_secure_costs CLIENTS PARAMETERS DROPOUT complete|sparse|curious [64]\n");
    return 2;
  }
  setting.clients = static_cast<std::uint32_t>(std::strtoul(values[1], nullptr, 10));
  setting.parameters = std::strtoull(values[2], nullptr, 10);
  setting.dropout = std::strtod(values[3], nullptr);
  const std::string_view graph = values[4];
  setting.complete = graph == "complete";
  setting.curious = graph == "curious";
  setting.wide = count > 5 && std::string_view(values[5]) == "64";
  return fedge::bench::measure(setting);
}
