// A secure aggregation session between a site's daemon and two members that the test runs.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/config/document.h"
#include "core/crypto/entropy.h"
#include "privacy/secure_aggregation/client.h"
#include "privacy/secure_aggregation/server.h"
#include "tests/unit/client/daemon_site.h"

namespace fedge::client::site {

// The coordinator's side of the session, and the two members.
struct SecureTurn {
  SecureTurn(Site& at, std::uint32_t round, std::uint32_t attempt, RunId run = kFirst,
             TrackId track = TrackId())
      : site(at), session{run, RoundNumber(round), track, attempt} {
    const Coverage all = Coverage::all(site.work.values.size());
    std::vector<privacy::SecureServer::Member> known = {{ClientId(0), site.link->peer(), all}};
    for (std::uint32_t i = 1; i < 3; ++i) known.push_back({ClientId(i), keys[i - 1].public_key(), all});
    const Digest terms = sha256(site.work.text);
    server.emplace(
        privacy::SecureServer::Terms{.session = session, .model = site.work.model.id(), .terms = terms},
        known, Time());
    for (std::uint32_t i = 1; i < 3; ++i)
      others.push_back(
          std::make_unique<privacy::SecureClient>(privacy::MemberTerms{.session = session,
                                                                       .self = ClientId(i),
                                                                       .model = site.work.model.id(),
                                                                       .terms = terms,
                                                                       .parameters = all.count(),
                                                                       .trained = all,
                                                                       .fast_aes = true,
                                                                       .check_pinned_key = {}},
                                                  keys[i - 1], system_entropy()));
  }
  void begin() {
    site.heard.clear();
    protocol::TrainRequest request = site.work.request(session.run, session.round.value());
    request.secure_attempt = session.attempt;
    request.track = session.track;
    site.tell(request);
    for (std::uint32_t i = 1; i < 3; ++i) {
      std::vector<privacy::SecureClient::Effect> said;
      others[i - 1]->start(said);
      take(i, said);
    }
  }
  // Runs until the daemon has offered its masked update or has refused.
  bool masks() {
    return site.run_until([&] {
      hear();
      return site.count<protocol::UpdateOffer>(session.run) + site.count<protocol::TaskFailed>(session.run) >
             0;
    });
  }
  // Reports the sum of these members' updates once, if they have agreed on masks.
  void sum(std::span<const ClientId> wanted) {
    if (!std::exchange(agreed, false)) return;
    std::vector<ClientId> survivors;
    for (const ClientId client : wanted)
      if (server->coverage_of(client) != nullptr) survivors.push_back(client);
    for (const auto& other : others) other->masked();
    step([&](auto& effects) { server->summed(survivors, Time(), effects); });
  }
  // Then runs until the daemon has revealed its secret shares or has refused.
  bool reveals() {
    const std::size_t before = site.said.size();
    sum(std::array{ClientId(0), ClientId(1), ClientId(2)});
    site.run_until([&] {
      hear();
      const auto refused = [](const std::string& line) { return line.starts_with("secure.session_stopped"); };
      return revealed ||
             std::any_of(site.said.begin() + static_cast<std::ptrdiff_t>(before), site.said.end(), refused);
    });
    return revealed;
  }

  // Processes the daemon's messages since the last call.
  void hear() {
    for (; next < site.heard.size(); ++next)
      step([&](auto& effects) {
        const protocol::Message& message = site.heard[next];
        if (const auto* m = std::get_if<protocol::SecureKeys>(&message))
          server->receive(ClientId(0), *m, Time(), effects);
        if (const auto* m = std::get_if<protocol::SecureShares>(&message))
          server->receive(ClientId(0), *m, Time(), effects);
        if (const auto* m = std::get_if<protocol::SecureConsent>(&message))
          server->receive(ClientId(0), *m, Time(), effects);
        revealed = revealed || std::holds_alternative<protocol::SecureUnmask>(message);
      });
  }

 private:
  template <class Step>
  void step(const Step& act) {
    std::vector<privacy::SecureServer::Effect> effects;
    act(effects);
    for (const auto& effect : effects) {
      agreed = agreed || std::holds_alternative<privacy::SecureServer::Agreed>(effect);
      const auto* send = std::get_if<privacy::SecureServer::Send>(&effect);
      if (send == nullptr) continue;
      std::visit([&](const auto& message) { deliver(send->client.value(), message); }, send->message);
    }
  }
  template <class M>
  void deliver(std::uint32_t member, const M& message) {
    if (member == 0) return site.tell(message);
    std::vector<privacy::SecureClient::Effect> said;
    others[member - 1]->receive(message, said);
    take(member, said);
  }
  void take(std::uint32_t member, const std::vector<privacy::SecureClient::Effect>& said) {
    for (const auto& effect : said)
      if (const auto* send = std::get_if<privacy::SecureClient::Send>(&effect))
        step([&](auto& effects) {
          std::visit(
              [&](const auto& message) { server->receive(ClientId(member), message, Time(), effects); },
              send->message);
        });
  }

 public:
  Site& site;
  protocol::SecureSession session;
  static inline std::array<SecretKey, 2> keys = {SecretKey::generate(), SecretKey::generate()};
  std::optional<privacy::SecureServer> server;
  std::vector<std::unique_ptr<privacy::SecureClient>> others;
  std::size_t next = 0;  // index of the next message the site has heard
  bool agreed = false;   // masks are agreed, but no sum is reported yet
  bool revealed = false;
};

// Starts a site whose first run is masked, and waits for the daemon's answer.
inline void begin_secure(Site& site) {
  site.going = {kFirst};
  site.work.text += config::canonical_toml({{"masking", {privacy::to_table({.max_weight = 1000}), ""}}});
  site.begin();
  REQUIRE(site.hears<protocol::RunAnswer>(kFirst));
}

}  // namespace fedge::client::site
