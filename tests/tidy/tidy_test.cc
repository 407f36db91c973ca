#include "tests/tidy/tidy.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>

namespace fedge::tidy {
namespace {

namespace fs = std::filesystem;

const std::string kHeader = "// What this is.\n#pragma once\n";

// A source tree in a temporary directory, without findings at the start.
class Tree {
 public:
  Tree() {
    std::string pattern = (fs::temp_directory_path() / "fedge-tidy-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    root_ = pattern;
    for (const char* room : {"core", "learn", "server", "client", "protocol", "tests"})
      write(std::string(room) + "/README.md", "# " + std::string(room) + "\n");
    write("core/rng.h", kHeader + "#include <array>\n");
    write("protocol/frame.h", kHeader + "#include \"core/rng.h\"\n");
    write("server/engine.h", kHeader + "#include \"protocol/frame.h\"\n");
  }
  ~Tree() { fs::remove_all(root_); }
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;

  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path, std::ios::binary) << text;
  }
  std::vector<std::string> findings() const {
    std::vector<std::string> texts;
    for (const Finding& finding : check_tree(root_)) texts.push_back(to_string(finding));
    return texts;
  }
  const fs::path& root() const { return root_; }

 private:
  fs::path root_;
};

bool starts_with(const std::string& text, const std::string& prefix) {
  return text.compare(0, prefix.size(), prefix) == 0;
}

// Writes one file and expects exactly one finding, at `place` and with `words` in its message.
void expect_one(const std::string& path, const std::string& text, const std::string& place,
                const std::string& words) {
  CAPTURE(path);
  CAPTURE(text);
  const Tree tree;
  tree.write(path, text);
  const auto findings = tree.findings();
  REQUIRE(findings.size() == 1);
  CAPTURE(findings[0]);
  CHECK(starts_with(findings[0], place + ": "));
  CHECK(findings[0].find(words) != std::string::npos);
}

void expect_none(const std::string& path, const std::string& text) {
  CAPTURE(path);
  CAPTURE(text);
  const Tree tree;
  tree.write(path, text);
  const auto findings = tree.findings();
  CAPTURE((findings.empty() ? "" : findings[0]));
  CHECK(findings.empty());
}

}  // namespace

TEST_CASE("tidy: a clean tree has no findings") { CHECK(Tree().findings().empty()); }

TEST_CASE("tidy: includes against the room order are found") {
  expect_one("core/a.cc", "#include \"protocol/frame.h\"\n", "core/a.cc:1", "core may not include");
  expect_one("learn/a.cc", "\n#include \"server/engine.h\"\n", "learn/a.cc:2", "learn may not include");
  expect_one("protocol/a.cc", "  #  include   \"server/engine.h\"\n", "protocol/a.cc:1",
             "protocol may not include");
  expect_one("client/a.cc", "#include \"server/engine.h\"\n", "client/a.cc:1", "client may not include");
  expect_none("server/a.cc", "#include \"core/rng.h\"\n#include \"protocol/frame.h\"\n");
  expect_none("tests/a.cc", "#include \"core/rng.h\"\n#include \"server/engine.h\"\n");
}

TEST_CASE("tidy: a room may not include the tests") {
  const Tree tree;
  tree.write("tests/fake.h", kHeader);
  tree.write("server/a.cc", "#include \"tests/fake.h\"\n");
  REQUIRE(tree.findings().size() == 1);
  CHECK(tree.findings()[0] == "server/a.cc:1: a room may not include \"tests/fake.h\"");
}

TEST_CASE("tidy: sockets, overlay networks and databases stay out of rooms that decide") {
  expect_one("core/a.cc", "#include <boost/asio.hpp>\n", "core/a.cc:1", "boost/asio.hpp");
  expect_one("learn/a.cc", "#include <sqlite3.h>\n", "learn/a.cc:1", "sqlite3.h");
  expect_one("learn/a.cc", "#include <opendht/dhtrunner.h>\n", "learn/a.cc:1", "opendht");
  expect_none("server/a.cc", "#include <boost/asio.hpp>\n");
}

TEST_CASE("tidy: public headers include the standard library and the project alone") {
  expect_one("learn/a.h", kHeader + "#include <Eigen/Core>\n", "learn/a.h:3", "public header");
  expect_one("server/a.h", kHeader + "#include <boost/asio.hpp>\n", "server/a.h:3", "public header");
  expect_one("core/a.h", kHeader + "#include <unistd.h>\n", "core/a.h:3", "public header");
  expect_none("server/detail/a.h", kHeader + "#include <boost/asio.hpp>\n");
  expect_none("learn/a.cc", "#include <Eigen/Core>\n");
  expect_none("tests/a.h", kHeader + "#include <doctest/doctest.h>\n");
}

TEST_CASE("tidy: quoted includes start at the root of the repository") {
  expect_one("core/a.cc", "#include \"rng.h\"\n", "core/a.cc:1", "not a path from the root");
  expect_one("core/a.cc", "#include \"core/gone.h\"\n", "core/a.cc:1", "not a path from the root");
  expect_none("protocol/a.cc", "#include \"proto/wire.pb.h\"\n");
}

TEST_CASE("tidy: clocks, hidden randomness, the environment and threads belong in shells") {
  for (const char* line :
       {"auto t = std::chrono::steady_clock::now();", "std::chrono::system_clock::time_point t;",
        "std::random_device d;", "const char* home = std::getenv(\"HOME\");", "std::thread worker(run);",
        "std::jthread worker(run);", "auto f = std::async(run);", "auto t = time(nullptr);",
        "auto t = std::time(nullptr);", "auto t = ::time (nullptr);", "int r = rand();",
        "std::this_thread::sleep_for(pause);"}) {
    expect_one("learn/a.cc", std::string("// A file.\n") + line + "\n", "learn/a.cc:2", "belongs in a shell");
    expect_none("server/a.cc", std::string(line) + "\n");
    expect_none("core/platform/a.cc", std::string(line) + "\n");
    expect_none("tests/a.cc", std::string(line) + "\n");
  }
  expect_one("core/a.cc", "#include <thread>\n", "core/a.cc:1", "<thread>");
  expect_one("core/a.h", kHeader + "#include <future>\n", "core/a.h:3", "<future>");
}

TEST_CASE("tidy: what only looks like a clock is let through") {
  for (const char* line :
       {"// no std::random_device, no getenv here", "/* std::thread */ int x;",
        "const char* text = \"std::random_device\";", "auto t = event.time(now);", "auto t = event->time();",
        "double virtual_time(int x);", "const Time time = now;", "auto t = clock_of::time(x);",
        "my_steady_clock_count = 1'000'000;", "auto s = R\"(std::thread \" )\"; char c = '\"';"})
    expect_none("learn/a.cc", std::string(line) + "\n");
}

TEST_CASE("tidy: a comment or a literal ends where it ends") {
  expect_one("learn/a.cc", "/* a\n */ std::random_device d;\n", "learn/a.cc:2", "random_device");
  expect_one("learn/a.cc", "char c = '\"'; std::random_device d; char e = '\"';\n", "learn/a.cc:1",
             "random_device");
  expect_one("learn/a.cc", "auto s = \"a\\\"b\"; std::random_device d;\n", "learn/a.cc:1", "random_device");
  expect_one("learn/a.cc", "auto s = R\"x()\")x\"; std::random_device d;\n", "learn/a.cc:1", "random_device");
  expect_one("learn/a.cc", "int n = 1'000; std::random_device d; int m = 2'000;\n", "learn/a.cc:1",
             "random_device");
}

TEST_CASE("tidy: a room without a read-me, or with a long one, is found") {
  const Tree tree;
  fs::remove(tree.root() / "learn/README.md");
  CHECK(tree.findings() == std::vector<std::string>{"learn: the room has no README.md"});
  std::string text;
  for (int i = 0; i < 60; ++i) text += "line\n";
  expect_none("core/README.md", text);
  expect_one("core/README.md", text + "line\n", "core/README.md", "61 lines");
  expect_none("core/platform/README.md", text + "line\n");
}

TEST_CASE("tidy: files above the size limits are found") {
  const auto lines = [](int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += "int x;\n";
    return text;
  };
  expect_none("core/a.cc", lines(400));
  expect_one("core/a.cc", lines(401), "core/a.cc", "401 lines");
  expect_none("core/a.h", kHeader + lines(248));
  expect_one("core/a.h", kHeader + lines(249), "core/a.h", "251 lines");
  expect_none("tests/unit/core/a_test.cc", lines(600));
  expect_one("tests/unit/core/a_test.cc", lines(601), "tests/unit/core/a_test.cc", "601 lines");
}

TEST_CASE("tidy: more than 25 files in one folder are found") {
  const Tree tree;
  for (int i = 0; i < 25; ++i) tree.write("core/crowd/f" + std::to_string(i) + ".cc", "int x;\n");
  CHECK(tree.findings().empty());
  tree.write("core/crowd/one_more.cc", "int x;\n");
  REQUIRE(tree.findings().size() == 1);
  CHECK(starts_with(tree.findings()[0], "core/crowd: 26 files"));
}

TEST_CASE("tidy: headers open with a comment and are included once") {
  expect_one("core/a.h", "#pragma once\n", "core/a.h:1", "opens with a comment");
  expect_one("core/a.h", "// What it is.\nint x;\n", "core/a.h:1", "#pragma once");
}

TEST_CASE("tidy: tabs, trailing blanks, unfinished work and a missing last newline are found") {
  expect_one("core/a.cc", "int x;\n\tint y;\n", "core/a.cc:2", "a tab");
  expect_one("core/a.cc", "int x; \n", "core/a.cc:1", "blanks at the end");
  expect_one("docs/a.md", "text \n", "docs/a.md:1", "blanks at the end");
  expect_one("core/a.cc", "int x;", "core/a.cc:1", "no newline");
  for (const std::string& marker :
       {std::string("TO") + "DO", std::string("FIX") + "ME", std::string("XX") + "X"})
    expect_one("core/a.cc", "// " + marker + ": later\n", "core/a.cc:1", marker);
  expect_none("core/a.cc", "int TODOS = 1;\n");
}

TEST_CASE("tidy: a document that quotes a test quotes one that there is, in its program's folder") {
  const Tree tree;
  tree.write("tests/unit/core/a_test.cc",
             "TEST_CASE(\"one: a claim\") {}\nTEST_CASE(\n    \"two: \\\"a\\\" longer \"\n    \"claim\") {}\n"
             "// TEST_CASE(\"three: gone\")\n");
  tree.write("tests/faults/b_test.cc", "TEST_CASE(\"four\") {}\n");
  tree.write("docs/a.md",
             "`unit_core: one: a claim`, `unit_core: two: \"a\" longer claim` and `faults_client: four`;\n"
             "`--unit_core: no name`, `ctest -R unit_core`, unit_core: in no marks\n");
  CHECK(tree.findings().empty());
  tree.write("docs/b.md", "| `unit_core: one` | `unit_server: one: a claim` |\n\n`unit_core: three: gone`\n");
  CHECK(tree.findings() ==
        std::vector<std::string>{"docs/b.md:1: no test in tests/unit/core/ is called \"one\"",
                                 "docs/b.md:1: no test in tests/unit/server/ is called \"one: a claim\"",
                                 "docs/b.md:3: no test in tests/unit/core/ is called \"three: gone\""});
}

TEST_CASE("tidy: sources of one target that give different things one name are found") {
  const auto unnamed = [](const std::string& inside) {
    return "namespace fedge {\nnamespace {\n\n" + inside + "\n}  // namespace\n}  // namespace fedge\n";
  };
  const Tree tree;
  tree.write("learn/a.cc",
             unnamed("constexpr int kPiece = 4;\nstruct Case {\n  int kInside = 0;\n};\n"
                     "using Numbers = std::vector<int>;\nint read(const std::string& text) { return 1; }\n"));
  tree.write("learn/text/b.cc", unnamed("constexpr double kPiece{4};\n"));
  CHECK(tree.findings() ==
        std::vector<std::string>{"learn/text/b.cc:4: 'kPiece' is in the unnamed namespace of "
                                 "learn/a.cc, too: name them apart, since both may be compiled as "
                                 "one unit"});
  for (const char* clash :
       {"class Case final {\n};\n", "using Numbers = std::set<int>;\n", "using Case = int;\n",
        "Numbers Case(int x) {\n}\n", "int read(const std::string& other) { return 2; }\n",
        "const int kPiece[] = {1};\n"}) {
    CAPTURE(clash);
    tree.write("learn/text/b.cc", unnamed(clash));
    CHECK(tree.findings().size() == 1);
  }
  for (const char* fine :
       {"int kInside = 1;\n", "using Numbers = std::vector<int>;\n", "class Case;\n",
        "int read(const std::string& text, int radix) { return 1; }\n", "// kPiece = 1;\n"}) {
    CAPTURE(fine);
    tree.write("learn/text/b.cc", unnamed(fine));
    CHECK(tree.findings().empty());
  }
  tree.write("learn/text/b.cc", "int x;\n");
  tree.write("core/b.cc", unnamed("constexpr int kPiece = 5;\n"));  // another target
  tree.write("tests/unit/learn/b.h", kHeader + "constexpr int kPiece = 5;\n");
  tree.write("tests/unit/learn/b_test.cc", unnamed("constexpr int kPiece = 5;\n"));
  tree.write("learn/a.cc", unnamed("int a;\n") + unnamed("int a;\n"));  // the compiler reports these
  CHECK(tree.findings().empty());
}

// A source that defines this many methods of a class, and others that do not count.
std::string source_with(const std::string& type, std::size_t methods) {
  std::string text = "namespace fedge {\n\n";
  for (std::size_t i = 0; i < methods; ++i)
    text +=
        "std::map<int, std::function<void(int)>> " + type + "::m(int x,\n    int y) {\n  other::f(x);\n}\n";
  return text + "\n}  // namespace fedge\n";
}

TEST_CASE("tidy: a class with more than 40 methods out of line is found, over all its sources") {
  const Tree tree;
  tree.write("learn/a.cc", source_with("Model", 20));
  tree.write("learn/sub/b.cc", source_with("Model", 20));
  CHECK(tree.findings().empty());
  tree.write("learn/sub/b.cc", source_with("Model", 21));
  CHECK(tree.findings() ==
        std::vector<std::string>{"learn/a.cc: Model has 41 methods out of line, in 2 sources; at most 40 in "
                                 "3, then another class is hidden in it"});
  for (const char* apart : {"Model::Impl", "Models", "fedge::Models", "learn::detail"}) {
    CAPTURE(apart);
    tree.write("learn/sub/b.cc", source_with(apart, 21));
    CHECK(tree.findings().empty());
  }
  tree.write("learn/sub/b.cc", source_with("learn::Model", 21));
  CHECK(tree.findings().size() == 1);
  tree.write("learn/sub/b.cc", "int x;\n");
  tree.write("core/b.cc", source_with("Model", 21));  // another room's class of this name
  CHECK(tree.findings().empty());
}

TEST_CASE("tidy: what counts as a method of a class") {
  const Tree tree;
  const std::string full = source_with("Model", 40);
  for (const char* method :
       {"bool Model::operator<(const Model& other) const {\n}\n",
        "Model& Model::operator=(Model&& other) {\n}\n", "void Model::operator()(int x) {\n}\n",
        "template <class T>\nvoid Model<T>::m() {\n}\n", "Model::Part* Model::m() {\n}\n",
        "Result<int> Model::m(int x = Other::f()) {\n}\n"}) {
    CAPTURE(method);
    tree.write("learn/a.cc", full + method);
    CHECK(tree.findings().size() == 1);
  }
  for (const char* other :
       {"Model::Model(int x) : x_{x} {\n}\n", "Model::~Model() {\n}\n", "void Model::m();\n",
        "const int kSize = Model::size({1});\n", "// void Model::m() {\n",
        "void f(int x = Model::m()) {\n}\n", "Model::Part f() {\n}\n",
        "class Part {\n  void Model::m() {\n  }\n};\n", "void f(std::function<Model::Part(int)> g) {\n}\n"}) {
    CAPTURE(other);
    tree.write("learn/a.cc", full + other);
    CHECK(tree.findings().empty());
  }
}

TEST_CASE("tidy: a class whose methods are in more than 3 sources is found") {
  const Tree tree;
  for (const char* file : {"a", "b", "c"})
    tree.write("learn/" + std::string(file) + ".cc", source_with("Model", 1));
  CHECK(tree.findings().empty());
  tree.write("learn/d.cc", source_with("Model", 1));
  REQUIRE(tree.findings().size() == 1);
  CHECK(tree.findings()[0].find("4 methods out of line, in 4 sources") != std::string::npos);
}

TEST_CASE("tidy: build trees, hidden folders, links and unknown files are passed over") {
  const Tree tree;
  const std::string bad = "\tstd::random_device d; \n";
  tree.write("build/dev/core/a.cc", bad);
  tree.write(".deps/a.cc", bad);
  tree.write("tests/fuzz/corpus/a", bad);
  fs::create_directory_symlink(tree.root() / "build", tree.root() / "learn/link");
  CHECK(tree.findings().empty());
  tree.write("core/build/a.cc", bad);
  CHECK(tree.findings().size() == 3);
}

}  // namespace fedge::tidy
