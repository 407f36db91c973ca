#include "core/crypto/ed25519.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "core/crypto/sha256.h"
#include "tests/support/skip.h"

using namespace fedge;

namespace {

struct Scratch {
  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "fedge-key-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~Scratch() { std::filesystem::remove_all(path); }
  std::filesystem::path key() const { return path / "node.key"; }
  std::filesystem::path path;
};

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

void overwrite(const std::filesystem::path& path, const std::string& text) { std::ofstream(path) << text; }

bool mentions(const Error& error, const std::string& word) {
  return error.message.find(word) != std::string::npos;
}

}  // namespace

TEST_CASE("ed25519: the first test vector of RFC 8032 gives its public key") {
  const auto seed = parse_public_key("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60");
  REQUIRE(seed);
  const SecretKey key = SecretKey::from_seed(seed->bytes);
  CHECK(to_hex(key.public_key()) == "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
}

TEST_CASE("ed25519: the third test vector of RFC 8032 is signed as it says, and verified alone as it is") {
  const auto seed = parse_public_key("c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7");
  REQUIRE(seed);
  const SecretKey key = SecretKey::from_seed(seed->bytes);
  std::array<std::byte, 2> message = {std::byte{0xaf}, std::byte{0x82}};
  Signature signature = sign(key, message);
  CHECK(to_hex(std::span<const std::uint8_t>(signature)) ==
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac"
        "18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a");
  CHECK(verify(key.public_key(), message, signature));
  CHECK_FALSE(verify(SecretKey::generate().public_key(), message, signature));
  CHECK_FALSE(verify(PublicKey{}, message, signature));
  message[0] ^= std::byte{1};
  CHECK_FALSE(verify(key.public_key(), message, signature));
  message[0] ^= std::byte{1};
  for (std::uint8_t& byte : signature) {
    byte ^= 1;
    CHECK_FALSE(verify(key.public_key(), message, signature));
    byte ^= 1;
  }
}

TEST_CASE("ed25519: two generated keys differ, and a key that was moved from is wiped") {
  SecretKey first = SecretKey::generate();
  const SecretKey second = SecretKey::generate();
  CHECK(first.public_key() != second.public_key());
  const SecretKey taken = std::move(first);
  for (const std::uint8_t byte : first.seed()) CHECK(byte == 0);
}

TEST_CASE("ed25519: a public key is exactly 64 lower-case hexadecimal digits") {
  const std::string good(64, 'a');
  CHECK(parse_public_key(good));
  CHECK_FALSE(parse_public_key(good.substr(1)));
  CHECK_FALSE(parse_public_key(good + "a"));
  CHECK_FALSE(parse_public_key(std::string(64, 'A')));
  CHECK_FALSE(parse_public_key(std::string(63, 'a') + "g"));
}

TEST_CASE("key file: made once with mode 0600, read back as the same key, nothing else left behind") {
  const Scratch scratch;
  const auto made = load_or_create_key(scratch.key());
  REQUIRE(made);
  struct stat info {};
  REQUIRE(::stat(scratch.key().c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
  const auto again = load_or_create_key(scratch.key());
  REQUIRE(again);
  CHECK(again->public_key() == made->public_key());
  CHECK(std::distance(std::filesystem::directory_iterator(scratch.path), {}) == 1);
}

TEST_CASE("key file: one that other users may read is refused, and the error says how to mend it") {
  const Scratch scratch;
  REQUIRE(load_or_create_key(scratch.key()));
  for (const mode_t mode : {0640U, 0604U, 0660U, 0644U, 0601U}) {
    REQUIRE(::chmod(scratch.key().c_str(), mode) == 0);
    const auto key = load_or_create_key(scratch.key());
    REQUIRE_FALSE(key);
    CHECK(key.error().code == ErrorCode::kRefused);
    CHECK(mentions(key.error(), "chmod 600"));
  }
}

TEST_CASE("key file: a symbolic link is refused, even to a good key, and a dangling one is not filled") {
  const Scratch scratch;
  const auto real = scratch.path / "real.key";
  REQUIRE(load_or_create_key(real));
  std::filesystem::create_symlink(real, scratch.key());
  const auto key = load_or_create_key(scratch.key());
  REQUIRE_FALSE(key);
  CHECK(key.error().code == ErrorCode::kRefused);
  CHECK(mentions(key.error(), "symbolic link"));
  std::filesystem::remove(real);
  CHECK_FALSE(load_or_create_key(scratch.key()));
  CHECK_FALSE(std::filesystem::exists(real));
}

TEST_CASE("key file: a damaged one is reported, not replaced") {
  const Scratch scratch;
  REQUIRE(load_or_create_key(scratch.key()));
  const std::string good = text_of(scratch.key());
  std::string flipped = good;
  flipped[20] = flipped[20] == '0' ? '1' : '0';
  std::string other_public = good;
  other_public[100] = other_public[100] == '0' ? '1' : '0';
  for (const std::string& bad : {std::string(), good.substr(0, 40), good + "x", flipped, other_public,
                                 std::string(good.size(), '\0'), std::string(1 << 20, 'a')}) {
    overwrite(scratch.key(), bad);
    const auto key = load_or_create_key(scratch.key());
    REQUIRE_FALSE(key);
    CHECK(key.error().code == ErrorCode::kCorrupt);
    CHECK(mentions(key.error(), "damaged"));
    CHECK(text_of(scratch.key()) == bad);
  }
}

TEST_CASE("key file: a pipe, a directory and a missing or open directory are refused without hanging") {
  const Scratch scratch;
  REQUIRE(::mkfifo(scratch.key().c_str(), 0600) == 0);
  CHECK_FALSE(load_or_create_key(scratch.key()));
  std::filesystem::create_directory(scratch.path / "dir");
  CHECK_FALSE(load_or_create_key(scratch.path / "dir"));
  CHECK(load_or_create_key(scratch.path / "missing" / "node.key").error().code == ErrorCode::kNotFound);
  REQUIRE(::chmod((scratch.path / "dir").c_str(), 0777) == 0);
  const auto open = load_or_create_key(scratch.path / "dir" / "node.key");
  REQUIRE_FALSE(open);
  CHECK(mentions(open.error(), "other users"));
}

TEST_CASE("key file: one of another user is refused") {
  if (::geteuid() != 0) {
    test::skip("only root can give a file away");
    return;
  }
  const Scratch scratch;
  REQUIRE(load_or_create_key(scratch.key()));
  REQUIRE(::chown(scratch.key().c_str(), 12345, 12345) == 0);
  const auto key = load_or_create_key(scratch.key());
  REQUIRE_FALSE(key);
  CHECK(mentions(key.error(), "does not belong to the user"));
}
