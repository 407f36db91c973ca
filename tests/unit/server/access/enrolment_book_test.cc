#include "server/access/enrolment_book.h"

#include <doctest/doctest.h>

using namespace fedge;
using server::ClientState;
using server::EnrolmentBook;

namespace {

EnrolmentBook example() {
  EnrolmentBook book;
  book.tokens = {{.id = 1,
                  .client = ClientId(0),
                  .secret_hash = std::string(64, 'a'),
                  .created = 10,
                  .expires = 20,
                  .uses = 1,
                  .used = 1},
                 {.id = 7,
                  .secret_hash = std::string(64, 'b'),
                  .created = 11,
                  .expires = 21,
                  .uses = 1'000'000,
                  .used = 2,
                  .approve = true,
                  .revoked = true}};
  PublicKey key;
  key.bytes.fill(0xcd);
  book.clients = {{ClientId(0), PublicKey{}, 12, 1, ClientState::kRevoked},
                  {ClientId(4'000'000'000), key, 13, 7, ClientState::kPending}};
  return book;
}

}  // namespace

TEST_CASE("enrolment book: what is written is read back, field by field") {
  const auto read = server::parse_enrolment_book(to_json(example()));
  REQUIRE(read);
  CHECK(to_json(*read) == to_json(example()));
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
  CHECK(read->next_token() == 8);
  CHECK(read->next_client() == 4'000'000'001);
}

TEST_CASE(
    "R3 row 9: enrolment book: cut anywhere it is damaged, and no changed byte does more than be read") {
  const std::string good = to_json(example());
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
  const std::string good = to_json(example());
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
