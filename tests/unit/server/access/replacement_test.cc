// A device that takes over the number of another one, and a revoked client that is admitted again.
#include <doctest/doctest.h>
#include <sqlite3.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "server/access_control.h"
#include "server/audit_log.h"
#include "server/enrolment.h"
#include "tests/support/tiny_dataset.h"

namespace fedge::server {
namespace {

constexpr std::chrono::hours kOneDay{24};

PublicKey device_key(std::uint8_t byte) {
  PublicKey key;
  key.bytes.fill(byte);
  return key;
}

struct Ward {
  test::TemporaryDirectory directory;
  std::filesystem::path file = directory.path() / "enrolment.db";
  std::filesystem::path backup = directory.path() / "backup";

  // Client 0 has key 1, a name and a label.
  Ward() {
    Enrolment book = open();
    const auto tokens = book.create_tokens(
        {.now = 1000, .lifetime = kOneDay, .description = {.name = "laptop", .labels = {"ward-3"}}});
    REQUIRE(tokens);
    REQUIRE(book.redeem({tokens->front().secret, device_key(1), 1001}));
  }
  Enrolment open() const { return Enrolment(directory.path()); }
  std::string token(bool approve = false) const {
    const auto tokens =
        open().create_tokens({.approve = approve, .now = 2000, .lifetime = kOneDay, .replaces = ClientId(0)});
    REQUIRE(tokens);
    CHECK_FALSE(tokens->front().client);
    return tokens->front().secret;
  }
};

std::string why(const Result<Standing>& standing) {
  return standing ? "client " + std::to_string(standing->client.value()) : standing.error().message;
}

}  // namespace

TEST_CASE("replacement: the new device gets number and description, and the former key is refused for ever") {
  const Ward ward;
  Enrolment coordinator = ward.open();
  REQUIRE(coordinator.authenticate(device_key(1)));
  const std::string secret = ward.token();
  CHECK(why(coordinator.authenticate(device_key(1))) == "client 0");  // until the new device joins
  CHECK(why(ward.open().redeem({secret, device_key(2), 2001})) == "client 0");
  CHECK(why(ward.open().redeem({secret, device_key(2), 2002})) == "client 0");  // the answer was lost
  CHECK(why(coordinator.authenticate(device_key(2))) == "client 0");
  const auto old = coordinator.authenticate(device_key(1));
  REQUIRE_FALSE(old);
  CHECK(old.error().code == ErrorCode::kRefused);
  CHECK(old.error().message == "another device has taken over this client's number");
  CHECK(*coordinator.count() == 1);
  const auto book = ward.open().snapshot();
  REQUIRE(book);
  REQUIRE((*book)->clients.size() == 1);
  CHECK((*book)->clients[0].key == device_key(2));
  CHECK((*book)->clients[0].description == ClientDescription{"laptop", {"ward-3"}});

  // The former key comes in by no token, by no operator, and not after a restart of the coordinator.
  const auto other = ward.open().create_token(3000, kOneDay);
  CHECK(why(ward.open().redeem({other->secret, device_key(1), 3001})) ==
        "another device has taken over this client's number");
  CHECK(ward.open().add(device_key(1), 3001).error().message ==
        "another device has taken over this client's number");
  CHECK_FALSE(ward.open().authenticate(device_key(1)));
  // The token has one use, and another client's key cannot take the number.
  CHECK(
      why(ward.open().redeem({secret, device_key(3), 3001})).starts_with("the join token was already used"));
  REQUIRE(ward.open().redeem({other->secret, device_key(4), 3002}));
  CHECK(why(ward.open().redeem({ward.token(), device_key(4), 3003})) ==
        "this client already joined with another token");
  CHECK(why(ward.open().authenticate(device_key(2))) == "client 0");
}

TEST_CASE("replacement: of a revoked client, which is enrolled again with the new key only") {
  const Ward ward;
  REQUIRE(ward.open().revoke(ClientId(0)));
  CHECK(why(ward.open().redeem({ward.token(), device_key(2), 2001})) == "client 0");
  CHECK(why(ward.open().authenticate(device_key(2))) == "client 0");
  CHECK_FALSE(ward.open().authenticate(device_key(1)));
}

TEST_CASE("replacement: a revocation also closes the tokens that were made for a replacement before") {
  const Ward ward;
  const std::string first = ward.token();
  const std::string second = ward.token();
  REQUIRE(ward.open().revoke(ClientId(0)));
  for (const std::string& secret : {first, second})
    CHECK(why(ward.open().redeem({secret, device_key(2), 2001})) == "the join token has been revoked");
  CHECK(why(ward.open().redeem({ward.token(), device_key(2), 2001})) == "client 0");
}

TEST_CASE("replacement: a token is void once its client has another project") {
  const Ward ward;
  const std::string secret = ward.token();
  REQUIRE(AccessControl(ward.directory.path()).add_project(Actor{"uid 0", ""}, "oncology", 2000));
  REQUIRE(ward.open().describe(ClientId(0), {.project = "oncology"}));
  const auto refusal = ward.open().redeem({secret, device_key(2), 2001});
  CHECK(why(refusal) == "the client that this token replaces was moved to another project");
  CHECK(refusal.error().code == ErrorCode::kRefused);
  CHECK(why(ward.open().authenticate(device_key(1))) == "client 0");
  // Nor does the former project get another token.
  CHECK(ward.open().create_tokens({.now = 2000, .lifetime = kOneDay, .replaces = ClientId(0)}).error().code ==
        ErrorCode::kRefused);
}

TEST_CASE("replacement: a coordinator that starts later counts the clients that may connect") {
  const Ward ward;
  CHECK(why(ward.open().redeem({ward.token(), device_key(2), 2001})) == "client 0");
  CHECK(why(ward.open().redeem({ward.token(), device_key(3), 2002})) == "client 0");
  Enrolment started = ward.open();
  REQUIRE_FALSE(started.authenticate(device_key(1)));
  CHECK(*started.count() == 1);
}

TEST_CASE("replacement: with approval the device waits, and meanwhile neither key is admitted") {
  const Ward ward;
  const auto standing = ward.open().redeem({ward.token(/*approve=*/true), device_key(2), 2001});
  REQUIRE(standing);
  CHECK(standing->pending);
  CHECK(ward.open().authenticate(device_key(2))->pending);
  CHECK_FALSE(ward.open().authenticate(device_key(1)));
  REQUIRE(ward.open().approve(ClientId(0)));
  CHECK_FALSE(ward.open().authenticate(device_key(2))->pending);
}

TEST_CASE("replacement: a token for it has one use and names a client that exists") {
  const Ward ward;
  CHECK(ward.open()
            .create_tokens({.uses = 2, .now = 1, .lifetime = kOneDay, .replaces = ClientId(0)})
            .error()
            .message == "a token that replaces a client has one use");
  CHECK(ward.open().create_tokens({.now = 1, .lifetime = kOneDay, .replaces = ClientId(7)}).error().code ==
        ErrorCode::kNotFound);
  // It reserves no number.
  (void)ward.token();
  CHECK(ward.open().create_token(3000, kOneDay)->client == ClientId(1));
}

TEST_CASE("replacement: holds after an older copy of the book was put back, and so does a readmission") {
  const Ward ward;
  const std::string secret = ward.token();
  std::filesystem::copy_file(ward.file, ward.backup);
  REQUIRE(ward.open().redeem({secret, device_key(2), 2001}));
  REQUIRE(ward.open().revoke(ClientId(0)));
  REQUIRE(ward.open().readmit(ClientId(0)));
  std::filesystem::rename(ward.backup, ward.file);
  const auto made_good = ward.open().take_up(device_key(200));
  REQUIRE(made_good);
  REQUIRE(made_good->size() == 3);
  CHECK(made_good->at(0).event.action == "client.replaced");
  CHECK(why(ward.open().authenticate(device_key(2))) == "client 0");
  CHECK_FALSE(ward.open().authenticate(device_key(1)));
  CHECK(
      why(ward.open().redeem({secret, device_key(3), 2005})).starts_with("the join token was already used"));
  CHECK((*ward.open().snapshot())->clients[0].description == ClientDescription{"laptop", {"ward-3"}});
  CHECK(ward.open().create_token(3000, kOneDay)->client == ClientId(1));
}

TEST_CASE("readmission: only of a revoked client, and it is in the audit log") {
  const Ward ward;
  CHECK(ward.open().readmit(ClientId(0)).error().message == "client 0 is not revoked; its state is enrolled");
  CHECK(ward.open().readmit(ClientId(9)).error().code == ErrorCode::kNotFound);
  REQUIRE(ward.open().revoke(ClientId(0)));
  REQUIRE_FALSE(ward.open().authenticate(device_key(1)));
  Enrolment coordinator = ward.open();
  REQUIRE_FALSE(coordinator.authenticate(device_key(1)));
  REQUIRE(ward.open().readmit(ClientId(0)));
  CHECK(why(coordinator.authenticate(device_key(1))) == "client 0");
  CHECK(*coordinator.count() == 1);
  std::vector<std::string> actions;
  REQUIRE(AuditLog(ward.directory.path()).verify("", [&](const AuditEntry& entry) {
    actions.push_back(entry.event.action);
  }));
  CHECK(actions.back() == "client.readmitted");
}

TEST_CASE("replacement: a book of the second version is taken over") {
  const Ward ward;
  sqlite3* handle = nullptr;
  REQUIRE(sqlite3_open(ward.file.c_str(), &handle) == SQLITE_OK);
  REQUIRE(
      sqlite3_exec(handle,
                   "DROP INDEX retired_by_change; DROP TABLE retired_keys; ALTER TABLE tokens DROP COLUMN "
                   "replaces; PRAGMA user_version = 2",
                   nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_close(handle);
  CHECK(why(ward.open().authenticate(device_key(1))) == "client 0");
  CHECK(why(ward.open().redeem({ward.token(), device_key(2), 2001})) == "client 0");
  CHECK_FALSE(ward.open().authenticate(device_key(1)));
}

}  // namespace fedge::server
