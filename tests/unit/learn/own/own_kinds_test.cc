// Kinds of models and data sets that a program registers: their options are read like those of built-in
// kinds, and errors name them.
#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "core/config/document.h"
#include "learn/data/validation.h"
#include "learn/evaluation/evaluate.h"
#include "learn/model_file.h"
#include "learn/pretrain.h"
#include "learn/task.h"
#include "tests/support/own/kinds.h"
#include "tests/support/text.h"

using namespace fedge;
using namespace fedge::learn;
using fedge::test::contains;

namespace {

Result<TaskSpec> read_spec(const std::string& toml) {
  fedge::test::register_own_kinds();
  const auto document = config::parse_toml(toml, "run.toml");
  REQUIRE(document);
  config::Reader root(document->root, "", document->name);
  TaskSpec spec = read_task(root);
  if (const auto right = root.finish(); !right) return right.error();
  return spec;
}

std::string refusal_of(const std::string& toml) {
  const auto spec = read_spec(toml);
  return spec ? std::string() : spec.error().message;
}

// The first error of a task of this text: of building it, of its initial model, its training or its
// evaluation.
std::string failure_of(const std::string& toml) {
  const auto spec = read_spec(toml);
  REQUIRE_MESSAGE(spec, spec.error().message);
  const auto task = Task::build(*spec, 7);
  if (!task) return task.error().message;
  const auto initial = initial_parameters((*task)->model(), spec->data, Rng(7));
  if (!initial) return initial.error().message;
  std::vector<float> update(initial->size());
  Trainer trainer = (*task)->make_trainer();
  const auto trained = (*task)->train({ClientId(0), RoundNumber(1)}, initial->values(), update, trainer);
  if (!trained) return trained.error().message;
  Sequential here;
  const auto evaluated = evaluate((*task)->model(), initial->values(), (*task)->data(), here);
  return evaluated ? std::string() : evaluated.error().message;
}

const std::string kOwnData = "data = { dataset = \"own_samples\", partition = { clients = 2 } }\n";

}  // namespace

TEST_CASE("own model: its options are read with bounds, and those of other kinds are refused") {
  CHECK(refusal_of("model = { kind = \"own_bias\", slope = 1.5, layers = 9 }").empty());
  CHECK(contains(refusal_of("model = { kind = \"own_bias\", slope = 3 }"),
                 "run.toml:1: model.slope: 3 is out of range, expected 0 to 2"));
  CHECK(contains(refusal_of("model = { kind = \"own_bias\", slop = 1 }"), "did you mean model.slope?"));
  CHECK(contains(refusal_of("model = { kind = \"mlp\", slope = 1 }"),
                 "model.slope: has no effect with kind = \"mlp\"; it applies only to own_bias"));
  CHECK(contains(refusal_of("model = { kind = \"own_bias\", hidden = [3] }"), "it applies only to mlp"));
  CHECK(contains(refusal_of("model = { kind = \"transformer\", layers = 500 }"), "expected 1 to 256"));
  CHECK(contains(refusal_of("model.kind = \"another\""),
                 "if it is a model of your own program, use your program instead of fedge-sim, and PROGRAM "
                 "coordinator --run FILE instead of fedge-coordinator, and PROGRAM client instead of "
                 "fedge-client"));
  CHECK(contains(refusal_of("model = { kind = \"own_bias\", fault = \"read\" }"),
                 "model.kind: the model own_bias threw an exception: no option"));
}

TEST_CASE("own model: it is trained and evaluated like a built-in one") {
  const auto spec =
      read_spec(kOwnData + "model.kind = \"own_bias\"\ntraining.optimizer.learning_rate = 0.25");
  REQUIRE_MESSAGE(spec, spec.error().message);
  const auto task = Task::build(*spec, 7);
  REQUIRE_MESSAGE(task, task.error().message);
  std::vector<float> model(2);
  (*task)->model().initialise(model, Rng(1));
  std::vector<float> update(2);
  Trainer trainer = (*task)->make_trainer();
  REQUIRE((*task)->train({ClientId(1), RoundNumber(1)}, model, update, trainer));
  CHECK(update == std::vector<float>{-0.25F, -0.25F});  // one step: five samples fit into a batch
}

TEST_CASE("own model: an exception or an impossible model is an error that names it") {
  const auto failure = [](const std::string& fault) {
    return failure_of(kOwnData + "model = { kind = \"own_bias\", fault = \"" + fault + "\" }");
  };
  CHECK(failure("").empty());
  CHECK(failure("make") == "model.kind: the model own_bias threw an exception: no table");
  CHECK(failure("null") == "model.kind: the model own_bias is null: its factory returned no object");
  CHECK(contains(failure("empty"), "the model own_bias has no parameters"));
  CHECK(contains(failure("size"), "the model own_bias has 3 inputs and 2 classes, but the data has 2 and 2"));
  for (const char* fault : {"initialise", "workspace", "train", "forward"})
    CHECK_MESSAGE(failure(fault) == "the model own_bias threw an exception: index 7", fault);
  CHECK(failure("initial nan") ==
        "the model own_bias: initialise() set parameter bias[1] to a value that is not finite");
  CHECK(failure("no workspace") == "the model own_bias: make_workspace() returned no object");
  CHECK(contains(failure("outputs"),
                 "the model own_bias has 2 outputs per sample, but the data needs 1; do not override "));
  CHECK(contains(failure_of(kOwnData + "model = { kind = \"own_adapted\", adapter = { rank = 2 } }"),
                 "the model own_adapted declares the trait `adapters`, but adapters() returns null"));
  CHECK(contains(failure_of(kOwnData + "model = { kind = \"own_bias\", adapter = { rank = 2 } }"),
                 "an own_bias cannot have adapters"));
  CHECK(contains(failure_of(kOwnData + "model.kind = \"own_bias\"\ntraining.local_model = \"slice\""),
                 "an own_bias cannot be sliced"));
}

TEST_CASE("own model: one of texts must predict each token") {
  const std::string data = "data = { dataset = \"own_text\", context = 4, partition = { clients = 2 } }\n";
  CHECK(failure_of(data + "model.kind = \"own_text_bias\"\n").empty());
  CHECK(contains(failure_of(data + "model = { kind = \"own_text_bias\", fault = \"one output\" }\n"),
                 "the model own_text_bias has 1 outputs per sample, but the data needs 4; "
                 "outputs_per_sample() of a model of texts must return input_size_"));
}

TEST_CASE("own model: an exception ends the pretraining with an error that names it") {
  const auto spec = read_spec(kOwnData + "model = { kind = \"own_bias\", fault = \"train\" }\n");
  REQUIRE(spec);
  const auto data = load_train(spec->data, Rng(7));
  REQUIRE(data);
  const auto trained = pretrain(*spec, 7, **data, {});
  REQUIRE_FALSE(trained);
  CHECK(trained.error().message == "the model own_bias threw an exception: index 7");
}

TEST_CASE("own kinds: one that is not chosen does not make a run file wrong") {
  static bool registered = false;
  if (!std::exchange(registered, true)) {
    register_dataset({.name = "own_strict",
                      .paper = "",
                      .summary = "",
                      .traits = {},
                      .read = [](config::Reader& section) -> std::shared_ptr<const DataSource> {
                        const std::string path = section.text("path", std::nullopt, "File of the samples.");
                        config::Reader format = section.section("format");
                        (void)format.integer("columns", std::nullopt, {1, 9}, "Number of columns.");
                        section.adopt(format);
                        if (section.has_list("dataset")) section.fail("dataset", "must be no list");
                        if (path.empty()) throw std::runtime_error("cannot open it");
                        if (path == "missing") return nullptr;
                        return std::make_shared<fedge::test::CountedSamples>("");
                      }});
    register_model({.name = "own_strict",
                    .paper = "",
                    .summary = "",
                    .traits = {},
                    .read = [](config::Reader& section, ModelSpec&) -> ModelFactory {
                      const std::string file = section.text("table", std::nullopt, "File of the table.");
                      if (file.empty()) section.fail("table", "must not be empty");
                      if (file.empty()) throw std::runtime_error("cannot open it");
                      return {};
                    }});
  }
  CHECK(refusal_of("data.dataset = \"fashion-mnist\"\nmodel.kind = \"mlp\"\n").empty());
  CHECK(contains(refusal_of("data.dataset = \"own_strict\"\n"), "data.path is required but missing"));
  CHECK(
      contains(refusal_of("data.dataset = \"own_strict\"\n"), "data.format.columns is required but missing"));
  CHECK(contains(refusal_of("model = { kind = \"own_strict\", table = \"\" }"),
                 "model.table: must not be empty"));
  CHECK(contains(refusal_of("data.format.columns = 3"), "data.format: has no effect with dataset"));
}

TEST_CASE("own kinds: an option may have the name of a common key of its section") {
  static bool registered = false;
  static std::string directory;
  if (!std::exchange(registered, true)) {
    register_dataset({.name = "own_directory",
                      .paper = "",
                      .summary = "",
                      .traits = {},
                      .read = [](config::Reader& section) -> std::shared_ptr<const DataSource> {
                        directory = section.text("directory", "", "Directory of the files.");
                        return std::make_shared<fedge::test::CountedSamples>("");
                      }});
    register_model({.name = "own_based",
                    .paper = "",
                    .summary = "",
                    .traits = {},
                    .read = [](config::Reader& section, ModelSpec& spec) -> ModelFactory {
                      (void)section.text("base", "", "Weights.");
                      return fedge::test::read_own_bias(section, spec);
                    }});
  }
  CHECK(refusal_of("data = { dataset = \"fashion-mnist\", directory = \"there\" }").empty());
  CHECK(refusal_of("model = { kind = \"mlp\", base = \"base.safetensors\" }").empty());
  const auto spec = read_spec("data = { dataset = \"own_directory\", directory = \"here\" }");
  REQUIRE_MESSAGE(spec, spec.error().message);
  CHECK(directory == "here");
  CHECK(spec->data.directory == "here");
}
