// Four members and the coordinator of a secure sum for the fuzzer: state machines with real keys, and the
// messages in transit. Checks the invariants: a member gives only one answer and never reveals both kinds of
// share of another member, and a sum equals that of its updates.
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

class SecureParties {
 public:
  static constexpr std::uint32_t kMembers = 4;
  static constexpr std::size_t kParameters = 10;
  static constexpr privacy::SecureRules kRules{.min_survivors = 2};
  struct OnTheWire {
    bool to_client = false;
    std::uint32_t client = 0;
    protocol::Message message;
  };

  SecureParties() {
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
                                                                       .check_pinned_key = {}},
                                                  identities_[i], [this](std::span<std::uint8_t> out) {
                                                    for (std::uint8_t& byte : out)
                                                      byte = static_cast<std::uint8_t>(entropy_.next_u32());
                                                  }));
  }

  // Starts all members.
  void start() {
    for (std::uint32_t i = 0; i < kMembers; ++i)
      of_client(i, [&](auto& effects) { clients_[i]->start(effects); });
  }
  void deliver() {
    if (wire.empty()) return;
    const OnTheWire one = std::move(wire.front());
    wire.pop_front();
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
  void wait() {
    const auto deadline = server_->next_deadline();
    if (!deadline) return;
    now_ = *deadline;
    of_server([&](auto& effects) { server_->expired(now_, effects); });
  }
  void leave(ClientId client) {
    of_server([&](auto& effects) { server_->left(client, now_, effects); });
  }
  bool over() const { return over_; }
  // Whether a sum has been unmasked; its value was then checked.
  bool has_sum() const { return has_sum_; }
  bool to_be_summed() const { return agreed_ && !summed_; }
  const protocol::SecureSession& session() const { return server_->session(); }
  // Sums the updates of the members whose bits are set, if they are ready.
  void sum(std::uint8_t who) {
    if (!agreed_ || summed_) return;
    summed_ = true;
    Sequential here;
    words_.assign(kParameters, 0);
    plain_.assign(kParameters, 0);
    std::vector<ClientId> survivors;
    for (std::uint32_t i = 0; i < kMembers; ++i) {
      if ((unsigned{who} >> i & 1U) == 0 || !clients_[i]->ready() ||
          server_->coverage_of(ClientId(i)) == nullptr)
        continue;
      const privacy::Masking masking = clients_[i]->masking();
      // If a roster was changed in transit, the client masks other parameters, and the coordinator detects
      // it.
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

  std::deque<OnTheWire> wire;

 private:
  std::vector<std::uint32_t> update(std::uint32_t client) const {
    std::vector<std::uint32_t> words(kParameters);
    for (std::size_t p = 0; p < kParameters; ++p)
      words[p] = 1'000'003U * (client + 1) + 77U * static_cast<std::uint32_t>(p);
    return words;
  }
  template <class Step>
  void of_client(std::uint32_t client, const Step& take) {
    std::vector<privacy::SecureClient::Effect> effects;
    take(effects);
    for (const auto& effect : effects) {
      const auto* send = std::get_if<privacy::SecureClient::Send>(&effect);
      if (send == nullptr) continue;
      if (const auto* unmask = std::get_if<protocol::SecureUnmask>(&send->message)) look(client, *unmask);
      wire.push_back(
          {false, client,
           std::visit([](const auto& message) { return protocol::Message(message); }, send->message)});
    }
  }
  void look(std::uint32_t client, const protocol::SecureUnmask& unmask) {
    // A repeated request gets the same answer.
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
    // Different members do not reveal both kinds either: more than a third of them would have to lie.
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
        wire.push_back(
            {true, send->client.value(),
             std::visit([](const auto& message) { return protocol::Message(message); }, send->message)});
      if (std::holds_alternative<privacy::SecureServer::Agreed>(effect)) agreed_ = true;
      if (std::holds_alternative<privacy::SecureServer::Failed>(effect)) over_ = true;
      if (std::holds_alternative<privacy::SecureServer::Unmaskable>(effect)) unmask();
    }
    if (wire.size() > 1000) wire.resize(1000);
  }
  void unmask() {
    over_ = true;
    Sequential here;
    const auto recovered = server_->take_unmasking().recover(here);
    if (!recovered) return;
    std::vector<std::uint64_t> scalars(server_->cells().size());
    recovered->masks.take_away(std::span(words_), scalars, here);
    FEDGE_CHECK(words_ == plain_, "the sum of the survivors' updates");
    has_sum_ = true;
  }

  std::vector<SecretKey> identities_;
  Rng entropy_{3};
  std::optional<privacy::SecureServer> server_;
  std::vector<std::unique_ptr<privacy::SecureClient>> clients_;
  std::vector<std::uint32_t> words_;
  std::vector<std::uint32_t> plain_;
  std::map<std::uint32_t, protocol::SecureUnmask> answered_;
  std::set<std::uint32_t> survived_;
  std::set<std::uint32_t> dropped_;
  Time now_{};
  bool agreed_ = false;
  bool summed_ = false;
  bool over_ = false;
  bool has_sum_ = false;
};

}  // namespace fedge::fuzz
