#include "server/enrolment.h"

#include <doctest/doctest.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "core/crypto/sha256.h"
#include "core/platform/files.h"
#include "server/audit_log.h"

using namespace fedge;
using fedge::server::Enrolment;

namespace {

constexpr std::chrono::hours kDay{24};

struct Book {
  std::filesystem::path directory;
  Book() {
    std::string name = (std::filesystem::temp_directory_path() / "fedge-test-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    directory = name;
  }
  ~Book() { std::filesystem::remove_all(directory); }
  Enrolment open() const { return Enrolment(directory); }
};

PublicKey key(std::uint8_t byte) {
  PublicKey result;
  result.bytes.fill(byte);
  return result;
}

std::string reason(const Result<server::Standing>& result) {
  return result ? "accepted" : result.error().message;
}

}  // namespace

TEST_CASE("enrolment: a token makes a key a client, once, numbers count from 0") {
  const Book book;
  Enrolment enrolment = book.open();
  const auto first = enrolment.create_token(1000, kDay);
  const auto second = enrolment.create_token(1000, kDay);
  REQUIRE(first);
  REQUIRE(second);
  CHECK(second->client == ClientId(1));
  CHECK(enrolment.redeem({second->secret, key(1), 1001})->client == ClientId(1));
  CHECK(enrolment.authenticate(key(1))->client == ClientId(1));
  CHECK(reason(enrolment.redeem({second->secret, key(2), 1002})) ==
        "the join token was already used; ask the operator for a new one");
  CHECK(enrolment.redeem({second->secret, key(1), 1003})->client ==
        ClientId(1));  // the first answer was lost
  CHECK(enrolment.redeem({first->secret, key(3), 1004})->client == ClientId(0));
}

TEST_CASE("enrolment: wrong, expired and revoked tokens and unknown and revoked keys are refused") {
  const Book book;
  Enrolment enrolment = book.open();
  const auto token = enrolment.create_token(1000, std::chrono::seconds(10));
  CHECK(reason(enrolment.redeem({std::string("nonsense"), key(1), 1001})) ==
        "this coordinator does not know the join token");
  CHECK(reason(enrolment.redeem({token->secret, key(1), 1011})) ==
        "the join token has expired; ask the operator for a new one");
  CHECK(reason(enrolment.authenticate(key(1))) ==
        "this client is not enrolled at this coordinator; join with a token first");
  REQUIRE(enrolment.redeem({token->secret, key(1), 1005}));
  CHECK(enrolment.revoke(ClientId(0)));
  CHECK(reason(enrolment.authenticate(key(1))) == "this client's key has been revoked");
  CHECK(enrolment.authenticate(key(1)).error().code == ErrorCode::kRefused);
  CHECK(reason(enrolment.redeem({token->secret, key(1), 1005})) == "the join token has been revoked");
  const auto other = enrolment.create_token(1000, kDay);
  CHECK(reason(enrolment.redeem({other->secret, key(1), 1005})) == "this client's key has been revoked");
  CHECK(enrolment.revoke(ClientId(99)).error().code == ErrorCode::kNotFound);
}

TEST_CASE("enrolment: the book holds no secret and nobody else may read it") {
  const Book book;
  std::string secret;
  {
    Enrolment enrolment = book.open();
    secret = enrolment.create_token(1000, kDay)->secret;
    for (const char* name : {"enrolment.db", "enrolment.db-journal"}) {
      struct stat info {};
      REQUIRE(::stat((book.directory / name).c_str(), &info) == 0);
      CHECK((info.st_mode & 0777) == 0600);
    }
  }
  const auto bytes = read_file(book.directory / "enrolment.db", 1 << 20);
  REQUIRE(bytes);
  CHECK(bytes->find(secret) == std::string::npos);
  CHECK(bytes->find(to_hex(sha256(secret))) != std::string::npos);
}

TEST_CASE("enrolment: changes from several threads at once are all kept") {
  const Book book;
  std::vector<std::thread> writers;
  for (int i = 0; i < 4; ++i)
    writers.emplace_back([&] {
      Enrolment mine = book.open();
      for (int j = 0; j < 10; ++j) CHECK(mine.create_token(1000, kDay));
    });
  for (std::thread& writer : writers) writer.join();
  const auto read = book.open().read();
  REQUIRE(read);
  REQUIRE(read->tokens.size() == 40);
  for (std::uint32_t i = 0; i < 40; ++i) CHECK(read->tokens[i].client == ClientId(i));
}

TEST_CASE("enrolment: a token for three uses makes three keys clients, with the next free numbers") {
  const Book book;
  Enrolment enrolment = book.open();
  const auto single = enrolment.create_token(1000, kDay);
  REQUIRE(single);
  CHECK(single->client == ClientId(0));
  const auto tokens = enrolment.create_tokens({.count = 2, .uses = 3, .now = 1000, .lifetime = kDay});
  REQUIRE(tokens);
  CHECK(tokens->at(0).id == 2);
  CHECK(tokens->at(1).id == 3);
  CHECK_FALSE(tokens->at(0).client);
  const std::string& first = tokens->at(0).secret;
  CHECK(enrolment.redeem({first, key(1), 1001})->client == ClientId(1));
  CHECK(enrolment.redeem({tokens->at(1).secret, key(2), 1001})->client == ClientId(2));
  CHECK(enrolment.create_token(1000, kDay)->client == ClientId(3));
  CHECK(enrolment.redeem({first, key(3), 1001})->client == ClientId(4));
  const auto again = enrolment.redeem({first, key(1), 1001});  // the first answer was lost
  CHECK(again->client == ClientId(1));
  CHECK_FALSE(again->fresh);
  const auto last = enrolment.redeem({first, key(4), 1001});
  CHECK(last->client == ClientId(5));
  CHECK(last->fresh);
  CHECK(reason(enrolment.redeem({first, key(5), 1001})) ==
        "all uses of the join token are used up; ask the operator for a new one");
  const auto read = enrolment.read();
  CHECK(std::string(state_of(read->tokens[1], 1001)) == "used up");
  CHECK(std::string(state_of(read->tokens[2], 1001)) == "open");
  CHECK(std::string(state_of(read->tokens[2], 1001 + 86'400)) == "expired");
}

TEST_CASE("enrolment: a revoked token enrols nobody more, and who has enrolled with it stays") {
  const Book book;
  Enrolment enrolment = book.open();
  const auto tokens = enrolment.create_tokens({.uses = 2, .now = 1000, .lifetime = kDay});
  const std::string& secret = tokens->front().secret;
  REQUIRE(enrolment.redeem({secret, key(1), 1001}));
  REQUIRE(enrolment.revoke_token(tokens->front().id));
  CHECK(reason(enrolment.redeem({secret, key(2), 1001})) == "the join token has been revoked");
  CHECK(enrolment.authenticate(key(1)));
  CHECK(enrolment.revoke_token(77).error().code == ErrorCode::kNotFound);
}

TEST_CASE(
    "A1 row 36: a wrong token is known to be wrong from memory, whatever has become of the book's rows") {
  const Book book;
  Enrolment enrolment = book.open();
  const auto token = enrolment.create_token(1000, kDay);
  REQUIRE(token);
  CHECK(*enrolment.knows(token->secret));
  // Changes the book without changing the counter that marks its state.
  sqlite3* handle = nullptr;
  REQUIRE(sqlite3_open((book.directory / "enrolment.db").c_str(), &handle) == SQLITE_OK);
  CHECK(sqlite3_exec(handle, "DROP TABLE clients; DELETE FROM tokens", nullptr, nullptr, nullptr) ==
        SQLITE_OK);
  sqlite3_close(handle);
  for (int i = 0; i < 100; ++i) CHECK_FALSE(*enrolment.knows("guess " + std::to_string(i)));
  CHECK(*enrolment.knows(token->secret));
}

TEST_CASE("enrolment: with an approval token a key is known but pending until an operator approves it") {
  const Book book;
  Enrolment enrolment = book.open();
  const auto tokens = enrolment.create_tokens({.uses = 2, .approve = true, .now = 1000, .lifetime = kDay});
  REQUIRE(tokens);
  const auto joined = enrolment.redeem({tokens->front().secret, key(1), 1001});
  REQUIRE(joined);
  CHECK(joined->pending);
  CHECK(enrolment.authenticate(key(1))->pending);
  Enrolment operator_tool = book.open();
  CHECK(operator_tool.approve(ClientId(9)).error().code == ErrorCode::kNotFound);
  CHECK(enrolment.refresh()->clients.at(0).state == server::ClientState::kPending);
  CHECK(enrolment.refresh()->clients.empty());
  REQUIRE(operator_tool.approve(ClientId(0)));
  CHECK(enrolment.refresh()->clients.at(0).client == ClientId(0));
  CHECK_FALSE(enrolment.authenticate(key(1))->pending);
  CHECK(operator_tool.approve(ClientId(0)).error().message ==
        "client 0 does not wait for approval; its state is enrolled");
  REQUIRE(operator_tool.revoke(ClientId(0)));
  CHECK(operator_tool.approve(ClientId(0)).error().message ==
        "client 0 does not wait for approval; its state is revoked");
  CHECK(reason(enrolment.authenticate(key(1))) == "this client's key has been revoked");
}

TEST_CASE("enrolment: every change is in the audit log with who did it, and refusals are not") {
  const Book book;
  Enrolment enrolment = book.open();
  const auto tokens = enrolment.create_tokens({.approve = true, .now = 0, .lifetime = kDay});
  const std::string& secret = tokens->front().secret;
  CHECK_FALSE(enrolment.redeem({std::string(64, '0'), key(1), 1}));
  REQUIRE(enrolment.redeem({secret, key(0xab), 1, "192.0.2.1:5000"}));
  REQUIRE(enrolment.redeem({secret, key(0xab), 2, "192.0.2.1:5001"}));  // no effect
  REQUIRE(enrolment.approve(ClientId(0)));
  REQUIRE(enrolment.revoke(ClientId(0)));
  REQUIRE(enrolment.revoke_token(1));
  std::vector<std::string> seen;
  REQUIRE(server::AuditLog(book.directory).verify("", [&](const server::AuditEntry& entry) {
    seen.push_back(entry.event.actor + "|" + entry.event.action + "|" + entry.event.subject);
  }));
  const std::string me = "uid " + std::to_string(::getuid());
  std::string peer = "key ";
  for (int i = 0; i < 32; ++i) peer += "ab";
  CHECK(seen == std::vector<std::string>{me + "|token.created|token 1", peer + "|client.pending|client 0",
                                         me + "|client.approved|client 0", me + "|client.revoked|client 0",
                                         me + "|token.revoked|token 1"});
  const auto text = read_file(book.directory / "audit.log", 1 << 20);
  CHECK(text->find(secret) == std::string::npos);
}

TEST_CASE("A1 row 36: what cannot be recorded is not done, and the client is told to come again") {
  const Book book;
  Enrolment enrolment = book.open();
  const auto token = enrolment.create_token(1000, kDay);
  std::filesystem::remove(book.directory / "audit.log");
  std::filesystem::create_directory(book.directory / "audit.log");
  const auto redeemed = enrolment.redeem({token->secret, key(1), 1001});
  REQUIRE_FALSE(redeemed);
  CHECK(redeemed.error().code == ErrorCode::kUnavailable);
  CHECK_FALSE(enrolment.revoke(ClientId(0)));
  CHECK_FALSE(enrolment.create_token(1000, kDay));
  const auto after = enrolment.read();
  CHECK(after->clients.empty());
  REQUIRE(after->tokens.size() == 1);
  CHECK_FALSE(after->tokens[0].revoked);
}

TEST_CASE(
    "A1 row 36: why a key cannot join with a token is known from memory, as a redemption would say it") {
  const Book book;
  Enrolment enrolment = book.open();
  const auto tokens = enrolment.create_tokens({.count = 2, .uses = 3, .now = 1000, .lifetime = kDay});
  REQUIRE(tokens);
  const std::string &first = tokens->front().secret, &second = tokens->back().secret;
  REQUIRE(enrolment.redeem({first, key(1), 1000}));
  REQUIRE(enrolment.redeem({first, key(2), 1000}));
  REQUIRE(enrolment.revoke(ClientId(0), true));
  const auto check = [&](const std::string& secret, const PublicKey& who, const std::string& expected) {
    REQUIRE(*enrolment.knows(secret));
    const auto spent = enrolment.spent(secret, who, 1000);
    CHECK((spent ? spent->message : "") == expected);
    const auto redeemed = enrolment.redeem({secret, who, 1000});
    CHECK((redeemed ? "" : redeemed.error().message) == expected);
  };
  check(first, key(1), "this client's key has been revoked");
  check(second, key(2), "this client already joined with another token");
  check(first, key(2), "");
  check(second, key(3), "");
}

TEST_CASE("a revoked client's token of several uses is closed with it, unless its operator keeps it") {
  const Book book;
  Enrolment enrolment = book.open();
  const auto tokens = enrolment.create_tokens({.count = 2, .uses = 5, .now = 1000, .lifetime = kDay});
  REQUIRE(enrolment.redeem({tokens->at(0).secret, key(1), 1001}));
  REQUIRE(enrolment.redeem({tokens->at(0).secret, key(2), 1001}));
  REQUIRE(enrolment.redeem({tokens->at(1).secret, key(3), 1001}));
  CHECK(*enrolment.revoke(ClientId(0)) == tokens->at(0).id);
  CHECK(reason(enrolment.redeem({tokens->at(0).secret, key(4), 1001})) == "the join token has been revoked");
  CHECK(enrolment.authenticate(key(2)));  // another client of the same token stays enrolled
  CHECK_FALSE(*enrolment.revoke(ClientId(2), /*keep_token=*/true));
  CHECK(enrolment.redeem({tokens->at(1).secret, key(5), 1001}));
}

TEST_CASE("a client is revoked once: again is an error without an entry, unless its token is still valid") {
  const Book book;
  Enrolment enrolment = book.open();
  const auto tokens = enrolment.create_tokens({.count = 2, .uses = 5, .now = 1000, .lifetime = kDay});
  REQUIRE(enrolment.redeem({tokens->at(0).secret, key(1), 1001}));
  const auto invited = enrolment.create_token(1000, kDay);
  const auto entries = [&] { return server::AuditLog(book.directory).verify("")->entries; };
  REQUIRE(enrolment.revoke(ClientId(0), /*keep_token=*/true));
  const auto once = entries();
  CHECK(enrolment.revoke(ClientId(0), /*keep_token=*/true).error().message == "client 0 is already revoked");
  CHECK(entries() == once);
  CHECK(*enrolment.revoke(ClientId(0)) == tokens->at(0).id);
  CHECK(entries() == once + 1);
  CHECK(enrolment.revoke(ClientId(0)).error().message == "client 0 is already revoked");
  // The client number of a token that nobody has used.
  REQUIRE(enrolment.revoke(*invited->client));
  CHECK_FALSE(enrolment.revoke(*invited->client));
  CHECK(entries() == once + 2);
}

TEST_CASE("enrolment: those who have joined within the hour are known with household and token") {
  const Book book;
  Enrolment enrolment = book.open();
  const auto tokens = enrolment.create_tokens({.uses = 3, .now = 1000, .lifetime = kDay});
  const std::string& secret = tokens->front().secret;
  REQUIRE(enrolment.redeem({secret, key(1), 1001, "192.0.2.1:1", "192.0.2.1"}));
  REQUIRE(enrolment.redeem({secret, key(2), 1050, "192.0.2.2:1", "192.0.2.2"}));
  REQUIRE(enrolment.add(key(3), 1060));  // clients that an operator added do not count
  const auto recent = book.open().enrolled_since(1001);
  REQUIRE(recent->size() == 1);
  CHECK(recent->at(0).household == "192.0.2.2");
  CHECK(recent->at(0).token_hash == to_hex(sha256(secret)));
  CHECK(recent->at(0).when == 1050);
}
