// Runs with differential privacy as a user starts them: by real programs over TLS, and simulated.
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "core/platform/files.h"
#include "server/report/metrics.h"
#include "tests/integration/coordinator_process.h"
#include "tests/integration/run_program.h"
#include "tests/support/tiny_dataset.h"

using namespace fedge;
using test::run;

namespace {

class PrivatePrograms {
 public:
  PrivatePrograms() {
    test::write_tiny_dataset(data_);
    REQUIRE(write_file_atomic(place_.path() / "run.toml",
                              "[run]\nrounds = 3\nseed = 5\n[model]\nkind = \"softmax\"\n[training]\n"
                              "batch_size = 5\n[data]\ndirectory = \"" +
                                  data_.path().string() +
                                  "\"\npartition = { clients = 5 }\n[sampling]\nclients_per_round = 4\n"));
  }

  // Returns the models of all rounds.
  std::vector<std::string> models(const std::string& name, const std::string& settings) const {
    const auto out = place_.path() / name;
    const test::Outcome outcome = run("fedge-sim run " + (place_.path() / "run.toml").string() + " --out " +
                                      out.string() + " " + settings);
    REQUIRE_MESSAGE(outcome.code == 0, outcome.output);
    CHECK(outcome.output.find("privacy   epsilon ") != std::string::npos);
    const auto rounds = server::read_metrics(out / "metrics.jsonl");
    REQUIRE(rounds);
    std::vector<std::string> hashes;
    for (const auto& round : *rounds) hashes.push_back(round.model_hash);
    return hashes;
  }

 private:
  test::TemporaryDirectory place_;
  test::TemporaryDirectory data_;
};

// A coordinator with two rounds of one client each, and devices that their owners start.
class OwnersScene {
 public:
  explicit OwnersScene(std::vector<std::string> privacy) {
    test::write_tiny_dataset(data_);
    std::vector<std::string> settings = {"data.directory=" + data_.path().string(),
                                         "data.partition={kind=\"iid\",clients=3}",
                                         "model={kind=\"softmax\"}",
                                         "run.rounds=2",
                                         "run.wait_for_clients=1",
                                         "sampling.clients_per_round=1"};
    settings.insert(settings.end(), privacy.begin(), privacy.end());
    coordinator_ = std::make_unique<test::CoordinatorProcess>(test::CoordinatorProcess::Options{
        .directory = path("coordinator"), .results = path("results"), .settings = settings});
  }
  // `state`: name of the client whose state directory is used; this one if empty.
  std::unique_ptr<test::LoggedProcess> start(const std::string& name, const std::vector<std::string>& insists,
                                             const std::string& state = "") {
    auto token = run("fedge token create --data-dir " + path("coordinator").string()).output;
    token.pop_back();
    std::vector<std::string> command = {FEDGE_BINARY_DIR "/fedge-client",
                                        "--state-dir",
                                        path(state.empty() ? name : state).string(),
                                        "run",
                                        "--once",
                                        "--token",
                                        token};
    command.insert(command.end(), insists.begin(), insists.end());
    return std::make_unique<test::LoggedProcess>(command, path(name + ".log"));
  }
  // What `fedge-client COMMAND` says about this client, at last with these words: a daemon writes its status
  // at most once a second.
  std::string said(const std::string& command, const std::string& name, const std::string& words) const {
    std::string output;
    for (int look = 0; look < 500 && !test::contains(output, words); ++look)
      output = run("fedge-client --state-dir " + path(name).string() + " " + command).output;
    return output;
  }

 private:
  std::filesystem::path path(const std::string& name) const { return place_.path() / name; }

  test::TemporaryDirectory data_;
  test::TemporaryDirectory place_;
  std::unique_ptr<test::CoordinatorProcess> coordinator_;
};

}  // namespace

TEST_CASE("private runs: the example says what it has spent, within what its file allows") {
  const test::TemporaryDirectory data;
  const test::TemporaryDirectory out;
  test::write_tiny_dataset(data);
  const test::Outcome outcome =
      run("fedge-sim run " FEDGE_SOURCE_DIR "/examples/private.toml --out " + (out.path() / "out").string() +
          " --set run.rounds=4 --set 'data.partition={ clients = 20 }' --set sampling.clients_per_round=5 "
          "--set data.directory=" +
          data.path().string());
  REQUIRE_MESSAGE(outcome.code == 0, outcome.output);
  CHECK(outcome.output.find("privacy   epsilon 4 at delta 1e-05") != std::string::npos);
  const auto rounds = server::read_metrics(out.path() / "out" / "metrics.jsonl");
  REQUIRE(rounds);
  REQUIRE(rounds->size() == 4);
  CHECK(rounds->back().epsilon <= 4);
  CHECK(rounds->back().epsilon > 3.99);
}

TEST_CASE("private runs: real daemons come to the models of the simulation, whoever makes the noise") {
  const PrivatePrograms programs;
  std::string settings = "--set differential_privacy.noise_multiplier=1.0 --set differential_privacy.kind=";
  SUBCASE("central") { settings += "central"; }
  SUBCASE("central, with a norm that adapts") {
    settings +=
        "central --set differential_privacy.clipping=adaptive --set differential_privacy.count_noise=2";
  }
  SUBCASE("along a tree") {
    settings += "tree --set sampling.clients_per_round=2 --set differential_privacy.max_participations=2";
  }
  SUBCASE("of single updates") {
    settings += "local --set sampling.clients_per_round=2 --set differential_privacy.max_participations=2";
  }
  SUBCASE("distributed") {
    settings +=
        "distributed --set secure_aggregation.kind=compact --set secure_aggregation.min_clients=2 "
        "--set differential_privacy.max_participations=3";
  }
  const auto abstract = programs.models("abstract", settings);
  CHECK(abstract.size() == 3);
  CHECK(programs.models("concrete", settings + " --mode concrete") == abstract);
}

TEST_CASE(
    "private runs: a device started with --max-epsilon keeps out of what would tell more, and trains else") {
  OwnersScene scene({"differential_privacy.kind=local", "differential_privacy.epsilon=4",
                     "differential_privacy.max_participations=2"});
  const auto strict = scene.start("strict", {"--max-epsilon", "3.9"});
  CHECK_MESSAGE(strict->wait_for("started with --max-epsilon 3.9, but the updates of this client in this run "
                                 "and in earlier runs may together reach epsilon = "),
                strict->log());
  const auto willing = scene.start("willing", {"--max-epsilon", "4"});
  CHECK_MESSAGE(willing->wait() == 0, willing->log());
  CHECK(test::contains(willing->log(), "update.accepted round=2"));
  CHECK_FALSE(test::contains(strict->log(), "update.accepted"));
}

TEST_CASE("private runs: what a device's owner insists on its daemon keeps to, and says") {
  OwnersScene scene({});
  const auto noise = scene.start("noise", {"--require-noise", "8"});
  CHECK_MESSAGE(noise->wait_for("started with --require-noise 8, but no client of this run adds noise"),
                noise->log());
  const std::string rejected = ": rejected: this client was started with --require-noise 8, but";
  CHECK(test::contains(scene.said("status", "noise", rejected), rejected));
  const std::string doctor = scene.said("doctor", "noise", "warn  rejected run");
  CHECK_MESSAGE(test::contains(doctor, "--require-noise 8, but no client of this run adds noise"), doctor);
  CHECK(test::contains(doctor, "This client can take part in runs, but it has rejected those above."));
  const auto masks = scene.start("masks", {"--only-secure", "--min-clients", "5", "--corrupt", "0.2"});
  CHECK_MESSAGE(masks->wait_for("started with --only-secure"), masks->log());
  const auto day = scene.start("day", {"--max-updates-per-day", "1"});
  CHECK_MESSAGE(day->wait_for("the limit of --max-updates-per-day"), day->log());
  CHECK(test::contains(day->log(), "update.accepted round=1"));
  CHECK_FALSE(test::contains(day->log(), "update.accepted round=2"));
  CHECK(test::contains(day->log(), "info task.failed round=2"));
  const auto again = scene.start("again", {}, "day");
  CHECK_MESSAGE(again->wait_for("info token.not_used reason=\"this device has already joined 127.0.0.1:"),
                again->log());
  for (const auto* other : {&noise, &masks}) CHECK_FALSE(test::contains((*other)->log(), "update.accepted"));
}
