#include "learn/spec.h"

#include <algorithm>
#include <array>
#include <optional>

#include "learn/text/corpus.h"

namespace fedge::learn {
namespace {

constexpr std::int64_t kMaxClients = 10'000'000;
constexpr std::int64_t kMaxSamples = 1'000'000'000;
constexpr std::int64_t kMaxUnits = 65'536;
constexpr std::int64_t kMaxChannels = 1024;
constexpr std::size_t kMaxHiddenLayers = 16;
constexpr std::int64_t kMaxContext = 4096;
constexpr std::int64_t kMaxLayers = 256;
constexpr std::int64_t kMaxRank = 1024;

const std::vector<std::string> kPartitionNames = {"iid",    "dirichlet", "pathological", "shards",
                                                  "linear", "square",    "exponential",  "natural"};
const std::vector<std::string> kModelNames = {"softmax", "mlp", "cnn", "transformer"};
const std::vector<std::string> kDatasetNames = {"fashion-mnist", "sotu",     "moby-dick", "sotu+moby-dick",
                                                "wordnet",       "fortunes", "text"};
const std::vector<std::string> kTokenizerNames = {"bytes", "ascii", "bpe"};
const std::vector<std::string> kOptimizerNames = {"sgd", "adamw"};
const std::vector<std::string> kScheduleNames = {"constant", "cosine"};
constexpr std::array kObjectives = {
    config::KindDoc{"plain", "McMahan et al. 2017", "the local loss"},
    config::KindDoc{"proximal", "Li et al. 2020", "the local loss + mu / 2 ||v - w||^2, w the round's model"},
    config::KindDoc{
        "scaffold", "Karimireddy et al. 2020",
        "each gradient is moved by the difference of the server's and the client's control variates"},
    config::KindDoc{
        "rank_pruning", "Cho et al. 2024",
        "the local loss + lambda ||B'|| ||A'|| of the client's last ranks, which it gives up once "
        "that shrinks"},
};
const std::vector<std::string> kLocalModelNames = {"whole", "slice", "nested", "prefix"};
const std::vector<std::string> kNestingNames = {"none", "sum", "sample", "sandwich"};

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

TokenizerSpec read_tokenizer(config::Reader& reader, bool text) {
  TokenizerSpec spec;
  spec.kind = static_cast<TokenizerKind>(
      reader.choice("kind", kTokenizerNames, static_cast<std::size_t>(spec.kind),
                    "texts: what a token is: a byte, one of 96 characters, or what a table makes of bytes."));
  const bool bpe = spec.kind == TokenizerKind::kBpe;
  spec.file = reader.text("file", "", "bpe: the table, as `fedge data tokenizer` writes it.");
  spec.table = reader.text("table", "", "bpe: the table itself; follows from file.");
  for (const char* key : {"kind", "file", "table"})
    require_kind(reader, key, text, std::string(key) + " has no effect on a data set that is no text");
  for (const char* key : {"file", "table"})
    require_kind(reader, key, bpe, std::string(key) + " belongs to kind = \"bpe\"");
  if (bpe && spec.file.empty() && spec.table.empty())
    reader.fail("file", "names the table that kind = \"bpe\" needs");
  return spec;
}

DataSpec read_data(config::Reader& reader) {
  DataSpec spec;
  spec.dataset =
      kDatasetNames[reader.choice("dataset", kDatasetNames, 0, "The data set to train and test on.")];
  spec.directory = reader.text(
      "directory", "", "Directory with the data set's files; empty is where the Debian package puts them.");
  const std::string no_text = " has no effect on a data set that is no text";
  require_kind(reader, "context", is_text(spec), "context" + no_text);
  spec.context = to_size(reader.integer("context", 128, {2, kMaxContext}, "texts: tokens in a sample."));
  require_kind(reader, "test_windows", is_text(spec), "test_windows" + no_text);
  spec.test_windows = to_size(
      reader.integer("test_windows", 0, {0, kMaxSamples},
                     "texts: samples of each group's held-out text to test on, evenly spread; 0: all."));
  config::Reader tokenizer = reader.section("tokenizer");
  spec.tokenizer = read_tokenizer(tokenizer, is_text(spec));
  reader.adopt(tokenizer);
  config::Reader partition = reader.section("partition");
  spec.partition = read_partition(partition);
  reader.adopt(partition);
  return spec;
}

AdapterSpec read_adapter(config::Reader& reader) {
  AdapterSpec spec;
  spec.rank = to_size(reader.integer("rank", 0, {0, kMaxRank},
                                     "Rank of LoRA adapters, beside which the model is frozen; 0: none, the "
                                     "model itself is trained."));
  for (const char* key : {"scale", "targets"})
    require_kind(reader, key, spec.rank > 0, std::string(key) + " has no effect without a rank");
  spec.scale = static_cast<float>(reader.number(
      "scale", 2.0, {1e-3, 1e3}, "What adapters count: alpha / rank, the same for every rank."));
  spec.targets =
      reader.texts("targets", std::vector<std::string>{},
                   "Layers that have one: q, k, v, o, up, down of a transformer's blocks, dense1 and "
                   "so on of an mlp; none named: all of them.");
  return spec;
}

ModelSpec read_model(config::Reader& reader) {
  ModelSpec spec;
  const std::size_t kind =
      reader.choice("kind", kModelNames, static_cast<std::size_t>(ModelKind::kMlp),
                    "softmax regression, multi-layer perceptron, convolutional network or transformer.");
  spec.kind = static_cast<ModelKind>(kind);
  const bool cnn = spec.kind == ModelKind::kCnn;
  const bool language = spec.kind == ModelKind::kTransformer;
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
  for (const char* key : {"layers", "width", "heads", "tied"})
    require_kind(reader, key, language, key + of_kind + "transformer");
  const auto integer = [&](const char* key, std::size_t fallback, std::int64_t most, const char* doc) {
    return to_size(reader.integer(key, static_cast<std::int64_t>(fallback), {1, most}, doc));
  };
  spec.layers = integer("layers", spec.layers, kMaxLayers, "transformer: blocks.");
  spec.width = integer("width", spec.width, kMaxUnits, "transformer: floats a token between blocks.");
  spec.heads =
      integer("heads", spec.heads, kMaxUnits, "transformer: heads of attention; width is a multiple.");
  spec.tied = reader.boolean("tied", spec.tied, "transformer: the head's weights are the token embedding's.");
  spec.base =
      reader.text("base", "",
                  "A .safetensors file that the model begins as, adapters apart; only the coordinator "
                  "or the simulator reads it. Empty: random numbers.");
  spec.base_hash = reader.text(
      "base_hash", "",
      "SHA-256 of the base's values in hexadecimal, its file's metadata model_hash; follows from base.");
  require_kind(reader, "base_hash", !spec.base.empty(), "base_hash belongs to a base");
  config::Reader adapter = reader.section("adapter");
  spec.adapter = read_adapter(adapter);
  reader.adopt(adapter);
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
  const bool pruning = spec.kind == ObjectiveKind::kRankPruning;
  for (const char* key : {"lambda", "gamma"})
    require_kind(reader, key, pruning,
                 key + (" has no effect with kind = \"" + names[kind] + "\", it belongs to rank_pruning"));
  const double lambda =
      reader.number("lambda", 0.001, {0.0, 1e4}, "rank_pruning: how much the last ranks are held back.");
  const double gamma =
      reader.number("gamma", 0.9, {0.01, 0.999}, "rank_pruning: share of its ranks that a client keeps.");
  if (pruning) spec.lambda = static_cast<float>(lambda), spec.gamma = gamma;
  return spec;
}

void read_optimizer(config::Reader& reader, TrainingSpec& spec) {
  spec.optimizer = static_cast<OptimizerKind>(reader.choice(
      "kind", kOptimizerNames, 0, "The client's optimizer: stochastic gradient descent or AdamW."));
  const bool adam = spec.optimizer == OptimizerKind::kAdamW;
  const auto number = [&](const char* key, double fallback, config::NumberBounds bounds, const char* doc) {
    return static_cast<float>(reader.number(key, fallback, bounds, doc));
  };
  spec.learning_rate = number("learning_rate", adam ? 0.001 : 0.05, {0.0, 1000.0},
                              "Step size of the client's optimizer; 0.001 if left out with adamw.");
  require_kind(reader, "momentum", !adam, "momentum has no effect with kind = \"adamw\", it belongs to sgd");
  spec.momentum = number("momentum", 0.0, {0.0, 0.9999},
                         "sgd: share of the last step carried into the next; starts at rest in every round.");
  spec.weight_decay = number("weight_decay", 0.0, {0.0, 10.0},
                             "L2 penalty: this times the weight joins the gradient; with adamw, the step.");
  for (const char* key : {"beta1", "beta2", "epsilon"})
    require_kind(reader, key, adam,
                 std::string(key) + " has no effect with kind = \"sgd\", it belongs to adamw");
  spec.adam.beta1 = number("beta1", 0.9, {0.0, 0.9999}, "adamw: memory of the mean gradient.");
  spec.adam.beta2 = number("beta2", 0.999, {0.0, 0.99999}, "adamw: memory of its square.");
  spec.adam.epsilon = number("epsilon", 1e-8, {1e-12, 1.0}, "adamw: added to the root of that.");
}

RateSchedule read_schedule(config::Reader& reader) {
  RateSchedule spec;
  spec.cosine = reader.choice("kind", kScheduleNames, 0,
                              "How the learning rate changes over the run, step by step.") == 1;
  for (const char* key : {"warmup", "final", "rounds"})
    require_kind(reader, key, spec.cosine, std::string(key) + " belongs to kind = \"cosine\"");
  spec.warmup = reader.number("warmup", 0.0, {0.0, 1.0}, "cosine: share of the run in which it rises.");
  spec.final = reader.number("final", 0.0, {0.0, 1.0}, "cosine: share of it that is left at the end.");
  spec.rounds =
      to_size(reader.integer("rounds", 1, {1, 1'000'000}, "cosine: of the run; follows from run.rounds."));
  return spec;
}

TrainingSpec read_training(config::Reader& reader) {
  TrainingSpec spec;
  config::Reader optimizer = reader.section("optimizer");
  read_optimizer(optimizer, spec);
  reader.adopt(optimizer);
  config::Reader schedule = reader.section("schedule");
  spec.schedule = read_schedule(schedule);
  reader.adopt(schedule);
  config::Reader objective = reader.section("objective");
  spec.objective = read_objective(objective);
  reader.adopt(objective);
  spec.local_model = static_cast<LocalModel>(
      reader.choice("local_model", kLocalModelNames, 0,
                    "What runs where a part of the model is trained; follows from strategy.planner."));
  spec.widths =
      reader.numbers("widths", std::vector<double>{}, {0.0, 1.0},
                     "nested: shares of the width that a step may draw; follows from strategy.planner.");
  spec.nesting = static_cast<NestingKind>(
      reader.choice("nesting", kNestingNames, 0,
                    "prefix: how adapters are trained to work cut off at each of ranks; follows from "
                    "strategy.kind. sum: at all of them in every step; sample: at one; sandwich: at three."));
  spec.ranks =
      to_sizes(reader.integers("ranks", std::vector<std::int64_t>{}, {1, kMaxRank},
                               "prefix: where adapters may be cut off; follows from strategy.planner."));
  require_kind(reader, "nesting", spec.local_model == LocalModel::kPrefix,
               "nesting is of adapters of different ranks: it needs a planner such as rank_prefix");
  if (!std::ranges::is_sorted(spec.ranks, std::less_equal<>())) reader.fail("ranks", "do not ascend");
  spec.local_epochs =
      to_size(reader.integer("local_epochs", static_cast<std::int64_t>(spec.local_epochs), {1, 10'000},
                             "Passes of a client over its own samples in one round."));
  require_kind(reader, "local_steps", !reader.has("local_epochs"),
               "local_steps takes the place of local_epochs; leave one of them out");
  spec.local_steps =
      to_size(reader.integer("local_steps", 0, {0, 1'000'000'000},
                             "Steps of a client in one round, however many samples it has; 0: by "
                             "local_epochs."));
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

const std::vector<std::string>& dataset_names() { return kDatasetNames; }

bool is_text(const DataSpec& spec) {
  return std::ranges::find(corpus_names(), spec.dataset) != corpus_names().end();
}

const std::string& name_of(PartitionKind kind) { return kPartitionNames.at(static_cast<std::size_t>(kind)); }
const std::string& name_of(ModelKind kind) { return kModelNames.at(static_cast<std::size_t>(kind)); }
const std::string& name_of(OptimizerKind kind) { return kOptimizerNames.at(static_cast<std::size_t>(kind)); }

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
