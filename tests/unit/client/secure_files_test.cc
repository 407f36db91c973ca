// What a client keeps of secure sums on its disk: whose keys it knows, and what it has answered.
#include <doctest/doctest.h>

#include "client/secure/answered.h"
#include "client/secure/known_clients.h"
#include "core/platform/files.h"
#include "tests/support/tiny_dataset.h"

namespace fedge::client {
namespace {

PublicKey key(std::uint8_t first) { return {{first}}; }

}  // namespace

TEST_CASE(
    "known clients: a key that is seen first is that client's from then on, also for the next process") {
  const test::TemporaryDirectory scratch;
  auto known = KnownClients::read(scratch.path());
  REQUIRE(known);
  CHECK(known->vouch(ClientId(4), key(1)));
  CHECK(known->vouch(ClientId(9), key(2)));
  CHECK(known->changed());
  CHECK_FALSE(known->changed());
  CHECK(known->vouch(ClientId(4), key(1)));
  CHECK_FALSE(known->changed());
  REQUIRE(known->write(scratch.path()));
  auto again = KnownClients::read(scratch.path());
  REQUIRE(again);
  CHECK(again->vouch(ClientId(9), key(2)));
  const auto refused = again->vouch(ClientId(4), key(3));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kRefused);
  CHECK(refused.error().message.find("client 4 had another key") == 0);
}

TEST_CASE("known clients: a damaged file is named, with the line") {
  const test::TemporaryDirectory scratch;
  REQUIRE(
      write_file_atomic(scratch.path() / "known-clients", "4 " + to_hex(key(1)) + "\n5 nonsense\n", 0600));
  const auto known = KnownClients::read(scratch.path());
  REQUIRE_FALSE(known);
  CHECK(known.error().code == ErrorCode::kCorrupt);
  CHECK(known.error().message.find("known-clients:2: is damaged") != std::string::npos);
}

TEST_CASE("answered: what a client has helped to reveal it knows for each track, also in another process") {
  const test::TemporaryDirectory scratch;
  const auto directory = scratch.path() / "runs" / "1";
  auto answered = Answered::read(directory);
  REQUIRE(answered);
  const TaskId second{RoundNumber(2), TrackId(0)};
  CHECK_FALSE(answered->has(second));
  answered->add({RoundNumber(3), TrackId(0)});
  answered->add({RoundNumber(1), TrackId(7)});
  answered->add({RoundNumber(2), TrackId(0)});
  REQUIRE(make_directory(scratch.path() / "runs", 0700));
  REQUIRE(answered->write());
  const auto again = Answered::read(directory);
  REQUIRE(again);
  CHECK(again->has(second));
  CHECK(again->has({RoundNumber(3), TrackId(0)}));
  CHECK_FALSE(again->has({RoundNumber(4), TrackId(0)}));
  CHECK(again->has({RoundNumber(1), TrackId(7)}));
  CHECK_FALSE(again->has({RoundNumber(2), TrackId(7)}));
  REQUIRE(write_file_atomic(directory / "answered", "0 x\n", 0600));
  CHECK(Answered::read(directory).error().code == ErrorCode::kCorrupt);
}

}  // namespace fedge::client
