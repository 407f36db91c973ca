// Secure aggregation: misbehaving members lose their place or abort the round, but never cause a wrong sum.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "protocol/codec.h"
#include "tests/unit/privacy/secure_session.h"

namespace fedge::privacy {
namespace {

using protocol::SecureConsent;
using protocol::SecureKeys;
using protocol::SecureShares;
using protocol::SecureUnmask;

// A session of six in which messages of member 0 are changed.
template <class M, class Change>
std::pair<std::unique_ptr<TestSession>, TestSession::Outcome> change_of_first(const Change& change,
                                                                              TestSession::Plan plan = {}) {
  auto session = std::make_unique<TestSession>(6, std::move(plan));
  session->to_server = [change](ClientId client, TestSession::ToServer message) {
    if (auto* specific = std::get_if<M>(&message); specific != nullptr && client == TestSession::id(0))
      change(*specific);
    return std::optional(std::move(message));
  };
  auto outcome = session->run();
  return {std::move(session), std::move(outcome)};
}

bool has(const std::vector<ClientId>& clients, std::uint32_t member) {
  return std::ranges::find(clients, TestSession::id(member)) != clients.end();
}

// Flips one bit of a message on the wire; empty if a peer would not decode the result.
template <class Variant>
std::optional<Variant> with_a_bit_flipped(const Variant& message, Rng& rng) {
  const protocol::Message whole =
      std::visit([](const auto& specific) { return protocol::Message(specific); }, message);
  std::string bytes = protocol::encode(whole);
  bytes[rng.below(bytes.size())] ^= static_cast<char>(1 << rng.below(8));
  const auto changed = protocol::decode(protocol::type_of(whole), std::as_bytes(std::span(bytes)));
  if (!changed) return std::nullopt;
  return std::visit(
      [&](const auto& specific) -> std::optional<Variant> {
        return std::get<std::decay_t<decltype(specific)>>(*changed);
      },
      message);
}

}  // namespace

TEST_CASE("hostile member: shares that it reveals wrongly are found out, and the sum is right without them") {
  for (const bool of_survivors : {true, false}) {
    const auto [session, outcome] = change_of_first<SecureUnmask>(
        [of_survivors](SecureUnmask& unmask) {
          for (auto& survivor : unmask.survivors)
            if (of_survivors) survivor.self_mask[7] ^= 1;
          for (auto& dropped : unmask.dropped) {
            if (of_survivors) continue;
            dropped.mask_key[7] ^= 1;
            dropped.pair_key[7] ^= 1;
          }
        },
        {.rules = {.min_survivors = 2},
         .last = {Last::kAll, Last::kAll, Last::kAll, of_survivors ? Last::kAll : Last::kShares}});
    INFO((outcome.failure ? outcome.failure->message : std::string()));
    if (of_survivors) {
      REQUIRE_FALSE(outcome.failure);
      CHECK(has(outcome.bad_shares, 0));
      check_sum(*session, outcome);
    } else {
      // One of six members has dropped out: all five survivors' shares are needed.
      REQUIRE(outcome.failure);
      CHECK(outcome.sums.empty());
    }
  }
}

TEST_CASE("hostile member: a pair's mask key that it reveals wrongly is agreed on anew") {
  TestSession::Plan plan{.last = {Last::kAll, Last::kAll, Last::kAll, Last::kShares}};
  const auto [session, outcome] = change_of_first<SecureUnmask>(
      [](SecureUnmask& unmask) {
        for (auto& dropped : unmask.dropped) dropped.pair_key[0] ^= 1;
      },
      plan);
  REQUIRE_FALSE(outcome.failure);
  check_sum(*session, outcome);
}

TEST_CASE("hostile member: secrets that it shares out wrongly spoil the round, and nothing is revealed") {
  // Replaces the content of each sealed box by random bytes, which do not match the commitment.
  TestSession session(6, {});
  Rng rng(3);
  session.to_server = [&](ClientId client, TestSession::ToServer message) {
    if (auto* shares = std::get_if<SecureShares>(&message); shares && client == TestSession::id(0))
      for (auto& sealed : shares->shares)
        for (auto& byte : sealed.box) byte = static_cast<std::uint8_t>(rng.next_u32());
    return std::optional(std::move(message));
  };
  const auto outcome = session.run();
  REQUIRE(outcome.failure);
  CHECK(outcome.failure->code == ErrorCode::kUnavailable);
  CHECK(outcome.failure->message.find("secret shares of client 10") != std::string::npos);
  CHECK(outcome.sums.empty());
}

TEST_CASE("hostile member: what it was not asked to reveal is not taken, and the others' shares do") {
  const auto changes = {+[](SecureUnmask& unmask) {
                          unmask.survivors.push_back({9, {}});
                        },
                        +[](SecureUnmask& unmask) { unmask.survivors.push_back(unmask.survivors[0]); },
                        +[](SecureUnmask& unmask) {
                          unmask.dropped.push_back({1, {}, {}});
                        },
                        +[](SecureUnmask& unmask) { unmask.survivors.clear(); },
                        +[](SecureUnmask& unmask) { unmask.session.round = RoundNumber(4); }};
  for (const auto& change : changes) {
    const auto [session, outcome] = change_of_first<SecureUnmask>(change);
    REQUIRE_FALSE(outcome.failure);
    CHECK(outcome.survivors.size() == 6);
    check_sum(*session, outcome);
  }
}

TEST_CASE("hostile member: keys or shares that do not fit exclude it alone") {
  const auto check_excluded = [](const auto& result, const std::string& words) {
    const auto& [session, outcome] = result;
    REQUIRE_FALSE(outcome.failure);
    REQUIRE(outcome.excluded.contains(TestSession::id(0)));
    CHECK(outcome.excluded.at(TestSession::id(0)) == words);
    CHECK(outcome.survivors.size() == 5);
    check_sum(*session, outcome);
  };
  check_excluded(change_of_first<SecureKeys>([](SecureKeys& keys) { keys.keys.mask.bytes[0] ^= 1; }),
                 "the signature of its keys is invalid");
  check_excluded(change_of_first<SecureKeys>([](SecureKeys& keys) { keys.session.attempt = 9; }),
                 "it did not send its keys in time");
  check_excluded(change_of_first<SecureShares>([](SecureShares& shares) { shares.shares.pop_back(); }),
                 "it did not send a secret share for each neighbour");
  check_excluded(change_of_first<SecureShares>([](SecureShares& shares) { shares.shares[0].to = 0; }),
                 "it did not send a secret share for each neighbour");
}

TEST_CASE("hostile member: a consent that does not hold is not passed on, and the others' do") {
  const auto [session, outcome] =
      change_of_first<SecureConsent>([](SecureConsent& consent) { consent.signature[9] ^= 1; });
  REQUIRE_FALSE(outcome.failure);
  CHECK(outcome.stopped.empty());
  check_sum(*session, outcome);
}

TEST_CASE("hostile member: one that was started anew has lost its secrets, and is told so at any stage") {
  // The member restarts after the step `stage` and sends new keys.
  for (const std::size_t stage : {0U, 1U, 2U}) {
    CAPTURE(stage);
    TestSession session(6, {});
    session.make_anew_after(0, stage);
    const auto outcome = session.run();
    if (outcome.failure) {
      CHECK(outcome.sums.empty());
      continue;
    }
    check_sum(session, outcome);
    if (stage == 1) CHECK(outcome.excluded.at(TestSession::id(0)) == "it restarted and lost its secrets");
  }
}

TEST_CASE("hostile member or network: whatever bit of whatever message is flipped, no sum is ever wrong") {
  std::size_t right = 0;
  std::size_t aborted = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    CAPTURE(seed);
    Rng rng = Rng(seed).fork("flip");
    const std::uint32_t members = 5;
    const std::uint64_t which = rng.below(6 * members);
    const bool to_server = rng.below(2) == 0;
    TestSession session(members, {.rules = {.min_survivors = 2},
                                  .last = {Last::kAll, Last::kAll, Last::kAll, Last::kAll,
                                           seed % 3 == 0 ? Last::kShares : Last::kAll}});
    std::uint64_t passed = 0;
    const auto flip = [&](auto message, bool here) {
      if (here && passed++ == which) return with_a_bit_flipped(message, rng);
      return std::optional(std::move(message));
    };
    session.to_server = [&](ClientId, TestSession::ToServer message) {
      return flip(std::move(message), to_server);
    };
    session.to_client = [&](ClientId, TestSession::ToClient message) {
      return flip(std::move(message), !to_server);
    };
    const auto outcome = session.run();
    if (outcome.failure) {
      CHECK(outcome.sums.empty());
      ++aborted;
      continue;
    }
    check_sum(session, outcome);
    ++right;
  }
  // A flipped bit excludes the sender; if the threshold needs every member, it aborts the round.
  CHECK(right > 200);
  CHECK(aborted > 20);
}

TEST_CASE("secure aggregation: of two tracks' sessions in one round neither hears what the other says") {
  const protocol::SecureSession first{RunId(1), RoundNumber(2), TrackId(0), 1};
  const protocol::SecureSession second{RunId(1), RoundNumber(2), TrackId(5), 1};
  CHECK(context_of(first, {}, {}) != context_of(second, {}, {}));
  TestSession session(4, {.rules = {.min_survivors = 2}});
  std::vector<TestSession::ToClient> strange;
  session.to_client = [&](ClientId client, TestSession::ToClient message) {
    TestSession::ToClient other = message;
    std::visit([](auto& specific) { specific.session.track = TrackId(5); }, other);
    std::vector<SecureClient::Effect> effects;
    std::visit([&](const auto& m) { session.client(TestSession::member(client)).receive(m, effects); },
               other);
    CHECK(effects.empty());
    return std::optional(std::move(message));
  };
  const auto outcome = session.run();
  REQUIRE_FALSE(outcome.failure);
  check_sum(session, outcome);
}

}  // namespace fedge::privacy
