// The metadata that a run writes into its model's file, read back.
#include <doctest/doctest.h>

#include <string>

#include "core/config/document.h"
#include "core/safetensors.h"
#include "learn/model_file.h"
#include "run/run_config.h"
#include "tests/unit/learn/idx_fixture.h"

using namespace fedge;

namespace {

std::filesystem::path model_of(const learn::test::TemporaryDirectory& directory, const std::string& task) {
  auto layout = std::make_shared<ParameterLayout>();
  layout->add("dense1.weight", {10, 784});
  layout->add("dense1.bias", {10});
  const auto path = directory.path() / "model.safetensors";
  REQUIRE(write_safetensors(path, ParameterVector(layout), {{learn::kTaskMetadata, task}}));
  return path;
}

}  // namespace

TEST_CASE("model file: the model of a serverless, masked or private run is read like any other's") {
  for (const std::string& sections : std::vector<std::string>{
           "", "[dissemination]\nkind = \"serverless\"\n[run]\nrounds = 3\n",
           "[secure_aggregation]\nkind = \"exact\"\n",
           "[data]\npartition = { clients = 1000 }\n[sampling]\nclients_per_round = 100\n"
           "[differential_privacy]\nkind = \"local\"\nclipping_norm = 0.2\nepsilon = 8\nmax_participations = "
           "2\n"}) {
    CAPTURE(sections);
    const auto document = config::parse_toml("[model]\nkind = \"softmax\"\n" + sections, "run.toml");
    REQUIRE(document);
    const auto run = run::read_run_config(*document);
    REQUIRE_MESSAGE(run, run.error().message);
    const learn::test::TemporaryDirectory directory;
    const auto file = learn::read_model_file(model_of(directory, run->task_text));
    REQUIRE_MESSAGE(file, file.error().message);
    CHECK(file->values.size() == 7850);
    CHECK(file->task.data.partition.clients == run->task.data.partition.clients);
  }
}

TEST_CASE(
    "model file: a task nested ten thousand deep, or with a model that is not in the file, is refused") {
  const learn::test::TemporaryDirectory directory;
  std::string deep;
  for (int i = 0; i < 10'000; ++i) deep += "a.";
  const auto nested = learn::read_model_file(model_of(directory, deep + "a = 1"));
  REQUIRE_FALSE(nested);
  CHECK(nested.error().message.find("nested more than") != std::string::npos);
  const auto other = learn::read_model_file(model_of(directory, "model = { kind = \"mlp\", hidden = [5] }"));
  REQUIRE_FALSE(other);
  CHECK(other.error().message.find("model.safetensors: tensor ") != std::string::npos);
}
