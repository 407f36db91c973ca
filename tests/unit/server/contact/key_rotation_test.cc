// Rotation of the coordinator's key: interrupted anywhere, with older copies of its files, and by hand.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "core/platform/files.h"
#include "server/contact/contact_keeper.h"
#include "server/contact/key_rotation.h"
#include "server/data_directory.h"
#include "server/enrolment.h"
#include "tests/support/tiny_dataset.h"

namespace fedge::server {
namespace {

// A data directory whose coordinator has been started.
struct KeyPlace {
  KeyPlace() {
    const auto taken = take_up_key(directory.path());
    REQUIRE_MESSAGE(taken, taken.error().message);
    first = taken->key.public_key();
  }
  std::filesystem::path path(const char* name) const { return directory.path() / name; }
  PublicKey announce() const {
    Enrolment enrolment(directory.path());
    const auto key = announce_next_key(directory.path(), enrolment, Actor{});
    REQUIRE_MESSAGE(key, key.error().message);
    return *key;
  }
  Result<void> withdraw() const {
    Enrolment enrolment(directory.path());
    return withdraw_next_key(directory.path(), enrolment, Actor{});
  }
  Result<PublicKey> rotate() const {
    Enrolment enrolment(directory.path());
    return rotate_key(directory.path(), enrolment, {});
  }
  // As a coordinator does when it starts.
  PublicKey started() const {
    const auto taken = take_up_key(directory.path());
    REQUIRE_MESSAGE(taken, taken.error().message);
    return taken->key.public_key();
  }
  std::vector<std::string> actions() const {
    std::vector<std::string> names;
    REQUIRE(AuditLog(directory.path()).verify("", [&](const AuditEntry& entry) {
      names.push_back(entry.event.action);
    }));
    return names;
  }
  void copy(const char* from, const char* to) const {
    std::filesystem::copy_file(path(from), path(to), std::filesystem::copy_options::overwrite_existing);
  }

  test::TemporaryDirectory directory;
  PublicKey first;
};

// A running coordinator's knowledge of changes in the data directory.
struct Watching {
  explicit Watching(const KeyPlace& place)
      : keeper(place.directory.path(), {{"fedge.example.org", 7433}},
               {.on_changed = [this] { told.push_back(keeper.contact()); },
                .on_rotated = [this](SecretKey key) -> Result<void> {
                  keys.push_back(key.public_key());
                  return {};
                },
                .report = [this](const Event& event) { said.push_back(to_string(event)); },
                .on_told = [this](const std::optional<PublicKey>& next) { told_key = next; }}) {
    keeper.open(place.first);
  }
  ContactKeeper keeper;
  std::vector<protocol::Contact> told;
  std::vector<PublicKey> keys;
  std::vector<std::string> said;
  std::optional<PublicKey> told_key;
};

}  // namespace

TEST_CASE("key: the announced key is the owner's file, replaces the former one, and that is destroyed") {
  const KeyPlace place;
  CHECK(place.rotate().error().code == ErrorCode::kNotFound);
  const PublicKey next = place.announce();
  // An operator who announces a key because of a theft must not get one that was stolen as well.
  Enrolment again(place.directory.path());
  CHECK(announce_next_key(place.directory.path(), again, Actor{}).error().code == ErrorCode::kRefused);
  struct stat file {};
  REQUIRE(::stat(place.path("next.key").c_str(), &file) == 0);
  CHECK((file.st_mode & 0777) == 0600);
  CHECK(place.started() == place.first);  // announced is not in force
  CHECK(*place.rotate() == next);
  CHECK_FALSE(std::filesystem::exists(place.path("next.key")));
  CHECK(place.started() == next);
  CHECK(open_coordinator_key(place.directory.path())->public_key() == next);
  CHECK(place.actions() == std::vector<std::string>{"key.announced", "key.rotated"});
}

TEST_CASE("key: a withdrawn announcement leaves no key behind, and the next announcement is of another one") {
  const KeyPlace place;
  CHECK(place.withdraw().error().code == ErrorCode::kNotFound);
  const PublicKey next = place.announce();
  REQUIRE(place.withdraw());
  CHECK_FALSE(std::filesystem::exists(place.path("next.key")));
  CHECK(place.announce() != next);
  CHECK(place.started() == place.first);
}

TEST_CASE("key: looking for an announced key never makes one") {
  const KeyPlace place;
  CHECK_FALSE(*announced_key(place.directory.path()));
  CHECK_FALSE(std::filesystem::exists(place.path("next.key")));
}

TEST_CASE("key: a rotation that a crash interrupts is done or not begun, wherever it was") {
  const KeyPlace place;
  place.copy("enrolment.db", "older.db");
  const PublicKey next = place.announce();
  {
    Enrolment enrolment(place.directory.path());
    REQUIRE(enrolment.change_coordinator(place.first, next, {}));
  }
  SUBCASE("after the book was bound to the next key") {}
  SUBCASE("after the audit log said so") { place.copy("older.db", "enrolment.db"); }
  SUBCASE("and somebody withdraws the next key, which is in force") {
    CHECK(place.withdraw().error().code == ErrorCode::kNotFound);
  }
  SUBCASE("likewise, after the audit log said so") {
    place.copy("older.db", "enrolment.db");
    CHECK(place.withdraw().error().code == ErrorCode::kNotFound);
  }
  SUBCASE("and somebody announces another one") {
    place.copy("older.db", "enrolment.db");
    CHECK(place.announce() != next);
    CHECK(place.started() == next);
    return;
  }
  SUBCASE("and a token is made, which names the key in force") {
    place.copy("older.db", "enrolment.db");
    Enrolment enrolment(place.directory.path());
    CHECK(key_in_force(place.directory.path(), enrolment)->public_key() == next);
  }
  CHECK(place.started() == next);
  CHECK_FALSE(std::filesystem::exists(place.path("next.key")));
  CHECK(place.started() == next);
}

TEST_CASE("key: another coordinator's enrolment book is refused, and gets nothing of this one's log") {
  const KeyPlace place, other;
  {
    Enrolment enrolment(place.directory.path());
    REQUIRE(enrolment.add(other.first, 1000));
  }
  std::filesystem::copy_file(other.path("enrolment.db"), place.path("enrolment.db"),
                             std::filesystem::copy_options::overwrite_existing);
  CHECK(take_up_key(place.directory.path()).error().code == ErrorCode::kRefused);
  CHECK(*read_file(place.path("enrolment.db"), 1 << 24) == *read_file(other.path("enrolment.db"), 1 << 24));
}

TEST_CASE("key: a copy in which the next key is also the present one is put right") {
  const KeyPlace place;
  place.announce();
  place.copy("node.key", "next.key");
  CHECK(place.started() == place.first);
  CHECK_FALSE(std::filesystem::exists(place.path("next.key")));
}

TEST_CASE("key: an older copy of the book or of the key does not bring a former key back") {
  const KeyPlace place;
  place.copy("enrolment.db", "older.db");
  place.copy("node.key", "older.key");
  const PublicKey next = place.announce();
  REQUIRE(place.rotate());
  SUBCASE("the book: the audit log knows which key replaced the former one") {
    place.copy("older.db", "enrolment.db");
    CHECK(place.started() == next);
  }
  SUBCASE("the key: refused, because clients trust another one") {
    place.copy("older.key", "node.key");
    const auto taken = take_up_key(place.directory.path());
    REQUIRE_FALSE(taken);
    CHECK(taken.error().code == ErrorCode::kRefused);
    CHECK(taken.error().message.find("belongs to the coordinator with key " + to_hex(next)) !=
          std::string::npos);
  }
  SUBCASE("both: refused likewise") {
    place.copy("older.db", "enrolment.db");
    place.copy("older.key", "node.key");
    CHECK(take_up_key(place.directory.path()).error().code == ErrorCode::kRefused);
  }
  SUBCASE("another key under the name of the next one: refused likewise") {
    place.copy("older.key", "node.key");
    REQUIRE(store_key(SecretKey::generate(), place.path("next.key")));
    CHECK(take_up_key(place.directory.path()).error().code == ErrorCode::kRefused);
  }
}

TEST_CASE(
    "key: a damaged announced key is an error that names it, can be removed, and the coordinator starts") {
  const KeyPlace place;
  place.announce();
  SUBCASE("cut") { REQUIRE(write_file_atomic(place.path("next.key"), "cut", 0600)); }
  SUBCASE("readable for others") { REQUIRE(::chmod(place.path("next.key").c_str(), 0644) == 0); }
  CHECK(announced_key(place.directory.path()).error().message.find("the announced key cannot be used") == 0);
  Enrolment enrolment(place.directory.path());
  CHECK_FALSE(announce_next_key(place.directory.path(), enrolment, Actor{}));
  CHECK_FALSE(place.rotate());
  CHECK(place.started() == place.first);
  Watching watching(place);
  CHECK(watching.said.size() == 1);
  REQUIRE(place.withdraw());
  watching.keeper.look();
  CHECK(place.actions() == std::vector<std::string>{"key.announced", "key.withdrawn"});
  CHECK(place.announce() != place.first);
}

TEST_CASE("contact keeper: announcements, withdrawals and rotations reach the clients, each once") {
  const KeyPlace place;
  Watching watching(place);
  CHECK(watching.keeper.contact().addresses == std::vector<std::string>{"fedge.example.org:7433"});
  watching.keeper.look();
  CHECK(watching.told.empty());
  place.announce();
  watching.keeper.look();
  REQUIRE(place.withdraw());
  watching.keeper.look();
  place.announce();
  watching.keeper.look();
  watching.keeper.look();
  // Another key between two looks, perhaps in the same place on the disk.
  REQUIRE(place.withdraw());
  const PublicKey next = place.announce();
  watching.keeper.look();
  REQUIRE(watching.told.size() == 4);
  CHECK(watching.told[0].next_key);
  CHECK_FALSE(watching.told[1].next_key);
  CHECK(watching.told[2].next_key);
  CHECK(watching.told[3].next_key == next);
  CHECK(watching.told[3].addresses.size() == 1);
  CHECK(watching.told_key == next);
  REQUIRE(place.rotate());
  watching.keeper.look();
  watching.keeper.look();
  CHECK(watching.keys == std::vector{next});
  CHECK_FALSE(watching.keeper.contact().next_key);
  // Two steps between two looks: the enrolment book knows which key is in force.
  const PublicKey later = place.announce();
  REQUIRE(place.rotate());
  watching.keeper.look();
  CHECK(watching.keys == std::vector{next, later});
  CHECK(watching.keeper.key() == later);
}

TEST_CASE(
    "contact keeper: a key that somebody puts there by hand is not served to clients that would refuse it") {
  const KeyPlace place;
  Watching watching(place);
  std::filesystem::rename(place.path("node.key"), place.path("away"));
  SUBCASE("another key") { REQUIRE(store_key(SecretKey::generate(), place.path("node.key"))); }
  SUBCASE("none") {}
  watching.keeper.look();
  watching.keeper.look();
  CHECK(watching.keys.empty());
  REQUIRE(watching.said.size() == 1);  // not once a second
  CHECK(watching.said[0].find("key.unreadable") != std::string::npos);
  std::filesystem::rename(place.path("away"), place.path("node.key"));
  watching.keeper.look();
  CHECK(watching.keeper.key() == place.first);
  place.announce();
  watching.keeper.look();
  CHECK(watching.told.size() == 1);
}

}  // namespace fedge::server
