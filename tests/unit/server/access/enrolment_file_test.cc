// The enrolment book's file after changes, losses and failures outside the coordinator.
#include <doctest/doctest.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "core/crypto/sha256.h"
#include "core/platform/files.h"
#include "server/access/calendar.h"
#include "server/audit_log.h"
#include "server/data_directory.h"
#include "server/enrolment.h"
#include "server/store/enrolment_file.h"
#include "tests/support/skip.h"
#include "tests/support/tiny_dataset.h"

using namespace fedge;
using server::Enrolment;

namespace {

constexpr std::chrono::hours kBookDay{24};

PublicKey filled_key(std::uint8_t byte) {
  PublicKey result;
  result.bytes.fill(byte);
  return result;
}

struct BookFile {
  test::TemporaryDirectory directory;
  std::filesystem::path file = directory.path() / "enrolment.db";
  std::filesystem::path away = directory.path() / "away";

  Enrolment open() const { return Enrolment(directory.path()); }
  // Writes a book with one enrolled client.
  void fill() const {
    Enrolment enrolment = open();
    const auto token = enrolment.create_token(1000, kBookDay);
    REQUIRE(token);
    REQUIRE(enrolment.redeem({token->secret, filled_key(1), 1001}));
  }
  std::size_t count(const std::string& action) const {
    std::size_t entries = 0;
    REQUIRE(server::AuditLog(directory.path()).verify("", [&](const server::AuditEntry& entry) {
      entries += entry.event.action == action ? 1U : 0U;
    }));
    return entries;
  }
};

}  // namespace

TEST_CASE("a missing enrolment book that existed once is unavailable, not empty") {
  const BookFile book;
  book.fill();
  std::filesystem::rename(book.file, book.away);
  Enrolment later = book.open();
  const auto stranger = later.authenticate(filled_key(1));
  REQUIRE_FALSE(stranger);
  CHECK(stranger.error().code == ErrorCode::kUnavailable);
  CHECK_MESSAGE(stranger.error().message.find("enrolment.db is missing") != std::string::npos,
                stranger.error().message);
  CHECK(later.create_token(1000, kBookDay).error().code == ErrorCode::kUnavailable);
  CHECK_FALSE(std::filesystem::exists(book.file));
  std::filesystem::rename(book.away, book.file);
  CHECK(later.authenticate(filled_key(1))->client == ClientId(0));
}

TEST_CASE("what was last read of an enrolment book stays in force while the book is away, cut or another's") {
  const BookFile book;
  book.fill();
  Enrolment coordinator = book.open();
  REQUIRE(coordinator.authenticate(filled_key(1)));
  std::filesystem::rename(book.file, book.away);
  SUBCASE("away") {}
  SUBCASE("an empty file") { std::ofstream(book.file) << ""; }
  SUBCASE("cut short") {
    std::filesystem::copy_file(book.away, book.file);
    std::filesystem::resize_file(book.file, 4096 + 100);
  }
  SUBCASE("text") { std::ofstream(book.file) << std::string(10'000, 'x'); }
  SUBCASE("another coordinator's") {
    const BookFile other;
    other.fill();
    std::filesystem::copy_file(other.file, book.file);
  }
  CHECK(coordinator.authenticate(filled_key(1))->client == ClientId(0));
  const auto stranger = coordinator.authenticate(filled_key(2));
  REQUIRE_FALSE(stranger);
  CHECK(stranger.error().code == ErrorCode::kUnavailable);
  CHECK_MESSAGE(stranger.error().message.find("enrolment.db") != std::string::npos, stranger.error().message);
  CHECK(coordinator.count().error().code == ErrorCode::kUnavailable);
  std::filesystem::remove(book.file);
  std::filesystem::rename(book.away, book.file);
  CHECK(coordinator.authenticate(filled_key(2)).error().code == ErrorCode::kNotFound);
  CHECK(*coordinator.count() == 1);
}

TEST_CASE("what has changed in an enrolment book is told once, also when others have looked before") {
  const BookFile book;
  book.fill();
  Enrolment coordinator = book.open();
  CHECK(coordinator.refresh()->all);
  CHECK(coordinator.refresh()->clients.empty());
  REQUIRE(book.open().revoke(ClientId(0)));
  SUBCASE("somebody who connects") { CHECK_FALSE(coordinator.authenticate(filled_key(2))); }
  SUBCASE("somebody who joins") { CHECK_FALSE(*coordinator.knows("a secret")); }
  SUBCASE("somebody who counts") { CHECK(*coordinator.count() == 0); }
  const auto changes = coordinator.refresh();
  REQUIRE(changes->clients.size() == 1);
  CHECK(changes->clients[0].client == ClientId(0));
  CHECK(changes->clients[0].state == server::ClientState::kRevoked);
  CHECK(coordinator.refresh()->clients.empty());
}

TEST_CASE("nobody joins by another enrolment book than the one in force") {
  const BookFile book;
  book.fill();
  Enrolment writer = book.open();
  REQUIRE(writer.create_token(1000, kBookDay));
  const BookFile other;
  other.fill();
  const auto token = other.open().create_token(1000, kBookDay);
  REQUIRE(token);
  std::filesystem::remove(book.file);
  std::filesystem::copy_file(other.file, book.file);
  const auto joined = writer.redeem({token->secret, filled_key(2), 1001});
  REQUIRE_FALSE(joined);
  CHECK(joined.error().code == ErrorCode::kUnavailable);
}

TEST_CASE("an unknown key is not found, and only a revoked one is refused") {
  const BookFile book;
  book.fill();
  Enrolment enrolment = book.open();
  CHECK(enrolment.authenticate(filled_key(2)).error().code == ErrorCode::kNotFound);
  REQUIRE(enrolment.revoke(ClientId(0)));
  CHECK(enrolment.authenticate(filled_key(1)).error().code == ErrorCode::kRefused);
}

TEST_CASE("an enrolment book that a former version kept as JSON is taken over once and for all") {
  const BookFile book;
  const auto former = book.directory.path() / "enrolment.json";
  const std::string secret = "a secret";
  const std::string json =
      R"({"tokens":[{"token":3,"secret_hash":")" + to_hex(sha256(secret)) +
      R"(","created":10,"expires":5000,"uses":9,"used":1,"approve":false,"revoked":false}],"clients":[)"
      R"({"client":4,"key":")" +
      to_hex(filled_key(1)) + R"(","enrolled":12,"token":3,"state":"enrolled"},{"client":6,"key":")" +
      to_hex(filled_key(2)) + R"(","enrolled":12,"token":3,"state":"revoked"}]})";
  std::ofstream(former) << json;
  {
    Enrolment enrolment = book.open();
    CHECK(enrolment.authenticate(filled_key(1))->client == ClientId(4));
    CHECK(enrolment.authenticate(filled_key(2)).error().code == ErrorCode::kRefused);
    CHECK(enrolment.redeem({secret, filled_key(3), 4000})->client == ClientId(7));
    CHECK(enrolment.create_token(1000, kBookDay)->id == 4);
  }
  CHECK_FALSE(std::filesystem::exists(former));
  CHECK(*read_file(former.string() + ".migrated", 1 << 20) == json);
  // The old file is not used again when the new one is missing.
  std::filesystem::rename(book.file, book.away);
  CHECK(book.open().read().error().code == ErrorCode::kUnavailable);
}

TEST_CASE("a former enrolment book that is damaged is named, and nothing is made of it") {
  const BookFile book;
  std::ofstream(book.directory.path() / "enrolment.json") << "{\"tokens\": [{}], \"clients\": []}";
  const auto token = book.open().create_token(1000, kBookDay);
  REQUIRE(!token);
  CHECK(token.error().code == ErrorCode::kCorrupt);
  CHECK(token.error().message.find("enrolment.json is damaged") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(book.file));
}

TEST_CASE("client numbers are never given twice, also after a backup of the enrolment book was put back") {
  const BookFile book;
  book.fill();
  std::filesystem::copy_file(book.file, book.away);
  std::set<std::uint32_t> given{0};
  const auto give = [&] {
    Enrolment enrolment = book.open();
    const auto tokens = enrolment.create_tokens({.count = 2, .now = 1000, .lifetime = kBookDay});
    for (const server::NewToken& token : *tokens) CHECK(given.insert(token.client->value()).second);
    const auto several = enrolment.create_tokens({.uses = 2, .now = 1000, .lifetime = kBookDay});
    const auto key = filled_key(static_cast<std::uint8_t>(10 + given.size()));
    CHECK(given.insert(enrolment.redeem({several->front().secret, key, 1001})->client.value()).second);
    CHECK(given.insert(enrolment.add(filled_key(static_cast<std::uint8_t>(100 + given.size())), 1)->value())
              .second);
    // The last number is only promised.
    CHECK(given.insert(enrolment.create_token(1000, kBookDay)->client->value()).second);
  };
  give();
  std::filesystem::rename(book.away, book.file);
  give();
  CHECK(given.size() == 11);
}

TEST_CASE("calendar: a time reads back from its text, and other texts say none") {
  for (const server::UnixSeconds time : {0L, 951'782'400L, 1'795'622'040L})
    CHECK(server::parse_calendar_text(server::calendar_text(time)) == time);
  CHECK(server::calendar_text(951'782'400) == "2000-02-29T00:00:00Z");
  for (const char* text : {"", "2000-02-29", "2000-02-29T00:00:00Zx", "yesterday"})
    CHECK_FALSE(server::parse_calendar_text(text));
}

TEST_CASE("who has joined since a backup of the enrolment book stays a client, and its token is used") {
  const BookFile book;
  book.fill();
  std::vector<std::string> secrets;
  {
    Enrolment enrolment = book.open();
    const auto tokens = enrolment.create_tokens({.count = 2, .now = 1000, .lifetime = kBookDay});
    for (const server::NewToken& token : *tokens) secrets.push_back(token.secret);
    secrets.push_back(
        enrolment.create_tokens({.uses = 1, .approve = true, .now = 1000, .lifetime = kBookDay})
            ->front()
            .secret);
  }
  std::filesystem::copy_file(book.file, book.away);
  ClientId joined, pending, revoked, added;
  {
    Enrolment enrolment = book.open();
    joined = enrolment.redeem({secrets[0], filled_key(21), 1001})->client;
    revoked = enrolment.redeem({secrets[1], filled_key(22), 1001})->client;
    pending = enrolment.redeem({secrets[2], filled_key(23), 1001})->client;
    added = *enrolment.add(filled_key(24), 1001);
    REQUIRE(enrolment.revoke(revoked));
  }
  std::filesystem::rename(book.away, book.file);
  Enrolment after = book.open();
  REQUIRE(after.take_up(filled_key(200)));
  CHECK(after.authenticate(filled_key(21))->client == joined);
  CHECK(after.authenticate(filled_key(22)).error().code == ErrorCode::kRefused);
  CHECK(after.authenticate(filled_key(23))->client == pending);
  CHECK(after.authenticate(filled_key(23))->pending);
  CHECK(after.authenticate(filled_key(24))->client == added);
  // Tokens from that time are worthless to a thief.
  for (const std::string& secret : secrets) {
    const auto again = after.redeem({secret, filled_key(66), 1002});
    REQUIRE_FALSE(again);
    CHECK(again.error().code == ErrorCode::kRefused);
  }
}

TEST_CASE("who was revoked stays so after a backup of the enrolment book was put back, and the log says it") {
  const BookFile book;
  book.fill();
  std::string secret;
  {
    Enrolment enrolment = book.open();
    const auto tokens = enrolment.create_tokens({.uses = 2, .now = 1000, .lifetime = kBookDay});
    secret = tokens->front().secret;
    REQUIRE(enrolment.redeem({secret, filled_key(2), 1001}));
  }
  std::filesystem::copy_file(book.file, book.away);
  REQUIRE(book.open().revoke(ClientId(0)));
  REQUIRE(book.open().revoke_token(2));
  std::filesystem::rename(book.away, book.file);
  const auto made_good = book.open().take_up(filled_key(200));
  REQUIRE(made_good);
  REQUIRE(made_good->size() == 2);
  CHECK(made_good->at(0).event.action == "client.revoked");
  CHECK(made_good->at(1).event.action == "token.revoked");
  Enrolment after = book.open();
  CHECK(after.authenticate(filled_key(1)).error().code == ErrorCode::kRefused);
  CHECK(after.authenticate(filled_key(2)));
  CHECK(after.redeem({secret, filled_key(3), 1001}).error().message == "the join token has been revoked");
  CHECK(book.count("enrolment.repaired") == 1);
  CHECK(after.take_up(filled_key(200))->empty());
  CHECK(book.count("enrolment.repaired") == 1);
}

TEST_CASE(
    "a change of the enrolment book that fails after it was recorded is recorded as failed, and has not "
    "been") {
  const BookFile book;
  book.fill();
  // Simulates a full disk for the database.
  sqlite3* handle = nullptr;
  REQUIRE(sqlite3_open(book.file.c_str(), &handle) == SQLITE_OK);
  REQUIRE(sqlite3_exec(handle,
                       "CREATE TRIGGER full BEFORE UPDATE OF change ON book BEGIN SELECT "
                       "RAISE(ROLLBACK, 'database or disk is full'); END",
                       nullptr, nullptr, nullptr) == SQLITE_OK);
  const auto revoked = book.open().revoke(ClientId(0));
  REQUIRE_FALSE(revoked);
  CHECK(book.open().authenticate(filled_key(1)));
  CHECK(book.count("client.revoked") == 1);
  CHECK(book.count("change.failed") == 1);
  REQUIRE(sqlite3_exec(handle, "DROP TRIGGER full", nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_close(handle);
  // The failed change is not repeated later.
  REQUIRE(book.open().create_token(1000, kBookDay));
  CHECK(book.open().authenticate(filled_key(1)));
  REQUIRE(book.open().revoke(ClientId(0)));
  CHECK(book.open().authenticate(filled_key(1)).error().code == ErrorCode::kRefused);
}

TEST_CASE("a missing node.key beside an enrolment book in use is an error, not a new identity") {
  const BookFile book;
  const auto key = server::open_coordinator_key(book.directory.path());
  REQUIRE(key);
  const auto file = book.directory.path() / "node.key";
  SUBCASE("a coordinator has led here") { REQUIRE(book.open().take_up(key->public_key())); }
  SUBCASE("a token names it") { book.fill(); }
  std::filesystem::rename(file, book.away);
  const auto missing = server::open_coordinator_key(book.directory.path());
  REQUIRE_FALSE(missing);
  CHECK_MESSAGE(missing.error().message.find(file.string() + " is missing") != std::string::npos,
                missing.error().message);
  CHECK_FALSE(std::filesystem::exists(file));
  std::filesystem::rename(book.away, file);
  CHECK(server::open_coordinator_key(book.directory.path())->public_key() == key->public_key());
}

TEST_CASE("an enrolment book is one coordinator's, and another's is refused with both keys") {
  const BookFile book;
  REQUIRE(book.open().take_up(filled_key(7)));
  const auto other = book.open().take_up(filled_key(8));
  REQUIRE_FALSE(other);
  CHECK(other.error().code == ErrorCode::kRefused);
  CHECK(other.error().message.find(to_hex(filled_key(7))) != std::string::npos);
  CHECK(other.error().message.find(to_hex(filled_key(8))) != std::string::npos);
}

TEST_CASE("a tool that runs as another user than the coordinator's changes nothing in its data directory") {
  if (::geteuid() != 0) {
    test::skip("only root can give a file away");
    return;
  }
  const BookFile book;
  book.fill();
  for (const char* name : {"enrolment.db", "audit.log"}) {
    CAPTURE(name);
    const auto file = book.directory.path() / name;
    REQUIRE(::chown(file.c_str(), 12345, 12345) == 0);
    const auto revoked = book.open().revoke(ClientId(0));
    REQUIRE_FALSE(revoked);
    CHECK(revoked.error().code == ErrorCode::kRefused);
    CHECK_MESSAGE(revoked.error().message.find("belongs to uid 12345") != std::string::npos,
                  revoked.error().message);
    REQUIRE(::chown(file.c_str(), 0, 0) == 0);
    CHECK(book.open().authenticate(filled_key(1)));
  }
}

TEST_CASE(
    "a look at the enrolment book waits for no change that is being written, and goes by what it knows") {
  const BookFile book;
  book.fill();
  Enrolment coordinator = book.open();
  REQUIRE(coordinator.authenticate(filled_key(1)));
  sqlite3* writer = nullptr;
  REQUIRE(sqlite3_open(book.file.c_str(), &writer) == SQLITE_OK);
  REQUIRE(sqlite3_exec(writer, "BEGIN EXCLUSIVE", nullptr, nullptr, nullptr) == SQLITE_OK);
  CHECK(coordinator.authenticate(filled_key(1))->client == ClientId(0));
  CHECK(coordinator.authenticate(filled_key(2)).error().code == ErrorCode::kUnavailable);
  CHECK(*coordinator.count() == 1);
  CHECK_FALSE(coordinator.refresh()->current);
  // A client that joined through this process is known at once.
  coordinator.learn(filled_key(3), {.client = ClientId(5)});
  CHECK(coordinator.authenticate(filled_key(3))->client == ClientId(5));
  CHECK(*coordinator.count() == 2);
  REQUIRE(sqlite3_exec(writer, "ROLLBACK", nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_close(writer);
  CHECK(coordinator.authenticate(filled_key(2)).error().code == ErrorCode::kNotFound);
}
