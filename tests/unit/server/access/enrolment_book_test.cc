#include "server/access/enrolment_book.h"

#include <doctest/doctest.h>

using namespace fedge;
using server::ClientState;

namespace {

// A book in the format of the version before the database.
std::string example() {
  const std::string zeros(64, '0');
  std::string key;
  for (int i = 0; i < 32; ++i) key += "cd";
  return R"({
 "clients": [
  {
   "client": 0,
   "enrolled": 12,
   "key": ")" +
         zeros + R"(",
   "state": "revoked",
   "token": 1
  },
  {
   "client": 4000000000,
   "enrolled": 13,
   "key": ")" +
         key + R"(",
   "state": "pending",
   "token": 7
  }
 ],
 "tokens": [
  {
   "approve": false,
   "client": 0,
   "created": 10,
   "expires": 20,
   "revoked": false,
   "secret_hash": ")" +
         std::string(64, 'a') + R"(",
   "token": 1,
   "used": 1,
   "uses": 1
  },
  {
   "approve": true,
   "created": 11,
   "expires": 21,
   "revoked": true,
   "secret_hash": ")" +
         std::string(64, 'b') + R"(",
   "token": 7,
   "used": 2,
   "uses": 1000000
  }
 ]
}
)";
}

}  // namespace

TEST_CASE("enrolment book: what an earlier version wrote is read, field by field") {
  const auto read = server::parse_enrolment_book(example());
  REQUIRE(read);
  REQUIRE(read->tokens.size() == 2);
  CHECK(read->tokens[0].client == ClientId(0));
  CHECK(read->tokens[0].used == 1);
  CHECK_FALSE(read->tokens[0].approve);
  CHECK_FALSE(read->tokens[1].client);
  CHECK(read->tokens[1].id == 7);
  CHECK(read->tokens[1].created == 11);
  CHECK(read->tokens[1].expires == 21);
  CHECK(read->tokens[1].uses == 1'000'000);
  CHECK(read->tokens[1].approve);
  CHECK(read->tokens[1].revoked);
  CHECK(read->clients[0].state == ClientState::kRevoked);
  CHECK(read->clients[1].client == ClientId(4'000'000'000));
  CHECK(read->clients[1].token == 7);
  CHECK(read->clients[1].key.bytes[31] == 0xcd);
  CHECK(read->clients[1].state == ClientState::kPending);
}

TEST_CASE(
    "R3 row 9: enrolment book: cut anywhere it is damaged, and no changed byte does more than be read") {
  const std::string good = example();
  for (std::size_t size = 0; size + 2 < good.size(); ++size) {
    const auto cut = server::parse_enrolment_book(good.substr(0, size));
    CAPTURE(size);
    REQUIRE_FALSE(cut);
    REQUIRE(cut.error().code == ErrorCode::kCorrupt);
  }
  std::size_t refused = 0;
  for (std::size_t at = 0; at < good.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ (1 << bit));
      const auto read = server::parse_enrolment_book(bad);
      refused += read ? 0U : 1U;
      if (read) REQUIRE(read->tokens.size() + read->clients.size() == 4);
    }
  CHECK(refused > good.size());
}

TEST_CASE("enrolment book: a field of another type, out of range or unknown state is damage, not a guess") {
  const std::string good = example();
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    REQUIRE(text.find(from) != std::string::npos);
    text.replace(text.find(from), from.size(), to);
    return server::parse_enrolment_book(text).has_value();
  };
  CHECK(with("\"used\": 1", "\"used\": 0"));
  CHECK_FALSE(with("\"used\": 1", "\"used\": -1"));
  CHECK_FALSE(with("\"used\": 1", "\"used\": 4294967296"));
  CHECK_FALSE(with("\"used\": 1", "\"used\": 1.0"));
  CHECK_FALSE(with("\"used\": 1", "\"used\": true"));
  CHECK_FALSE(with("\"approve\": false", "\"approve\": 0"));
  CHECK_FALSE(with("\"pending\"", "\"enroled\""));
  CHECK_FALSE(with("cdcd", "CDCD"));
  CHECK_FALSE(server::parse_enrolment_book(R"({"tokens": 3, "clients": []})"));
  CHECK_FALSE(server::parse_enrolment_book(R"([])"));
  CHECK_FALSE(server::parse_enrolment_book(std::string(100'000, '[')));
}
