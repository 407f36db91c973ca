#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/crypto/ed25519.h"
#include "tests/support/skip.h"

using namespace fedge;

namespace {

// A private directory with a key file.
struct KeyPlace {
  std::filesystem::path directory;
  KeyPlace() {
    std::string name = (std::filesystem::temp_directory_path() / "fedge-test-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    directory = name;
  }
  ~KeyPlace() {
    ::chmod(directory.c_str(), 0700);
    std::filesystem::remove_all(directory);
  }
  std::filesystem::path key() const { return directory / "node.key"; }
};

// Returns "taken", or the reason for which the key file is refused.
std::string outcome(const std::filesystem::path& path) {
  const auto key = load_or_create_key(path);
  if (key) return "taken";
  CHECK(key.error().code == ErrorCode::kRefused);
  CHECK(key.error().message.find(path.parent_path().string()) != std::string::npos);
  return key.error().message;
}

}  // namespace

TEST_CASE("A4 row 47: key file: of all 4096 modes only 0600 and 0400 are taken, the rest is told chmod 600") {
  const KeyPlace place;
  REQUIRE(load_or_create_key(place.key()));
  for (mode_t mode = 0; mode < 010000; ++mode) {
    REQUIRE(::chmod(place.key().c_str(), mode) == 0);
    if (::geteuid() != 0 && (mode & S_IRUSR) == 0) continue;  // only root can open such a file
    CAPTURE(mode);
    const std::string said = outcome(place.key());
    const bool ours_alone = mode == 0600 || mode == 0400 || mode == 0200 || mode == 0;
    if (ours_alone)
      REQUIRE(said == "taken");
    else
      REQUIRE(said.ends_with("run: chmod 600 " + place.key().string()));
  }
  REQUIRE(::chmod(place.key().c_str(), 0700) == 0);
  CHECK(outcome(place.key()) ==
        "key file " + place.key().string() +
            " has mode 0700; only its owner may read and write it, and nobody may execute it (mode 0600 or "
            "0400); run: chmod 600 " +
            place.key().string());
  REQUIRE(::chmod(place.key().c_str(), 04640) == 0);
  CHECK(outcome(place.key()).find(" has mode 4640; ") != std::string::npos);
}

TEST_CASE(
    "A4 row 47: key file: of all modes of its directory those are refused that let others write there") {
  const KeyPlace place;
  REQUIRE(load_or_create_key(place.key()));
  for (mode_t mode = 0700; mode < 02000; mode = (mode + 1) | 0700) {
    REQUIRE(::chmod(place.directory.c_str(), mode) == 0);
    CAPTURE(mode);
    const bool sticky = (mode & 01000) != 0;
    if ((mode & 022) != 0 && !sticky)
      REQUIRE(outcome(place.key()).ends_with("run: chmod go-w " + place.directory.string()));
    else
      REQUIRE(outcome(place.key()) == "taken");
  }
}

TEST_CASE("A4 row 47: key file: none is made in a directory that others may write") {
  const KeyPlace place;
  REQUIRE(::chmod(place.directory.c_str(), 0770) == 0);
  CHECK(outcome(place.key()).find("chmod go-w") != std::string::npos);
  CHECK(std::filesystem::is_empty(place.directory));
}

TEST_CASE("A4 row 47: key file: made with mode 0600 whatever the umask, and never over another file") {
  for (const mode_t mask : {0U, 022U, 077U, 0177U, 0777U}) {
    const KeyPlace place;
    const mode_t before = ::umask(mask);
    const bool made = load_or_create_key(place.key()).has_value();
    ::umask(before);
    REQUIRE(made);
    struct stat info {};
    REQUIRE(::stat(place.key().c_str(), &info) == 0);
    CHECK((info.st_mode & 07777) == 0600);
  }
}

TEST_CASE("A4 row 47: key file: one in another user's directory is refused") {
  if (::geteuid() != 0) {
    test::skip("only root can give a directory away");
    return;
  }
  const KeyPlace place;
  REQUIRE(load_or_create_key(place.key()));
  REQUIRE(::chown(place.directory.c_str(), 12345, 12345) == 0);
  CHECK(outcome(place.key()).find("belongs to another user") != std::string::npos);
  REQUIRE(::chown(place.directory.c_str(), 0, 0) == 0);
  REQUIRE(::chown(place.key().c_str(), 12345, 12345) == 0);
  CHECK(outcome(place.key()).find("does not belong to the user") != std::string::npos);
}
