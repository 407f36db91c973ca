// Secure aggregation: attacks of a hostile coordinator, and how a member detects them and stops.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "tests/unit/privacy/secure_session.h"

namespace fedge::privacy {
namespace {

using protocol::SecureConsents;
using protocol::SecurePeerShares;
using protocol::SecureRoster;
using protocol::SecureSurvivors;

// The outcome of a session of six in which messages to member 0 are changed, and member 0's error.
struct Told {
  std::optional<Error> stopped;
  TestSession::Outcome outcome;
};

template <class M, class Change>
Told change_for_first(const Change& change, TestSession::Plan plan = {}) {
  TestSession session(6, std::move(plan));
  session.to_client = [&](ClientId client, TestSession::ToClient message) {
    if (auto* specific = std::get_if<M>(&message); specific != nullptr && client == TestSession::id(0))
      change(*specific);
    return std::optional(std::move(message));
  };
  Told told{.stopped = {}, .outcome = session.run()};
  const auto found = told.outcome.stopped.find(TestSession::id(0));
  if (found != told.outcome.stopped.end()) told.stopped = found->second;
  if (!told.outcome.failure) check_sum(session, told.outcome);
  return told;
}

template <class M, class Change>
void check_refused(const Change& change, const std::string& words, TestSession::Plan plan = {}) {
  const Told told = change_for_first<M>(change, std::move(plan));
  REQUIRE(told.stopped);
  INFO(told.stopped->message);
  CHECK(told.stopped->code != ErrorCode::kCorrupt);
  CHECK(told.stopped->message.find(words) != std::string::npos);
  // Member 0 has masked nothing: the others continue without it, or there is no sum.
  const auto& survivors = told.outcome.survivors;
  if (!std::is_same_v<M, SecureSurvivors> && !std::is_same_v<M, SecureConsents>)
    CHECK(std::ranges::find(survivors, TestSession::id(0)) == survivors.end());
}

}  // namespace

TEST_CASE("hostile coordinator: keys of its own in the place of a member's are not signed by that member") {
  check_refused<SecureRoster>(
      [](SecureRoster& roster) {
        roster.peers[1].keys.mask = exchange_key_of(Secret(Digest{1, 2, 3}));
      },
      "have an invalid signature");
  check_refused<SecureRoster>([](SecureRoster& roster) { roster.peers[1].keys.commitment[5] ^= 1; },
                              "have an invalid signature");
  check_refused<SecureRoster>([](SecureRoster& roster) { roster.peers[1].keys.signature[63] ^= 1; },
                              "have an invalid signature");
  // The keys of two members, exchanged.
  check_refused<SecureRoster>(
      [](SecureRoster& roster) { std::swap(roster.peers[1].keys, roster.peers[2].keys); },
      "have an invalid signature");
}

TEST_CASE(
    "hostile coordinator: a node key of its own in the place of a member's is one that nobody vouches for") {
  TestSession session(6, {});
  const SecretKey own = SecretKey::generate();
  session.to_client = [&](ClientId client, TestSession::ToClient message) {
    if (auto* roster = std::get_if<SecureRoster>(&message);
        roster != nullptr && client == TestSession::id(0)) {
      roster->peers[2].identity = own.public_key();
      const Digest context = context_of(roster->session, {}, {});
      roster->peers[2].keys.signature =
          sign_keys(own, context, roster->peers[2].client, roster->peers[2].keys);
    }
    return std::optional(std::move(message));
  };
  session.check_pinned_key = [&](ClientId client, const PublicKey& key) -> Result<void> {
    if (key == session.identity(TestSession::member(client)).public_key()) return {};
    return Error{ErrorCode::kRefused, "client " + std::to_string(client.value()) + " had another key before"};
  };
  const auto outcome = session.run();
  REQUIRE(outcome.stopped.contains(TestSession::id(0)));
  CHECK(outcome.stopped.at(TestSession::id(0)).message == "client 19 had another key before");
}

TEST_CASE("hostile coordinator: a key that has not signed is not taken for a member's in later sessions") {
  TestSession session(6, {});
  const PublicKey own = SecretKey::generate().public_key();
  session.to_client = [&](ClientId client, TestSession::ToClient message) {
    if (auto* roster = std::get_if<SecureRoster>(&message); roster != nullptr && client == TestSession::id(0))
      roster->peers[2].identity = own;
    return std::optional(std::move(message));
  };
  std::set<PublicKey> known;
  session.check_pinned_key = [&](ClientId, const PublicKey& key) -> Result<void> {
    known.insert(key);
    return {};
  };
  const auto outcome = session.run();
  REQUIRE(outcome.stopped.contains(TestSession::id(0)));
  CHECK(outcome.stopped.at(TestSession::id(0)).message.find("have an invalid signature") !=
        std::string::npos);
  CHECK_FALSE(known.contains(own));
  CHECK(known.size() == 6);
}

TEST_CASE("hostile coordinator: a member that is in the session twice, or the member itself, is seen") {
  check_refused<SecureRoster>(
      [](SecureRoster& roster) {
        const std::uint32_t number = roster.peers[2].number;
        roster.peers[2] = roster.peers[1];
        roster.peers[2].number = number;
      },
      "listed twice");
  check_refused<SecureRoster>([](SecureRoster& roster) { roster.peers[2].client = TestSession::id(0); },
                              "listed twice");
  check_refused<SecureRoster>(
      [](SecureRoster& roster) { roster.peers[2].keys.mask = roster.peers[1].keys.channel; },
      "the keys of another client");
}

TEST_CASE("hostile coordinator: too small a group, threshold or graph is refused by the member") {
  check_refused<SecureRoster>(
      [](SecureRoster& roster) {
        roster.members = 2;
        roster.degree = 1;
        roster.threshold = 2;
      },
      "the coordinator sums the updates of only 2 clients; this client requires at least 3");
  check_refused<SecureRoster>([](SecureRoster& roster) { roster.threshold = 4; },
                              "the mask graph has a threshold of 4 among 6 clients; at least 5");
  check_refused<SecureRoster>([](SecureRoster& roster) { roster.threshold = 7; },
                              "the mask graph has a threshold of 7");
  check_refused<SecureRoster>([](SecureRoster& roster) { roster.threshold = 0; },
                              "the mask graph has a threshold of 0");
  check_refused<SecureRoster>(
      [](SecureRoster& roster) {
        roster.complete = false;
        roster.degree = 4;
        roster.threshold = 4;
      },
      "the coordinator chose a sparse mask graph for 6 clients; for so few clients, the graph must be "
      "complete",
      {.rules = {.assumptions = {.corrupt = 0, .dropout = 0}}});
  check_refused<SecureRoster>([](SecureRoster& roster) { roster.peers.pop_back(); },
                              "neighbours that differ from the mask graph");
  check_refused<SecureRoster>([](SecureRoster& roster) { roster.peers[0].number = 0; },
                              "neighbours that differ from the mask graph");
}

TEST_CASE(
    "hostile coordinator: all that are in league with it in one part of the model do not get at the others' "
    "sum") {
  const SecureRules rules{.assumptions = {.corrupt = .3, .dropout = .1}, .min_survivors = 10};
  // Seven of ten members are honest. Nine of thirty may be corrupt: 9 + 7 updates are needed.
  CHECK(rules.honest_survivors() == 7);
  CHECK(rules.enough(30) == 16);
  CHECK(rules.enough(10) == 10);
  CHECK(SecureRules{.min_survivors = 3}.enough(6) == 3);
  CHECK(SecureRules{.min_survivors = 3}.enough(100) == 12);
  std::vector<Coverage> trained(30, Coverage::of({{0, 20}}));
  for (std::size_t i = 0; i < 20; ++i) trained[i] = Coverage::of({{0, 40}});
  for (std::size_t i = 0; i < 15; ++i) trained[i] = Coverage::of({{0, 50}});
  TestSession session(30, {.rules = rules, .trained = trained});
  session.to_client = [&](ClientId client, TestSession::ToClient message) {
    auto* survivors = std::get_if<SecureSurvivors>(&message);
    if (survivors != nullptr && client == TestSession::id(0))
      std::erase_if(survivors->numbers, [](std::uint32_t number) { return number >= 14 && number < 20; });
    return std::optional(std::move(message));
  };
  const auto outcome = session.run();
  // Fifteen could shrink to twelve, of whom nine may collude.
  CHECK(session.server().left_out() == 10);
  REQUIRE(outcome.stopped.contains(TestSession::id(0)));
  CHECK(outcome.stopped.at(TestSession::id(0)).message ==
        "the sum of a part of the model would contain only 14 updates; this client requires at least 16");
}

TEST_CASE("hostile coordinator: members who are told different thresholds notice") {
  const Told told = change_for_first<SecureRoster>([](SecureRoster& roster) { roster.threshold = 6; });
  CHECK((told.stopped || told.outcome.failure));
}

TEST_CASE("hostile coordinator: whatever is told to members of a roster, they are told it alike") {
  SecureRoster roster{.members = 6, .degree = 5, .threshold = 5};
  roster.cells = {{0, 40}};
  roster.coverages = {Coverage::of({{0, 40}})};
  roster.coverage_of = {0, 0};
  std::set<Digest> digests{digest_of(roster, {})};
  const auto other = [&](const auto& change) {
    SecureRoster changed = roster;
    change(changed);
    CHECK(digests.insert(digest_of(changed, {})).second);
  };
  other([](SecureRoster& r) { r.seed[3] ^= 1; });
  other([](SecureRoster& r) { ++r.members; });
  other([](SecureRoster& r) { ++r.degree; });
  other([](SecureRoster& r) { ++r.threshold; });
  other([](SecureRoster& r) { r.complete = !r.complete; });
  other([](SecureRoster& r) { r.cipher = StreamCipher::kChaCha20; });
  other([](SecureRoster& r) { r.cells[0].end = 39; });
  other([](SecureRoster& r) { r.coverages[0] = Coverage::of({{0, 39}}); });
  other([](SecureRoster& r) { r.coverage_of[1] = 1; });
  CHECK(digests.insert(digest_of(roster, Digest{1})).second);
}

TEST_CASE("hostile coordinator: in a sparse graph it does not choose who the neighbours are") {
  const TestSession::Plan plan{.rules = {.assumptions = {.corrupt = .05, .dropout = .05}}};
  const auto run = [&](const auto& change) {
    TestSession session(100, plan);
    session.to_client = [&](ClientId client, TestSession::ToClient message) {
      if (auto* roster = std::get_if<SecureRoster>(&message);
          roster != nullptr && client == TestSession::id(0))
        change(*roster);
      return std::optional(std::move(message));
    };
    const auto outcome = session.run();
    REQUIRE_FALSE(outcome.failure);
    CHECK(outcome.survivors.size() == 99);
    check_sum(session, outcome);
    REQUIRE(outcome.stopped.contains(TestSession::id(0)));
    return outcome.stopped.at(TestSession::id(0)).message;
  };
  CHECK(run([](SecureRoster& roster) { roster.seed[0] ^= 1; }) ==
        "the coordinator sent neighbours that differ from the mask graph");
  CHECK(run([](SecureRoster& roster) { roster.degree = 6; }).find("neighbours") != std::string::npos);
}

TEST_CASE("hostile coordinator: masks of AES are refused by who has not offered it") {
  check_refused<SecureRoster>([](SecureRoster& roster) { roster.cipher = StreamCipher::kAes256Ctr; },
                              "did not offer", {.slow_aes = {TestSession::id(0)}});
}

TEST_CASE("hostile coordinator: what members train is told to all alike, or their masks do not cancel") {
  const std::vector<Coverage> trained(6, Coverage::of({{0, 50}}));
  check_refused<SecureRoster>(
      [](SecureRoster& roster) {
        roster.coverages[0] = Coverage::of({{0, 40}});
      },
      "must consist of complete ranges", {.trained = trained});
  check_refused<SecureRoster>(
      [](SecureRoster& roster) {
        roster.cells[0].end = 40;
        roster.coverages[0] = Coverage::of({{0, 50}});
      },
      "must consist of complete ranges", {.trained = trained});
  check_refused<SecureRoster>([](SecureRoster& roster) { roster.cells[0].end = 51; }, "ends beyond",
                              {.trained = trained});
  check_refused<SecureRoster>(
      [](SecureRoster& roster) {
        roster.cells = {{0, 20}, {20, 50}};
        roster.coverages = {Coverage::of({{0, 50}}), Coverage::of({{0, 20}})};
        roster.coverage_of = {1, 0, 0, 0, 0, 0};
      },
      "announced a wrong coverage for this client", {.trained = trained});
  // The cells are consistent, but member 1's coverage is false: only member 1 could detect the lie.
  const Told told = change_for_first<SecureRoster>(
      [](SecureRoster& roster) {
        roster.cells = {{0, 20}, {20, 50}};
        roster.coverages = {Coverage::of({{0, 50}}), Coverage::of({{0, 20}})};
        roster.coverage_of = {0, 1, 0, 0, 0, 0};
      },
      {.trained = trained});
  // No member can read its shares, it accepts no consent, and its own mask cannot be removed.
  REQUIRE(told.outcome.failure);
  CHECK(told.outcome.failure->message == "only 0 secret shares of client 10 were revealed; 5 are needed");
}

TEST_CASE("hostile coordinator: shares of strangers, twice, or before there are members are refused") {
  check_refused<SecurePeerShares>([](SecurePeerShares& shares) { shares.shares[0].from = 17; },
                                  "not a neighbour");
  check_refused<SecurePeerShares>([](SecurePeerShares& shares) { shares.shares[1] = shares.shares[0]; },
                                  "secret share twice");
  // Member 0's own box is reflected. It cannot be opened as another's; the session continues without this
  // share.
  check_refused<SecurePeerShares>([](SecurePeerShares& shares) { shares.shares.resize(3); }, "too few");
  TestSession session(6, {});
  TestSession::Outcome outcome;
  session.to_client = [&](ClientId client, TestSession::ToClient message) {
    if (client == TestSession::id(0) && std::holds_alternative<SecureRoster>(message)) {
      SecurePeerShares early{std::get<SecureRoster>(message).session, {}};
      return std::optional(TestSession::ToClient(early));
    }
    return std::optional(std::move(message));
  };
  outcome = session.run();
  REQUIRE(outcome.stopped.contains(TestSession::id(0)));
  CHECK(outcome.stopped.at(TestSession::id(0)).message ==
        "the coordinator sent secret shares before the list of members");
}

TEST_CASE(
    "hostile coordinator: a damaged or reflected box costs that share, and the sum is right without it") {
  for (const bool reflected : {false, true}) {
    TestSession session(6, {});
    std::array<std::uint8_t, protocol::kSealedShares> own{};
    session.to_server = [&](ClientId client, TestSession::ToServer message) {
      if (auto* shares = std::get_if<protocol::SecureShares>(&message);
          shares && client == TestSession::id(0))
        own = shares->shares[1].box;
      return std::optional(std::move(message));
    };
    session.to_client = [&](ClientId client, TestSession::ToClient message) {
      if (auto* shares = std::get_if<SecurePeerShares>(&message); shares && client == TestSession::id(0)) {
        if (reflected)
          shares->shares[1].box = own;
        else
          shares->shares[1].box[50] ^= 4;
      }
      return std::optional(std::move(message));
    };
    const auto outcome = session.run();
    REQUIRE_FALSE(outcome.failure);
    CHECK(outcome.stopped.empty());
    check_sum(session, outcome);
  }
}

TEST_CASE(
    "hostile coordinator: survivors that it tells different members differently are found out before any "
    "share") {
  // The classic attack: the coordinator tells half of the members that member 1 dropped out, and the others
  // that it stayed.
  TestSession session(6, {});
  std::size_t revealed = 0;
  session.to_client = [&](ClientId client, TestSession::ToClient message) {
    if (auto* survivors = std::get_if<SecureSurvivors>(&message); survivors && client.value() % 2 == 0)
      std::erase(survivors->numbers, 1U);
    return std::optional(std::move(message));
  };
  session.to_server = [&](ClientId, TestSession::ToServer message) {
    if (std::holds_alternative<protocol::SecureUnmask>(message)) ++revealed;
    return std::optional(std::move(message));
  };
  const auto outcome = session.run();
  CHECK(outcome.failure);
  CHECK(revealed == 0);
  // An honest server accepts only consents to its own list of survivors. This one forwards all consents:
  TestSession forwarding(6, {});
  std::map<ClientId, Signature> consents;
  forwarding.to_client = session.to_client;
  forwarding.to_server = [&](ClientId client, TestSession::ToServer message) {
    if (auto* consent = std::get_if<protocol::SecureConsent>(&message)) consents[client] = consent->signature;
    if (std::holds_alternative<protocol::SecureUnmask>(message)) ++revealed;
    return std::optional(std::move(message));
  };
  static_cast<void>(forwarding.run());
  REQUIRE(consents.size() == 6);
  SecureConsents all{forwarding.client(0).session(), {}};
  for (std::uint32_t i = 1; i < 6; ++i) all.consents.push_back({i, consents.at(TestSession::id(i))});
  forwarding.tell(0, all);
  CHECK(forwarding.client(0).over());
  CHECK(revealed == 0);
}

TEST_CASE("hostile coordinator: of nobody it gets both kinds of shares, however it asks") {
  TestSession session(6, {.last = {Last::kAll, Last::kAll, Last::kAll, Last::kShares}});
  std::map<ClientId, std::vector<protocol::SecureUnmask>> answers;
  std::map<ClientId, SecureSurvivors> asked;
  std::map<ClientId, SecureConsents> consented;
  session.to_server = [&](ClientId client, TestSession::ToServer message) {
    if (auto* unmask = std::get_if<protocol::SecureUnmask>(&message)) answers[client].push_back(*unmask);
    return std::optional(std::move(message));
  };
  session.to_client = [&](ClientId client, TestSession::ToClient message) {
    if (auto* survivors = std::get_if<SecureSurvivors>(&message)) asked[client] = *survivors;
    if (auto* consents = std::get_if<SecureConsents>(&message)) consented[client] = *consents;
    return std::optional(std::move(message));
  };
  const auto outcome = session.run();
  REQUIRE_FALSE(outcome.failure);
  check_sum(session, outcome);
  // The same request gets the same answer, another request none.
  for (std::uint32_t i : {0U, 1U, 2U, 4U, 5U}) {
    const ClientId client = TestSession::id(i);
    REQUIRE(answers[client].size() == 1);
    session.tell(i, consented.at(client));
    SecureSurvivors others = asked.at(client);
    others.numbers = {0, 1, 2, 4};
    session.tell(i, others);
    SecureConsents fewer = consented.at(client);
    fewer.consents.pop_back();
    session.tell(i, fewer);
    for (const auto& answer : answers[client]) {
      CHECK(answer.survivors == answers[client][0].survivors);
      CHECK(answer.dropped == answers[client][0].dropped);
      std::set<std::uint32_t> both;
      for (const auto& survivor : answer.survivors) both.insert(survivor.number);
      for (const auto& dropped : answer.dropped) CHECK_FALSE(both.contains(dropped.number));
    }
  }
}

TEST_CASE(
    "hostile coordinator: survivors it names anew, who are few, who take no part, or who sent nothing, are "
    "refused") {
  check_refused<SecureSurvivors>(
      [](SecureSurvivors& survivors) {
        survivors.numbers = {0, 1};
      },
      "only 2 updates");
  check_refused<SecureSurvivors>(
      [](SecureSurvivors& survivors) {
        survivors.numbers = {0, 1, 2, 3};
      },
      "only 4 updates");
  check_refused<SecureSurvivors>(
      [](SecureSurvivors& survivors) {
        survivors.numbers = {1, 2, 3, 4, 5};
      },
      "without this client");
  check_refused<SecureSurvivors>([](SecureSurvivors& survivors) { survivors.numbers.push_back(6); },
                                 "malformed");
  check_refused<SecureSurvivors>([](SecureSurvivors& survivors) { survivors.numbers[1] = 0; }, "malformed");
  check_refused<SecureSurvivors>([](SecureSurvivors& survivors) { survivors.numbers = {0, 1, 2, 3, 4, 5}; },
                                 "client 13 as a survivor, but it does not take part",
                                 {.last = {Last::kAll, Last::kKeys}});
  // The coordinator claims an update of this member that was never sent.
  TestSession session(6, {.last = {Last::kShares}});
  static_cast<void>(session.run());
  SecureSurvivors claimed{session.client(0).session(), {0, 1, 2, 3, 4, 5}};
  session.tell(0, claimed);
  CHECK(session.client(0).over());
}

TEST_CASE("hostile coordinator: whoever has consented to some survivors consents to no others") {
  TestSession session(6, {});
  std::size_t consents = 0;
  std::optional<SecureSurvivors> named;
  session.to_client = [&](ClientId client,
                          TestSession::ToClient message) -> std::optional<TestSession::ToClient> {
    if (client != TestSession::id(0)) return message;
    if (const auto* survivors = std::get_if<SecureSurvivors>(&message)) named = *survivors;
    if (std::holds_alternative<SecureConsents>(message)) return std::nullopt;
    return message;
  };
  session.to_server = [&](ClientId client, TestSession::ToServer message) {
    if (client == TestSession::id(0) && std::holds_alternative<protocol::SecureConsent>(message)) ++consents;
    return std::optional(std::move(message));
  };
  static_cast<void>(session.run());
  REQUIRE(named);
  session.tell(0, *named);
  CHECK(consents == 2);  // it repeats its consent to the same survivors
  CHECK_FALSE(session.client(0).over());
  named->numbers.pop_back();
  session.tell(0, *named);
  CHECK(consents == 2);
  CHECK(session.client(0).over());
}

TEST_CASE(
    "hostile coordinator: shares without enough others' consents, or with one of somebody else, stay where "
    "they are") {
  check_refused<SecureConsents>([](SecureConsents& consents) { consents.consents.resize(3); },
                                "only 4 clients have signed the list of survivors; 5 are needed");
  check_refused<SecureConsents>([](SecureConsents& consents) { consents.consents[2].signature[0] ^= 1; },
                                "has not signed this list of survivors");
  check_refused<SecureConsents>(
      [](SecureConsents& consents) { consents.consents[2].signature = consents.consents[1].signature; },
      "has not signed this list of survivors");
  check_refused<SecureConsents>([](SecureConsents& consents) { consents.consents[2] = consents.consents[1]; },
                                "not a surviving neighbour");
  check_refused<SecureConsents>([](SecureConsents& consents) { consents.consents[4].number = 9; },
                                "not a surviving neighbour");
}

TEST_CASE("hostile coordinator: what was said in another session, round or attempt is not heeded") {
  TestSession first(6, {.attempt = 1});
  std::vector<TestSession::ToClient> said;
  first.to_client = [&](ClientId client, TestSession::ToClient message) {
    if (client == TestSession::id(0)) said.push_back(message);
    return std::optional(std::move(message));
  };
  REQUIRE_FALSE(first.run().failure);
  REQUIRE(said.size() == 4);
  // Replays the messages before each message of the next attempt: unchanged, and with the new attempt's
  // number.
  for (const bool renamed : {false, true}) {
    TestSession second(6, {.attempt = 2});
    std::size_t next = 0;
    second.to_client = [&](ClientId client, TestSession::ToClient message) {
      if (client != TestSession::id(0) || next >= said.size()) return std::optional(std::move(message));
      TestSession::ToClient replayed = said[next++];
      if (renamed) std::visit([](auto& specific) { specific.session.attempt = 2; }, replayed);
      std::vector<SecureClient::Effect> effects;
      std::visit([&](const auto& specific) { second.client(0).receive(specific, effects); }, replayed);
      CHECK(effects.empty() != renamed);
      return std::optional(std::move(message));
    };
    const auto outcome = second.run();
    if (!renamed) {
      REQUIRE_FALSE(outcome.failure);
      CHECK(outcome.stopped.empty());
      CHECK(outcome.survivors.size() == 6);
      check_sum(second, outcome);
    }
    CHECK(second.client(0).over());
  }
}

TEST_CASE("hostile coordinator: members whose models differ have masks that do not cancel") {
  // Pasquini et al. 2022: every client but the target gets a different model. The others then reject the
  // target's keys.
  const protocol::SecureSession session{RunId(1), RoundNumber(1), TrackId(), 1};
  CHECK(context_of(session, Digest{1}, {}) != context_of(session, Digest{2}, {}));
  CHECK(context_of(session, {}, Digest{1}) != context_of(session, {}, Digest{2}));
  const SecretKey identity = SecretKey::generate();
  protocol::SecureAdvertisement keys;
  keys.signature = sign_keys(identity, context_of(session, Digest{1}, {}), ClientId(4), keys);
  CHECK(verify_keys(identity.public_key(), context_of(session, Digest{1}, {}), ClientId(4), keys));
  CHECK_FALSE(verify_keys(identity.public_key(), context_of(session, Digest{2}, {}), ClientId(4), keys));
  CHECK_FALSE(verify_keys(identity.public_key(), context_of(session, Digest{1}, {}), ClientId(5), keys));
}

TEST_CASE("hostile coordinator: an update that comes after its member was declared dropped stays hidden") {
  TestSession session(6, {.last = {Last::kAll, Last::kShares}});
  std::vector<std::pair<std::uint32_t, Secret>> revealed;
  session.to_server = [&](ClientId client, TestSession::ToServer message) {
    if (const auto* unmask = std::get_if<protocol::SecureUnmask>(&message))
      for (const auto& dropped : unmask->dropped)
        revealed.emplace_back(TestSession::member(client),
                              Secret(std::span<const std::uint8_t, 32>(dropped.pair_key)));
    return std::optional(std::move(message));
  };
  const auto outcome = session.run();
  REQUIRE_FALSE(outcome.failure);
  REQUIRE(revealed.size() == 5);
  check_sum(session, outcome);
  Sequential here;
  const auto take_away_pairs = [&](std::vector<TestSession::Word>& words) {
    std::vector<MaskTerm> terms;
    for (const auto& [other, key] : revealed) terms.push_back({&key, other > 1, nullptr});
    apply_masks(std::span(words), Coverage::all(words.size()), terms, StreamCipher::kAes256Ctr, here);
  };
  std::vector<TestSession::Word> late = session.update(1);
  std::vector<std::uint64_t> scalars(2);
  session.client(1).masking().apply(late, scalars, here);
  take_away_pairs(late);
  // The update remains hidden by the member's own mask, of which no share has been revealed.
  const auto update = session.update(1);
  std::size_t same = 0;
  for (std::size_t p = 0; p < late.size(); ++p)
    if (late[p] == update[p]) ++same;
  CHECK(same == 0);
}

}  // namespace fedge::privacy
