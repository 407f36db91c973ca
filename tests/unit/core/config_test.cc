#include <doctest/doctest.h>

#include "core/config/document.h"
#include "core/config/reader.h"

using namespace fedge::config;

namespace {

Document parsed(const char* text) {
  auto document = parse_toml(text, "run.toml");
  REQUIRE(document);
  return *document;
}

std::string repeated(std::size_t times, const std::string& part) {
  std::string out;
  for (std::size_t i = 0; i < times; ++i) out += part;
  return out;
}

std::string error_of(const char* text) {
  const Document document = parsed(text);
  Reader root(document.root, "", document.name);
  Reader section = root.section("training");
  section.integer("batch_size", 20, {1, 1000}, "Samples in one step.");
  section.number("learning_rate", 0.1, {0, 10}, "Step size.");
  section.choice("optimizer", {"sgd", "adam"}, 0, "Local optimizer.");
  section.boolean("shuffle", true, "New order each epoch.");
  section.integers("hidden", std::vector<std::int64_t>{200}, {1, 100}, "Units.");
  section.numbers("shares", std::vector<double>{1.0, 0.2}, {0.001, 1}, "Shares.");
  root.adopt(section);
  const auto result = root.finish();
  return result ? "" : result.error().message;
}

}  // namespace

TEST_CASE("config: values of every type are read, absent keys take their defaults") {
  const Document document = parsed(
      "[training]\nbatch_size = 32\nlearning_rate = 1\nname = \"x\"\nhidden = [3, 4]\n"
      "shares = [1, 0.25]\n");
  Reader root(document.root, "", document.name);
  Reader section = root.section("training");
  CHECK(section.integer("batch_size", 20, {1, 1000}, "") == 32);
  CHECK(section.number("learning_rate", 0.1, {0, 10}, "") == 1.0);
  CHECK(section.text("name", "", "") == "x");
  CHECK(section.integers("hidden", std::nullopt, {1, 9}, "") == std::vector<std::int64_t>{3, 4});
  CHECK(section.numbers("shares", std::nullopt, {0, 1}, "") == std::vector<double>{1.0, 0.25});
  CHECK(section.numbers("absent", std::vector<double>{0.5}, {0, 1}, "") == std::vector<double>{0.5});
  CHECK(section.boolean("shuffle", true, ""));
  root.adopt(section);
  CHECK(root.finish());
}

TEST_CASE("config: errors name file, line, key, and what would be right") {
  CHECK(error_of("[training]\n\nbatchsize = 3\n") ==
        "run.toml:3: unknown key training.batchsize, did you mean training.batch_size?");
  CHECK(error_of("[trainig]\nbatch_size = 3\n") == "run.toml:1: unknown key trainig, did you mean training?");
  CHECK(error_of("[training]\nbatch_size = 0\n") ==
        "run.toml:2: training.batch_size: 0 is out of range, expected 1 to 1000");
  CHECK(error_of("[training]\nbatch_size = \"3\"\n") ==
        "run.toml:2: training.batch_size: found a string, expected an integer");
  CHECK(error_of("[training]\nlearning_rate = nan\n") ==
        "run.toml:2: training.learning_rate: nan is out of range, expected 0 to 10");
  CHECK(error_of("[training]\noptimizer = \"adma\"\n") ==
        "run.toml:2: training.optimizer: \"adma\" is not a known value, did you mean \"adam\"? (expected one "
        "of sgd, adam)");
  CHECK(error_of("training = 3\n") == "run.toml:1: training: found an integer, expected a table");
  CHECK(error_of("batch_size = 3\n") ==
        "run.toml:1: unknown key batch_size, did you mean training.batch_size?");
  CHECK(error_of("[training]\nhidden = [1, 2.5]\n") ==
        "run.toml:2: training.hidden: contains a float; every item must be an integer");
  CHECK(error_of("[training]\nshares = [1, \"0.2\"]\n") ==
        "run.toml:2: training.shares: contains a string; every item must be a float");
  CHECK(error_of("[training]\nshares = [0.5, nan]\n") ==
        "run.toml:2: training.shares: nan is out of range, expected 0.001 to 1");
  CHECK(error_of("[training]\nshares = 0.5\n") ==
        "run.toml:2: training.shares: found a float, expected a list of floats");
}

TEST_CASE("config: text that is not in a file has its lines in words, and they have their order") {
  const auto document = parse_toml("[training]\nrate = 1\nshape = 2\n", "run 2", PlaceStyle::kStored);
  REQUIRE(document);
  Reader root(document->root, "", document->name);
  Reader section = root.section("training");
  section.text("shape", "", "Shape.");
  root.adopt(section);
  CHECK(root.finish().error().message ==
        "run 2, line 2: unknown key training.rate (known keys: shape)\n"
        "run 2, line 3: training.shape: found an integer, expected a string\n2 errors in run 2");
  CHECK(parse_toml("\nname = \n", "run 2", PlaceStyle::kStored)
            .error()
            .message.starts_with("run 2, line 2, column "));
}

TEST_CASE("config: a file that is not text is refused as such") {
  const auto binary = parse_toml(std::string("\x50\x01\0\0{\"a\"", 8), "model.safetensors");
  REQUIRE_FALSE(binary);
  CHECK(binary.error().message ==
        "model.safetensors is not a text file; run files and configuration files are TOML");
}

TEST_CASE("config: an error that is found after reading still names file, line and key") {
  const auto document = parse_toml("[model]\nkind = \"mlp\"\n\n[model.adapter]\nrank = 4\n", "run.toml");
  REQUIRE(document);
  const auto at = [&](const std::string& message) {
    return at_key(*document, fedge::invalid(message)).message;
  };
  CHECK(at("model.adapter.rank: is too much") == "run.toml:5: model.adapter.rank: is too much");
  // A missing key is reported at its table; a key of a missing table at the file.
  CHECK(at("model.adapter.targets: none") == "run.toml:4: model.adapter.targets: none");
  CHECK(at("strategy.planner: rank 8 is above it") == "run.toml: strategy.planner: rank 8 is above it");
  for (const char* other : {"/tmp/a.b: cannot be opened", "model: has no dot",
                            "run.toml:5: model.kind: is known", "no key at all. None"})
    CHECK(at(other) == other);
  Reader reader(document->root, "", "run.toml");
  reader.ignore("model");
  reader.fail("model.adapter.rank", "is too much");
  CHECK(reader.finish().error().message == "run.toml:5: model.adapter.rank: is too much");
}

TEST_CASE("config: a required key that is missing is named with its meaning") {
  const Document document = parsed("");
  Reader root(document.root, "", document.name);
  root.integer("rounds", std::nullopt, {1, 9}, "Number of rounds.");
  CHECK(root.finish().error().message == "run.toml: rounds is required but missing: Number of rounds.");
}

TEST_CASE("config: a syntax error names file, line and column") {
  const auto broken = parse_toml("[run]\nname = \n", "run.toml");
  REQUIRE(!broken);
  CHECK(broken.error().message.starts_with("run.toml:2:"));
}

TEST_CASE("config: keys of thousands of parts are refused with their line, and do not take the stack") {
  const std::size_t many = 150'000;  // parts of a key, near the largest permitted size of a file
  for (const std::string& text : {
           repeated(many, "a.") + "a = 1",
           repeated(many, "\"a\" . ") + "a = 1",
           repeated(many, "'a'.") + "a = 1",
           "[" + repeated(many, "a.") + "a]\nb = 1",
           "[[" + repeated(many, "a.") + "a]]\nb = 1",
           "x = { " + repeated(many, "a.") + "a = 1 }",
           repeated(200, "x = { " + repeated(60, "a.")) + "a = 1" + repeated(200, " }"),
           "x = " + std::string(200, '[') + std::string(200, ']'),
           // The key follows a string that a careless scanner would not end there.
           "s = \"\"\"\"\"\"\"\" # \"\n" + repeated(many, "a.") + "a = 1",
           "s = '''''a'''''\n" + repeated(many, "a.") + "a = 1",
           "s = '\\'\n" + repeated(many, "a.") + "a = 1",
           "s = '''\\'''\n" + repeated(many, "a.") + "a = 1",
       }) {
    const auto document = parse_toml("first = 1\n" + text, "run.toml");
    REQUIRE_FALSE(document);
    CHECK(document.error().message.starts_with("run.toml:"));
    CHECK(document.error().message.find("nested more than 32 levels deep") != std::string::npos);
  }
  Document document;
  CHECK_FALSE(set(document, repeated(many, "a.") + "a=1"));
  CHECK(document.root.empty());
}

TEST_CASE("config: dots, brackets and marks within texts, comments and numbers are not depth") {
  const std::string dots(500, '.');
  const std::string brackets(500, '[');
  const std::string text = "a = \"" + dots + "\\\"" + brackets + "\" # " + dots + brackets + "\n" +  //
                           "b = '" + dots + "\"" + brackets + "'\n" +                                //
                           "c = \"\"\"\n" + dots + "\"\"\n'" + brackets + "\"\"\"\"\"\n" +           //
                           "d = '''\n''" + brackets + "\"'''\n" +                                    //
                           "e = [" + repeated(500, "1.5, ") + "]\n";
  CHECK(parsed(text.c_str()).root.size() == 5);
}

TEST_CASE("config: what is as deep as is allowed reads back from its canonical text, one deeper is refused") {
  const std::string key = repeated(kMaxDocumentDepth, "a.") + "a";
  const std::string canonical = canonical_toml(parsed((key + " = 1.5").c_str()).root);
  CHECK(canonical_toml(parsed(canonical.c_str()).root) == canonical);
  const auto deeper = parse_toml("\n" + key + ".a = 1.5", "run.toml");
  REQUIRE_FALSE(deeper);
  CHECK(deeper.error().message.starts_with("run.toml"));
}

TEST_CASE("config: --set overrides, makes tables on the way, and takes bare words as texts") {
  Document document = parsed("[run]\nseed = 1\n");
  CHECK(set(document, "run.seed=8"));
  CHECK(set(document, "strategy.kind=fedavg"));
  CHECK(set(document, "data.partition.alpha=0.25"));
  CHECK(canonical_toml(document.root) ==
        "[data]\npartition = { alpha = 0.25 }\n\n[run]\nseed = 8\n\n[strategy]\nkind = \"fedavg\"\n");
  CHECK(!set(document, "run.seed.deeper=1"));
  CHECK(!set(document, "novalue"));
}

TEST_CASE("config: canonical text is the same for different spellings and reads back as itself") {
  const Document a = parsed("b = 1\n[t]\nx = 0.5\ny = \"q\\\"\\n\"\n");
  const std::string text = canonical_toml(a.root);
  const auto again = parse_toml(text, "again");
  REQUIRE(again);
  CHECK(canonical_toml(again->root) == text);
  const Document c = parsed("b=1\nt={y=\"q\\u0022\\u000A\",x=5e-1} # comment\n");
  CHECK(canonical_toml(c.root) == text);
}

TEST_CASE("config: the reference lists what the reader asked for") {
  std::vector<KeyDoc> docs;
  const Table empty;
  Reader root(empty, "", "", &docs);
  Reader section = root.section("training");
  section.integer("batch_size", 20, {1, 1000}, "Samples in one step.");
  section.numbers("shares", std::vector<double>{1.0, 0.2}, {0.001, 1}, "Shares.");
  REQUIRE(docs.size() == 2);
  CHECK(docs[0].path == "training.batch_size");
  CHECK(docs[0].type == "integer, 1 to 1000");
  CHECK(docs[0].fallback == "20");
  CHECK(docs[1].path == "training.shares");
  CHECK(docs[1].type == "list of floats, each 0.001 to 1");
  CHECK(docs[1].fallback == "[1, 0.2]");
}

namespace {

struct Entry {
  std::string name;
  std::vector<std::string> tags;
};

std::vector<Entry> read_entries(Reader& root) {
  std::vector<Entry> entries;
  for (Reader& each : root.tables("entry", "Entries.")) {
    entries.push_back({each.text("name", std::nullopt, "Its name."),
                       each.texts("tags", std::vector<std::string>{"plain", "x"}, "Its tags.")});
    root.adopt(each);
  }
  return entries;
}

std::string entries_error(const char* text) {
  const Document document = parsed(text);
  Reader root(document.root, "", document.name);
  Reader section = root.section("list");
  read_entries(section);
  root.adopt(section);
  const auto result = root.finish();
  return result ? "" : result.error().message;
}

}  // namespace

TEST_CASE("config: an array of tables is read one by one, in either spelling, and may be absent") {
  for (const char* text : {"[[entry]]\nname = \"a\"\n[[entry]]\nname = \"b\"\ntags = [\"t\"]\n",
                           "entry = [{name = \"a\"}, {name = \"b\", tags = [\"t\"]}]\n"}) {
    const Document document = parsed(text);
    Reader root(document.root, "", document.name);
    const auto entries = read_entries(root);
    REQUIRE(root.finish());
    REQUIRE(entries.size() == 2);
    CHECK(entries[0].name == "a");
    CHECK(entries[0].tags == std::vector<std::string>{"plain", "x"});
    CHECK(entries[1].name == "b");
    CHECK(entries[1].tags == std::vector<std::string>{"t"});
  }
  const Document nothing = parsed("");
  Reader root(nothing.root, "", nothing.name);
  CHECK(read_entries(root).empty());
  CHECK(root.finish());
}

TEST_CASE("config: errors in an array of tables name the element and its line") {
  CHECK(entries_error("[[list.entry]]\nname = \"a\"\n\n[[list.entry]]\ntags = []\n") ==
        "run.toml:4: list.entry[1].name is required but missing: Its name.");
  CHECK(entries_error("[[list.entry]]\nname = \"a\"\n[[list.entry]]\nname = \"b\"\ntag = []\n") ==
        "run.toml:5: unknown key list.entry[1].tag, did you mean list.entry[1].tags?");
  CHECK(entries_error("[list]\nentry = [{name = \"a\"},\n 3]\n") ==
        "run.toml:3: list.entry[1]: found an integer, expected a table");
  CHECK(entries_error("[list]\nentry = \"a\"\n") ==
        "run.toml:2: list.entry: found a string, expected a list of tables");
  CHECK(entries_error("[list.entry]\nname = \"a\"\n") ==
        "run.toml:1: list.entry: found a table, expected a list of tables");
  CHECK(entries_error("[[list.entry]]\nname = \"a\"\ntags = [\"t\", true]\n") ==
        "run.toml:3: list.entry[0].tags: contains a boolean; every item must be a string");
  CHECK(entries_error("[[list.entry]]\nname = \"a\"\ntags = \"t\"\n") ==
        "run.toml:3: list.entry[0].tags: found a string, expected a list of strings");
}

TEST_CASE("config: the keys of an array's tables are documented once, without a number") {
  std::vector<KeyDoc> docs;
  const Table empty;
  Reader root(empty, "", "", &docs);
  Reader section = root.section("list");
  read_entries(section);
  REQUIRE(docs.size() == 3);
  CHECK(docs[0].path == "list.entry");
  CHECK(docs[0].type == "list of tables");
  CHECK(docs[1].path == "list.entry.name");
  CHECK(docs[1].fallback == "required");
  CHECK(docs[2].path == "list.entry.tags");
  CHECK(docs[2].type == "list of strings");
  CHECK(docs[2].fallback == "[\"plain\", \"x\"]");
}

TEST_CASE("config: whether a key holds a list is told before it is read") {
  const Document document = parsed("a = [1]\nb = 1\n");
  const Reader root(document.root, "", document.name);
  CHECK(root.has_list("a"));
  CHECK(!root.has_list("b"));
  CHECK(!root.has_list("c"));
}
