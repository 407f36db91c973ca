#include "client/trainers/external_trainer.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "client/trainers/first_model.h"
#include "core/safetensors.h"
#include "learn/models/external.h"
#include "tests/support/logged_process.h"
#include "tests/support/tiny_dataset.h"

namespace fedge::client {
namespace {

// A model of two tensors with 4 + 3 parameters, and the program tests/support/trainers/trainer_program.py,
// which adds 1.
struct Trainer {
  explicit Trainer(const std::string& mode, Duration silence = seconds(60)) {
    layout->add("a", {2, 2}).add("b", {3});
    options.command = {"/usr/bin/python3", FEDGE_SOURCE_DIR "/tests/support/trainers/trainer_program.py",
                       mode, directory.path().string()};
    options.silence = silence;
    options.nice = 3;
    options.on_event = [this](const Event& event) { events.push_back(event); };
  }
  ExternalTrainer& trainer() {
    if (!trainer_) trainer_ = std::make_unique<ExternalTrainer>(options);
    return *trainer_;
  }
  Result<TrainerReady> begin() {
    learn::TaskSpec task;
    task.model.hidden = {7};
    task.training.objective = {"proximal", 0.5F};
    return trainer().begin(
        {ClientId(3), "a run", 11, task, {{28, 28, 1}, 10, 10, {}}, layout, {.outputs = 10}});
  }
  // The reason of a failed evaluation; "" if it succeeds.
  std::string evaluation_failure() {
    const auto sums = trainer().evaluate(order(), model);
    return sums ? "" : sums.error().message;
  }
  WorkOrder order() const {
    return {.client = ClientId(3), .round = RoundNumber(9), .coverage = Coverage::all(7), .stop = {}};
  }
  // Returns the reason of a failed task; "" if it succeeds.
  std::string failure() {
    std::vector<float> update(7);
    const auto result = trainer().train(order(), model, update);
    return result ? "" : result.error().message;
  }
  nlohmann::json file(const std::string& name) const {
    std::ifstream in(directory.path() / name);
    return nlohmann::json::parse(in);
  }

  test::TemporaryDirectory directory;
  std::shared_ptr<ParameterLayout> layout = std::make_shared<ParameterLayout>();
  std::vector<float> model = {0, 1, 2, 3, 4, 5, 6};
  TrainerOptions options;
  std::vector<Event> events;
  std::unique_ptr<ExternalTrainer> trainer_;
};

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("external trainer: what the program adds to the model is the update, with its figures") {
  Trainer t("honest");
  const auto ready = t.begin();
  REQUIRE_MESSAGE(ready, ready.error().message);
  CHECK(ready->samples == SampleCount(5));
  for (int round = 0; round < 2; ++round) {
    std::vector<float> update(7);
    const auto result = t.trainer().train(t.order(), t.model, update);
    REQUIRE_MESSAGE(result, result.error().message);
    CHECK(update == std::vector<float>(7, 1.0F));
    CHECK(result->samples == SampleCount(5));
    CHECK(result->steps == 1);
    CHECK(result->mean_loss == 0.5);
    CHECK(result->rms_loss == 0.5);
  }
  REQUIRE(t.events.size() == 2);
  CHECK(to_string(t.events[0]) == "trainer.progress fraction=0.5 loss=1.25");
}

TEST_CASE("external trainer: of a part of the model the difference covers that part, and the task names it") {
  Trainer t("honest");
  REQUIRE(t.begin());
  WorkOrder order = t.order();
  order.coverage = Coverage::of({{1, 2}, {3, 6}});
  order.data_share = 0.5;
  order.time_left = seconds(90);
  std::vector<float> update(4);
  // The program declares 5 samples, and half of them are at most 3.
  const auto refused = t.trainer().train(order, t.model, update);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message ==
        "the trainer program reports training on 5 samples; this task may use at most 3 of the device's 5");
  const auto task = t.file("task");
  CHECK(task["coverage"] == nlohmann::json::parse("[[1,2],[3,6]]"));
  CHECK(task["data_share"] == 0.5);
  CHECK(task["seconds_left"] == 90.0);
  CHECK(task["round"] == 9);
  order.data_share = 1;
  REQUIRE(t.trainer().train(order, t.model, update));
  CHECK(update == std::vector<float>(4, 1.0F));
}

TEST_CASE(
    "external trainer: whatever a program does wrong costs one task, is said, and the next task is done") {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"exits", "the trainer program ended with exit status 3"},
      {"killed", "the trainer program was ended by signal 9 (Killed)"},
      {"exits_in_frame", "the trainer program ended with exit status 0 in the middle of a frame"},
      {"exits_in_payload", "the trainer program ended with exit status 0 in the middle of a frame"},
      {"garbage",
       "announces a header of 1668247653 bytes; a header has 2 to 65536 bytes; a frame that begins with "
       "\"epoch 1 of 1\" may be text that the program printed to standard output"},
      {"huge_payload", "announces a payload of 1152921504606846976 bytes; at most 16777216 are allowed"},
      {"huge_header", "announces a header of 2147483648 bytes; a header has 2 to 65536 bytes"},
      {"negative", "announces a header of 4294967295 bytes; a header has 2 to 65536 bytes"},
      {"big_endian", "announces a header of 335544320 bytes"},
      {"deep", "a header from the trainer program is nested more than 32 deep"},
      {"twice_key", "a header from the trainer program holds the key \"type\" twice"},
      {"closes", "the trainer program closed its standard output"},
      {"error", "the trainer program could not train: the GPU?[31m is on fire"},
      {"nan", "the trained model's a[1] is not a finite number; check whether the training diverged"},
      {"shape", "tensor \"a\" has shape [2, 2, 1], but this model expects [2, 2]"},
      {"dtype", "tensor \"a\" has the dtype \"F64\"; only \"F32\""},
      {"twice_tensor", "its header contains the key \"a\" twice"},
      {"missing", "tensor \"b\" of this model is missing"},
      {"stranger", "tensor \"other\" does not belong to this model"},
      {"pickle", "the trained model: is truncated: its header is incomplete"},
      {"no_samples", "message \"update\" needs samples as an integer from 1 to 2^53"},
      {"many_samples", "reports training on 6 samples; this task may use at most 5 of the device's 5"},
      {"many_steps", "reports 2 steps; 1 epochs of 5 samples in batches of 20 are at most 1"},
      {"no_loss", "message \"update\" has no train_loss"},
      {"other_task", "answered task 2, which this client did not send"},
      {"unbidden", "sent \"ready\" twice"},
  };
  for (const auto& [mode, reason] : cases) {
    CAPTURE(mode);
    Trainer t(mode);
    const auto ready = t.begin();
    REQUIRE_MESSAGE(ready, ready.error().message);
    const std::string failure = t.failure();
    CHECK_MESSAGE(has(failure, reason), failure);
    CHECK(t.failure() == "");
  }
}

TEST_CASE("external trainer: what the program predicts is counted as its own predictions would be") {
  Trainer t("honest");
  const auto ready = t.begin();
  REQUIRE_MESSAGE(ready, ready.error().message);
  CHECK(ready->evaluates == SampleCount(4));
  learn::EvaluationSums expected({.outputs = 10});
  for (std::size_t i = 0; i < 4; ++i) {
    std::vector<float> scores(10);
    scores[i < 3 ? i : i + 1] = 1;
    expected.add(scores, i);
  }
  expected.end_client(4);
  for (int round = 0; round < 2; ++round) {
    const auto sums = t.trainer().evaluate(t.order(), t.model);
    REQUIRE_MESSAGE(sums, sums.error().message);
    CHECK(*sums == expected);
    CHECK(t.failure() == "");
  }
  CHECK(expected.metrics().accuracy == 0.75);
  const auto asked = t.file("evaluation");
  CHECK(asked["round"] == 9);
  CHECK_FALSE(asked.contains("client"));
  CHECK_FALSE(asked.contains("samples"));
}

TEST_CASE("external trainer: scores that are not finite are wrong predictions with the largest loss") {
  Trainer t("evaluation_nan");
  REQUIRE(t.begin());
  const auto sums = t.trainer().evaluate(t.order(), t.model);
  REQUIRE(sums);
  CHECK(sums->metrics().accuracy == 0.5);
  CHECK(sums->metrics().loss > learn::EvaluationSums::kMostLoss / 4);
  const auto again = learn::EvaluationSums::from(sums->shape(), sums->values(), 4);
  CHECK_MESSAGE(again, again.error().message);
}

TEST_CASE(
    "external trainer: an evaluation that a program does wrong fails with the reason, and the next is done") {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"evaluation_exits", "the trainer program ended with exit status 3"},
      {"evaluation_hangs", "has sent nothing for 3 seconds"},
      {"evaluation_error", "the trainer program could not evaluate: no test samples here"},
      {"evaluation_target", "sent the target 10; a class must be an integer from 0 to 9"},
      {"evaluation_half", "sent the target 0.5; a class must be an integer from 0 to 9"},
      {"evaluation_shape", "scores of shape [10, 4] and targets of shape [4]; expected [4, 10] and [4]"},
      {"evaluation_names", "must be the two tensors \"scores\" and \"targets\""},
      {"evaluation_many", "sent predictions for more samples than it has for this task"},
      {"evaluation_few", "evaluated 3 samples and sent predictions for 3; this evaluation has 4"},
      {"evaluation_lies", "evaluated 5 samples and sent predictions for 4; this evaluation has 4"},
      {"evaluation_huge", "announces a payload of 1152921504606846976 bytes"},
      {"evaluation_empty", "sent predictions without scores and targets"},
      {"evaluation_update", "answered an evaluation with an update"},
  };
  for (const auto& [mode, reason] : cases) {
    CAPTURE(mode);
    Trainer t(mode, seconds(mode == "evaluation_hangs" ? 3 : 60));
    REQUIRE(t.begin());
    const std::string failure = t.evaluation_failure();
    CHECK_MESSAGE(has(failure, reason), failure);
    CHECK(t.evaluation_failure() == "");
    CHECK(t.failure() == "");
  }
}

TEST_CASE("external trainer: a program is asked for its first model, and what it sends is checked") {
  learn::TaskSpec task;
  task.model.kind = "external";
  const learn::DatasetInfo data{{28, 28, 1}, 10, 10, {}};
  const auto ask = [&](const std::string& mode) {
    Trainer t(mode);
    return ask_for_first_model(
        t.options, {.client = ClientId(0), .run = "a run", .task = task, .data = data, .clients = 3});
  };
  const auto file = ask("honest");
  REQUIRE_MESSAGE(file, file.error().message);
  const auto header = parse_safetensors_header(*file, "it");
  REQUIRE(header);
  REQUIRE(header->layout.tensors().size() == 2);
  CHECK(header->layout.tensors()[0].shape == std::vector<std::size_t>{3, 2});
  CHECK(header->layout.tensors()[1].shape.empty());
  const auto nan = ask("ready_nan");
  REQUIRE_FALSE(nan);
  CHECK(nan.error().message == "the first model's weight contains a value that is not finite");
  const auto none = ask("ready_no_model");
  REQUIRE_FALSE(none);
  CHECK(none.error().message == "the trainer program sent \"ready\" without its first model");
}

TEST_CASE(
    "external trainer: a program that hangs is ended when it has been silent too long, even if it will not") {
  for (const std::string mode : {"hangs", "ignores_signals"}) {
    CAPTURE(mode);
    Trainer t(mode, seconds(5));
    REQUIRE(t.begin());
    CHECK(t.failure() ==
          "the trainer program has sent nothing for 5 seconds, the limit of --trainer-timeout, and was "
          "stopped");
    CHECK(t.failure() == "");
  }
}

TEST_CASE("external trainer: a flood on standard error is cut to so many lines, and the update is taken") {
  Trainer t("floods");
  REQUIRE(t.begin());
  CHECK(t.failure() == "");
  t.trainer().shut_down();
  std::size_t lines = 0, longest = 0, counted = 0;
  for (const Event& event : t.events) {
    if (event.name != "trainer.output") continue;
    ++lines;
    const std::string line = std::get<std::string>(event.fields[0].second);
    longest = std::max(longest, line.size());
    if (line.starts_with("(")) counted += std::stoul(line.substr(1));
  }
  CHECK(lines >= 100);
  // At most 100 lines a second and a count are logged; printing 40,001 lines takes a few seconds at most.
  CHECK(lines < 3000);
  CHECK(longest <= 500);
  CHECK(lines + counted >= 40'001);
}

TEST_CASE("external trainer: a program that ends before it is ready is begun again, a few times") {
  Trainer once("ready_exits");
  REQUIRE(once.begin());
  CHECK(once.failure() == "");
  Trainer never("ready_never");
  const auto refused = never.begin();
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message == "the trainer program ended with exit status 1");
  Trainer later("ready_version");
  const auto version = later.begin();
  REQUIRE_FALSE(version);
  CHECK(version.error().message ==
        "the trainer program uses version 2 of the trainer protocol, but this client supports version 1");
  Trainer absent("honest");
  absent.options.command = {"/nonexistent/train"};
  const auto missing = absent.begin();
  REQUIRE_FALSE(missing);
  CHECK(missing.error().message ==
        "cannot start the trainer program /nonexistent/train: No such file or directory");
}

TEST_CASE(
    "external trainer: the program sees the run's settings, no descriptor but its three, and no secret") {
  ::setenv("FEDGE_TEST_TOKEN", "fedge1.secret", 1);
  ::setenv("OMP_NUM_THREADS", "1", 1);
  int inherited[2];
  REQUIRE(::pipe(inherited) == 0);  // without close-on-exec
  Trainer t("environment");
  REQUIRE(t.begin());
  ::close(inherited[0]);
  ::close(inherited[1]);
  ::unsetenv("FEDGE_TEST_TOKEN");
  const auto seen = t.file("seen");
  CHECK_FALSE(seen["variables"].contains("FEDGE_TEST_TOKEN"));
  CHECK(seen["variables"]["OMP_NUM_THREADS"] == "1");
  CHECK(seen["files"] == nlohmann::json::parse("[0,1,2,3,4]"));  // the file it writes, and the directory
  CHECK(seen["group"] == true);
  CHECK(seen["nice"] == 3 + ::nice(0));
  const auto expected = nlohmann::json::parse(R"({
    "type": "hello", "protocol": 1, "client": 3, "run": {"name": "a run", "seed": 11},
    "training": {"learning_rate": 0.05, "momentum": 0.0, "weight_decay": 0.0, "local_epochs": 1,
                 "batch_size": 20, "objective": "proximal", "mu": 0.5},
    "model": {"kind": "mlp", "hidden": [7]},
    "data": {"dataset": "fashion-mnist", "input": [28, 28, 1], "task": "classification", "points": 1,
             "classes": 10}})");
  CHECK_MESSAGE(seen["hello"] == expected, seen["hello"].dump());
}

TEST_CASE("external trainer: a task can be ended early with what there is, or given up") {
  Trainer t("patient");
  REQUIRE(t.begin());
  WorkOrder order = t.order();
  std::stop_source finish, stop;
  order.finish = finish.get_token();
  order.stop = stop.get_token();
  std::vector<float> update(7);
  finish.request_stop();
  REQUIRE(t.trainer().train(order, t.model, update));
  CHECK(update == std::vector<float>(7, 1.0F));
  CHECK(t.file("stop") == nlohmann::json::parse(R"({"type":"stop","task":1,"give_up":false})"));
  order.finish = {};
  // Stops from another thread while this one waits for the program.
  std::thread other([&] { stop.request_stop(); });
  static_cast<void>(t.trainer().train(order, t.model, update));
  other.join();
  CHECK(t.file("stop") == nlohmann::json::parse(R"({"type":"stop","task":2,"give_up":true})"));
  order.stop = {};
  finish = std::stop_source();
  order.finish = finish.get_token();
  finish.request_stop();
  CHECK(t.trainer().train(order, t.model, update));
}

TEST_CASE("external trainer: shutting down ends a task that would last for ever, and its process") {
  Trainer t("hangs");
  REQUIRE(t.begin());
  std::string failure;
  std::thread worker([&] { failure = t.failure(); });
  // Wait until the program has the task.
  test::wait_for_file(t.directory.path() / "done-hangs");
  t.trainer().shut_down();
  worker.join();
  CHECK(failure == "the client is stopping");
  CHECK(t.failure() == "no trainer program has been started for this run");
}

TEST_CASE("external trainer: what a program has started ends with it") {
  Trainer t("leaves_child");
  REQUIRE(t.begin());
  CHECK(t.failure() == "the trainer program ended with exit status 4");
  CHECK(test::comes_to_its_end(t.directory.path() / "child"));
}

TEST_CASE("external trainer: objectives and models that need the built-in trainer are refused by name") {
  learn::TrainingSpec spec;
  CHECK(learn::check_program_trains(spec));
  spec.objective.kind = "scaffold";
  CHECK(has(learn::check_program_trains(spec).error().message, "training.objective.kind = \"scaffold\""));
  spec.objective.kind = "proximal";
  CHECK(learn::check_program_trains(spec));
  spec.local_model = LocalModel::kSlice;
  CHECK(has(learn::check_program_trains(spec).error().message, "training.local_model"));
}

}  // namespace fedge::client
