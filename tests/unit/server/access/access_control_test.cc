// Users, their access tokens and roles, and what a restored older book must not undo.
#include "server/access_control.h"

#include <doctest/doctest.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "core/crypto/sha256.h"
#include "core/platform/files.h"
#include "server/enrolment.h"
#include "tests/support/tiny_dataset.h"

using namespace fedge;
using namespace fedge::server;

namespace {

constexpr std::chrono::hours kWeek{24 * 7};
const Actor kRoot{"uid 0", ""};

struct AccessFile {
  test::TemporaryDirectory directory;
  std::filesystem::path file = directory.path() / "enrolment.db";

  AccessControl open() const { return AccessControl(directory.path()); }
  std::string last_entry() const {
    std::string last;
    REQUIRE(AuditLog(directory.path()).verify("", [&](const AuditEntry& entry) {
      last = entry.event.actor + " " + entry.event.action + " " + entry.event.subject;
      for (const auto& [key, value] : entry.event.details) last += " " + key + "=" + value;
    }));
    return last;
  }
};

std::string why(const Result<Principal>& sender) { return sender ? "accepted" : sender.error().message; }
template <class T>
std::string why_not(const Result<T>& done) {
  return done ? "done" : done.error().message;
}

NewAccessToken token_of(AccessControl& access, const std::string& user, const AccessTokenOrder& more = {}) {
  AccessTokenOrder order = more;
  order.user = user;
  order.now = 1000;
  order.lifetime = kWeek;
  const auto created = access.create_token(kRoot, order);
  REQUIRE_MESSAGE(created, created.error().message);
  return *created;
}

}  // namespace

TEST_CASE(
    "access control: a token makes its bearer the user, until it expires, is revoked or the user goes") {
  const AccessFile book;
  AccessControl access = book.open();
  REQUIRE(access.add_user(kRoot, "alice", {{"*", Role::kOperator}}, 1000));
  CHECK(book.last_entry() == "uid 0 user.added user alice grants=*=operator");
  const auto first = token_of(access, "alice");
  const auto second = token_of(access, "alice");
  CHECK(book.last_entry() == "uid 0 access.created access token 2 user=alice expires=" +
                                 calendar_text(1000 + kWeek / std::chrono::seconds(1)));
  const auto sender = access.authenticate(first.secret, 2000);
  REQUIRE(sender);
  CHECK(sender->actor.name == "user alice");
  CHECK(sender->may_everywhere(Role::kOperator));
  CHECK_FALSE(sender->may_somewhere(Role::kAdmin));
  CHECK(why(access.authenticate(first.secret, 1000 + 7 * 86'400 + 1)) ==
        "the access token expired at " + calendar_text(1000 + 7 * 86'400));
  CHECK(why(access.authenticate(first.secret + "0", 2000)) ==
        "this coordinator does not know the access token");
  CHECK(why(access.authenticate("", 2000)) == "this coordinator does not know the access token");
  REQUIRE(access.revoke_token({"user bob", "192.0.2.7"}, first.id));
  CHECK(book.last_entry() == "user bob access.revoked access token 1 user=alice from=192.0.2.7");
  CHECK(why(access.authenticate(first.secret, 2000)) == "the access token has been revoked");
  CHECK(why(access.authenticate(second.secret, 2000)) == "accepted");
  REQUIRE(access.remove_user(kRoot, "alice"));
  CHECK(why(access.authenticate(second.secret, 2000)) == "this coordinator does not know the access token");
  CHECK(access.authenticate(second.secret, 2000).error().code == ErrorCode::kRefused);
}

TEST_CASE("access control: another process's change counts at the next request") {
  const AccessFile book;
  AccessControl access = book.open();
  AccessControl other = book.open();
  REQUIRE(access.add_user(kRoot, "alice", {{"default", Role::kViewer}}, 1000));
  const auto token = token_of(access, "alice");
  CHECK(other.authenticate(token.secret, 2000)->may(Role::kViewer, "default"));
  REQUIRE(access.set_grants(kRoot, "alice", {{"default", Role::kSubmitter}}));
  CHECK(other.authenticate(token.secret, 2000)->may(Role::kSubmitter, "default"));
  REQUIRE(access.revoke_token(kRoot, token.id));
  CHECK_FALSE(other.authenticate(token.secret, 2000));
}

TEST_CASE("access control: a token gives at most its role, and only in its project") {
  const AccessFile book;
  AccessControl access = book.open();
  REQUIRE(access.add_project(kRoot, "cardiology", 1000));
  REQUIRE(access.add_user(kRoot, "bob", {{"*", Role::kViewer}, {"cardiology", Role::kAdmin}}, 1000));
  const auto grants = [&](const AccessTokenOrder& order) {
    return to_string(access.authenticate(token_of(access, "bob", order).secret, 2000)->grants);
  };
  CHECK(grants({}) == "*=viewer,cardiology=admin");
  CHECK(grants({.role = Role::kSubmitter}) == "*=viewer,cardiology=submitter");
  CHECK(grants({.project = "cardiology"}) == "cardiology=admin");
  CHECK(grants({.project = "default"}) == "default=viewer");
  CHECK(grants({.role = Role::kOperator, .project = "cardiology"}) == "cardiology=operator");
}

TEST_CASE("access control: what is not there, is there already, or has no proper name is refused") {
  const AccessFile book;
  AccessControl access = book.open();
  for (const std::string name : {"", ".", "-a", "Alice", "a b", "a/b", "a,b", "a=b", "*", "\n", "é",
                                 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}) {
    CAPTURE(name);
    CHECK(access.add_user(kRoot, name, {}, 1000).error().code == ErrorCode::kInvalid);
    CHECK(access.add_project(kRoot, name, 1000).error().code == ErrorCode::kInvalid);
  }
  REQUIRE(access.add_user(kRoot, "alice@example.org", {}, 1000));
  CHECK(why_not(access.add_user(kRoot, "alice@example.org", {}, 1000)) ==
        "the user 'alice@example.org' exists already");
  CHECK(why_not(access.set_grants(kRoot, "bob", {})) == "there is no user 'bob'; see: fedge user ls");
  CHECK(why_not(access.set_grants(kRoot, "alice@example.org", {{"lab", Role::kViewer}})) ==
        "there is no project 'lab'; see: fedge project ls");
  CHECK(access.remove_user(kRoot, "bob").error().code == ErrorCode::kNotFound);
  CHECK(access.revoke_token(kRoot, 7).error().code == ErrorCode::kNotFound);
  CHECK(access.create_token(kRoot, {.user = "bob", .lifetime = kWeek}).error().code == ErrorCode::kNotFound);
  CHECK(access.create_token(kRoot, {.user = "alice@example.org"}).error().code == ErrorCode::kInvalid);
  REQUIRE(access.remove_user(kRoot, "alice@example.org"));
  CHECK(why_not(access.add_user(kRoot, "alice@example.org", {}, 1000)) ==
        "the user 'alice@example.org' was removed; choose another name, so that the audit log stays clear");
}

TEST_CASE("access control: the book has no secret of a token") {
  const AccessFile book;
  AccessControl access = book.open();
  REQUIRE(access.add_user(kRoot, "alice", {}, 1000));
  const std::string secret = token_of(access, "alice").secret;
  CHECK(secret.starts_with("fedge_"));
  CHECK(secret.size() == 70);
  for (const char* name : {"enrolment.db", "audit.log"}) {
    const auto bytes = read_file(book.directory.path() / name, 1 << 20);
    REQUIRE(bytes);
    CHECK(bytes->find(secret.substr(6)) == std::string::npos);
  }
  CHECK(read_file(book.file, 1 << 20)->find(to_hex(sha256(secret))) != std::string::npos);
}

TEST_CASE("access control: after an older book was restored, removed users and revoked tokens stay so") {
  const AccessFile book;
  AccessControl access = book.open();
  REQUIRE(access.add_project(kRoot, "lab", 1000));
  REQUIRE(access.add_user(kRoot, "alice", {{"*", Role::kAdmin}}, 1000));
  REQUIRE(access.add_user(kRoot, "bob", {{"*", Role::kAdmin}}, 1000));
  const auto alice = token_of(access, "alice");
  const auto stolen = token_of(access, "bob");
  const auto kept = token_of(access, "bob");
  const std::filesystem::path older = book.directory.path() / "older";
  std::filesystem::copy_file(book.file, older);
  REQUIRE(access.remove_user(kRoot, "alice"));
  REQUIRE(access.revoke_token(kRoot, stolen.id));
  REQUIRE(access.set_grants(kRoot, "bob", {{"lab", Role::kViewer}}));
  REQUIRE(access.add_user(kRoot, "carol", {{"lab", Role::kViewer}}, 1000));
  const auto later = token_of(access, "carol");
  REQUIRE(access.add_project(kRoot, "later", 1000));
  access = AccessControl(book.directory.path() / "elsewhere");  // closes the book
  std::filesystem::copy_file(older, book.file, std::filesystem::copy_options::overwrite_existing);

  // As a coordinator does when it starts.
  const auto repaired = Enrolment(book.directory.path()).take_up(PublicKey{});
  REQUIRE(repaired);
  CHECK(repaired->size() == 6);
  access = book.open();
  CHECK_FALSE(access.authenticate(alice.secret, 2000));
  CHECK_FALSE(access.authenticate(stolen.secret, 2000));
  CHECK(to_string(access.authenticate(kept.secret, 2000)->grants) == "lab=viewer");
  // The log has no hash of a token, so a lost token is void; its number is not used again.
  CHECK_FALSE(access.authenticate(later.secret, 2000));
  CHECK(token_of(access, "carol").id == later.id + 1);
  CHECK(why_not(access.add_project(kRoot, "later", 1000)) == "the project 'later' exists already");
}

TEST_CASE(
    "access control: an older book that is put back while it is open is repaired before anybody enters") {
  const AccessFile book;
  AccessControl access = book.open();
  REQUIRE(access.add_user(kRoot, "alice", {{"*", Role::kAdmin}}, 1000));
  const auto token = token_of(access, "alice");
  const std::filesystem::path older = book.directory.path() / "older";
  std::filesystem::copy_file(book.file, older);
  REQUIRE(access.authenticate(token.secret, 2000));
  REQUIRE(access.remove_user(kRoot, "alice"));
  REQUIRE_FALSE(access.authenticate(token.secret, 2000));
  SUBCASE("as another file") { std::filesystem::rename(older, book.file); }
  SUBCASE("as the bytes of the same file") {
    const auto bytes = read_file(older, 1 << 20);
    REQUIRE(bytes);
    REQUIRE(write_file_at(book.file, 0, std::as_bytes(std::span(*bytes))));
  }
  CHECK_FALSE(access.authenticate(token.secret, 2000));
  CHECK_FALSE(book.open().authenticate(token.secret, 2000));
}

TEST_CASE("access control: roles and labels that the audit log cannot have whole are refused") {
  const AccessFile book;
  AccessControl access = book.open();
  std::vector<Grant> grants;
  for (int i = 0; i < 30; ++i) {
    grants.push_back({"project-number-" + std::to_string(100 + i), Role::kViewer});
    REQUIRE(access.add_project(kRoot, grants.back().project, 1000));
  }
  CHECK(access.add_user(kRoot, "alice", grants, 1000).error().code == ErrorCode::kInvalid);
  grants.resize(10);
  REQUIRE(access.add_user(kRoot, "alice", grants, 1000));
  CHECK(book.last_entry().find(to_string(grants)) != std::string::npos);
  std::vector<std::string> labels;
  for (char c = 'a'; c < 'a' + 10; ++c) labels.push_back(std::string(60, c));
  CHECK_FALSE(checked_labels(labels));
  labels.resize(8);
  CHECK(checked_labels(labels));
}

TEST_CASE(
    "access control: while another change is being written, who does not wait uses what was read last") {
  const AccessFile book;
  AccessControl access = book.open();
  REQUIRE(access.add_user(kRoot, "alice", {{"*", Role::kAdmin}}, 1000));
  const auto token = token_of(access, "alice");
  AccessControl busy(book.directory.path(), AccessControl::Waiting::kNever);
  REQUIRE(busy.authenticate(token.secret, 2000));
  sqlite3* handle = nullptr;
  REQUIRE(sqlite3_open(book.file.c_str(), &handle) == SQLITE_OK);
  REQUIRE(sqlite3_exec(handle, "BEGIN EXCLUSIVE", nullptr, nullptr, nullptr) == SQLITE_OK);
  CHECK(busy.authenticate(token.secret, 2000));
  sqlite3_close(handle);
}

TEST_CASE("access control: without its book nobody is authenticated, and nothing is taken for empty") {
  const AccessFile book;
  AccessControl access = book.open();
  REQUIRE(access.add_user(kRoot, "alice", {{"*", Role::kAdmin}}, 1000));
  const auto token = token_of(access, "alice");
  std::filesystem::rename(book.file, book.directory.path() / "away");
  CHECK(access.authenticate(token.secret, 2000).error().code == ErrorCode::kUnavailable);
  CHECK(book.open().authenticate(token.secret, 2000).error().code == ErrorCode::kUnavailable);
  CHECK_FALSE(book.open().add_user(kRoot, "bob", {}, 1000));
  CHECK_FALSE(std::filesystem::exists(book.file));
  std::filesystem::rename(book.directory.path() / "away", book.file);
  CHECK(access.authenticate(token.secret, 2000));
}

TEST_CASE("access control: a limit of a token that cannot be read is not taken for none") {
  const AccessFile book;
  AccessControl access = book.open();
  REQUIRE(access.add_user(kRoot, "alice", {{"*", Role::kAdmin}}, 1000));
  const auto token = token_of(access, "alice", {.role = Role::kViewer});
  sqlite3* handle = nullptr;
  REQUIRE(sqlite3_open(book.file.c_str(), &handle) == SQLITE_OK);
  CHECK(sqlite3_exec(handle, "UPDATE access_tokens SET role = 'vlewer'; UPDATE book SET change = change + 1;",
                     nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_close(handle);
  CHECK(access.authenticate(token.secret, 2000).error().code == ErrorCode::kUnavailable);
}

TEST_CASE("access control: a book of the first version is taken over with its clients and tokens") {
  const AccessFile book;
  sqlite3* handle = nullptr;
  REQUIRE(sqlite3_open(book.file.c_str(), &handle) == SQLITE_OK);
  constexpr const char* kFirstVersion = R"(
    CREATE TABLE book (
      only INTEGER PRIMARY KEY CHECK (only = 1), identity TEXT NOT NULL, next_client INTEGER NOT NULL,
      next_token INTEGER NOT NULL, change INTEGER NOT NULL, recorded INTEGER NOT NULL,
      coordinator TEXT NOT NULL);
    CREATE TABLE tokens (
      id INTEGER PRIMARY KEY, client INTEGER UNIQUE, secret_hash TEXT NOT NULL UNIQUE,
      created INTEGER NOT NULL, expires INTEGER NOT NULL, uses INTEGER NOT NULL, used INTEGER NOT NULL,
      approve INTEGER NOT NULL, revoked INTEGER NOT NULL, change INTEGER NOT NULL);
    CREATE INDEX tokens_by_change ON tokens (change);
    CREATE TABLE clients (
      client INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, enrolled INTEGER NOT NULL,
      token INTEGER NOT NULL, state INTEGER NOT NULL, household TEXT NOT NULL, change INTEGER NOT NULL);
    CREATE INDEX clients_by_change ON clients (change);
    CREATE INDEX clients_by_time ON clients (enrolled);
    INSERT INTO book VALUES (1, 'abc', 5, 3, 9, 0, '');
    INSERT INTO tokens VALUES (1, 4, 'hash', 10, 20, 1, 1, 0, 0, 8);
    INSERT INTO clients VALUES (4, zeroblob(32), 11, 1, 0, '192.0.2.7', 9);
    PRAGMA application_id = 1178879810;
    PRAGMA user_version = 1;)";
  REQUIRE(sqlite3_exec(handle, kFirstVersion, nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_close(handle);
  const auto read = Enrolment(book.directory.path()).read();
  REQUIRE_MESSAGE(read, read.error().message);
  REQUIRE(read->clients.size() == 1);
  CHECK(read->clients[0].client == ClientId(4));
  CHECK(read->clients[0].household == "192.0.2.7");
  CHECK(read->clients[0].description == ClientDescription{});
  REQUIRE(read->tokens.size() == 1);
  CHECK(read->tokens[0].client == ClientId(4));
  AccessControl access = book.open();
  REQUIRE(access.add_user(kRoot, "alice", {{"default", Role::kViewer}}, 1000));
  CHECK(access.authenticate(token_of(access, "alice").secret, 2000));
  CHECK(Enrolment(book.directory.path()).create_token(1000, kWeek)->client == ClientId(5));
}

TEST_CASE("grants and labels are read back as they are written, and nothing else is") {
  CHECK(to_string(*parse_grants("b=viewer,*=admin,a=operator")) == "*=admin,a=operator,b=viewer");
  CHECK(parse_grants("")->empty());
  for (const char* wrong : {"a", "a=", "=viewer", "a=root", "a=viewer,a=admin", "A=viewer", "a =viewer"}) {
    CAPTURE(wrong);
    CHECK_FALSE(parse_grants(wrong));
  }
  CHECK(joined_labels(*checked_labels({"b", "a", "b"})) == "a,b");
  CHECK(split_labels("a,b") == std::vector<std::string>{"a", "b"});
  CHECK(split_labels("").empty());
  for (const char* wrong : {"", "a b", "a,b", "<b>", "é"}) {
    CAPTURE(wrong);
    CHECK_FALSE(checked_labels({wrong}));
  }
  CHECK_FALSE(checked_labels(std::vector<std::string>{std::string(65, 'a')}));
  std::vector<std::string> many;
  for (int i = 0; i < 33; ++i) many.push_back(std::to_string(i));
  CHECK_FALSE(checked_labels(many));
}
