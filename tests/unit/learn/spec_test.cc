#include "learn/spec.h"

#include <doctest/doctest.h>

#include <algorithm>

using namespace fedge;
using namespace fedge::learn;

namespace {

Result<TaskSpec> read(const std::string& text) {
  FEDGE_TRY(document, config::parse_toml(text, "run.toml"));
  config::Reader root(document.root, "", document.name);
  TaskSpec spec = read_task(root);
  FEDGE_TRY_VOID(root.finish());
  return spec;
}

void check_spec_refused(const std::string& text, const std::vector<std::string>& words) {
  CAPTURE(text);
  const auto result = read(text);
  REQUIRE_FALSE(result.has_value());
  CHECK(result.error().code == ErrorCode::kInvalid);
  for (const auto& word : words)
    CHECK_MESSAGE(result.error().message.find(word) != std::string::npos, result.error().message);
}

}  // namespace

TEST_CASE("spec: the sections of a run file are read as they stand") {
  const auto spec = read(R"([data]
dataset = "fashion-mnist"
directory = "/srv/data"
partition = { kind = "dirichlet", alpha = 0.1, clients = 100, min_size = 10 }
[model]
kind = "mlp"
hidden = [200, 100, 50]
[training]
optimizer = { kind = "sgd", learning_rate = 0.05, momentum = 0.9, weight_decay = 1e-4 }
local_epochs = 2
batch_size = 32
)");
  REQUIRE(spec.has_value());
  CHECK(spec->data.dataset == "fashion-mnist");
  CHECK(spec->data.directory == "/srv/data");
  CHECK(spec->data.partition.kind == PartitionKind::kDirichlet);
  CHECK(spec->data.partition.alpha == 0.1);
  CHECK(spec->data.partition.clients == 100);
  CHECK(spec->data.partition.min_size == 10);
  CHECK(spec->model.kind == "mlp");
  CHECK(spec->model.hidden == std::vector<std::size_t>{200, 100, 50});
  CHECK(spec->training.learning_rate == 0.05F);
  CHECK(spec->training.momentum == 0.9F);
  CHECK(spec->training.weight_decay == 1e-4F);
  CHECK(spec->training.local_epochs == 2);
  CHECK(spec->training.batch_size == 32);
}

TEST_CASE("spec: an empty file has the defaults of the structs") {
  const auto spec = read("");
  REQUIRE(spec.has_value());
  const TaskSpec defaults;
  CHECK(spec->data.partition.kind == PartitionKind::kIid);
  CHECK(spec->data.partition.clients == defaults.data.partition.clients);
  CHECK(spec->model.hidden == defaults.model.hidden);
  CHECK(spec->model.channels == defaults.model.channels);
  CHECK(spec->model.dense == defaults.model.dense);
  CHECK(spec->training.learning_rate == defaults.training.learning_rate);
  CHECK(spec->training.batch_size == defaults.training.batch_size);
}

TEST_CASE("spec: every partition and model kind has its name") {
  const std::pair<const char*, PartitionKind> partitions[] = {{"iid", PartitionKind::kIid},
                                                              {"dirichlet", PartitionKind::kDirichlet},
                                                              {"shards", PartitionKind::kShards},
                                                              {"pathological", PartitionKind::kPathological},
                                                              {"linear", PartitionKind::kLinear},
                                                              {"square", PartitionKind::kSquare},
                                                              {"exponential", PartitionKind::kExponential}};
  for (const auto& [name, kind] : partitions) {
    const auto spec = read("data.partition.kind = \"" + std::string(name) + "\"");
    REQUIRE(spec.has_value());
    CHECK(spec->data.partition.kind == kind);
  }
  for (const std::string name : {"softmax", "mlp", "cnn", "transformer"}) {
    const auto spec = read("model.kind = \"" + name + "\"");
    REQUIRE(spec.has_value());
    CHECK(spec->model.kind == name);
  }
  const auto cnn = read("model = { kind = \"cnn\", channels = [8, 16], dense = 64 }");
  REQUIRE(cnn.has_value());
  CHECK(cnn->model.channels == std::vector<std::size_t>{8, 16});
  CHECK(cnn->model.dense == 64);
}

TEST_CASE("spec: a misspelt key is refused with its line and the right spelling") {
  check_spec_refused("[training]\nlocal_epoch = 1\n",
                     {"run.toml:2", "training.local_epoch", "training.local_epochs"});
  check_spec_refused("[data]\n\npartition = { kind = \"dirichlet\", alpa = 1 }\n",
                     {"run.toml:3", "data.partition.alpa", "data.partition.alpha"});
  check_spec_refused("[training]\noptimizer = { learning_rat = 1 }\n", {"training.optimizer.learning_rate"});
  check_spec_refused("[data]\npartition = { kind = \"dirichlett\" }\n",
                     {"dirichlett", "did you mean \"dirichlet\""});
  check_spec_refused("[data]\ndataset = \"fashion-mnits\"\n", {"did you mean \"fashion-mnist\""});
}

TEST_CASE("spec: a key of another kind is refused and says whose it is") {
  check_spec_refused("data.partition = { kind = \"iid\", alpha = 0.1 }",
                     {"data.partition.alpha", "it applies only to dirichlet"});
  check_spec_refused("data.partition = { kind = \"shards\", classes_per_client = 2 }",
                     {"it applies only to pathological"});
  check_spec_refused("data.partition = { kind = \"pathological\", shards_per_client = 2 }",
                     {"it applies only to shards"});
  check_spec_refused("data.partition = { kind = \"linear\", samples_per_client = 2 }",
                     {"it applies only to iid and dirichlet"});
  check_spec_refused("data.partition = { kind = \"square\", min_size = 2 }",
                     {"it applies only to dirichlet"});
  check_spec_refused("data.partition = { kind = \"dirichlet\", samples_per_client = 60, min_size = 2 }",
                     {"data.partition.min_size", "with samples_per_client"});
  check_spec_refused("model = { kind = \"softmax\", hidden = [10] }",
                     {"model.hidden", "it applies only to mlp"});
  check_spec_refused("model = { kind = \"mlp\", channels = [1, 2] }",
                     {"model.channels", "it applies only to cnn"});
  check_spec_refused("model = { dense = 10 }", {"model.dense", "it applies only to cnn"});
}

TEST_CASE("spec: values out of bounds are refused with the bounds") {
  check_spec_refused("data.partition.clients = 0", {"data.partition.clients", "1 to "});
  check_spec_refused("data.partition = { kind = \"dirichlet\", alpha = 0 }", {"data.partition.alpha"});
  check_spec_refused("training.batch_size = 0", {"training.batch_size", "1 to 65536"});
  check_spec_refused("training.optimizer.momentum = 1.0", {"training.optimizer.momentum"});
  check_spec_refused("training.optimizer.learning_rate = -0.1", {"training.optimizer.learning_rate"});
  check_spec_refused("training.optimizer.learning_rate = nan", {"training.optimizer.learning_rate"});
  check_spec_refused("training.local_epochs = 1.5", {"training.local_epochs", "expected an integer"});
  check_spec_refused("model.hidden = []", {"model.hidden", "1 to 16"});
  check_spec_refused("model.hidden = [200, 0]", {"model.hidden", "out of range"});
  check_spec_refused("model = { kind = \"cnn\", channels = [32] }", {"model.channels", "expected 2"});
}

TEST_CASE("spec: the generated reference lists the keys of every kind") {
  const auto document = config::parse_toml("", "run.toml");
  std::vector<config::KeyDoc> docs;
  config::Reader root(document->root, "", document->name, &docs);
  read_task(root);
  for (const char* key :
       {"data.dataset", "data.directory", "data.partition.kind", "data.partition.clients",
        "data.partition.alpha", "data.partition.min_size", "data.partition.classes_per_client",
        "data.partition.shards_per_client", "data.partition.samples_per_client", "model.kind", "model.hidden",
        "model.channels", "model.dense", "training.optimizer.kind", "training.optimizer.learning_rate",
        "training.optimizer.momentum", "training.optimizer.weight_decay", "training.local_epochs",
        "training.batch_size"}) {
    const auto it = std::find_if(docs.begin(), docs.end(), [&](const auto& doc) { return doc.path == key; });
    REQUIRE_MESSAGE(it != docs.end(), key);
    CHECK(it->doc.size() > 10);
  }
  CHECK(task_sections() == std::vector<std::string>{"data", "model", "training"});
}
