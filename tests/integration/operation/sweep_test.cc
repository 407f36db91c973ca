// Sweeps and comparisons as a user starts them, with real runs of a tiny data set.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "core/platform/files.h"
#include "server/report/metrics.h"
#include "tests/integration/run_program.h"
#include "tests/support/logged_process.h"
#include "tests/support/text.h"
#include "tests/support/tiny_dataset.h"

using namespace fedge;
using fedge::test::contains;
using learn::test::TemporaryDirectory;
using test::Outcome;

namespace {

namespace fs = std::filesystem;

// A place with a tiny data set, a run file and results.
struct Place {
  TemporaryDirectory data;
  TemporaryDirectory place;
  Place() {
    test::write_tiny_dataset(data);
    write("run.toml",
          "[run]\nname = \"tiny\"\nrounds = 4\n[data]\ndataset = \"fashion-mnist\"\ndirectory = \"" +
              data.path().string() +
              "\"\npartition = { kind = \"iid\", clients = 10 }\n[model]\nkind = \"softmax\"\n"
              "[sampling]\nclients_per_round = 4\n[strategy]\nkind = \"fedavg\"\n");
  }
  std::string file(const std::string& name) const { return (place.path() / name).string(); }
  void write(const std::string& name, const std::string& text) const {
    REQUIRE(write_file_atomic(file(name), text));
  }
  std::string content(const std::string& name) const {
    const auto text = read_file(file(name), 1 << 26);
    REQUIRE_MESSAGE(text, text.error().message);
    return *text;
  }
  std::vector<std::string> command(const std::string& sweep, const std::vector<std::string>& more) const {
    std::vector<std::string> words = {FEDGE_BINARY_DIR "/fedge-sim", "sweep", file(sweep), "--out",
                                      file("out")};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  Outcome sweep(const std::string& name, const std::vector<std::string>& more) const {
    std::string line;
    for (const std::string& word : command(name, more)) line += "'" + word + "' ";
    return test::run_command(line);
  }
  // The model hashes of the last rounds of all complete runs, by directory.
  std::map<std::string, std::string> hashes() const {
    std::map<std::string, std::string> hashes;
    for (const auto& entry : fs::recursive_directory_iterator(file("out"))) {
      if (entry.path().filename() != "model.safetensors") continue;
      const fs::path run = entry.path().parent_path();
      const auto rounds = server::read_metrics(run / "metrics.jsonl");
      REQUIRE(rounds);
      hashes[run.lexically_relative(file("out")).string()] = rounds->back().model_hash;
    }
    return hashes;
  }
  std::map<std::string, fs::file_time_type> models() const {
    std::map<std::string, fs::file_time_type> times;
    for (const auto& [run, hash] : hashes())
      times[run] = fs::last_write_time(fs::path(file("out")) / run / "model.safetensors");
    return times;
  }
};

const std::vector<std::string> kGrid = {"--grid", "strategy.kind=fedavg,fedprox", "--seeds", "2"};

// Whether each process with this text in its arguments ends within 20 s. They are no children of the test.
bool end_soon(const std::string& text) {
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string number = entry.path().filename().string();
    const auto command = read_file(entry.path() / "cmdline", 1 << 20);
    if (!command || !contains(*command, text)) continue;
    const int process = test::open_process(std::stoi(number));
    if (process < 0) continue;  // it has ended
    const bool ends = test::ends_within(process, 20'000);
    ::close(process);
    if (!ends) return false;
  }
  return true;
}

std::vector<std::string> joined(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace

TEST_CASE("sweeps: every combination with every seed equals the run that a user starts alone") {
  const Place place;
  const Outcome done = place.sweep("run.toml", joined(kGrid, {"--jobs", "2", "--baseline", "fedavg"}));
  REQUIRE_MESSAGE(done.code == 0, done.output);
  CHECK(contains(done.output, "| strategy.kind | final accuracy, % |"));
  CHECK(contains(done.output, "Minus \"fedavg\", on the same seeds"));
  const auto hashes = place.hashes();
  REQUIRE(hashes.size() == 4);
  const Outcome alone =
      test::run("fedge-sim run " + place.file("run.toml") +
                " --set strategy.kind=fedprox --set run.seed=2 --out " + place.file("alone"));
  REQUIRE_MESSAGE(alone.code == 0, alone.output);
  const auto rounds = server::read_metrics(place.file("alone") + "/metrics.jsonl");
  CHECK(hashes.at("kind=fedprox/2") == rounds->back().model_hash);
  CHECK(contains(place.content("out/runs.csv"), "strategy.kind,seed,directory,tuned,failed,final,best"));
  CHECK(contains(place.content("out/tables.md"), "| fedprox"));
  CHECK_FALSE(fs::exists(place.file("out/kind=fedprox/2.log")));
}

TEST_CASE("sweeps: complete runs are skipped, and more seeds and choices join them") {
  const Place place;
  REQUIRE(place.sweep("run.toml", kGrid).code == 0);
  const auto before = place.models();
  const Outcome again =
      place.sweep("run.toml", {"--grid", "strategy.kind=fedavg,fedprox,scaffold", "--seeds", "3"});
  REQUIRE_MESSAGE(again.code == 0, again.output);
  const auto after = place.models();
  CHECK(after.size() == 9);
  for (const auto& [run, time] : before) CHECK_MESSAGE(after.at(run) == time, run);
}

TEST_CASE("sweeps: results of other settings are never overwritten without --force, then only those") {
  const Place place;
  REQUIRE(place.sweep("run.toml", kGrid).code == 0);
  const auto before = place.hashes();
  std::string changed = place.content("run.toml");
  changed.replace(changed.find("rounds = 4"), 10, "rounds = 5");
  place.write("run.toml", changed);
  const Outcome refused = place.sweep("run.toml", kGrid);
  CHECK(refused.code == 1);
  CHECK_MESSAGE(contains(refused.output, "kind=fedavg/1 holds the results of a run with other settings"),
                refused.output);
  CHECK(place.hashes() == before);
  REQUIRE(place.sweep("run.toml", joined(kGrid, {"--force"})).code == 0);
  CHECK(place.hashes() != before);
  const auto models = place.models();
  REQUIRE(place.sweep("run.toml", joined(kGrid, {"--force"})).code == 0);
  CHECK(place.models() == models);
}

TEST_CASE("sweeps: interrupted, and killed, a sweep continues with the same command and the same results") {
  const Place place;
  const std::vector<std::string> options =
      joined(kGrid, {"--set", "run.rounds=200", "--jobs", "2", "--", "--checkpoint-every", "0"});
  const Place whole;
  whole.write("run.toml", place.content("run.toml"));  // with the data of the other place
  const Outcome expected = whole.sweep("run.toml", options);
  REQUIRE_MESSAGE(expected.code == 0, expected.output);
  int signal = SIGINT;
  SUBCASE("SIGINT") {}
  SUBCASE("SIGTERM") { signal = SIGTERM; }
  SUBCASE("SIGKILL") { signal = SIGKILL; }
  const std::string metrics = "out/kind=fedavg/1/metrics.jsonl";
  const auto lines = [&] {
    const auto text = read_file(place.file(metrics), 1 << 26);
    return text ? std::ranges::count(*text, '\n') : 0;
  };
  {
    test::LoggedProcess program(place.command("run.toml", options), place.file("log"));
    while (lines() < 20 && !program.ends_within(1)) {
    }
    program.signal(signal);
    CHECK(program.wait() == 128 + signal);
    if (signal != SIGKILL)
      CHECK_MESSAGE(contains(program.log(), "the same command continues the sweep"), program.log());
  }
  REQUIRE_MESSAGE(end_soon(place.file("out")), "a run goes on without its sweep");
  const bool interrupted = fs::exists(place.file("out/kind=fedavg/1/checkpoint"));
  const std::string before = place.content(metrics);
  const Outcome done = place.sweep("run.toml", options);
  REQUIRE_MESSAGE(done.code == 0, done.output);
  CHECK(place.hashes() == whole.hashes());
  // The run was continued: its first rounds are those of the former process, also in their wall-clock time.
  REQUIRE(interrupted);
  const std::string first = before.substr(0, before.find('\n'));
  CHECK(place.content(metrics).starts_with(first));
}

TEST_CASE("sweeps: all settings are checked before the first run, and errors name the choice") {
  const Place place;
  const Outcome done = place.sweep(
      "run.toml", {"--grid", "training.batch_size=10,none", "--grid", "strategy.kind=fedavg,fedpox"});
  CHECK(done.code == 1);
  CHECK_MESSAGE(contains(done.output, "fedpox"), done.output);
  CHECK_FALSE(fs::exists(place.file("out/batch_size=10,kind=fedavg")));
  const Outcome seed = place.sweep("run.toml", {"--grid", "run.seed=1,2"});
  CHECK(seed.code == 1);
  CHECK(contains(seed.output, "run.seed cannot vary along an axis; use --seeds"));
  const Outcome checked = place.sweep("run.toml", joined(kGrid, {"--check"}));
  CHECK(checked.code == 0);
  CHECK(contains(checked.output, "the sweep is valid: 4 runs"));
  CHECK(place.hashes().empty());
}

TEST_CASE("sweeps: results of an earlier run are not taken for those of a run that could not start") {
  const Place place;
  REQUIRE(place.sweep("run.toml", kGrid).code == 0);
  fs::remove(place.data.path() / "train-labels-idx1-ubyte");
  const Outcome done = place.sweep("run.toml", joined(kGrid, {"--set", "run.rounds=2", "--force"}));
  CHECK(done.code == 1);
  CHECK_MESSAGE(contains(done.output, "train-labels-idx1-ubyte"), done.output);
}

TEST_CASE(
    "sweeps: an interrupted run that cannot continue is no result, and damaged results are made again") {
  const Place place;
  const std::vector<std::string> options = {
      "--set", "simulation.attack.kind=gaussian", "--set", "strategy.kind=median", "--set", "run.rounds=300"};
  {
    test::LoggedProcess program(place.command("run.toml", options), place.file("log"));
    REQUIRE(make_directory(place.file("out/1")));
    test::wait_for_file(place.file("out/1/metrics.jsonl"));
    program.signal(SIGINT);
    CHECK(program.wait() == 130);
  }
  const Outcome done = place.sweep("run.toml", options);
  REQUIRE_MESSAGE(done.code == 0, done.output);
  const auto whole = server::read_metrics(place.file("out/1/metrics.jsonl"));
  REQUIRE(whole);
  CHECK(whole->size() == 300);
  const auto hashes = place.hashes();
  place.write("out/1/metrics.jsonl", "{ damaged\n");
  REQUIRE(place.sweep("run.toml", options).code == 0);
  CHECK(place.hashes() == hashes);
}

TEST_CASE("sweeps: runs with other options after -- are not mixed") {
  const Place place;
  REQUIRE(place.sweep("run.toml", {"--", "--checkpoint-every", "5"}).code == 0);
  const Outcome other = place.sweep("run.toml", {"--seeds", "2"});
  CHECK(other.code == 1);
  CHECK_MESSAGE(contains(other.output, "has runs with other options after --"), other.output);
  REQUIRE(place.sweep("run.toml", {"--seeds", "2", "--", "--checkpoint-every", "5"}).code == 0);
}

TEST_CASE("sweeps: a run that cannot run ends the sweep with its message, and where to read more") {
  const Place place;
  fs::remove(place.data.path() / "train-labels-idx1-ubyte");
  const Outcome done = place.sweep("run.toml", kGrid);
  CHECK(done.code == 1);
  CHECK_MESSAGE(contains(done.output, "train-labels-idx1-ubyte"), done.output);
  CHECK_MESSAGE(contains(done.output, "kind=fedavg/1.log"), done.output);
  CHECK_FALSE(fs::exists(place.file("out/kind=fedavg/2")));
}

TEST_CASE("sweeps: a run that diverges is a result, and is told apart from the others") {
  const Place place;
  // No update stays within a bound of 1e-6.
  const Outcome done = place.sweep("run.toml", {"--grid", "strategy.max_abs=10,1e-6"});
  REQUIRE_MESSAGE(done.code == 0, done.output);
  CHECK_MESSAGE(contains(done.output, "| 1e-6"), done.output);
  CHECK(contains(done.output, "failed"));
  CHECK(contains(done.output, "1 of 2 runs; their report.html says why"));
  CHECK(contains(place.content("out/runs.csv"), "1e-6,1,"));
}

TEST_CASE(
    "sweeps: tuned settings are chosen on validation samples, by the first seed, and kept for all seeds") {
  Place place;
  test::write_tiny_dataset(place.data, 200);
  place.write("sweep.toml", R"([sweep]
run = "run.toml"
seeds = 2
[[axis]]
name = "run"
choices = [{ name = "plain" }, { name = "prox", set = { strategy.kind = "fedprox" } }]
[tune]
by = "last:accuracy"
set = { run.rounds = 2 }
[[tune.axis]]
name = "training"
choices = [
  { name = "broken", set = { strategy.max_abs = 1e-6 } },
  { name = "good", set = { training.optimizer.learning_rate = 0.05 } },
  { name = "slow", set = { training.optimizer.learning_rate = 0.0000001 } },
]
)");
  const Outcome done = place.sweep("sweep.toml", {});
  REQUIRE_MESSAGE(done.code == 0, done.output);
  CHECK_MESSAGE(contains(done.output, "| plain | good"), done.output);
  const auto hashes = place.hashes();
  CHECK(hashes.size() == 2 * 3 + 2 * 2);
  CHECK(contains(place.content("out/tuning/plain/good/run.toml"), "validation = 0.1"));
  CHECK(contains(place.content("out/tuning/plain/good/run.toml"), "rounds = 2"));
  CHECK(contains(place.content("out/plain/2/run.toml"), "learning_rate = 0.05"));
  CHECK_FALSE(contains(place.content("out/plain/2/run.toml"), "validation"));
  const auto models = place.models();
  REQUIRE(place.sweep("sweep.toml", {}).code == 0);
  CHECK(place.models() == models);
}

TEST_CASE("sweeps: combinations whose names differ only in blanks and commas are tuned apart") {
  const Place place;
  test::write_tiny_dataset(place.data, 200);
  place.write("sweep.toml", R"([sweep]
run = "run.toml"
[[axis]]
name = "one"
choices = [{ name = "a b" }, { name = "a", set = { run.rounds = 2 } }]
[[axis]]
name = "two"
choices = [{ name = "c" }, { name = "b c", set = { training.batch_size = 5 } }]
[tune]
[[tune.axis]]
key = "training.optimizer.learning_rate"
values = [0.05]
)");
  for (int times = 0; times < 2; ++times) {
    const Outcome done = place.sweep("sweep.toml", {});
    REQUIRE_MESSAGE(done.code == 0, done.output);
  }
  CHECK(place.hashes().size() == 4 + 4);
}

TEST_CASE("sweeps: a base model is pretrained once, and another one is not taken for it") {
  const Place place;
  place.write("base.toml", place.content("run.toml") + "[training]\nlocal_steps = 5\n");
  place.write("sweep.toml",
              "[sweep]\nrun = \"run.toml\"\n[pretrain]\nrun = \"base.toml\"\nlabels = [0, 1]\n");
  const Outcome checked = place.sweep("sweep.toml", {"--check"});
  CHECK(checked.code == 0);
  CHECK_MESSAGE(contains(checked.output, "once their base model is in"), checked.output);
  CHECK_FALSE(fs::exists(place.file("out/base.safetensors")));
  place.write("out/base.unfinished.safetensors", "of an interrupted command");
  const Outcome done = place.sweep("sweep.toml", {});
  REQUIRE_MESSAGE(done.code == 0, done.output);
  CHECK(contains(place.content("out/1/run.toml"), "base.safetensors"));
  const auto written = fs::last_write_time(place.file("out/base.safetensors"));
  REQUIRE(place.sweep("sweep.toml", {"--seeds", "2"}).code == 0);
  CHECK(fs::last_write_time(place.file("out/base.safetensors")) == written);
  place.write("base.toml", place.content("run.toml") + "[training]\nlocal_steps = 6\n");
  const Outcome refused = place.sweep("sweep.toml", {});
  CHECK(refused.code == 1);
  CHECK_MESSAGE(contains(refused.output, "base.safetensors was not pretrained from"), refused.output);
}

TEST_CASE("sweeps: two sweeps never share a directory at the same time") {
  const Place place;
  test::LoggedProcess first(place.command("run.toml", joined(kGrid, {"--set", "run.rounds=100000"})),
                            place.file("log"));
  REQUIRE(make_directory(place.file("out/kind=fedavg")));
  test::wait_for_file(place.file("out/kind=fedavg/1.log"));
  const Outcome second = place.sweep("run.toml", kGrid);
  CHECK(second.code == 1);
  CHECK_MESSAGE(contains(second.output, "is in use by another process"), second.output);
}

TEST_CASE("sweeps: the sweep file of every experiment is valid") {
  const TemporaryDirectory place;
  std::size_t files = 0;
  const fs::path experiments = fs::path(FEDGE_SOURCE_DIR) / "bench" / "experiments";
  for (const auto& entry : fs::recursive_directory_iterator(experiments)) {
    const auto text = read_file(entry.path(), 1 << 20);
    if (entry.path().extension() != ".toml" || !text || !contains(*text, "[sweep]")) continue;
    ++files;
    const std::string file = entry.path().lexically_relative(FEDGE_SOURCE_DIR).string();
    // The fast accountant: the other one needs seconds for each run.
    const std::string fast =
        contains(file, "/private/") ? " --set differential_privacy.accountant=rdp" : std::string();
    const Outcome done =
        test::run_command("cd " FEDGE_SOURCE_DIR " && " FEDGE_BINARY_DIR "/fedge-sim sweep " + file +
                          " --check --out " + (place.path() / "out").string() + fast);
    CHECK_MESSAGE(done.code == 0, file << ": " << done.output);
    CHECK_MESSAGE(contains(done.output, "valid"), done.output);
  }
  CHECK(files == 26);
}

TEST_CASE("comparisons: page, figures and tables of a sweep, and of single runs") {
  const Place place;
  REQUIRE(place.sweep("run.toml", kGrid).code == 0);
  const Outcome done = test::run("fedge-sim compare " + place.file("out") + " --baseline fedavg --out " +
                                 place.file("comparison"));
  REQUIRE_MESSAGE(done.code == 0, done.output);
  const std::string page = place.content("comparison/compare.html");
  CHECK(contains(page, "<td>fedprox</td><td>2</td>"));
  CHECK(contains(page, "Minus fedavg"));
  CHECK(contains(place.content("comparison/figures/accuracy-over-rounds.svg"), "<svg xmlns="));
  CHECK(contains(place.content("comparison/table.tex"), "\\toprule"));
  CHECK(contains(place.content("comparison/curves.csv"), "fedprox,4,2,"));
  if (contains(done.output, "PDF needs rsvg-convert"))
    CHECK_FALSE(fs::exists(place.file("comparison/figures/accuracy-over-rounds.pdf")));
  else
    CHECK(place.content("comparison/figures/accuracy-over-rounds.pdf").starts_with("%PDF"));
  const Outcome single = test::run("fedge-sim compare " + place.file("out/kind=fedavg/1") + " " +
                                   place.file("out/kind=fedprox/1") + " --out " + place.file("single"));
  REQUIRE_MESSAGE(single.code == 0, single.output);
  CHECK(contains(place.content("single/summary.csv"), "fedprox,final,1,"));
  const Outcome onto = test::run("fedge-sim compare " + place.file("out") + " --out " + place.file("out"));
  CHECK(onto.code == 1);
  CHECK_MESSAGE(contains(onto.output, "has the results of a sweep; name another directory"), onto.output);
  const Outcome absent =
      test::run("fedge-sim compare " + place.file("nothing") + " --out " + place.file("x"));
  CHECK(absent.code == 1);
  CHECK(contains(absent.output, "nothing"));
  CHECK_FALSE(fs::exists(place.file("x")));
}
