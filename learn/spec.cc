#include "learn/spec.h"

#include <array>
#include <optional>

namespace fedge::learn {
namespace {

constexpr std::int64_t kMaxClients = 10'000'000;
constexpr std::int64_t kMaxSamples = 1'000'000'000;
constexpr std::int64_t kMaxUnits = 65'536;
constexpr std::int64_t kMaxChannels = 1024;
constexpr std::size_t kMaxHiddenLayers = 16;

const std::vector<std::string> kPartitionNames = {"iid",    "dirichlet", "pathological", "shards",
                                                  "linear", "square",    "exponential"};
const std::vector<std::string> kModelNames = {"softmax", "mlp", "cnn"};
const std::vector<std::string> kDatasetNames = {"fashion-mnist"};
const std::vector<std::string> kOptimizerNames = {"sgd"};
constexpr std::array kObjectives = {
    config::KindDoc{"plain", "McMahan et al. 2017", "the local loss"},
    config::KindDoc{"proximal", "Li et al. 2020", "the local loss + mu / 2 ||v - w||^2, w the round's model"},
    config::KindDoc{
        "scaffold", "Karimireddy et al. 2020",
        "each gradient is moved by the difference of the server's and the client's control variates"},
};
const std::vector<std::string> kLocalModelNames = {"whole", "slice", "nested"};

std::size_t to_size(std::int64_t value) { return static_cast<std::size_t>(value); }

std::vector<std::size_t> to_sizes(const std::vector<std::int64_t>& values) {
  return {values.begin(), values.end()};
}

std::vector<std::int64_t> to_integers(const std::vector<std::size_t>& values) {
  return {values.begin(), values.end()};
}

// Every key is read whatever the kind, so that the generated reference lists it; where it has no
// effect it may not be given.
void require_kind(config::Reader& reader, const std::string& key, bool belongs, const std::string& message) {
  if (!belongs && reader.has(key)) reader.fail(key, message);
}

PartitionSpec read_partition(config::Reader& reader) {
  PartitionSpec spec;
  const std::size_t kind =
      reader.choice("kind", kPartitionNames, 0, "How the training samples are shared out among the clients.");
  spec.kind = static_cast<PartitionKind>(kind);
  spec.clients = to_size(
      reader.integer("clients", 10, {1, kMaxClients}, "Number of clients that hold a part of the data."));

  const bool dirichlet = spec.kind == PartitionKind::kDirichlet;
  const std::string of_kind = " has no effect with kind = \"" + kPartitionNames[kind] + "\", it belongs to ";
  require_kind(reader, "samples_per_client", dirichlet || spec.kind == PartitionKind::kIid,
               "samples_per_client" + of_kind + "iid and dirichlet");
  spec.samples_per_client =
      to_size(reader.integer("samples_per_client", 0, {0, kMaxSamples},
                             "iid, dirichlet: exactly this many samples for each client; "
                             "0 shares out everything."));
  require_kind(reader, "alpha", dirichlet, "alpha" + of_kind + "dirichlet");
  spec.alpha = reader.number("alpha", 0.5, {1e-4, 1e6},
                             "dirichlet: concentration; the smaller, the more each client's labels differ.");
  require_kind(reader, "min_size", dirichlet, "min_size" + of_kind + "dirichlet");
  require_kind(reader, "min_size", spec.samples_per_client == 0,
               "min_size has no effect beside samples_per_client, which gives every client the same number");
  spec.min_size =
      to_size(reader.integer("min_size", 1, {0, kMaxSamples},
                             "dirichlet over everything: drawn again until every client has this many."));
  require_kind(reader, "classes_per_client", spec.kind == PartitionKind::kPathological,
               "classes_per_client" + of_kind + "pathological");
  spec.classes_per_client = to_size(reader.integer(
      "classes_per_client", 2, {1, 256}, "pathological: number of different labels of each client."));
  require_kind(reader, "shards_per_client", spec.kind == PartitionKind::kShards,
               "shards_per_client" + of_kind + "shards");
  spec.shards_per_client = to_size(reader.integer("shards_per_client", 2, {1, kMaxSamples},
                                                  "shards: runs of the label-sorted data for each client."));
  return spec;
}

DataSpec read_data(config::Reader& reader) {
  DataSpec spec;
  spec.dataset =
      kDatasetNames[reader.choice("dataset", kDatasetNames, 0, "The data set to train and test on.")];
  spec.directory = reader.text(
      "directory", "", "Directory with the data set's files; empty is where the Debian package puts them.");
  config::Reader partition = reader.section("partition");
  spec.partition = read_partition(partition);
  reader.adopt(partition);
  return spec;
}

ModelSpec read_model(config::Reader& reader) {
  ModelSpec spec;
  const std::size_t kind =
      reader.choice("kind", kModelNames, static_cast<std::size_t>(ModelKind::kMlp),
                    "softmax regression, multi-layer perceptron or convolutional network.");
  spec.kind = static_cast<ModelKind>(kind);
  const bool cnn = spec.kind == ModelKind::kCnn;
  const std::string of_kind = " has no effect with kind = \"" + kModelNames[kind] + "\", it belongs to ";

  require_kind(reader, "hidden", spec.kind == ModelKind::kMlp, "hidden" + of_kind + "mlp");
  spec.hidden = to_sizes(reader.integers("hidden", to_integers(spec.hidden), {1, kMaxUnits},
                                         "mlp: units of each hidden layer, from the input on."));
  if (spec.hidden.empty() || spec.hidden.size() > kMaxHiddenLayers) {
    reader.fail("hidden", "lists " + std::to_string(spec.hidden.size()) + " layers, expected 1 to " +
                              std::to_string(kMaxHiddenLayers) +
                              " (a model without one is kind = \"softmax\")");
  }
  require_kind(reader, "channels", cnn, "channels" + of_kind + "cnn");
  spec.channels = to_sizes(reader.integers("channels", to_integers(spec.channels), {1, kMaxChannels},
                                           "cnn: output channels of the two 5x5 convolutions."));
  if (spec.channels.size() != 2) {
    reader.fail("channels", "lists " + std::to_string(spec.channels.size()) + " numbers, expected two");
  }
  require_kind(reader, "dense", cnn, "dense" + of_kind + "cnn");
  spec.dense = to_size(reader.integer("dense", static_cast<std::int64_t>(spec.dense), {1, kMaxUnits},
                                      "cnn: units of the dense layer between convolutions and output."));
  return spec;
}

ObjectiveSpec read_objective(config::Reader& reader) {
  ObjectiveSpec spec;
  std::vector<std::string> names;
  for (const config::KindDoc& objective : kObjectives) names.emplace_back(objective.name);
  const std::size_t kind = reader.choice(
      "kind", names, 0, "What local training minimises; follows from strategy.kind if left out.");
  spec.kind = static_cast<ObjectiveKind>(kind);
  const bool proximal = spec.kind == ObjectiveKind::kProximal;
  require_kind(reader, "mu", proximal,
               "mu has no effect with kind = \"" + names[kind] + "\", it belongs to proximal");
  const double mu = reader.number("mu", 0.01, {0.0, 1e4}, "proximal: how much clients are held back.");
  if (proximal) spec.mu = static_cast<float>(mu);
  return spec;
}

TrainingSpec read_training(config::Reader& reader) {
  TrainingSpec spec;
  config::Reader optimizer = reader.section("optimizer");
  optimizer.choice("kind", kOptimizerNames, 0, "The client's optimizer: stochastic gradient descent.");
  spec.learning_rate = static_cast<float>(
      optimizer.number("learning_rate", 0.05, {0.0, 1000.0}, "Step size of the client's optimizer."));
  spec.momentum = static_cast<float>(
      optimizer.number("momentum", 0.0, {0.0, 0.9999},
                       "Share of the last step carried into the next; starts at rest in every round."));
  spec.weight_decay = static_cast<float>(optimizer.number(
      "weight_decay", 0.0, {0.0, 10.0}, "L2 penalty: this times the weight joins the gradient."));
  reader.adopt(optimizer);
  config::Reader objective = reader.section("objective");
  spec.objective = read_objective(objective);
  reader.adopt(objective);
  spec.local_model = static_cast<LocalModel>(
      reader.choice("local_model", kLocalModelNames, 0,
                    "What runs where a part of the model is trained; follows from strategy.planner."));
  spec.widths =
      reader.numbers("widths", std::vector<double>{}, {0.0, 1.0},
                     "nested: shares of the width that a step may draw; follows from strategy.planner.");
  spec.local_epochs =
      to_size(reader.integer("local_epochs", static_cast<std::int64_t>(spec.local_epochs), {1, 10'000},
                             "Passes of a client over its own samples in one round."));
  spec.batch_size =
      to_size(reader.integer("batch_size", static_cast<std::int64_t>(spec.batch_size), {1, 65'536},
                             "Samples in one step; the last step of an epoch may have fewer."));
  spec.partial_work = reader.number("partial_work", 0.0, {0.0, 1.0},
                                    "A client whose training has not ended when this share of its task's "
                                    "time has passed sends what it has; "
                                    "leave the rest to the upload. 0: it trains to the end, however late.");
  return spec;
}

}  // namespace

std::span<const config::KindDoc> objective_kinds() { return kObjectives; }

TaskSpec read_task(config::Reader& root) {
  TaskSpec spec;
  config::Reader data = root.section("data");
  spec.data = read_data(data);
  root.adopt(data);
  config::Reader model = root.section("model");
  spec.model = read_model(model);
  root.adopt(model);
  config::Reader training = root.section("training");
  spec.training = read_training(training);
  root.adopt(training);
  return spec;
}

const std::vector<std::string>& task_sections() {
  static const std::vector<std::string> kSections = {"data", "model", "training"};
  return kSections;
}

}  // namespace fedge::learn
