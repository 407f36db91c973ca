// All errors of a configuration file in one report, and the keys that --set makes ineffective.
#include <doctest/doctest.h>

#include "core/config/former_keys.h"
#include "core/config/reader.h"

using namespace fedge::config;

namespace {

Document config_document(const std::string& text, const std::vector<std::string>& assignments = {},
                         const std::string& name = "run.toml") {
  auto document = parse_toml(text, name);
  REQUIRE(document);
  for (const std::string& assignment : assignments) REQUIRE(set(*document, assignment));
  return std::move(*document);
}

// [model] kind = "mlp" (width, depth) or "cnn" (kernel), and a cross-check with [data] clients.
void read_example(Reader& root) {
  Reader model = root.section("model");
  const std::size_t kind = model.choice("kind", {"mlp", "cnn"}, 0, "Kind.");
  const std::int64_t width = model.integer("width", 3, {1, 100}, "Width.");
  model.integer("depth", 1, {1, 100}, "Depth.");
  model.integer("kernel", 5, {1, 9}, "Kernel.");
  for (const char* key : {"width", "depth"})
    if (kind == 1 && model.has(key)) model.refuse(key, "belongs to mlp");
  if (kind == 0 && model.has("kernel")) model.refuse("kernel", "belongs to cnn");
  root.adopt(model);
  Reader data = root.section("data");
  const std::int64_t clients = data.integer("clients", 10, {1, 1000}, "Clients.");
  root.adopt(data);
  if (width > clients) root.fail("model", "is wider than there are clients", {"model.width", "data.clients"});
}

std::vector<Problem> example_problems(const Document& document) {
  Reader root(document.root, "", document.name);
  read_example(root);
  return root.finish_problems();
}

std::string example_errors(const Document& document) {
  const auto result = to_result(example_problems(document), document.name);
  return result ? std::string() : result.error().message;
}

}  // namespace

TEST_CASE("config: all errors of a file are reported, in the order of its lines") {
  CHECK(example_errors(config_document("[data]\nclients = 0\n\n[model]\nkind = \"mlpp\"\ndepth = 1.5\n"
                                       "colour = 3\nwith = 4\n")) ==
        "run.toml:2: data.clients: 0 is out of range, expected 1 to 1000\n"
        "run.toml:5: model.kind: \"mlpp\" is not a known value, did you mean \"mlp\"? (expected one of mlp, "
        "cnn)\n"
        "run.toml:6: model.depth: found a float, expected an integer\n"
        "run.toml:8: unknown key model.with, did you mean model.width?\n"
        "4 errors in run.toml");
}

TEST_CASE("config: a file's name that looks like a place does not change the order of the errors") {
  CHECK(
      example_errors(config_document("[data]\nclients = 0\n\n[model]\nwidth = 0\n", {}, "a, line 7.toml")) ==
      "a, line 7.toml:2: data.clients: 0 is out of range, expected 1 to 1000\n"
      "a, line 7.toml:5: model.width: 0 is out of range, expected 1 to 100\n"
      "2 errors in a, line 7.toml");
  CHECK(example_errors(config_document("[data]\nclients = 2\ncolour = 1\n", {}, "a:7.toml")) ==
        "a:7.toml: model: is wider than there are clients\n"
        "a:7.toml:3: unknown key data.colour (known keys: clients)\n"
        "2 errors in a:7.toml");
}

TEST_CASE("config: what only follows from another error is not reported") {
  // A failed cross-check that follows from a wrong value or a misspelt key.
  CHECK(example_errors(config_document("[model]\nwidth = 11\n")) ==
        "run.toml:1: model: is wider than there are clients");
  CHECK(example_errors(config_document("[model]\nwidth = 11\n[data]\nclients = \"many\"\n")) ==
        "run.toml:4: data.clients: found a string, expected an integer");
  CHECK(example_errors(config_document("[model]\nwidth = 11\n[data]\nclinets = 20\n")) ==
        "run.toml:4: unknown key data.clinets, did you mean data.clients?");
  CHECK(example_errors(config_document("data = 3\n[model]\nwidth = 11\n")) ==
        "run.toml:1: data: found an integer, expected a table");
  // Keys beside an unknown kind.
  CHECK(example_errors(config_document("[model]\nkind = \"gru\"\nkernel = 3\n")) ==
        "run.toml:2: model.kind: \"gru\" is not a known value (expected one of mlp, cnn)");
}

TEST_CASE("config: a section's name with a value is answered with its key `kind`") {
  CHECK(example_errors(config_document("model = \"cnn\"\n")) ==
        "run.toml:1: model: found a string, expected a table; did you mean model.kind = \"cnn\"?");
  CHECK(example_errors(config_document("", {"model=cnn"})) ==
        "--set model: found a string, expected a table; did you mean model.kind=cnn?");
  CHECK(example_errors(config_document("", {"model=cnnn"})) ==
        "--set model: found a string, expected a table; did you mean model.kind=cnn?");
  // No suggestion: neither gru nor 3 is a kind, and [data] has no key `kind`.
  CHECK(example_errors(config_document("", {"model=gru"})) ==
        "--set model: found a string, expected a table");
  CHECK(example_errors(config_document("model = 3\n")) ==
        "run.toml:1: model: found an integer, expected a table");
  CHECK(example_errors(config_document("data = \"cnn\"\n")) ==
        "run.toml:1: data: found a string, expected a table");
}

TEST_CASE("config: --set without a value says that the value is missing") {
  CHECK(example_errors(config_document("", {"data.clients="})) ==
        "--set data.clients: the value is missing, expected an integer");
  CHECK(example_errors(config_document("", {"model.kind="})) ==
        "--set model.kind: the value is missing (expected one of mlp, cnn)");
  CHECK(example_errors(config_document("", {"model="})) ==
        "--set model: the value is missing, expected a table");
}

TEST_CASE("config: a key outside of the section that has it is answered with its full name") {
  CHECK(example_errors(config_document("clients = 3\n")) ==
        "run.toml:1: unknown key clients, did you mean data.clients?");
  CHECK(example_errors(config_document("", {"width=3"})) ==
        "--set width: unknown key width, did you mean model.width?");
  // All sections that have it.
  Document document = config_document("[a]\nrate = 1\n");
  Reader root(document.root, "", document.name);
  Reader a = root.section("a");
  for (const char* name : {"b", "c"}) {
    Reader inner = a.section(name);
    inner.number("rate", 1, {0, 1}, "Rate.");
    Reader innermost = inner.section("d");
    innermost.number("rate", 1, {0, 1}, "Rate.");
    inner.adopt(innermost);
    a.adopt(inner);
  }
  root.adopt(a);
  CHECK(root.finish().error().message ==
        "run.toml:2: unknown key a.rate, did you mean one of a.b.rate, a.b.d.rate, a.c.rate, "
        "a.c.d.rate?");
}

TEST_CASE("config: what may follow from a key outside of its section is not reported") {
  Document document = config_document("", {"size=20"});
  Reader root(document.root, "", document.name);
  for (const char* name : {"a", "b", "c"}) {
    Reader section = root.section(name);
    section.integer(name == std::string("c") ? "length" : "size", 3, {1, 100}, "Size.");
    root.adopt(section);
    root.fail(name, "is too small", {name + std::string(".size")});
  }
  CHECK(root.finish().error().message ==
        "run.toml: c: is too small\n--set size: unknown key size, did you mean one of a.size, b.size?\n"
        "2 errors in run.toml");
}

TEST_CASE("config: the hint about an unknown value is given only if no known value is near") {
  const auto complaint = [](const std::string& assignment) {
    const Document document = config_document("", {assignment});
    Reader root(document.root, "", document.name);
    root.choice("kind", {"median", "krum"}, 0, "Kind.", "; look elsewhere");
    return root.finish().error().message;
  };
  CHECK(complaint("kind=other") ==
        "--set kind: \"other\" is not a known value (expected one of median, krum); look elsewhere");
  CHECK(
      complaint("kind=medain") ==
      "--set kind: \"medain\" is not a known value, did you mean \"median\"? (expected one of median, krum)");
  CHECK(complaint("kind=") == "--set kind: the value is missing (expected one of median, krum)");
}

TEST_CASE("config: an error of --set is named by its key, once, and comes last") {
  CHECK(example_errors(config_document("[data]\nclients = 0\n", {"model.width=200", "model={depth=0}"})) ==
        "run.toml:2: data.clients: 0 is out of range, expected 1 to 1000\n"
        "--set model: model.depth: 0 is out of range, expected 1 to 100\n"
        "2 errors in run.toml");
  CHECK(example_errors(config_document("", {"model.width=200"})) ==
        "--set model.width: 200 is out of range, expected 1 to 100");
}

TEST_CASE("config: of a key that is missing the table's line is named") {
  const Document document = config_document("\n[table]\n");
  Reader root(document.root, "", document.name);
  Reader table = root.section("table");
  table.text("name", std::nullopt, "Its name.");
  root.adopt(table);
  CHECK(root.finish().error().message == "run.toml:2: table.name is required but missing: Its name.");
}

TEST_CASE("config: only the first errors of many are shown, and only so many are looked for") {
  const auto unknown = [](std::size_t count) {
    std::string text = "[model]\n";
    for (std::size_t i = 0; i < count; ++i) text += "unknown_" + std::to_string(1000 + i) + " = 1\n";
    return example_errors(config_document(text));
  };
  const std::string shown = unknown(21);
  CHECK(shown.ends_with("\n21 errors in run.toml; the first 20 are shown"));
  CHECK(shown.find("run.toml:21: ") != std::string::npos);
  CHECK(shown.find("run.toml:22: ") == std::string::npos);
  CHECK(unknown(2000).ends_with("\nat least 1000 errors in run.toml; the first 20 are shown"));
}

TEST_CASE("config: keys of the file's kind are dropped with a note if --set changes the kind") {
  const std::string text = "[model]\nkind = \"mlp\"\nwidth = 4\ndepth = 2\n";
  const auto dropped = drop_former_keys(config_document(text, {"model.kind=cnn"}), example_problems);
  CHECK(canonical_toml(dropped.document.root) == "[model]\nkind = \"cnn\"\n");
  REQUIRE(dropped.notes.size() == 2);
  CHECK(dropped.notes[0] ==
        "run.toml:3: `model.width` does not apply to model.kind = cnn and is ignored because --set changed "
        "the kind");
  // The default kind counts as well if the file names none.
  CHECK(drop_former_keys(config_document("[model]\nwidth = 4\n", {"model.kind=cnn"}), example_problems)
            .notes.size() == 1);
}

TEST_CASE("config: a key beside the wrong kind stays an error unless --set changed that kind") {
  const auto errors = [](const std::string& text, const std::vector<std::string>& assignments) {
    return example_errors(drop_former_keys(config_document(text, assignments), example_problems).document);
  };
  const std::string refused = "run.toml:3: model.width: belongs to mlp";
  CHECK(errors("[model]\nkind = \"cnn\"\nwidth = 4\n", {}) == refused);
  CHECK(errors("[model]\nkind = \"cnn\"\nwidth = 4\n", {"model.kind=cnn"}) == refused);
  CHECK(errors("[model]\nkind = \"mlp\"\n", {"model.kind=cnn", "model.width=4"}) ==
        "--set model.width: belongs to mlp");
  CHECK(errors("[model]\nkind = \"mlp\"\ncolour = 4\n", {"model.kind=cnn"}) ==
        "run.toml:3: unknown key model.colour (known keys: kind, width, depth, kernel)");
}

TEST_CASE(
    "config: keys of one value of a choice are refused beside another value, unless that one has them") {
  std::int64_t rate = 0;
  const auto errors = [&](const std::string& text, std::vector<KeyDoc>* docs = nullptr) {
    const Document document = config_document(text);
    Reader root(document.root, "", document.name, docs);
    const std::vector<std::string> kinds = {"slow", "fast"};
    const std::string chosen = kinds[root.choice("kind", kinds, 0, "Kind.")];
    const auto read = [&](const std::string& kind) {
      root.keys_of("kind", kind, chosen, [&](Reader& keys) {
        const std::int64_t read_rate = keys.integer("rate", kind == "slow" ? 1 : 5, {1, 9}, "rate of steps.");
        if (kind == chosen) rate = read_rate;
        if (kind == "slow") return;
        keys.integer("burst", std::nullopt, {1, 9}, "steps at once.");
        Reader brake = keys.section("brake");
        brake.number("force", 1, {0, 1}, "force of the brake.");
        keys.adopt(brake);
      });
    };
    read(chosen);
    read(chosen == "slow" ? "fast" : "slow");
    root.boolean("loud", false, "For both.");
    const auto result = root.finish();
    return result ? std::string() : result.error().message;
  };
  CHECK(errors("kind = \"slow\"\nrate = 7\nloud = true\n").empty());
  CHECK(rate == 7);
  CHECK(errors("kind = \"fast\"\nburst = 2\nbrake.force = 0.5\n").empty());
  CHECK(rate == 5);
  CHECK(errors("kind = \"fast\"\n") == "run.toml: burst is required but missing: steps at once.");
  CHECK(errors("burst = 2\n") ==
        "run.toml:1: burst: has no effect with kind = \"slow\"; it applies only to fast");
  CHECK(errors("brake = { force = 2 }\n") ==
        "run.toml:1: brake: has no effect with kind = \"slow\"; it applies only to fast");
  std::vector<KeyDoc> docs;
  (void)errors("", &docs);
  REQUIRE(docs.size() == 6);  // kind, rate of both, burst, brake.force, loud
  CHECK(docs[1].doc == "slow: rate of steps.");
  CHECK(docs[3].doc == "fast: steps at once.");
  CHECK(docs[5].doc == "For both.");
}

TEST_CASE("config: what is wrong with the defaults of a value that is not chosen is not an error") {
  const auto errors = [](const std::string& chosen) {
    const Document document = config_document("list = [1]\n");
    Reader root(document.root, "", document.name);
    root.choice("kind", {"slow", "fast"}, 0, "Kind.");
    root.keys_of("kind", "fast", chosen, [&](Reader& keys) {
      Reader table = keys.section("table");
      table.integer("columns", std::nullopt, {1, 9}, "Number of columns.");
      keys.adopt(table);
      if (keys.text("file", "", "File.").empty()) keys.fail("file", "must not be empty");
      keys.fail_at(fedge::invalid("table.columns: must differ"));
      keys.refuse("kind", "must not be given");
      if (keys.has_list("list")) keys.fail("list", "must be no list");
    });
    root.ignore("list");
    const auto problems = root.finish_problems();
    std::vector<std::string> keys;
    for (const Problem& problem : problems) keys.push_back(problem.key);
    return keys;
  };
  CHECK(errors("slow").empty());
  CHECK(errors("fast").size() >= 4);
}
