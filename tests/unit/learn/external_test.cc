// Models of which Fedge knows only the tensors: reading their description, and its limits.
#include "learn/models/external.h"

#include <doctest/doctest.h>

#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "core/config/document.h"
#include "core/config/own_part.h"
#include "core/safetensors.h"
#include "learn/model_file.h"
#include "learn/models/kinds.h"
#include "tests/unit/learn/idx_fixture.h"

namespace fedge::learn {
namespace {

// Reads a run file with these tensors; returns the errors, "" if there are none.
std::string problem(const std::string& tensors, TaskSpec* read = nullptr) {
  const auto document = config::parse_toml(
      "[model]\nkind = \"external\"\nbase = \"first.safetensors\"\ntensors = " + tensors + "\n", "run.toml");
  REQUIRE(document);
  config::Reader root(document->root, "", document->name);
  const TaskSpec task = read_task(root);
  if (read != nullptr) *read = task;
  const auto done = root.finish();
  return done ? "" : done.error().message;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("external: a file's tensors as texts give the same layout again, a layer for each module") {
  const test::TemporaryDirectory directory;
  ParameterLayout layout;
  layout.add("conv1.weight", {2, 3, 5, 5}).add("conv1.bias", {2}).add("norm 1.weight", {2}).add("scale", {});
  const auto file = directory.path() / "first.safetensors";
  ParameterVector values(std::make_shared<ParameterLayout>(layout));
  for (std::size_t i = 0; i < values.size(); ++i) values.values()[i] = static_cast<float>(i);
  REQUIRE(write_safetensors(file, values, {}));
  const auto texts = tensor_texts(file);
  REQUIRE(texts);
  CHECK(*texts == std::vector<std::string>{"conv1.weight [2, 3, 5, 5]", "conv1.bias [2]", "norm 1.weight [2]",
                                           "scale []"});
  std::string listed;
  for (const std::string& text : *texts) listed += "\"" + text + "\", ";
  TaskSpec task;
  CHECK(problem("[" + listed + "]", &task) == "");
  task.model.base = file.string();
  const auto model = make_model(task.model, {28, 28, 1}, 10);
  REQUIRE_MESSAGE(model, model.error().message);
  const std::vector<TensorInfo>& tensors = (*model)->layout()->tensors();
  REQUIRE(tensors.size() == 4);
  const std::vector<std::uint32_t> layers = {0, 0, 1, 2};
  for (std::size_t t = 0; t < 4; ++t) {
    CHECK(tensors[t].name == layout.tensors()[t].name);
    CHECK(tensors[t].shape == layout.tensors()[t].shape);
    CHECK(tensors[t].layer == layers[t]);
  }
  const auto first = initial_parameters(**model, task.data, Rng(1));
  REQUIRE_MESSAGE(first, first.error().message);
  CHECK(std::ranges::equal(first->values(), values.values()));
  CHECK((*model)->classes() == 10);
  // Whatever wrote the file, a model of other than numbers is refused.
  for (const float wrong :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    values.values()[151] = wrong;
    REQUIRE(write_safetensors(file, values, {}));
    const auto refused = initial_parameters(**model, task.data, Rng(1));
    REQUIRE_FALSE(refused);
    CHECK_MESSAGE(has(refused.error().message, "first.safetensors: conv1.bias[1] is "),
                  refused.error().message);
  }
}

TEST_CASE("external: what cannot be a list of tensors is refused by name, before memory is taken") {
  const std::string wrong = "must be a name, a space and a shape, as in \"conv1.weight [16, 3, 3, 3]\"";
  for (const std::string text : {"a", "a[2]", " [2]", "a [2", "a [2,3]", "a [2, ]", "a [0]", "a [-1]",
                                 "a [x]", "a [99999999999999999999]", "a 2x3", ""})
    CHECK_MESSAGE(has(problem("[\"" + text + "\"]"), wrong), text);
  CHECK(problem("[\"a [65536, 65536]\"]") == "");
  CHECK(has(problem("[\"a [65536, 65537]\"]"), "more than 2^32 parameters with the tensor a"));
  CHECK(has(problem("[\"a [65536, 65535]\", \"b [65537]\"]"), "more than 2^32 parameters with the tensor b"));
  CHECK(has(problem("[\"a [4294967296, 4294967296, 4294967296]\"]"), "more than 2^32 parameters"));
  CHECK(has(problem("[\"a [1]\", \"a [2]\"]"), "the tensor a is there twice"));
  CHECK(has(problem("[\"a [1, 1, 1, 1, 1, 1, 1, 1, 1]\"]"), "more than 8 dimensions"));
  ModelSpec unknown{.kind = "external"};
  const auto none = make_model(unknown, {28, 28, 1}, 10);
  REQUIRE_FALSE(none);
  CHECK(has(none.error().message, "the tensors of an external model are not known"));
}

TEST_CASE("external: nothing but its program computes it, and it does not start from nothing") {
  ModelSpec spec{.kind = "external", .tensors = {{"a", {2}}}};
  const auto model = make_model(spec, {2, 2, 1}, 3);
  REQUIRE(model);
  std::vector<float> values(2), scores(3);
  const auto workspace = (*model)->make_workspace(1);
  CHECK_THROWS_WITH_AS((*model)->forward(values, {}, scores, *workspace),
                       "model.kind: an external model cannot be evaluated without its program; use --trainer",
                       config::PartFailure);
  CHECK_THROWS_AS((*model)->loss_and_gradient(values, {}, values, *workspace), config::PartFailure);
  const auto first = initial_parameters(**model, {}, Rng(1));
  REQUIRE_FALSE(first);
  CHECK(has(first.error().message, "set model.base"));
  CHECK(is_external(spec));
  CHECK_FALSE(is_external({.kind = "mlp"}));
  CHECK_FALSE(is_external({.kind = "nothing"}));
}

}  // namespace fedge::learn
