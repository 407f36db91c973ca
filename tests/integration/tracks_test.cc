// `fedge tracks resolve` as a user starts it.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "core/platform/files.h"
#include "server/data_directory.h"
#include "server/store/sqlite_store.h"
#include "tests/integration/run_program.h"
#include "tests/unit/learn/idx_fixture.h"

using namespace fedge;
using learn::test::TemporaryDirectory;
using test::Outcome;
using test::run;

namespace {

// A policy file with this text, and the command that reads it.
struct File {
  TemporaryDirectory directory;
  std::filesystem::path path = directory.path() / "policy.toml";
  explicit File(const std::string& text) { REQUIRE(write_file_atomic(path, text)); }
  Outcome resolve(const std::string& more) const {
    return run("fedge tracks resolve " + path.string() + " " + more);
  }
};

// One disagreement of each kind over six clients, as in the second scenario of arXiv:2604.23386's authors.
constexpr const char* kScenario = R"(clients = 6
[[disagreement]]
kind = "inbound"
clients = ["0"]
against = ["1"]
[[disagreement]]
kind = "outbound"
clients = ["2"]
against = ["3"]
[[disagreement]]
kind = "bidirectional"
clients = ["4"]
against = ["5"]
[[disagreement]]
kind = "full"
clients = ["1"]
until_round = 3
)";

constexpr const char* kScenarioTracks =
    R"({"round":3,"load":17,"tracks":[)"
    R"({"exclude":[],"members":["0","2","3","4","5"],"owners":["0","2"]},)"
    R"({"exclude":["2"],"members":["0","3","4","5"],"owners":["3"]},)"
    R"({"exclude":["4"],"members":["0","2","3","5"],"owners":["5"]},)"
    R"({"exclude":["5"],"members":["0","2","3","4"],"owners":["4"]}],"withdrawn":["1"]})"
    "\n";

}  // namespace

TEST_CASE("tracks: a round's tracks as one line of JSON, of that round") {
  const File file(kScenario);
  const Outcome third = file.resolve("--round 3 --format json");
  CHECK(third.code == 0);
  CHECK(third.output == kScenarioTracks);
  const Outcome fourth = file.resolve("--round 4 --format json");
  CHECK(fourth.output.starts_with(R"({"round":4,"load":26,"tracks":[{"exclude":[],)"));
  CHECK(fourth.output.ends_with("\"withdrawn\":[]}\n"));
}

TEST_CASE("tracks: lists and tracks in JSON are in the order of names as texts, and names are quoted") {
  const File numbers(
      "clients = 12\n[[disagreement]]\nkind = \"inbound\"\nclients = [\"9\"]\nagainst = [\"2\"]\n"
      "[[disagreement]]\nkind = \"inbound\"\nclients = [\"8\"]\nagainst = [\"10\", \"9\"]\n"
      "[[disagreement]]\nkind = \"full\"\nclients = [\"0\", \"3\", \"4\", \"5\", \"6\", \"7\"]\n");
  CHECK(numbers.resolve("--round 1 --format json").output ==
        R"({"round":1,"load":15,"tracks":[{"exclude":[],"members":["1","10","11","2","8","9"],)"
        R"("owners":["1","10","11","2"]},{"exclude":["10","9"],"members":["1","11","2","8"],"owners":["8"]},)"
        R"({"exclude":["2"],"members":["1","10","11","8","9"],"owners":["9"]}],)"
        R"("withdrawn":["0","3","4","5","6","7"]})"
        "\n");
  const File names(
      "clients = ['say \"b\"', 'a\\c']\n[[disagreement]]\nkind = \"inbound\"\nclients = ['a\\c']\n"
      "against = ['say \"b\"']\n");
  CHECK(
      names.resolve("--round 1 --format json").output ==
      R"({"round":1,"load":3,"tracks":[{"exclude":[],"members":["a\\c","say \"b\""],"owners":["say \"b\""]},)"
      R"({"exclude":["say \"b\""],"members":["a\\c"],"owners":["a\\c"]}],"withdrawn":[]})"
      "\n");
}

TEST_CASE("tracks: strict, from the command line or from the policy, members are fewer") {
  const std::string rest =
      "clients = 3\n[[disagreement]]\nkind = \"inbound\"\nclients = [\"0\"]\nagainst = [\"1\"]\n";
  const std::string expected =
      R"({"round":1,"load":4,"tracks":[{"exclude":[],"members":["1","2"],"owners":["1","2"]},)"
      R"({"exclude":["1"],"members":["0","2"],"owners":["0"]}],"withdrawn":[]})"
      "\n";
  CHECK(File(rest).resolve("--round 1 --format json --strict").output == expected);
  CHECK(File("strict = true\n" + rest).resolve("--round 1 --format json").output == expected);
  CHECK(File(rest).resolve("--round 1 --format json").output.starts_with(R"({"round":1,"load":5,)"));
}

TEST_CASE("tracks: a table for people, long lists cut short") {
  CHECK(File(kScenario).resolve("--round 3").output ==
        "round 3: 4 tracks, 17 trainings by 5 clients\n"
        "withdrawn: 1\n"
        "\n"
        "excludes                            used by                             trained by\n"
        "none                                0, 2                                0, 2, 3, 4, 5\n"
        "2                                   3                                   0, 3, 4, 5\n"
        "4                                   5                                   0, 2, 3, 5\n"
        "5                                   4                                   0, 2, 3, 4\n");
  CHECK(
      File("clients = 12\n").resolve("--round 1").output ==
      "round 1: 1 track, 12 trainings by 12 clients\n"
      "\n"
      "excludes                            used by                             trained by\n"
      "none                                0, 1, 2, 3, 4, 5, ... (12)          0, 1, 2, 3, 4, 5, ... (12)\n");
}

TEST_CASE("tracks: a run file's section is read, with the clients of its data and whatever else is in it") {
  const File run_file(
      "[run]\nrounds = 4\n[data.partition]\nclients = 3\n[strategy]\nkind = \"fedprox\"\n"
      "[training.objective]\nmu = 0.5\n[tracks]\nkeep_orphan_global = true\n"
      "[[tracks.disagreement]]\nkind = \"inbound\"\nclients = [\"0\", \"1\", \"2\"]\nagainst = [\"2\"]\n");
  CHECK(run_file.resolve("--round 1 --format json").output ==
        R"({"round":1,"load":5,"tracks":[{"exclude":[],"members":["0","1","2"],"owners":[]},)"
        R"({"exclude":["2"],"members":["0","1"],"owners":["0","1","2"]}],"withdrawn":[]})"
        "\n");
  const File wrong("[data.partition]\nclients = 3\n[tracks]\nclients = [\"a\"]\n");
  const Outcome outcome = wrong.resolve("--round 1");
  CHECK(outcome.code == 1);
  CHECK(outcome.output ==
        "fedge: " + wrong.path.string() + ":4: tracks.clients: lists 1, but the run has 3 clients\n");
}

TEST_CASE("tracks: a wrong policy and a missing file are named, wrong usage is exit code 2") {
  const File unknown("clients = 2\n[[disagreement]]\nkind = \"full\"\nclients = [\"2\"]\n");
  const Outcome outcome = unknown.resolve("--round 1 --format json");
  CHECK(outcome.code == 1);
  CHECK(outcome.output == "fedge: " + unknown.path.string() +
                              ":4: disagreement[0].clients: \"2\" is not a client of this policy (its "
                              "clients are \"0\" to \"1\")\n");
  CHECK(run("fedge tracks resolve /nonexistent/p.toml --round 1").output ==
        "fedge: cannot open /nonexistent/p.toml: No such file or directory\n");
  CHECK(unknown.resolve("").code == 2);
  CHECK(unknown.resolve("--round 0").code == 2);
  CHECK(unknown.resolve("--round 4294967296").code == 2);
  CHECK(unknown.resolve("--round 1 --format yaml").code == 2);
  CHECK(run("fedge tracks").code == 2);
}

TEST_CASE("tracks: a full disk is an error, not half a result") {
  const File file(kScenario);
  // Shows only the errors; the comment sign hides what run() appends.
  const Outcome outcome = file.resolve("--round 1 2>&1 >/dev/full #");
  CHECK(outcome.code == 1);
  CHECK(outcome.output == "fedge: cannot write the result: No space left on device\n");
}

TEST_CASE("tracks: an operator adds, lists and lifts disagreements of a coordinator's run") {
  const TemporaryDirectory data;
  const Outcome nowhere = run("fedge tracks ls --data-dir " + data.path().string());
  CHECK(nowhere.output.starts_with("fedge: " + data.path().string() + " has no coordinator's data; "));
  REQUIRE(write_file_atomic(data.path() / "address", "127.0.0.1:7433\n"));
  const std::string where = " --run 3 --data-dir " + data.path().string();
  {
    const auto store = server::open_sqlite_store(server::run_store_path(data.path()));
    REQUIRE(store);
    const std::string document =
        "[tracks]\nclients = [\"a\", \"b\", \"c\"]\n[[tracks.disagreement]]\nkind = \"outbound\"\n"
        "clients = [\"b\"]\nagainst = [\"c\"]\n";
    for (int number = 1; number <= 3; ++number) REQUIRE((*store)->submit(server::new_run("r", document)));
  }
  const Outcome none = run("fedge tracks ls" + where);
  CHECK(none.code == 1);
  CHECK(none.output.find("a coordinator creates this file when it starts a run with synchronous rounds") !=
        std::string::npos);
  // The file that a coordinator writes.
  const auto file = data.path() / "runs" / "3" / "policy.toml";
  REQUIRE(make_directory(file.parent_path()));
  REQUIRE(write_file_atomic(file,
                            "clients = [\"a\", \"b\", \"c\"]\n[[disagreement]]\nkind = \"outbound\"\n"
                            "clients = [\"b\"]\nagainst = [\"c\"]\n"));
  CHECK(run("fedge tracks add --kind inbound --clients a --against b,c --until 9" + where).output ==
        "disagreement 2 starts with the next round, or with its own first round if that is later\n");
  CHECK(run("fedge tracks add --kind full --clients c --from 4 --deep" + where).code == 0);
  const Outcome unknown = run("fedge tracks add --kind inbound --clients a --against d" + where);
  CHECK(unknown.code == 1);
  CHECK(unknown.output.find("\"d\" is not a client of this policy") != std::string::npos);
  const Outcome listed = run("fedge tracks ls" + where);
  CHECK(listed.output.find(
            "   1  outbound       b                         c                         1 to end      "
            "stays\n   2  inbound        a                         b,c                       added to 9    "
            "stays\n") != std::string::npos);
  CHECK(listed.output.find(
            "   3  full           c                         -                         4 to end      "
            "removed\n") != std::string::npos);
  CHECK(run("fedge tracks lift 4" + where).code == 1);
  CHECK(run("fedge tracks lift 2" + where).code == 0);
  CHECK(run("fedge tracks ls" + where).output.find("inbound") == std::string::npos);
  const auto text = read_file(file, 10000);
  REQUIRE(text);
  CHECK(text->starts_with("# The disagreements of run 3."));
}
