// Run files whose tokenizer is too long to be a part of them.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "core/config/document.h"
#include "core/crypto/sha256.h"
#include "learn/model_file.h"
#include "learn/text/text_data.h"
#include "protocol/limits.h"
#include "run/file/complete_file.h"
#include "run/file/tokenizer_parts.h"
#include "run/run_config.h"
#include "tests/support/text.h"
#include "tests/unit/learn/idx_fixture.h"
#include "tests/unit/learn/text/long_tokenizer.h"

using namespace fedge;
using namespace fedge::run;
using fedge::test::contains;

namespace {

struct Place {
  learn::test::TemporaryDirectory directory;
  std::filesystem::path tokenizer = directory.path() / "tokenizer.bin";

  Place() {
    const std::string text(3000, 'x');
    for (const char* name : {"a.txt", "b.txt"}) directory.write(name, {text.begin(), text.end()});
    test::write_long_tokenizer(tokenizer);
  }
  std::string file(const std::string& more = "") const {
    return "[data]\ndataset = \"text\"\ncontext = 16\ndirectory = \"" + directory.path().string() +
           "\"\npartition = { kind = \"natural\", clients = 2 }\ntokenizer = { kind = \"vocabulary\", file = "
           "\"" +
           tokenizer.string() +
           "\" }\n[model]\nkind = \"llama\"\nlayers = 1\nwidth = 16\nheads = "
           "2\n[sampling]\nclients_per_round = 2\n" +
           more;
  }
};

Result<RunConfig> read_long(const std::string& text) {
  const auto document = config::parse_toml(text, "run.toml");
  REQUIRE(document);
  return read_run_config(*document);
}

std::string long_refusal(const std::string& text) {
  const auto run = read_long(text);
  REQUIRE_FALSE(run);
  return run.error().message;
}

}  // namespace

TEST_CASE("long tokenizer: run file and description have its hash, and the run has its content") {
  const Place place;
  const auto run = read_long(place.file());
  REQUIRE_MESSAGE(run, run.error().message);
  const learn::TokenizerSpec& tokenizer = run->task.data.tokenizer;
  CHECK(tokenizer.table.size() > protocol::kMaxTaskText);
  CHECK(tokenizer.table_hash == to_hex(sha256(tokenizer.table)));
  CHECK(learn::make_tokenizer(tokenizer)->vocabulary() == test::kLongTokenizerTokens);
  for (const std::string& text : {run->canonical, run->task_text}) {
    CHECK(text.size() < 4000);
    CHECK(contains(text, "table_hash = \"" + tokenizer.table_hash));
    CHECK_FALSE(contains(text, "table = "));
  }
  // A coordinator that starts again reads what it has stored.
  const auto again = read_long(run->canonical);
  REQUIRE_MESSAGE(again, again.error().message);
  CHECK(again->id == run->id);
  CHECK(again->task_text == run->task_text);
  CHECK(again->task.data.tokenizer.table == tokenizer.table);
}

TEST_CASE("long tokenizer: another file in its place, or none, is refused when the run is read again") {
  const Place place;
  const auto run = read_long(place.file());
  REQUIRE(run);
  test::write_long_tokenizer(place.tokenizer, '!');
  CHECK(contains(long_refusal(run->canonical), "restore the original file"));
  std::filesystem::remove(place.tokenizer);
  CHECK(contains(long_refusal(run->canonical), place.tokenizer.string()));
  CHECK(contains(
      long_refusal("[data]\ndataset = \"text\"\ntokenizer = { kind = \"vocabulary\", table_hash = \"" +
                   run->task.data.tokenizer.table_hash + "\" }\n"),
      "names the file of this tokenizer"));
}

TEST_CASE("A1: long tokenizer: a description with another hash than a SHA-256 is refused") {
  const auto document = config::parse_toml(
      "[data]\ndataset = \"text\"\ntokenizer = { kind = \"vocabulary\", table_hash = \"../key\" }\n", "run");
  REQUIRE(document);
  const auto refused = read_described_run(*document);
  REQUIRE_FALSE(refused);
  CHECK_MESSAGE(contains(refused.error().message, "is not a SHA-256 in 64"), refused.error().message);
}

TEST_CASE("long tokenizer: a client gets it in parts, and reads the description with it") {
  const Place place;
  const auto run = read_long(place.file("[dissemination]\nkind = \"serverless\"\n"));
  REQUIRE_MESSAGE(run, run.error().message);
  std::string received;
  std::size_t parts = 0;
  while (const auto part = tokenizer_part(*run, {RunId(3), static_cast<std::uint32_t>(received.size())})) {
    CHECK(part->run == RunId(3));
    CHECK(part->total == run->task.data.tokenizer.table.size());
    CHECK(part->offset == received.size());
    received += part->bytes;
    ++parts;
  }
  CHECK(parts == tokenizer_parts(*run));
  CHECK(received == run->task.data.tokenizer.table);
  // Clients of serverless runs read the whole run file.
  const auto document = config::parse_toml(run->task_text, "run");
  REQUIRE(document);
  std::filesystem::remove(place.tokenizer);
  const auto described = read_described_run(*document, received);
  REQUIRE_MESSAGE(described, described.error().message);
  CHECK(described->task.data.tokenizer.table == received);
  CHECK(described->canonical == run->canonical);
  const auto without = read_described_run(*document);
  REQUIRE(without);
  CHECK(learn::make_tokenizer(without->task.data.tokenizer).error().code == ErrorCode::kNotFound);
}

TEST_CASE("long tokenizer: a short one stays a part of the run file, and clients ask for no part") {
  const learn::test::TemporaryDirectory directory;
  const auto run =
      read_long("[data]\ndataset = \"text\"\ndirectory = \"" + directory.path().string() + "\"\n");
  REQUIRE_MESSAGE(run, run.error().message);
  CHECK(tokenizer_parts(*run) == 0);
  CHECK_FALSE(tokenizer_part(*run, {RunId(3), 0}));
}
