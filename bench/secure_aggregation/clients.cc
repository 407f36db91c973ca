// The client side of bench_secure_costs: each client has its own state machine, keys and masks. Two threads
// compute the masks.
#include <algorithm>
#include <ctime>
#include <memory>
#include <mutex>
#include <thread>

#include "bench/secure_aggregation/wire.h"
#include "core/crypto/entropy.h"
#include "core/rng.h"
#include "run/secure_update.h"

namespace fedge::bench {
namespace {

double thread_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

struct Client {
  SecretKey identity = SecretKey::generate();
  std::unique_ptr<privacy::SecureClient> session;
  double seconds = 0;
  double masking = 0;
  double up = 0;
  double down = 0;
  bool ready = false;
};

class Clients {
 public:
  Clients(int socket, const Setting& setting)
      : socket_(socket), setting_(setting), clients_(setting.clients) {
    spec_.codec = setting.wide ? protocol::Codec::kMasked64 : protocol::Codec::kMasked32;
    spec_.max_abs = 1;
    spec_.uniform_weight = spec_.max_weight = 1;
    spec_.fraction_bits = setting.wide ? 28 : *privacy::fraction_bits_of(setting.clients, 1, 1);
  }

  [[noreturn]] void run() {
    // The identity keys are long-lived: the coordinator knows them before the session.
    for (std::uint32_t i = 0; i < clients_.size(); ++i)
      send(socket_, {i, Kind::kMessage, 0}, clients_[i].identity.public_key().bytes.data(), 32);
    begin();
    for (;;) {
      Head head;
      read_all(socket_, &head, sizeof head);
      if (head.kind == Kind::kMask) mask_all();
      if (head.kind == Kind::kEnd) end();
      if (head.kind == Kind::kMessage) hear(head);
    }
  }

 private:
  void begin() {
    for (std::uint32_t i = 0; i < clients_.size(); ++i) {
      privacy::SecureRules rules;
      rules.assumptions.corrupt = setting_.corrupt;
      rules.assumptions.dropout = setting_.dropout;
      if (setting_.curious) rules.assumptions.adversary = privacy::Adversary::kCurious;
      rules.complete_below = setting_.complete ? UINT32_MAX : 0;
      clients_[i].session = std::make_unique<privacy::SecureClient>(
          privacy::MemberTerms{.session = {RunId(1), RoundNumber(1), TrackId(), 1},
                               .self = ClientId(i),
                               .parameters = setting_.parameters,
                               .trained = Coverage::all(setting_.parameters),
                               .rules = rules,
                               .fast_aes = has_fast_aes(),
                               .check_pinned_key = {}},
          clients_[i].identity, system_entropy());
      step(i, [&](auto& effects) { clients_[i].session->start(effects); });
    }
  }

  template <class Step>
  void step(std::uint32_t i, const Step& take) {
    Client& client = clients_[i];
    std::vector<privacy::SecureClient::Effect> effects;
    const double before = thread_seconds();
    take(effects);
    client.seconds += thread_seconds() - before;
    for (const auto& effect : effects) {
      if (std::holds_alternative<privacy::SecureClient::Ready>(effect)) client.ready = true;
      if (const auto* stopped = std::get_if<privacy::SecureClient::Stopped>(&effect)) {
        std::fprintf(stderr, "client %u stopped: %s\n", i, stopped->error.message.c_str());
        std::exit(1);
      }
      const auto* word = std::get_if<privacy::SecureClient::Send>(&effect);
      if (word == nullptr) continue;
      const auto message = std::visit([](const auto& m) { return protocol::Message(m); }, word->message);
      client.up += static_cast<double>(protocol::frame_size(message));
      send(socket_, i, message);
    }
  }

  void hear(const Head& head) {
    const protocol::Message message = receive_message(socket_, head);
    Client& client = clients_[head.client];
    client.down += static_cast<double>(protocol::frame_size(message));
    if (vanishes(setting_, head.client) && client.ready) return;
    step(head.client, [&](auto& effects) {
      if (const auto* m = std::get_if<protocol::SecureRoster>(&message)) client.session->receive(*m, effects);
      if (const auto* m = std::get_if<protocol::SecurePeerShares>(&message))
        client.session->receive(*m, effects);
      if (const auto* m = std::get_if<protocol::SecureSurvivors>(&message))
        client.session->receive(*m, effects);
      if (const auto* m = std::get_if<protocol::SecureConsents>(&message))
        client.session->receive(*m, effects);
    });
  }

  // Every value is client / clients, so that the sum is known.
  void mask(std::uint32_t i) {
    Client& client = clients_[i];
    const std::vector<float> values(setting_.parameters,
                                    static_cast<float>(i) / static_cast<float>(setting_.clients));
    const Coverage all = Coverage::all(setting_.parameters);
    Sequential here;
    const double before = thread_seconds();
    const privacy::Masking masking = client.session->masking();
    auto masked =
        run::mask_update({.coverage = &all, .values = values, .samples = SampleCount(1), .rounding = Rng(i)},
                         spec_, masking, here);
    client.session->masked();
    client.masking = thread_seconds() - before;
    client.seconds += client.masking;
    client.up += static_cast<double>(masked->words.size() + 8 * masked->scalars.size());
    const std::scoped_lock lock(mutex_);
    send(socket_, {i, Kind::kScalars}, masked->scalars.data(),
         masked->scalars.size() * sizeof(std::uint64_t));
    send(socket_, {i, Kind::kWords}, masked->words.data(), masked->words.size());
  }

  void mask_all() {
    std::atomic<std::uint32_t> next{0};
    const auto work = [&] {
      for (std::uint32_t i = next++; i < clients_.size(); i = next++)
        if (!vanishes(setting_, i)) mask(i);
    };
    std::jthread other(work);
    work();
    other.join();
    send(socket_, {0, Kind::kEnd}, nullptr, 0);
  }

  [[noreturn]] void end() {
    Figures figures;
    double stayed = 0;
    for (std::uint32_t i = 0; i < clients_.size(); ++i) {
      if (vanishes(setting_, i)) continue;
      const Client& client = clients_[i];
      ++stayed;
      figures.client_seconds += client.seconds;
      figures.masking_seconds += client.masking;
      figures.slowest_seconds = std::max(figures.slowest_seconds, client.seconds);
      figures.bytes_up += client.up;
      figures.bytes_down += client.down;
    }
    for (double* sum :
         {&figures.client_seconds, &figures.masking_seconds, &figures.bytes_up, &figures.bytes_down})
      *sum /= stayed;
    send(socket_, {0, Kind::kFigures}, &figures, sizeof figures);
    std::_Exit(0);
  }

  int socket_;
  Setting setting_;
  privacy::MaskingSpec spec_;
  std::vector<Client> clients_;
  std::mutex mutex_;
};

}  // namespace

void run_clients(int socket, const Setting& setting) { Clients(socket, setting).run(); }

}  // namespace fedge::bench
