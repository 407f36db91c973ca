// The coordinator's I/O adapters in a secure track phase, beyond the session itself.
#include "server/engine/secure_round.h"

#include <doctest/doctest.h>

#include <deque>
#include <map>
#include <memory>
#include <string>

#include "core/crypto/entropy.h"
#include "privacy/secure_aggregation/client.h"

namespace fedge::server {
namespace {

constexpr std::size_t kSecureParameters = 40;
const RunId kSecureRun(5);
const TaskId kSecureTask{RoundNumber(2), TrackId(3)};

// Eight members, the last four of which train half of the model, and their sessions; messages arrive at once.
struct Turn {
  explicit Turn(std::size_t absent = 0) {
    RunEngine::BeginSecure begin{.task = kSecureTask, .attempt = 1, .members = {}};
    std::map<ClientId, PublicKey> identities;
    for (std::uint32_t i = 0; i < 8; ++i) {
      keys.push_back(SecretKey::generate());
      begin.members.push_back({ClientId(i), trained(i)});
      if (i >= absent) identities.emplace(ClientId(i), keys.back().public_key());
    }
    SecureRound::Setup setup{.run = kSecureRun, .terms = Digest{4}, .masking = {}, .patience = seconds(5)};
    setup.masking.rules = rules;
    round.emplace(setup, begin, Digest{7}, identities, Time());
    round->begin(effects);
  }
  static Coverage trained(std::uint32_t client) {
    return client < 4 ? Coverage::all(kSecureParameters) : Coverage::of({{0, 20}});
  }
  void agree() {
    for (std::uint32_t i = 0; i < 8; ++i) {
      sessions.push_back(std::make_unique<privacy::SecureClient>(
          privacy::MemberTerms{.session = {kSecureRun, kSecureTask.round, kSecureTask.track, 1},
                               .self = ClientId(i),
                               .model = Digest{7},
                               .terms = Digest{4},
                               .parameters = kSecureParameters,
                               .trained = trained(i),
                               .rules = rules,
                               .fast_aes = true,
                               .check_pinned_key = {}},
          keys[i], system_entropy()));
      std::vector<privacy::SecureClient::Effect> said;
      sessions[i]->start(said);
      pass(i, said);
    }
    while (!pending.empty()) {
      const auto [client, message] = std::move(pending.front());
      pending.pop_front();
      std::vector<privacy::SecureClient::Effect> said;
      if (const auto* roster = std::get_if<protocol::SecureRoster>(&message))
        sessions[client]->receive(*roster, said);
      if (const auto* shares = std::get_if<protocol::SecurePeerShares>(&message))
        sessions[client]->receive(*shares, said);
      pass(client, said);
    }
  }
  void pass(std::uint32_t client, const std::vector<privacy::SecureClient::Effect>& said) {
    for (const auto& effect : said)
      if (const auto* send = std::get_if<privacy::SecureClient::Send>(&effect)) {
        const auto message = std::visit([](const auto& m) { return protocol::Message(m); }, send->message);
        std::vector<SecureRound::Effect> answers;
        CHECK(round->receive(ClientId(client), message, Time(), answers));
        for (auto& answer : answers) {
          if (const auto* word = std::get_if<SecureRound::Send>(&answer))
            pending.emplace_back(word->client.value(), word->message);
          effects.push_back(std::move(answer));
        }
      }
  }
  template <class T>
  std::vector<T> all() const {
    std::vector<T> found;
    for (const auto& effect : effects)
      if (const auto* match = std::get_if<T>(&effect)) found.push_back(*match);
    return found;
  }
  protocol::UpdateOffer offer(std::uint32_t client) const {
    protocol::UpdateOffer result;
    result.run = kSecureRun;
    result.round = kSecureTask.round;
    result.track = kSecureTask.track;
    result.update.coverage = sessions[client]->masking().coverage();
    result.masked_scalars.resize(sessions[client]->masking().cells().size() + 2);
    return result;
  }

  privacy::SecureRules rules{.assumptions = {.corrupt = 0.1, .dropout = 0}};
  std::vector<SecretKey> keys;
  std::optional<SecureRound> round;
  std::vector<std::unique_ptr<privacy::SecureClient>> sessions;
  std::deque<std::pair<std::uint32_t, protocol::Message>> pending;
  std::vector<SecureRound::Effect> effects;
};

}  // namespace

TEST_CASE("secure round: a masked update is what the session has agreed on, or is not fetched") {
  Turn turn;
  CHECK(turn.round->offered(ClientId(1), {}).value_or(invalid("")).message ==
        "this client is not a member of the secure aggregation session");
  turn.agree();
  REQUIRE(turn.all<SecureRound::Open>().size() == 1);
  CHECK(turn.all<SecureRound::Open>()[0].cells == std::vector<Range>{{0, 20}, {20, 40}});
  CHECK_FALSE(turn.round->offered(ClientId(1), turn.offer(1)));
  CHECK_FALSE(turn.round->offered(ClientId(6), turn.offer(6)));
  const auto refused = [&](auto change) {
    protocol::UpdateOffer offer = turn.offer(6);
    change(offer);
    return turn.round->offered(ClientId(6), offer).value_or(invalid("taken")).message;
  };
  CHECK(refused([](auto& offer) {
          offer.update.coverage = Coverage::all(kSecureParameters);
        }).find("covers 40 parameters, but the session covers 20") != std::string::npos);
  CHECK(refused([](auto& offer) { offer.masked_scalars.pop_back(); }) ==
        "the masked update has 3 scalars, but the session has 4");
  CHECK(turn.round->offered(ClientId(77), turn.offer(1)).has_value());
}

TEST_CASE("secure round: who is not here when it begins is told so, and the engine knows") {
  Turn turn(2);
  REQUIRE(turn.all<SecureRound::Tell>().size() == 2);
  const auto input = turn.all<SecureRound::Tell>()[1].input;
  const auto& failed = std::get<RunEngine::Failed>(input);
  CHECK(failed.client == ClientId(1));
  CHECK(failed.failure.task() == kSecureTask);
  CHECK(std::holds_alternative<protocol::CancelTask>(turn.all<SecureRound::Send>()[0].message));
}

TEST_CASE("secure round: without an update there is nothing to sum, and every verdict says so") {
  Turn turn;
  turn.agree();
  turn.round->keep(ClientId(3), {kSecureRun, kSecureTask.round, true, {}, {}, kSecureTask.track});
  turn.effects.clear();
  turn.round->close(Time(), turn.effects);
  REQUIRE(turn.all<SecureRound::Closed>().size() == 1);
  CHECK(turn.all<SecureRound::Closed>()[0].error.message == "no masked update was received");
  const auto lost = turn.round->verdicts(false);
  REQUIRE(lost.size() == 1);
  CHECK_FALSE(lost[0].second.accepted);
  CHECK(lost[0].second.task() == kSecureTask);
  CHECK(turn.round->verdicts(true)[0].second.accepted);
}

TEST_CASE("secure round: a session that fails before the turn is closed frees everybody") {
  Turn turn;
  turn.effects.clear();
  turn.round->expired(Time() + seconds(6), turn.effects);
  CHECK(turn.all<SecureRound::Tell>().size() >= 8);
  CHECK(turn.all<Event>().back().name == std::string("secure.client_excluded"));
  turn.effects.clear();
  turn.round->close(Time(), turn.effects);
  REQUIRE(turn.all<SecureRound::Closed>().size() == 1);
  CHECK(turn.all<SecureRound::Closed>()[0].error.code == ErrorCode::kUnavailable);
}

}  // namespace fedge::server
