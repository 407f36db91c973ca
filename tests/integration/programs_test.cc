// The programs as a user starts them: exit codes, messages, files left behind, and equal models in every mode
// and with any number of threads.
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/platform/files.h"
#include "core/rng.h"
#include "core/safetensors.h"
#include "server/report/metrics.h"
#include "tests/integration/federation.h"
#include "tests/integration/run_program.h"

using namespace fedge;
using learn::test::TemporaryDirectory;
using test::Outcome;
using test::run;

namespace {

std::vector<std::string> hashes(const std::filesystem::path& directory) {
  const auto rounds = server::read_metrics(directory / "metrics.jsonl");
  REQUIRE(rounds);
  std::vector<std::string> result;
  for (const auto& round : *rounds) result.push_back(round.model_hash);
  return result;
}

// The example run with a tiny data set, so that this test needs no package.
struct ProgramExample {
  TemporaryDirectory data;
  TemporaryDirectory out;
  std::string arguments;
  ProgramExample() {
    test::write_tiny_dataset(data);
    arguments =
        "run " FEDGE_SOURCE_DIR "/examples/fashion-mlp.toml --set data.directory=" + data.path().string() +
        " --set data.partition.clients=4 --set sampling.clients_per_round=3"
        " --set run.rounds=3 ";
  }
  std::filesystem::path directory(const std::string& name) const { return out.path() / name; }
  Outcome simulate(const std::string& name, const std::string& more) const {
    return test::run("fedge-sim " + arguments + more + " --out " + directory(name).string());
  }
};

}  // namespace

TEST_CASE("modes: virtual time, real sockets, one thread and two give the same model after every round") {
  const ProgramExample example;
  for (const auto& [name, more] : std::vector<std::pair<std::string, std::string>>{
           {"two", "--threads 2"}, {"one", "--threads 1"}, {"real", "--mode concrete"}}) {
    const Outcome outcome = example.simulate(name, more);
    REQUIRE_MESSAGE(outcome.code == 0, outcome.output);
  }
  const auto expected = hashes(example.directory("two"));
  REQUIRE(expected.size() == 3);
  CHECK(expected[0] != expected[2]);
  CHECK(hashes(example.directory("one")) == expected);
  CHECK(hashes(example.directory("real")) == expected);
}

TEST_CASE("validation: every program evaluates on the validation samples, and none needs the test samples") {
  const ProgramExample example;
  for (const char* kind : {"images", "labels"})
    REQUIRE(std::filesystem::remove(example.data.path() / ("t10k-" + std::string(kind) + "-idx" +
                                                           (kind[0] == 'i' ? "3" : "1") + "-ubyte")));
  const std::string split = "--set data.validation=0.25 ";
  CHECK(example.simulate("without", "").output.find("t10k") != std::string::npos);
  std::vector<double> accuracies;
  for (const auto& [name, more] :
       std::vector<std::pair<std::string, std::string>>{{"virtual", ""}, {"real", "--mode concrete"}}) {
    const Outcome outcome = example.simulate(name, split + more);
    REQUIRE_MESSAGE(outcome.code == 0, outcome.output);
    CHECK(outcome.output.find("measured on validation samples, 0.25 of the training samples") !=
          std::string::npos);
    CHECK(outcome.output.find("after round 3, on validation samples") != std::string::npos);
    const auto rounds = server::read_metrics(example.directory(name) / "metrics.jsonl");
    REQUIRE((rounds && rounds->size() == 3));
    accuracies.push_back(rounds->back().test_accuracy);
  }
  CHECK(hashes(example.directory("real")) == hashes(example.directory("virtual")));
  CHECK(accuracies[0] == accuracies[1]);
  const std::string model = (example.directory("virtual") / "model.safetensors").string();
  const auto evaluated =
      nlohmann::json::parse(test::run("fedge model evaluate " + model + " --format json").output);
  CHECK(evaluated["samples"] == 10);
  CHECK(evaluated["accuracy"] == accuracies[0]);
  CHECK(evaluated["confusion"].size() == 100);
  CHECK(test::run("fedge model evaluate " + model)
            .output.starts_with("10 validation samples of fashion-mnist"));
  // A data set that is named is evaluated on its test samples.
  CHECK(test::run("fedge model evaluate " + model + " --dataset fashion-mnist --directory " +
                  example.data.path().string())
            .output.find("t10k") != std::string::npos);
  const std::string list = example.arguments.substr(std::string("run ").size());
  CHECK(
      test::run("fedge data ls " + list + split).output.find("40 training samples (10 for validation), 10") !=
      std::string::npos);
  const Outcome central =
      test::run("fedge-sim pretrain " + list + split + "--out " + example.directory("base").string());
  REQUIRE_MESSAGE(central.code == 0, central.output);
  CHECK(central.output.find("validation  loss") != std::string::npos);
  CHECK(test::run("fedge model evaluate " + example.directory("base").string())
            .output.starts_with("10 validation samples"));
}

TEST_CASE("modes: every strategy gives the same models in virtual time and over real sockets") {
  const ProgramExample example;
  std::string more;
  SUBCASE("proximal") { more = "--set strategy.kind=fedprox --set training.objective.mu=0.1"; }
  SUBCASE("adam") { more = "--set strategy.kind=fedadam"; }
  SUBCASE("control variates kept on the client") { more = "--set strategy.kind=scaffold"; }
  SUBCASE("sums of updates kept on the client") { more = "--set strategy.kind=feddyn"; }
  SUBCASE("models kept on the client") { more = "--set strategy.kind=moon --set model.kind=mlp"; }
  SUBCASE("losses before training") { more = "--set strategy.kind=qfedavg"; }
  SUBCASE("normalised") { more = "--set strategy.kind=fednova"; }
  SUBCASE("rows of layers") { more = "--set strategy.kind=fedplt"; }
  SUBCASE("rows that rotate, and damping") {
    more =
        "--set strategy.kind=fedplt --set strategy.planner.rotate=true --set strategy.aggregator.damping=0.5";
  }
  SUBCASE("one block of layers") {
    more =
        "--set strategy.kind=block_coordinate --set model.kind=mlp --set "
        "strategy.planner.schedule=importance";
  }
  SUBCASE("training for the next round while the update is under way") {
    more = "--set strategy.kind=parablock --set model.kind=mlp --set sampling.clients_per_round=4";
  }
  SUBCASE("rounds of one block, of which nothing is trained early") {
    more =
        "--set strategy.kind=parablock --set training.overlap=stale --set model.kind=softmax"
        " --set sampling.clients_per_round=4";
  }
  SUBCASE("the same from the values before the update, under masks") {
    more =
        "--set strategy.kind=parablock --set training.overlap=stale --set model.kind=mlp"
        " --set sampling.clients_per_round=4 --set secure_aggregation.kind=exact";
  }
  SUBCASE("random rows") { more = "--set strategy.kind=random_mask"; }
  SUBCASE("thinner networks") { more = "--set strategy.kind=heterofl"; }
  SUBCASE("nested networks") { more = "--set strategy.kind=fjord"; }
  SUBCASE("rolling networks") { more = "--set strategy.kind=fedrolex"; }
  SUBCASE("error feedback kept on the client") {
    more = "--set compression.kind=top_k --set compression.fraction=0.05 --set compression.zstd=true";
  }
  SUBCASE("stochastic rounding of parts") { more = "--set compression.kind=int8 --set strategy.kind=fedplt"; }
  SUBCASE("a rule that reads updates back") { more = "--set strategy.kind=median"; }
  SUBCASE("uploads drawn by their norms") {
    more = "--set sampling.kind=optimal --set sampling.budget=1.5 --set sampling.clients_per_round=4";
  }
  SUBCASE("rows by what each client says it can train") {
    more =
        "--set strategy.kind=fedplt --set strategy.planner.capability=declared"
        " --set simulation.device.capabilities=[1.0,0.2,0.2]";
  }
  SUBCASE("clients drawn by the norms of their earlier updates") {
    more =
        "--set sampling.kind=optimal --set sampling.norms=remembered --set sampling.budget=1.5 "
        "--set sampling.clients_per_round=4";
  }
  const Outcome abstract = example.simulate("abstract", more);
  REQUIRE_MESSAGE(abstract.code == 0, abstract.output);
  const Outcome concrete = example.simulate("concrete", more + " --mode concrete");
  REQUIRE_MESSAGE(concrete.code == 0, concrete.output);
  const auto expected = hashes(example.directory("abstract"));
  REQUIRE(expected.size() == 3);
  CHECK(expected[1] != expected[2]);
  CHECK(hashes(example.directory("concrete")) == expected);
}

TEST_CASE(
    "modes: a model that is cut, the rest of which the coordinator runs, is the same over real sockets") {
  const ProgramExample example;
  const std::string words[] = {"the ", "sea ", "was ", "calm ", "and ", "old ", "men ", "went. "};
  Rng rng(4);
  for (const std::string name : {"a", "b", "c", "d"}) {
    std::string text;
    while (text.size() < 900) text += words[rng.below(8)];
    example.data.write(name + ".txt", {text.begin(), text.end()});
  }
  const std::filesystem::path file = example.directory("split.toml");
  std::ofstream(file) << "[run]\nrounds = 3\n[data]\ndataset = \"text\"\ncontext = 16\nvalidation = 0.1\n"
                         "directory = \""
                      << example.data.path().string()
                      << "\"\n[data.partition]\nkind = \"natural\"\nclients = 4\n[model]\nkind = \"llama\"\n"
                         "layers = 3\nwidth = 16\nheads = 2\nadapter = { rank = 4 }\n[training]\n"
                         "local_steps = 5\nbatch_size = 40\noptimizer = { kind = \"adamw\" }\n[sampling]\n"
                         "clients_per_round = 3\n[strategy]\nkind = \"splitft\"\n"
                         "planner = { cut = \"random\" }\n";
  std::string more;
  SUBCASE("with targets that are sent") {}
  SUBCASE("with targets that stay on the client") {
    more = "--set training.split.targets=kept --set run.chunk_size=4096 --set model.tied=false ";
  }
  SUBCASE("with frozen weights of 8 bits") { more = "--set model.base_dtype=int8 "; }
  SUBCASE("with rounded activations and fewer ranks at the cut") {
    more =
        "--set training.split.codec=int8 --set training.split.error_feedback=true "
        "--set strategy.planner.cut_ranks=2 ";
  }
  const auto simulate = [&](const std::string& name, const std::string& settings) {
    return test::run("fedge-sim run " + file.string() + " " + settings + " --out " +
                     example.directory(name).string());
  };
  const Outcome abstract = simulate("abstract", more);
  REQUIRE_MESSAGE(abstract.code == 0, abstract.output);
  const Outcome concrete = simulate("concrete", more + "--mode concrete");
  REQUIRE_MESSAGE(concrete.code == 0, concrete.output);
  for (const Outcome& outcome : {abstract, concrete})
    CHECK(outcome.output.find("their distance correlation with the tokens is up to ") != std::string::npos);
  const auto expected = hashes(example.directory("abstract"));
  REQUIRE(expected.size() == 3);
  CHECK(expected[1] != expected[2]);
  CHECK(hashes(example.directory("concrete")) == expected);
  // The bytes of all messages and chunks are those of the virtual network.
  const auto virtually = server::read_metrics(example.directory("abstract") / "metrics.jsonl");
  const auto really = server::read_metrics(example.directory("concrete") / "metrics.jsonl");
  for (std::size_t round = 0; round < 3; ++round) {
    CHECK(virtually->at(round).activation_bytes_up > 0);
    CHECK(virtually->at(round).activation_correlation > 0);
    CHECK(really->at(round).activation_correlation == virtually->at(round).activation_correlation);
    CHECK(really->at(round).activation_bytes_up == virtually->at(round).activation_bytes_up);
    CHECK(really->at(round).activation_bytes_down == virtually->at(round).activation_bytes_down);
    CHECK(really->at(round).bytes_up == virtually->at(round).bytes_up);
  }
}

TEST_CASE("modes: runs without a server, with a warm-up and without, give the models of runs with one") {
  const ProgramExample example;
  const std::string more =
      "--set data.partition.clients=6 --set sampling.clients_per_round=6 --set run.chunk_size=16384 "
      "--set run.rounds=2 ";
  const std::string serverless = more + "--set dissemination.kind=serverless ";
  const std::string warm = serverless + "--set dissemination.warmup.scheduler=greedy_fastest_first ";
  for (const auto& [name, settings] :
       std::vector<std::pair<std::string, std::string>>{{"server", more},
                                                        {"simulated", serverless},
                                                        {"real", serverless + "--mode concrete"},
                                                        {"warm-simulated", warm},
                                                        {"warm-real", warm + "--mode concrete"}}) {
    const Outcome outcome = example.simulate(name, settings);
    REQUIRE_MESSAGE(outcome.code == 0, outcome.output);
  }
  const auto expected = hashes(example.directory("server"));
  REQUIRE(expected.size() == 2);
  for (const std::string name : {"simulated", "real", "warm-simulated", "warm-real"})
    CHECK(hashes(example.directory(name)) == expected);
}

TEST_CASE("modes: with partial work a daemon sends what it has trained when its time is over") {
  const ProgramExample example;
  // Completely, this would be 100,000 steps of 1.8 million parameters.
  const Outcome outcome = example.simulate(
      "x",
      "--mode concrete --set run.rounds=1 --set run.round_deadline=20 --set training.partial_work=0.1 "
      "--set training.local_epochs=10000 --set training.batch_size=1 --set model.hidden=[1000,1000]");
  REQUIRE_MESSAGE(outcome.code == 0, outcome.output);
  const auto rounds = server::read_metrics(example.directory("x") / "metrics.jsonl");
  REQUIRE(rounds);
  REQUIRE(rounds->size() == 1);
  CHECK(rounds->front().clients_completed == 3);
}

TEST_CASE("outputs: updates that a rule keeps lie in files beside the results while it runs, and only then") {
  const ProgramExample example;
  // Four updates of 4.3 million parameters are 69 MB.
  const std::string more =
      "--set strategy.kind=median --set sampling.clients_per_round=4 --set run.rounds=1 ";
  const auto updates = example.directory("x") / "updates";
  std::filesystem::create_directories(updates);
  REQUIRE(write_file_atomic(updates / "1.chunks", "left by a run that was killed"));
  REQUIRE(example.simulate("x", more).code == 0);
  CHECK(std::filesystem::exists(updates / "1.chunks"));  // a small model's updates stay in memory
  const Outcome large = example.simulate("x", more + "--force --set model.hidden=[2048,1300]");
  REQUIRE_MESSAGE(large.code == 0, large.output);
  CHECK(!std::filesystem::exists(updates));
  REQUIRE(write_file_atomic(updates, "not a directory"));
  const Outcome blocked = example.simulate("x", more + "--force --set model.hidden=[2048,1300]");
  CHECK(blocked.code == 1);
  CHECK_MESSAGE(blocked.output.find(updates.string()) != std::string::npos, blocked.output);
}

TEST_CASE("outputs: metrics, table, model and report are there, and the model is the last round's") {
  const ProgramExample example;
  const Outcome outcome = example.simulate("x", "");
  REQUIRE_MESSAGE(outcome.code == 0, outcome.output);
  for (const char* file : {"metrics.jsonl", "metrics.csv", "model.safetensors", "report.html", "run.toml"})
    CHECK_MESSAGE(std::filesystem::file_size(example.directory("x") / file) > 0, file);
  const auto model = read_safetensors(example.directory("x") / "model.safetensors", 1 << 28);
  REQUIRE(model);
  CHECK(to_hex(model_hash(model->values.values())) == hashes(example.directory("x")).back());
  CHECK(outcome.output.find("accuracy  ") != std::string::npos);
}

TEST_CASE(
    "outputs: an event file for TensorBoard, during a run or afterwards, is the same but for the times") {
  const ProgramExample example;
  const auto size = [&](const std::string& name) {
    std::error_code missing;
    return std::filesystem::file_size(example.directory(name) / "events.out.tfevents.fedge", missing);
  };
  constexpr auto kNone = static_cast<std::uintmax_t>(-1);
  REQUIRE(example.simulate("live", "--set run.tensorboard=true").code == 0);
  REQUIRE(example.simulate("real", "--set run.tensorboard=true --mode concrete").code == 0);
  REQUIRE(example.simulate("later", "").code == 0);
  CHECK(size("live") > 1000);
  CHECK(size("real") > 1000);
  CHECK(size("later") == kNone);
  CHECK(test::run("fedge-sim report " + example.directory("later").string() + " --tensorboard").code == 0);
  CHECK(size("later") == size("live"));
  // A run without it removes that of an earlier run.
  REQUIRE(example.simulate("live", "--force").code == 0);
  CHECK(size("live") == kNone);
}

TEST_CASE("outputs: the report of a run that trained no model says so, also when it is written again") {
  const ProgramExample example;
  const auto says_so = [](const std::filesystem::path& directory) {
    const auto page = read_file(directory / "report.html", 1 << 24);
    REQUIRE(page);
    return page->find("The run failed:</b> the model is untrained: no client contributed an update") !=
           std::string::npos;
  };
  for (const std::string mode : {"abstract", "concrete"}) {
    CAPTURE(mode);
    const Outcome outcome =
        example.simulate(mode, "--mode " + mode +
                                   " --set training.optimizer.learning_rate=1000"
                                   " --set training.local_epochs=50 --set run.round_deadline=30");
    CHECK(outcome.code == 1);
    const auto directory = example.directory(mode);
    CHECK_MESSAGE(says_so(directory), outcome.output);
    std::filesystem::remove(directory / "report.html");
    const Outcome again = test::run("fedge-sim report " + directory.string());
    REQUIRE_MESSAGE(again.code == 0, again.output);
    CHECK(says_so(directory));
  }
}

TEST_CASE("errors: a misspelt key is named with file, line and suggestion") {
  const TemporaryDirectory directory;
  const auto file = directory.path() / "bad.toml";
  std::ofstream(file) << "[run]\nrounds = 3\n\n[training]\nbatchsize = 3\n";
  for (const char* program : {"fedge-sim run ", "fedge-coordinator --data-dir /nonexistent --run "}) {
    const Outcome outcome = test::run(program + file.string());
    CHECK(outcome.code == 1);
    CHECK_MESSAGE(
        outcome.output.find(file.string() +
                            ":5: unknown key training.batchsize, did you mean training.batch_size?") !=
            std::string::npos,
        outcome.output);
  }
}

TEST_CASE("errors: devices that come and go are refused where processes are real") {
  const Outcome outcome =
      test::run("fedge-sim run " FEDGE_SOURCE_DIR
                "/examples/fashion-mlp.toml --mode concrete --set simulation.availability.kind=diurnal");
  CHECK(outcome.code == 1);
  CHECK(outcome.output ==
        "fedge-sim: --set simulation.availability.kind: needs --mode abstract: real client processes are "
        "always available\n");
}

TEST_CASE("concrete: real processes need no program beside the simulator, except for a directory") {
  const ProgramExample example;
  const std::filesystem::path directory = std::filesystem::canonical(example.out.path());
  std::filesystem::copy_file(FEDGE_BINARY_DIR "/fedge-sim", directory / "fedge-sim");
  const auto simulate = [&](const std::string& out, const std::string& more) {
    return test::run_command((directory / "fedge-sim").string() + " " + example.arguments +
                             "--mode concrete --out " + example.directory(out).string() + more);
  };
  const Outcome alone = simulate("alone", "");
  CHECK_MESSAGE(alone.code == 0, alone.output);
  const Outcome outcome = simulate("x", " --set simulation.directory.kind=kademlia");
  CHECK(outcome.code == 1);
  CHECK(outcome.output ==
        "fedge-sim: cannot start " + (directory / "fedge").string() +
            ": No such file or directory; --mode concrete with a directory needs fedge in the directory of "
            "this program\n");
  CHECK(!std::filesystem::exists(example.directory("x")));
}

TEST_CASE("examples: every run file goes through, on a data set small enough for a test") {
  const TemporaryDirectory data;
  const TemporaryDirectory out;
  test::write_tiny_dataset(data);
  const std::string folder = FEDGE_SOURCE_DIR "/examples/";
  const auto simulate = [&](const std::string& file, const std::string& smaller) {
    const Outcome outcome =
        test::run("fedge-sim run " + folder + file + " --set data.directory=" + data.path().string() +
                  " --force --out " + (out.path() / "out").string() + smaller);
    CHECK_MESSAGE(outcome.code == 0, outcome.output);
    const auto report = read_file(out.path() / "out" / "report.html", std::size_t{1} << 24);
    REQUIRE(report);
    return *report;
  };
  CHECK(simulate("tracks.toml", "").find("without utrecht") != std::string::npos);
  simulate("aw-psp.toml",
           " --set data.partition.clients=10 --set simulation.availability.groups=5 --set run.rounds=3"
           " --set run.wait_for_clients=3 --set sampling.clients_per_round=2");
  simulate("availability/run.toml",
           " --set simulation.availability.file=" + folder + "availability/two_days.csv --set run.rounds=2");
  const Outcome resolved = test::run("fedge tracks resolve " + folder + "tracks.toml --round 4");
  CHECK(resolved.code == 0);
  CHECK(resolved.output.starts_with("round 4: 4 tracks, 20 trainings by 6 clients\n"));
}

TEST_CASE("errors: missing data and a missing run file are named, with what to do") {
  const TemporaryDirectory directory;
  const Outcome data =
      test::run("fedge-sim run " FEDGE_SOURCE_DIR "/examples/fashion-mlp.toml --set data.directory=" +
                directory.path().string() + " --out " + directory.path().string());
  CHECK(data.code == 1);
  CHECK(data.output.find("apt-get install dataset-fashion-mnist") != std::string::npos);
  const Outcome file = test::run("fedge-sim run /nonexistent/run.toml");
  CHECK(file.code == 1);
  CHECK(file.output == "fedge-sim: cannot open /nonexistent/run.toml: No such file or directory\n");
}

TEST_CASE("errors: wrong usage is exit code 2, help and version are 0") {
  CHECK(test::run("fedge-sim").code == 2);
  CHECK(test::run("fedge-sim run").code == 2);
  CHECK(test::run("fedge-client --nonsense").code == 2);
  CHECK(test::run("fedge-coordinator").code == 2);
  for (const char* program : {"fedge", "fedge-sim", "fedge-lab", "fedge-client", "fedge-coordinator"}) {
    CHECK(test::run(std::string(program) + " --help").code == 0);
    CHECK(test::run(std::string(program) + " --version").output.starts_with(std::string(program) + " "));
  }
}

TEST_CASE("options: one that may be repeated takes one value each time, and what follows is the files") {
  const TemporaryDirectory directory;
  const auto file = [&](const char* name) { return (directory.path() / name).string(); };
  auto layout = std::make_shared<ParameterLayout>();
  layout->add("w", {1});
  for (const auto& [name, value] : {std::pair("a", 1.0F), {"b", 2.0F}, {"c", 6.0F}}) {
    ParameterVector values(layout);
    values.values()[0] = value;
    REQUIRE(write_safetensors(file(name), values, {}));
  }
  const std::string files = " " + file("a") + " " + file("b") + " " + file("c");
  const auto merged = [&](const std::string& options) {
    const Outcome outcome =
        test::run("fedge aggregate --force --out " + file("out") + " --strategy " + options + files);
    REQUIRE_MESSAGE(outcome.code == 0, outcome.output);
    return read_safetensors(file("out"), 1 << 20)->values.values()[0];
  };
  CHECK(merged("trimmed_mean --set trim=1") == 2.0F);
  CHECK(merged("fedavg --weights 2,1,1") == 2.5F);
  // The same holds for the simulator, whose run file comes last.
  const Outcome none = test::run("fedge-sim run --set run.rounds=1 " + file("none.toml"));
  CHECK(none.output.find("none.toml: No such file") != std::string::npos);
}

TEST_CASE("errors: a damaged token, and a client that has not joined, are told what to do") {
  const TemporaryDirectory directory;
  const std::string state = "fedge-client --state-dir " + directory.path().string() + "/state ";
  for (const std::string given : {"nonsense", "--token nonsense"})
    CHECK(test::run(state + "join " + given).output.find("a join token begins with") != std::string::npos);
  CHECK(test::run(state + "join A --token B").output.find("use only one of ") != std::string::npos);
  CHECK(test::run(state + "join fedge1.AAAA").output.find("incomplete or mistyped") != std::string::npos);
  const Outcome outcome = test::run(state + "run");
  CHECK(outcome.code == 1);
  CHECK_MESSAGE(
      outcome.output.find("join a coordinator first: " + state + "join TOKEN\n") != std::string::npos,
      outcome.output);
  const Outcome spaced = test::run("fedge-client --state-dir \"it's here\" run");
  CHECK_MESSAGE(
      spaced.output.find(R"(fedge-client --state-dir 'it'\''s here' join TOKEN)") != std::string::npos,
      spaced.output);
}

TEST_CASE("errors: a join without a token says where tokens come from") {
  const Outcome outcome = test::run("fedge-client --state-dir /nonexistent join");
  CHECK(outcome.code == 2);
  CHECK(
      outcome.output ==
      "fedge-client join: the join token is missing: give TOKEN or --token-file FILE; the coordinator's "
      "operator creates a token with: fedge token create\nRun 'fedge-client join --help' for its options.\n");
}

TEST_CASE("tokens: a file of several tokens is refused, and blank lines around one are not") {
  const TemporaryDirectory directory;
  const std::string file = (directory.path() / "tokens").string();
  const auto joined_with = [&](const std::string& text, const std::string& option) {
    std::ofstream(file) << text;
    const Outcome outcome = test::run("fedge-client --state-dir " + directory.path().string() +
                                      "/state join --token-file " + option);
    CHECK(outcome.code == 1);
    return outcome.output;
  };
  CHECK(joined_with("fedge1.AAAA\n\nfedge1.AAAB\nfedge1.AAAC\n", file) ==
        "fedge-client: --token-file: " + file +
            " contains 3 tokens; give each client a file with one token\n");
  CHECK(joined_with("fedge1.AAAA\nfedge1.AAAB", "- < " + file)
            .starts_with("fedge-client: --token-file: standard input contains 2 tokens; "));
  CHECK(joined_with(" \n\n", file) ==
        "fedge-client: --token-file: " + file +
            " contains no token; the coordinator's operator creates a token with: fedge token create\n");
  CHECK(joined_with("\n fedge1.AAAA \r\n\n", file).find("incomplete or mistyped") != std::string::npos);
}

TEST_CASE("tokens: made on the command line, listed, revoked") {
  const TemporaryDirectory directory;
  const std::string data = " --data-dir " + directory.path().string() + "/coordinator";
  const Outcome no_address = test::run("fedge token create" + data);
  CHECK(no_address.code == 1);
  CHECK(no_address.output.find("--address HOST:PORT") != std::string::npos);
  const Outcome tokens = test::run("fedge token create --count 2 --address 127.0.0.1:7433" + data);
  REQUIRE(tokens.code == 0);
  CHECK(std::count(tokens.output.begin(), tokens.output.end(), '\n') == 2);
  CHECK(tokens.output.starts_with("fedge1."));
  CHECK(test::run("fedge client revoke 1" + data).code == 0);
  const Outcome list = test::run("fedge client ls" + data);
  CHECK(list.output.find("0  invited") != std::string::npos);
  CHECK(list.output.find("1  revoked") != std::string::npos);
  CHECK(test::run("fedge client revoke 9" + data).code == 1);
}

TEST_CASE("tokens: an address that leads nowhere is not put into one") {
  const TemporaryDirectory directory;
  REQUIRE(write_file_atomic(directory.path() / "address", "0.0.0.0:7433\n"));
  const Outcome token = test::run("fedge token create --data-dir " + directory.path().string());
  CHECK(token.code == 1);
  CHECK(token.output.find("--address HOST:PORT") != std::string::npos);
}

TEST_CASE("errors: a second coordinator in one data directory leaves the first one's results alone") {
  const ProgramExample example;
  const TemporaryDirectory directory;
  const auto lock = DirectoryLock::acquire(directory.path());
  REQUIRE(lock);
  REQUIRE(write_file_atomic(directory.path() / "metrics.jsonl", "a round\n"));
  const Outcome second = test::run("fedge-coordinator --" + example.arguments + " --data-dir " +
                                   directory.path().string() + " --out " + directory.path().string());
  CHECK(second.code == 1);
  CHECK(second.output.find("is in use by another process") != std::string::npos);
  CHECK(*read_file(directory.path() / "metrics.jsonl", 100) == "a round\n");
}

TEST_CASE("reference: every key of the example run file is in it") {
  const Outcome reference = test::run("fedge reference");
  REQUIRE(reference.code == 0);
  for (const char* key :
       {"run.rounds", "data.partition.alpha", "model.hidden", "training.optimizer.learning_rate",
        "sampling.clients_per_round", "strategy.kind", "simulation.network.latency"})
    CHECK_MESSAGE(reference.output.find(key) != std::string::npos, key);
}

TEST_CASE("reference: a key or a section alone is explained alone, of either file") {
  CHECK(test::run("fedge reference run.rounds").output ==
        "run.rounds\n    Number of rounds. With a buffered schedule: number of aggregated models.\n    "
        "Default: 10; integer, 1 to 1000000.\n");
  const std::string partition = test::run("fedge reference data.partition").output;
  CHECK(partition.starts_with("data.partition."));
  CHECK(partition.find("\ndata.partition.clients\n") != std::string::npos);
  CHECK(partition.find("\ndata.dataset\n") == std::string::npos);
  CHECK(partition.find("\nmodel.") == std::string::npos);
  CHECK(test::run("fedge reference limits.idle_seconds").output.starts_with("limits.idle_seconds\n"));
  CHECK(test::run("fedge reference run.seed --markdown").output.starts_with("| key | default |"));
}

TEST_CASE("reference: each page that a program can print is what it prints") {
  const std::pair<std::string, std::string> pages[] = {
      {"run-file.md", "fedge reference --markdown"},
      {"coordinator.md", "fedge reference coordinator --markdown"},
      {"screening.md", "fedge reference screening --markdown"},
      {"power.md", "fedge reference power --markdown"},
      {"strategies.md", "fedge strategies --markdown"}};
  for (const auto& [page, command] : pages) {
    const auto text = read_file(FEDGE_SOURCE_DIR "/docs/reference/" + page, 1 << 20);
    REQUIRE(text);
    CHECK_MESSAGE(test::run(command).output == *text,
                  "write it again: " << command << " > docs/reference/" << page);
  }
}

TEST_CASE("strategies: each says what it is made of, what it needs and its options") {
  const std::string scaffold = test::run("fedge strategies scaffold").output;
  CHECK(scaffold.find("= aggregator uniform_mean, objective scaffold") != std::string::npos);
  const std::string krum = test::run("fedge strategies krum").output;
  CHECK(krum.find("(not linear, keeps all updates of a round, requires") != std::string::npos);
  CHECK(krum.find("byzantine") != std::string::npos);
  CHECK(krum.find("trim ") == std::string::npos);
  const std::string top_k = test::run("fedge strategies top_k").output;
  CHECK(top_k.find("error_feedback") != std::string::npos);
  CHECK(top_k.find("levels") == std::string::npos);
  const Outcome unknown = test::run("fedge strategies krun");
  CHECK(unknown.code == 1);
  CHECK(unknown.output.find("unknown strategy or part 'krun'; did you mean 'krum'?") != std::string::npos);
}
