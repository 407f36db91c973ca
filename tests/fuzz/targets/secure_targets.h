// A session of secure aggregation of four members and a coordinator, as state machines with real keys, in
// which the input says what becomes of every message (passed on, changed, lost, doubled, late), who leaves
// and what the coordinator claims of survivors. Whatever it says, no member may reveal both kinds of share of
// another, nor answer in two ways, and a sum that comes out is that of the updates in it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/check.h"
#include "core/rng.h"
#include "privacy/secure_aggregation/client.h"
#include "privacy/secure_aggregation/server.h"
#include "protocol/codec.h"

namespace fedge::fuzz {

class SecureScript {
 public:
  explicit SecureScript(std::span<const std::byte> script) : script_(script) {
    std::vector<privacy::SecureServer::Member> known;
    for (std::uint32_t i = 0; i < kMembers; ++i) {
      std::array<std::uint8_t, 32> seed{};
      seed[0] = static_cast<std::uint8_t>(i + 1);
      identities_.push_back(SecretKey::from_seed(seed));
      known.push_back({ClientId(i), identities_.back().public_key(), Coverage::all(kParameters)});
    }
    const protocol::SecureSession session{RunId(1), RoundNumber(1), TrackId(), 1};
    server_.emplace(privacy::SecureServer::Terms{.session = session, .rules = kRules}, known, Time());
    for (std::uint32_t i = 0; i < kMembers; ++i)
      clients_.push_back(
          std::make_unique<privacy::SecureClient>(privacy::MemberTerms{.session = session,
                                                                       .self = ClientId(i),
                                                                       .parameters = kParameters,
                                                                       .trained = Coverage::all(kParameters),
                                                                       .rules = kRules,
                                                                       .vouch = {}},
                                                  identities_[i], [this](std::span<std::uint8_t> out) {
                                                    for (std::uint8_t& byte : out)
                                                      byte = static_cast<std::uint8_t>(entropy_.next_u32());
                                                  }));
  }

  void run() {
    for (std::uint32_t i = 0; i < kMembers; ++i)
      of_client(i, [&](auto& effects) { clients_[i]->start(effects); });
    for (int steps = 0; steps < 400 && position_ < script_.size(); ++steps) act(next());
    // What is left goes its way, as far as it goes.
    for (int waits = 0; waits < 12 && !over_; ++waits) {
      while (!wire_.empty()) deliver();
      if (agreed_ && !summed_)
        sum(0xff);
      else
        wait();
    }
  }

 private:
  static constexpr std::uint32_t kMembers = 4;
  static constexpr std::size_t kParameters = 10;
  static constexpr privacy::SecureRules kRules{.min_survivors = 2};
  struct OnTheWire {
    bool to_client = false;
    std::uint32_t client = 0;
    protocol::Message message;
  };

  std::uint8_t next() {
    return position_ < script_.size() ? static_cast<std::uint8_t>(script_[position_++]) : std::uint8_t{0};
  }

  void act(std::uint8_t op) {
    switch (op % 8) {
      case 0:
        return deliver();
      case 1:
        return change();
      case 2:
        if (!wire_.empty()) wire_.pop_front();
        return;
      case 3:
        if (!wire_.empty()) wire_.push_back(wire_.front());
        return deliver();
      case 4:
        if (!wire_.empty()) wire_.push_back(std::move(wire_.front())), wire_.pop_front();
        return;
      case 5:
        return wait();
      case 6: {
        const ClientId client(next() % kMembers);
        return of_server([&](auto& effects) { server_->left(client, now_, effects); });
      }
      default:
        return op >= 128 ? sum(next()) : claim();
    }
  }

  void deliver() {
    if (wire_.empty()) return;
    const OnTheWire one = std::move(wire_.front());
    wire_.pop_front();
    pass(one);
  }
  void pass(const OnTheWire& one) {
    std::visit(
        [&](const auto& message) {
          if constexpr (requires(std::vector<privacy::SecureClient::Effect> & e) {
                          clients_[0]->receive(message, e);
                        }) {
            if (one.to_client)
              of_client(one.client, [&](auto& effects) { clients_[one.client]->receive(message, effects); });
          } else if constexpr (requires(std::vector<privacy::SecureServer::Effect> & e) {
                                 server_->receive(ClientId(), message, Time(), e);
                               }) {
            if (!one.to_client)
              of_server(
                  [&](auto& effects) { server_->receive(ClientId(one.client), message, now_, effects); });
          }
        },
        one.message);
  }
  // One byte of it on the wire is another, if it is a message then.
  void change() {
    if (wire_.empty()) return;
    OnTheWire one = std::move(wire_.front());
    wire_.pop_front();
    std::string bytes = protocol::encode(one.message);
    const std::size_t place = (std::size_t{next()} << 8 | next()) % bytes.size();
    bytes[place] = static_cast<char>(bytes[place] ^ static_cast<char>(next()));
    auto changed = protocol::decode(protocol::type_of(one.message), std::as_bytes(std::span(bytes)));
    if (!changed) return;
    one.message = std::move(*changed);
    pass(one);
  }
  void wait() {
    const auto deadline = server_->next_deadline();
    if (!deadline) return;
    now_ = *deadline;
    of_server([&](auto& effects) { server_->expired(now_, effects); });
  }
  // What a coordinator that lies may say: these have survived.
  void claim() {
    const std::uint32_t client = next() % kMembers;
    const std::uint8_t who = next();
    protocol::SecureSurvivors survivors{server_->session(), {}};
    for (std::uint32_t i = 0; i < kMembers; ++i)
      if ((who >> i & 1U) != 0) survivors.numbers.push_back(i);
    wire_.push_front({true, client, survivors});
    deliver();
  }

  std::vector<std::uint32_t> update(std::uint32_t client) const {
    std::vector<std::uint32_t> words(kParameters);
    for (std::size_t p = 0; p < kParameters; ++p)
      words[p] = 1'000'003U * (client + 1) + 77U * static_cast<std::uint32_t>(p);
    return words;
  }
  // Of those whose bits are set, if they are ready.
  void sum(std::uint8_t who) {
    if (!agreed_ || summed_) return;
    summed_ = true;
    Sequential here;
    words_.assign(kParameters, 0);
    plain_.assign(kParameters, 0);
    std::vector<ClientId> survivors;
    for (std::uint32_t i = 0; i < kMembers; ++i) {
      if ((who >> i & 1U) == 0 || !clients_[i]->ready() || server_->coverage_of(ClientId(i)) == nullptr)
        continue;
      const privacy::Masking masking = clients_[i]->masking();
      // Where a roster was changed on its way the client masks something else, and the coordinator sees it.
      if (masking.coverage() != *server_->coverage_of(ClientId(i)) ||
          masking.coverage() != Coverage::all(kParameters))
        continue;
      auto words = update(i);
      std::vector<std::uint64_t> scalars(masking.cells().size());
      masking.apply(std::span(words), scalars, here);
      clients_[i]->masked();
      for (std::size_t p = 0; p < kParameters; ++p) words_[p] += words[p], plain_[p] += update(i)[p];
      survivors.push_back(ClientId(i));
    }
    of_server([&](auto& effects) { server_->summed(survivors, now_, effects); });
  }

  template <class Step>
  void of_client(std::uint32_t client, const Step& take) {
    std::vector<privacy::SecureClient::Effect> effects;
    take(effects);
    for (const auto& effect : effects) {
      const auto* send = std::get_if<privacy::SecureClient::Send>(&effect);
      if (send == nullptr) continue;
      if (const auto* unmask = std::get_if<protocol::SecureUnmask>(&send->message)) look(client, *unmask);
      wire_.push_back(
          {false, client,
           std::visit([](const auto& message) { return protocol::Message(message); }, send->message)});
    }
  }
  void look(std::uint32_t client, const protocol::SecureUnmask& unmask) {
    // Asked once more it says the same.
    const auto [answer, is_first] = answered_.try_emplace(client, unmask);
    FEDGE_CHECK(answer->second == unmask, "a member has one answer");
    if (!is_first) return;
    std::set<std::uint32_t> survivors;
    for (const auto& survivor : unmask.survivors)
      FEDGE_CHECK(survivors.insert(survivor.number).second, "one share of each");
    FEDGE_CHECK(survivors.size() >= kRules.min_survivors - 1, "a sum of as many as it insists on");
    for (const auto& dropped : unmask.dropped) {
      FEDGE_CHECK(!survivors.contains(dropped.number), "never both kinds of share");
      dropped_.insert(dropped.number);
    }
    survived_.insert(survivors.begin(), survivors.end());
    // Nor by way of different members: more than a third of them would have to lie.
    for (const std::uint32_t number : dropped_)
      FEDGE_CHECK(!survived_.contains(number), "all members believe in the same survivors");
  }

  template <class Step>
  void of_server(const Step& take) {
    if (over_) return;
    std::vector<privacy::SecureServer::Effect> effects;
    take(effects);
    for (const auto& effect : effects) {
      if (const auto* send = std::get_if<privacy::SecureServer::Send>(&effect))
        wire_.push_back(
            {true, send->client.value(),
             std::visit([](const auto& message) { return protocol::Message(message); }, send->message)});
      if (std::holds_alternative<privacy::SecureServer::Agreed>(effect)) agreed_ = true;
      if (std::holds_alternative<privacy::SecureServer::Failed>(effect)) over_ = true;
      if (std::holds_alternative<privacy::SecureServer::Unmaskable>(effect)) unmask();
    }
    if (wire_.size() > 1000) wire_.resize(1000);
  }
  void unmask() {
    over_ = true;
    Sequential here;
    const auto recovered = server_->take_unmasking().recover(here);
    if (!recovered) return;
    std::vector<std::uint64_t> scalars(server_->cells().size());
    recovered->masks.take_away(std::span(words_), scalars, here);
    FEDGE_CHECK(words_ == plain_, "the sum of the survivors' updates");
  }

  std::span<const std::byte> script_;
  std::size_t position_ = 0;
  std::vector<SecretKey> identities_;
  Rng entropy_{3};
  std::optional<privacy::SecureServer> server_;
  std::vector<std::unique_ptr<privacy::SecureClient>> clients_;
  std::deque<OnTheWire> wire_;
  std::vector<std::uint32_t> words_;
  std::vector<std::uint32_t> plain_;
  std::map<std::uint32_t, protocol::SecureUnmask> answered_;
  std::set<std::uint32_t> survived_;
  std::set<std::uint32_t> dropped_;
  Time now_{};
  bool agreed_ = false;
  bool summed_ = false;
  bool over_ = false;
};

inline void feed_secure_session(std::span<const std::byte> script) { SecureScript(script).run(); }

}  // namespace fedge::fuzz
