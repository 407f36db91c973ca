// Kinds of models and data sets that a program registers: their options are read like those of built-in
// kinds, and errors name them.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

#include "core/config/document.h"
#include "learn/data/kinds.h"
#include "learn/data/validation.h"
#include "learn/evaluate.h"
#include "learn/models/kinds.h"
#include "learn/task.h"
#include "tests/support/text.h"

using namespace fedge;
using namespace fedge::learn;
using fedge::test::contains;

namespace {

// One bias for each class, and faults to choose from.
class BiasModel final : public Model {
 public:
  BiasModel(std::size_t inputs, std::size_t classes, std::string fault) : fault_(std::move(fault)) {
    if (fault_ == "make") throw std::runtime_error("no table");
    auto layout = std::make_shared<ParameterLayout>();
    if (fault_ != "empty") layout->add("bias", {classes});
    layout_ = std::move(layout);
    input_size_ = fault_ == "size" ? inputs + 1 : inputs;
    classes_ = classes;
  }
  void initialise(std::span<float> parameters, const Rng&) const override {
    std::ranges::fill(parameters, 0.5F);
  }
  std::unique_ptr<Workspace> make_workspace(std::size_t) const override {
    return std::make_unique<Workspace>();
  }
  BatchLoss loss_and_gradient(std::span<const float>, const Batch&, std::span<float> gradient,
                              Workspace&) const override {
    if (fault_ == "train") throw std::out_of_range("index 7");
    std::ranges::fill(gradient, 1.0F);
    return {};
  }
  void forward(std::span<const float> parameters, const Batch&, std::span<float> logits,
               Workspace&) const override {
    for (std::size_t i = 0; i < logits.size(); ++i) logits[i] = parameters[i % classes_];
  }

 private:
  std::string fault_;
};

// Sample i has the inputs i and -i and the label i % 2, and faults to choose from.
class CountedSamples final : public DataSource {
 public:
  explicit CountedSamples(std::string fault) : fault_(std::move(fault)) {}

  Result<DatasetInfo> describe(const DataSpec&) const override {
    return DatasetInfo{{1, 2, 1}, 2, 2, {"even", "odd"}};
  }
  Result<Dataset> load(const DataSpec&, Split split) const override {
    if (fault_ == "throws") throw std::runtime_error("no such table");
    if (fault_ == "error") return Error{ErrorCode::kNotFound, "there is no file"};
    const std::size_t count = split == Split::kTrain ? 10 : 4;
    Dataset data{.shape = {1, 2, 1}, .classes = 2, .floats = AlignedBuffer<float>(2 * count), .labels = {}};
    for (std::size_t i = 0; i < count; ++i) {
      data.floats.data()[2 * i] = static_cast<float>(i);
      data.floats.data()[2 * i + 1] = -static_cast<float>(i);
      data.labels.push_back(static_cast<std::uint8_t>(fault_ == "label" ? 2 : i % 2));
    }
    if (fault_ == "shape") data.shape.width = 1;
    if (fault_ == "nan") data.floats.data()[3] = std::numeric_limits<float>::quiet_NaN();
    if (fault_ == "fewer") data.labels.pop_back();
    return data;
  }

 private:
  std::string fault_;
};

void register_own_kinds() {
  static const bool registered = [] {
    register_model({.name = "own_bias",
                    .paper = "",
                    .summary = "",
                    .read = [](config::Reader& section, ModelSpec&) -> ModelFactory {
                      (void)section.integer("layers", 1, {1, 9}, "Shares its name with a transformer's.");
                      (void)section.number("slope", 1, {0, 2}, "No other kind has it.");
                      const std::string fault = section.text("fault", "", "Where it fails.");
                      if (fault == "read") throw std::runtime_error("no option");
                      return [fault](const ModelContext& context) -> std::unique_ptr<Model> {
                        if (fault == "null") return nullptr;
                        return std::make_unique<BiasModel>(context.input.size(), context.outputs, fault);
                      };
                    }});
    register_dataset({.name = "own_samples",
                      .paper = "",
                      .summary = "",
                      .read = [](config::Reader& section) -> std::shared_ptr<const DataSource> {
                        const std::string fault = section.text("fault", "", "Where it fails.");
                        if (fault == "null") return nullptr;
                        return std::make_shared<CountedSamples>(fault);
                      }});
    return true;
  }();
  (void)registered;
}

Result<TaskSpec> read_spec(const std::string& toml) {
  register_own_kinds();
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

// The error of building a task of this text, or of its training.
std::string failure_of(const std::string& toml) {
  const auto spec = read_spec(toml);
  REQUIRE_MESSAGE(spec, spec.error().message);
  const auto task = Task::build(*spec, 7);
  if (!task) return task.error().message;
  std::vector<float> model((*task)->model().layout()->size());
  std::vector<float> update(model.size());
  Trainer trainer = (*task)->make_trainer();
  const auto trained = (*task)->train({ClientId(0), RoundNumber(1)}, model, update, trainer);
  return trained ? std::string() : trained.error().message;
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
  CHECK(failure("train") == "the model own_bias threw an exception: index 7");
  CHECK(contains(failure_of(kOwnData + "model = { kind = \"own_bias\", adapter = { rank = 2 } }"),
                 "an own_bias cannot have adapters"));
  CHECK(contains(failure_of(kOwnData + "model.kind = \"own_bias\"\ntraining.local_model = \"slice\""),
                 "an own_bias cannot be sliced"));
}

TEST_CASE("own data set: a client loads the samples that its number has in the whole data set") {
  const auto spec = read_spec(kOwnData);
  REQUIRE_MESSAGE(spec, spec.error().message);
  const auto all = load_train(spec->data);
  REQUIRE(all);
  const auto parts = partition_for_clients(spec->data, (*all)->labels, (*all)->classes, Rng(7));
  REQUIRE(parts);
  const auto sizes = partition_sizes(spec->data, Rng(7));
  REQUIRE(sizes);
  for (std::size_t client = 0; client < 2; ++client) {
    const auto part = load_part(spec->data, client, Rng(7));
    REQUIRE(part);
    REQUIRE((*part)->size() == parts->of(client).size());
    CHECK((*sizes)[client] == (*part)->size());
    for (std::size_t i = 0; i < (*part)->size(); ++i) {
      const std::uint32_t sample = parts->of(client)[i];
      float input[2];
      (*part)->read_inputs(i, input);
      CHECK(input[0] == static_cast<float>(sample));
      CHECK(input[1] == -static_cast<float>(sample));
      CHECK((*part)->labels[i] == sample % 2);
    }
  }
  CHECK((*load_test(spec->data))->size() == 4);
  CHECK(class_names(spec->data) == std::vector<std::string>{"even", "odd"});
  DataSpec validated = spec->data;
  validated.validation = 0.4;
  CHECK((*load_evaluation(validated, Rng(7)))->size() == 4);
}

TEST_CASE("own data set: an exception, an error or wrong samples are errors that name it") {
  const auto failure = [](const std::string& fault) {
    const auto spec = read_spec("data = { dataset = \"own_samples\", fault = \"" + fault + "\" }");
    if (!spec) return spec.error().message;
    const auto data = load_train(spec->data);
    return data ? std::string() : data.error().message;
  };
  const std::string named = "data.dataset: the data set own_samples";
  CHECK(failure("").empty());
  CHECK(failure("throws") == named + " threw an exception: no such table");
  CHECK(failure("error") == named + ": there is no file");
  CHECK(failure("label") == named + ": load() returned the label 2, but the data set has 2 classes");
  CHECK(failure("shape") == named + ": load() returned samples of another shape than describe()");
  CHECK(failure("nan") == named + ": load() returned a value that is not finite");
  CHECK(failure("fewer") == named + ": load() returned 20 values for 9 samples of 2");
  CHECK(contains(failure("null"), named + " is null"));
  CHECK(
      contains(refusal_of("data = { fault = \"nan\" }"),
               "data.fault: has no effect with dataset = \"fashion-mnist\"; it applies only to own_samples"));
}
