// Clients with a user's trainer program, as processes over TLS: a program's fault costs only its own client a
// round.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/platform/files.h"
#include "core/safetensors.h"
#include "server/report/metrics.h"
#include "tests/integration/coordinator_process.h"
#include "tests/integration/run_program.h"
#include "tests/support/tiny_dataset.h"

using namespace fedge;
using test::contains;
using test::CoordinatorProcess;
using test::LoggedProcess;
using test::run;

namespace {

// A coordinator with a run of this many clients, all selected in each of two rounds, and the clients.
struct TrainerPrograms {
  TrainerPrograms(std::size_t count, const std::vector<std::string>& settings) {
    test::write_tiny_dataset(data);
    std::vector<std::string> all = {"data.directory=" + data.path().string(),
                                    "data.partition={kind=\"iid\",clients=" + std::to_string(count) + "}",
                                    "sampling.clients_per_round=" + std::to_string(count),
                                    "model={kind=\"softmax\"}", "run.rounds=2"};
    all.insert(all.end(), settings.begin(), settings.end());
    coordinator = std::make_unique<CoordinatorProcess>(CoordinatorProcess::Options{
        .directory = path("coordinator"), .results = path("results"), .settings = all});
  }
  std::filesystem::path path(const std::string& name) const { return directory.path() / name; }

  // Starts the next client with one of trainer_program.py's modes or the built-in trainer.
  void add(const std::string& name, const std::string& mode, std::vector<std::string> more = {}) {
    auto token = run("fedge token create --data-dir " + path("coordinator").string()).output;
    token.pop_back();
    if (!mode.empty()) {
      std::filesystem::create_directory(path("of-" + name));
      more.insert(more.end(), {"--trainer", "/usr/bin/python3 '" FEDGE_SOURCE_DIR
                                            "/tests/support/trainers/trainer_program.py' " +
                                                mode + " " + path("of-" + name).string()});
    }
    more.insert(more.begin(), {FEDGE_BINARY_DIR "/fedge-client", "--state-dir", path(name).string(), "run",
                               "--once", "--token", token});
    clients.push_back(std::make_unique<LoggedProcess>(more, path(name + ".log")));
  }
  // Returns the number of completed clients of each round.
  std::vector<std::size_t> completed() const {
    const auto rounds = server::read_metrics(path("results") / "metrics.jsonl");
    REQUIRE(rounds);
    std::vector<std::size_t> result;
    for (const auto& round : *rounds) result.push_back(round.clients_completed);
    return result;
  }

  test::TemporaryDirectory data;
  test::TemporaryDirectory directory;
  std::unique_ptr<CoordinatorProcess> coordinator;
  std::vector<std::unique_ptr<LoggedProcess>> clients;
};

}  // namespace

TEST_CASE(
    "trainers: each kind of mistake costs its client one round with a reason, and the next one counts") {
  struct Case {
    std::string mode;
    std::string reason;  // empty: the update is accepted
    std::vector<std::string> options = {};
  };
  const std::vector<Case> cases = {
      {"exits", "the trainer program ended with exit status 3"},
      {"exits_in_frame", "the trainer program ended with exit status 0 in the middle of a frame"},
      {"garbage", "may be text that the program printed to standard output"},
      {"huge_payload", "announces a payload of 1152921504606846976 bytes"},
      {"hangs", "has sent nothing for 10 seconds", {"--trainer-timeout", "10"}},
      {"nan", "is not a finite number"},
      {"shape", "this model expects [10, 784]"},
      {"dtype", "has the dtype"},
      {"twice_tensor", "twice"},
      {"floods", ""},
      {"ready_exits", ""},
  };
  TrainerPrograms programs(cases.size() + 1, {});
  programs.add("built-in", "");
  for (const Case& each : cases) programs.add(each.mode, each.mode, each.options);
  for (std::size_t i = 0; i < programs.clients.size(); ++i) {
    LoggedProcess& client = *programs.clients[i];
    const int code = client.wait();
    const std::string log = client.log();
    CHECK_MESSAGE(code == 0, log);
    const bool fails = i > 0 && !cases[i - 1].reason.empty();
    CHECK_MESSAGE(contains(log, "update.accepted round=1") == !fails, log);
    CHECK_MESSAGE(contains(log, "update.accepted round=2"), log);
    CHECK_MESSAGE(contains(log, "task.failed round=1 reason=") == fails, log);
    if (fails) CHECK_MESSAGE(contains(log, cases[i - 1].reason), log);
    CHECK(log.size() < 600'000);  // one program prints 1.5 MB to standard error
  }
  CHECK(programs.completed() == std::vector<std::size_t>{3, 12});
}

TEST_CASE("trainers: a client whose program never gets ready declines, and the run goes on without it") {
  TrainerPrograms programs(3, {"run.wait_for_clients=2", "sampling.clients_per_round=2"});
  programs.add("never", "ready_never");
  REQUIRE_MESSAGE(programs.clients[0]->wait_for("client.connected"), programs.clients[0]->log());
  programs.add("first", "honest");
  programs.add("second", "");
  for (std::size_t i : {1U, 2U}) CHECK(programs.clients[i]->wait() == 0);
  CHECK(programs.completed() == std::vector<std::size_t>{2, 2});
  LoggedProcess& never = *programs.clients[0];
  CHECK_MESSAGE(never.wait_for("run.rejected reason=\"the trainer program ended with exit status 1\""),
                never.log());
  // It has learned of the end only if it declined before.
  never.signal(SIGTERM);
  const int code = never.wait();
  CHECK_MESSAGE((code == 0 || code == 1), never.log());
}

TEST_CASE("trainers: a run with control variates or label counts is declined by who trains with a program") {
  std::string reason;
  std::string setting;
  SUBCASE("control variates") {
    setting = "strategy.kind=scaffold";
    reason = "cannot take part in a run with training.objective.kind";
  }
  SUBCASE("thinner networks") {
    setting = "strategy.kind=heterofl";
    reason = "cannot take part in a run that trains thinner networks";
  }
  SUBCASE("label counts") {
    setting = "status={every_seconds=1,labels=\"sets\"}";
    reason = "the run asks clients for the labels of their samples";
  }
  TrainerPrograms programs(2, {"model={kind=\"mlp\",hidden=[5]}", "run.wait_for_clients=1",
                               "sampling.clients_per_round=1", setting});
  programs.add("program", "honest");
  CHECK_MESSAGE(programs.clients[0]->wait_for(reason), programs.clients[0]->log());
  programs.add("built-in", "");
  CHECK_MESSAGE(programs.clients[1]->wait() == 0, programs.clients[1]->log());
  CHECK(programs.clients[0]->wait() == 1);
  CHECK(contains(programs.clients[0]->log(), "this client took part in no run: "));
  CHECK(programs.completed() == std::vector<std::size_t>{1, 1});
}

TEST_CASE("trainers: a compressed update of what a program trained is what it trained, to the codec's step") {
  TrainerPrograms programs(1, {"compression={kind=\"float16\"}"});
  programs.add("one", "honest");
  CHECK(programs.clients[0]->wait() == 0);
  CHECK(programs.coordinator->wait() == 0);
  const auto model = read_safetensors(programs.path("results") / "model.safetensors", 1 << 24);
  REQUIRE(model);
  // The model starts within 1 / 28 of 0. Each of two rounds adds 1, which 16 bits represent up to the last
  // one.
  for (const float value : std::as_const(model->values).values()) REQUIRE(std::abs(value - 2) < 1.001F / 28);
}

namespace {

// Settings of a run on four clients' own data whose model only their programs know.
std::vector<std::string> external_settings(const std::filesystem::path& first) {
  const auto layout = std::make_shared<ParameterLayout>();
  layout->add("weight", {3, 2}).add("scale", {});
  ParameterVector values(layout);
  for (std::size_t i = 0; i < values.size(); ++i) values.values()[i] = static_cast<float>(i);
  REQUIRE(write_safetensors(first, values, {}));
  return {
      "data={dataset=\"csv\",name=\"t\",numeric=[\"a\",\"b\"],target=\"kind\",classes=[\"x\",\"y\",\"z\"],"
      "partition={kind=\"own\",clients=4}}",
      "model={kind=\"external\",base=\"" + first.string() + "\"}"};
}

}  // namespace

TEST_CASE("trainers: a model that only the programs know is trained and evaluated by four daemons") {
  const test::TemporaryDirectory files;
  TrainerPrograms programs(4, external_settings(files.path() / "first.safetensors"));
  // The second program is wrong about one evaluation, which costs only this one.
  for (const std::string mode : {"honest", "evaluation_target", "environment", "evaluation_nan"})
    programs.add(mode, mode);
  for (const auto& client : programs.clients) CHECK_MESSAGE(client->wait() == 0, client->log());
  CHECK(programs.coordinator->wait() == 0);
  CHECK(programs.completed() == std::vector<std::size_t>{4, 4});
  const auto model = read_safetensors(programs.path("results") / "model.safetensors", 1 << 20);
  REQUIRE(model);
  for (std::size_t i = 0; i < 7; ++i)
    CHECK(model->values.values()[i] == static_cast<float>(i) + 2);  // two rounds each add 1
  const auto rounds = server::read_metrics(programs.path("results") / "metrics.jsonl");
  REQUIRE(rounds);
  REQUIRE(rounds->back().evaluation);
  CHECK(rounds->front().evaluation->clients == 3);
  CHECK(rounds->back().evaluation->clients == 4);
  CHECK(rounds->back().evaluation->samples == 16);
  // Three right of four samples, and of one client two.
  CHECK(rounds->back().evaluation->accuracy == doctest::Approx(11.0 / 16));
  CHECK_MESSAGE(contains(programs.clients[1]->log(), "sent the target 3; a class must be"),
                programs.clients[1]->log());
}

TEST_CASE("trainers: a coordinator that would have to evaluate such a model refuses the run") {
  const test::TemporaryDirectory files;
  const std::string model = external_settings(files.path() / "first.safetensors").back();
  REQUIRE(write_file_atomic(files.path() / "run.toml", "[run]\nrounds = 1\n"));
  const auto refused = run("fedge-coordinator --data-dir " + (files.path() / "c").string() + " --run " +
                           (files.path() / "run.toml").string() + " --set '" + model + "'");
  CHECK(refused.code != 0);
  CHECK_MESSAGE(
      contains(refused.output, "evaluation.where: the coordinator cannot evaluate an external model"),
      refused.output);
}

TEST_CASE("trainers: a client without a program takes part in no run whose model only programs know") {
  const test::TemporaryDirectory files;
  auto settings = external_settings(files.path() / "first.safetensors");
  settings.push_back("run.wait_for_clients=1");
  settings.push_back("sampling.clients_per_round=1");
  TrainerPrograms programs(4, settings);
  programs.add("built-in", "");
  REQUIRE_MESSAGE(programs.clients[0]->wait_for("run.rejected"), programs.clients[0]->log());
  CHECK_MESSAGE(
      contains(programs.clients[0]->log(), "only a trainer program can compute the model of this run"),
      programs.clients[0]->log());
}

TEST_CASE("trainers: the program ends with the run, and with a client that is killed") {
  TrainerPrograms programs(1, {});
  programs.add("one", "environment");
  CHECK(programs.clients[0]->wait() == 0);
  TrainerPrograms killed(1, {"run.rounds=1"});
  killed.add("one", "hangs");
  REQUIRE(killed.clients[0]->wait_for_file(killed.path("of-one") / "done-hangs"));
  killed.clients.clear();  // SIGKILL
  for (const TrainerPrograms* each : {&programs, &killed})
    CHECK(test::comes_to_its_end(each->path("of-one") / "pid"));
}

TEST_CASE("trainers: what is wrong with the options is said before anything is done") {
  const auto said = [](const std::string& options) {
    return run("fedge-client --state-dir /nonexistent run " + options);
  };
  CHECK(said("--trainer 'python3 \"train.py'").output ==
        "fedge-client: --trainer: the command has an unclosed \" quote\n");
  for (const auto& [program, answer] : std::vector<std::pair<std::string, std::string>>{
           {"/nonexistent/train.py x", "/nonexistent/train.py does not exist"},
           {FEDGE_SOURCE_DIR "/README.md", FEDGE_SOURCE_DIR "/README.md is not an executable file"},
           {FEDGE_SOURCE_DIR, FEDGE_SOURCE_DIR " is not an executable file"},
           {"no-such-trainer", "no directory of PATH contains the program no-such-trainer"}}) {
    const test::Outcome outcome = said("--trainer '" + program + "'");
    CHECK(outcome.code == 1);
    CHECK(outcome.output == "fedge-client: --trainer: " + answer + "\n");
  }
  CHECK(contains(said("--trainer 'sh -c true'").output, "there is no membership.json"));
  CHECK(said("--trainer x --trainer-timeout 0").code == 2);
  CHECK(said("--trainer x --trainer-memory-mb -1").code == 2);
  CHECK(contains(run("fedge-client run --help").output, "--trainer-memory-mb"));
}

TEST_CASE("data: each client's file holds its part of the data, and every sample is in one") {
  const test::TemporaryDirectory data, out;
  test::write_tiny_dataset(data);
  const std::string options =
      " " FEDGE_SOURCE_DIR "/examples/fashion-mlp.toml --set data.directory=" + data.path().string() +
      " --set 'data.partition={kind=\"shards\",clients=4}' --set sampling.clients_per_round=4";
  const auto written = run("fedge data partition" + options + " --out " + out.path().string());
  REQUIRE_MESSAGE(written.code == 0, written.output);
  std::vector<int> seen(40, 0);
  for (int client = 0; client < 4; ++client) {
    const auto file = read_file(out.path() / ("client-" + std::to_string(client) + ".safetensors"), 1 << 24);
    REQUIRE(file);
    const std::string header =
        "{\"images\":{\"dtype\":\"F32\",\"shape\":[10,28,28,1],\"data_offsets\":[0,31360]},"
        "\"labels\":{\"dtype\":\"U8\",\"shape\":[10],\"data_offsets\":[31360,31370]}}";
    REQUIRE(file->substr(8, header.size()) == header);
    const std::size_t begin = 8 + static_cast<std::uint8_t>((*file)[0]);
    REQUIRE(file->size() == begin + 31'370);
    for (std::size_t i = 0; i < 10; ++i) {
      const int label = (*file)[begin + 31'360 + i];
      // Sample s of the tiny data has label s % 10: 250 in the pixels of its label, s in the others.
      std::vector<float> image(784);
      std::memcpy(image.data(), file->data() + begin + i * 3136, 3136);
      const auto pixel = [&](int p) {
        return std::lround((static_cast<double>(image[static_cast<std::size_t>(p)]) * 0.3530 + 0.2860) * 255);
      };
      CHECK(pixel(label) == 250);
      const auto sample = pixel((label + 1) % 10);
      REQUIRE(sample >= 0);
      REQUIRE(sample < 40);
      CHECK(sample % 10 == label);
      ++seen[static_cast<std::size_t>(sample)];
    }
  }
  CHECK(seen == std::vector<int>(40, 1));
  const auto listed = run("fedge data ls" + options);
  REQUIRE(listed.code == 0);
  CHECK(std::count(listed.output.begin(), listed.output.end(), '\n') == 6);
  const auto beyond = run("fedge data partition" + options + " --client 4 --out " + out.path().string());
  CHECK(beyond.code == 1);
  CHECK(contains(beyond.output, "--client 4: there is no such client; data.partition.clients of "));
}
