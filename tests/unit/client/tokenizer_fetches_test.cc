// A device fetches a run's long tokenizer in parts, and keeps it.
#include "client/device/tokenizer_fetches.h"

#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "client/tokenizer_files.h"
#include "core/crypto/sha256.h"
#include "protocol/limits.h"
#include "tests/support/text.h"
#include "tests/unit/learn/idx_fixture.h"

using namespace fedge;
using namespace fedge::client;
using fedge::test::contains;
using protocol::kMaxTokenizerPart;
using protocol::RunDescription;
using protocol::TokenizerPart;
using protocol::TokenizerRequest;

namespace {

constexpr RunId kTokenizerRun(7);

std::string long_table(std::size_t bytes = 2 * kMaxTokenizerPart + 100) {
  std::string table(bytes, 'a');
  for (std::size_t i = 0; i < table.size(); i += 7) table[i] = static_cast<char>('b' + i % 13);
  return table;
}

TokenizerPart part_of(const std::string& table, std::uint32_t offset) {
  return {kTokenizerRun, static_cast<std::uint32_t>(table.size()), offset,
          table.substr(offset, kMaxTokenizerPart)};
}

// A device that fetches a table with this hash.
struct FetchingDevice {
  explicit FetchingDevice(const std::string& hash)
      : fetches([this](const auto& message) { sent.push_back(message); }) {
    fetches.fetch(kTokenizerRun, hash, [this](Result<std::string> result) { outcome = std::move(result); });
  }
  std::vector<std::uint32_t> asked() const {
    std::vector<std::uint32_t> offsets;
    for (const auto& message : sent) offsets.push_back(std::get<TokenizerRequest>(message).offset);
    return offsets;
  }
  std::string failure() const { return outcome && !*outcome ? outcome->error().message : ""; }

  std::vector<protocol::Message> sent;
  std::optional<Result<std::string>> outcome;
  TokenizerFetches fetches;
};

RunDescription described(const std::string& hash) {
  return {kTokenizerRun,
          "story",
          1,
          "[data.tokenizer]\nkind = \"vocabulary\"\ntable_hash = \"" + hash + "\"\n",
          {}};
}

}  // namespace

TEST_CASE("tokenizer: a device asks for part after part, and has the whole") {
  const std::string table = long_table();
  FetchingDevice device(to_hex(sha256(table)));
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK_FALSE(device.outcome);
    CHECK(device.fetches.received(part_of(table, device.asked().back())));
  }
  REQUIRE(device.outcome);
  REQUIRE(*device.outcome);
  CHECK(**device.outcome == table);
  CHECK(device.asked() == std::vector<std::uint32_t>{0, kMaxTokenizerPart, 2 * kMaxTokenizerPart});
  CHECK(device.fetches.received(part_of(table, 0)));  // late, and of no use
  CHECK(device.sent.size() == 3);
}

TEST_CASE("tokenizer: once the run is described again, a fetch goes on where it was") {
  const std::string table = long_table();
  const std::string hash = to_hex(sha256(table));
  FetchingDevice device(hash);
  device.fetches.received(part_of(table, 0));
  CHECK_FALSE(device.fetches.received(described(hash)));  // the engine's matter too
  CHECK(device.asked() == std::vector<std::uint32_t>{0, kMaxTokenizerPart, kMaxTokenizerPart});
  device.fetches.received(part_of(table, kMaxTokenizerPart));
  device.fetches.received(part_of(table, 2 * kMaxTokenizerPart));
  CHECK((device.outcome && *device.outcome));
}

TEST_CASE("A1: tokenizer: a coordinator that sends something else is found out, and takes no more memory") {
  const std::string table = long_table();
  const std::string hash = to_hex(sha256(table));
  SUBCASE("another tokenizer") {
    FetchingDevice device(hash);
    std::string other = table;
    other.back() = '!';
    for (std::size_t i = 0; i < 3; ++i) device.fetches.received(part_of(other, device.asked().back()));
    CHECK(contains(device.failure(), "does not have the hash"));
  }
  SUBCASE("a part that is not the next") {
    FetchingDevice device(hash);
    device.fetches.received(part_of(table, kMaxTokenizerPart));
    CHECK(contains(device.failure(), "another part"));
  }
  SUBCASE("the same part again, which is ignored") {
    FetchingDevice device(hash);
    device.fetches.received(part_of(table, 0));
    for (int i = 0; i < 3; ++i) device.fetches.received(part_of(table, 0));
    CHECK_FALSE(device.outcome);
    CHECK(device.sent.size() == 2);  // no more than the first part and the second were asked for
    for (std::uint32_t at = kMaxTokenizerPart; at < table.size(); at += kMaxTokenizerPart)
      device.fetches.received(part_of(table, at));
    REQUIRE(device.outcome);
    REQUIRE(device.outcome->has_value());
    CHECK(**device.outcome == table);
  }
  SUBCASE("a tokenizer that grows") {
    FetchingDevice device(hash);
    device.fetches.received(part_of(table, 0));
    device.fetches.received(part_of(table + table, kMaxTokenizerPart));
    CHECK(contains(device.failure(), "another part"));
  }
  SUBCASE("a run that has ended") {
    FetchingDevice device(hash);
    device.fetches.forget(kTokenizerRun);
    CHECK(device.fetches.received(part_of(table, 0)));
    CHECK_FALSE(device.outcome);
    CHECK(device.sent.size() == 1);
  }
}

TEST_CASE("tokenizer: a device keeps it, and asks for it only if it is missing or damaged") {
  const learn::test::TemporaryDirectory state;
  const std::string table = long_table();
  const std::string hash = to_hex(sha256(table));
  const auto missing = [&] {
    const auto found = missing_tokenizer(described(hash), state.path());
    REQUIRE(found);
    return *found;
  };
  CHECK(missing() == hash);
  REQUIRE(keep_tokenizer(state.path(), table));
  CHECK_FALSE(missing());
  CHECK(kept_tokenizer(state.path(), hash) == table);
  const auto path = state.path() / "tokenizers" / hash;
  std::ofstream(path, std::ios::app) << 'x';
  CHECK(missing() == hash);
  CHECK_FALSE(std::filesystem::exists(path));
  CHECK_FALSE(
      *missing_tokenizer({kTokenizerRun, "images", 1, "[data]\ndataset = \"digits\"\n", {}}, state.path()));
}

TEST_CASE("tokenizer: the last four are kept") {
  const learn::test::TemporaryDirectory state;
  const auto day_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(24);
  std::vector<std::string> hashes;
  for (std::size_t i = 0; i < kTokenizersKept + 2; ++i) {
    const std::string table = long_table(1000 + i);
    hashes.push_back(to_hex(sha256(table)));
    REQUIRE(keep_tokenizer(state.path(), table));
    const auto kept = state.path() / "tokenizers" / hashes.back();
    std::filesystem::last_write_time(kept, day_ago + std::chrono::seconds(i));
  }
  for (std::size_t i = 0; i < 2; ++i) CHECK(kept_tokenizer(state.path(), hashes[i]).empty());
  for (std::size_t i = 2; i < hashes.size(); ++i)
    CHECK_FALSE(kept_tokenizer(state.path(), hashes[i]).empty());
}

TEST_CASE("tokenizer: one that a run has used is kept before those that nobody uses") {
  const learn::test::TemporaryDirectory state;
  const auto day_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(24);
  std::vector<std::string> hashes;
  for (std::size_t i = 0; i < kTokenizersKept; ++i) {
    const std::string table = long_table(1000 + i);
    hashes.push_back(to_hex(sha256(table)));
    REQUIRE(keep_tokenizer(state.path(), table));
    std::filesystem::last_write_time(state.path() / "tokenizers" / hashes[i],
                                     day_ago + std::chrono::seconds(i));
  }
  CHECK_FALSE(kept_tokenizer(state.path(), hashes[0]).empty());
  REQUIRE(keep_tokenizer(state.path(), long_table(2000)));
  CHECK_FALSE(kept_tokenizer(state.path(), hashes[0]).empty());
  CHECK(kept_tokenizer(state.path(), hashes[1]).empty());
}

TEST_CASE("A1: tokenizer: the hash that a coordinator names is no path") {
  const learn::test::TemporaryDirectory state;
  REQUIRE(keep_tokenizer(state.path(), long_table(10)));
  std::ofstream(state.path() / "secret") << "key";
  for (const char* name : {"../secret", "..", "", "ABC", "/etc/passwd"}) {
    CAPTURE(name);
    CHECK(kept_tokenizer(state.path(), name).empty());
    CHECK(std::filesystem::exists(state.path() / "secret"));
  }
  const auto refused = missing_tokenizer(described("../secret"), state.path());
  REQUIRE_FALSE(refused);
  CHECK(contains(refused.error().message, "is not a SHA-256"));
}
