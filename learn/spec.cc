#include "learn/spec.h"

#include <algorithm>
#include <array>
#include <optional>

#include "learn/data/kinds.h"
#include "learn/models/kinds.h"
#include "learn/objectives/kinds.h"

namespace fedge::learn {
namespace {

constexpr std::int64_t kMaxClients = 10'000'000;
constexpr std::int64_t kMaxSamples = 1'000'000'000;
constexpr std::int64_t kMaxContext = 4096;
constexpr std::int64_t kMaxRank = 1024;

const std::vector<std::string> kPartitionNames = {"iid",    "dirichlet", "pathological", "shards",
                                                  "linear", "square",    "exponential",  "natural"};
const std::vector<std::string> kTokenizerNames = {"bytes", "ascii", "bpe"};
const std::vector<std::string> kOptimizerNames = {"sgd", "adamw"};
const std::vector<std::string> kScheduleNames = {"constant", "cosine"};
const std::vector<std::string> kLocalModelNames = {"whole", "slice", "nested", "prefix"};
const std::vector<std::string> kNestingNames = {"none", "sum", "sample", "sandwich"};

std::size_t to_size(std::int64_t value) { return static_cast<std::size_t>(value); }

std::vector<std::size_t> to_sizes(const std::vector<std::int64_t>& values) {
  return {values.begin(), values.end()};
}

// Refuses a key that has no effect with the chosen kind. Callers still read every key, so that the generated
// reference lists it.
void require_kind(config::Reader& reader, const std::string& key, bool belongs, const std::string& message) {
  if (!belongs && reader.has(key)) reader.refuse(key, message);
}

// The same for a key whose effect depends on another key than `kind`.
void require_beside(config::Reader& reader, const std::string& key, bool belongs, const std::string& message,
                    const char* beside) {
  if (!belongs && reader.has(key)) reader.fail(key, message, {beside});
}

PartitionSpec read_partition(config::Reader& reader) {
  PartitionSpec spec;
  const std::size_t kind = reader.choice(
      "kind", kPartitionNames, 0,
      "How the training samples are distributed over the clients.\niid: random samples, equally many for "
      "each client.\ndirichlet: label proportions drawn from a Dirichlet distribution with parameter "
      "alpha.\npathological: classes_per_client different labels for each client.\nshards: shards_per_client "
      "shards of the data, sorted by label, for each client.\nlinear: random samples; client i gets a number "
      "proportional to i, counted from 1.\nsquare: as linear, but proportional to the square of "
      "i.\nexponential: as linear, but proportional to e to the power of i.\nnatural: the natural groups of "
      "the data set, dealt to the clients in turn; for images, the groups are the labels.");
  spec.kind = static_cast<PartitionKind>(kind);
  spec.clients = to_size(reader.integer("clients", 10, {1, kMaxClients},
                                        "Number of clients over which the data is partitioned."));

  const bool dirichlet = spec.kind == PartitionKind::kDirichlet;
  const std::string of_kind =
      "has no effect with kind = \"" + kPartitionNames[kind] + "\"; it applies only to ";
  require_kind(reader, "samples_per_client", dirichlet || spec.kind == PartitionKind::kIid,
               of_kind + "iid and dirichlet");
  spec.samples_per_client =
      to_size(reader.integer("samples_per_client", 0, {0, kMaxSamples},
                             "iid, dirichlet: number of samples of each client. 0: distribute all samples."));
  require_kind(reader, "alpha", dirichlet, of_kind + "dirichlet");
  spec.alpha = reader.number(
      "alpha", 0.5, {1e-4, 1e6},
      "dirichlet: concentration parameter. Smaller values make the labels of the clients differ more.");
  require_kind(reader, "min_size", dirichlet, of_kind + "dirichlet");
  require_beside(reader, "min_size", spec.samples_per_client == 0,
                 "has no effect with samples_per_client, which gives every client the same number of samples",
                 "data.partition.samples_per_client");
  spec.min_size = to_size(reader.integer(
      "min_size", 1, {0, kMaxSamples},
      "dirichlet, without samples_per_client: minimum number of samples of a client. "
      "The draw is repeated, at most 1000 times, until every client has at least this number."));
  require_kind(reader, "classes_per_client", spec.kind == PartitionKind::kPathological,
               of_kind + "pathological");
  spec.classes_per_client = to_size(reader.integer(
      "classes_per_client", 2, {1, 256}, "pathological: number of different labels of each client."));
  require_kind(reader, "shards_per_client", spec.kind == PartitionKind::kShards, of_kind + "shards");
  spec.shards_per_client = to_size(
      reader.integer("shards_per_client", 2, {1, kMaxSamples}, "shards: number of shards of each client."));
  return spec;
}

TokenizerSpec read_tokenizer(config::Reader& reader, bool text) {
  TokenizerSpec spec;
  spec.kind = static_cast<TokenizerKind>(
      reader.choice("kind", kTokenizerNames, static_cast<std::size_t>(spec.kind),
                    "texts: how a text is divided into tokens.\nbytes: each byte is a token.\nascii: each of "
                    "96 characters is a token.\nbpe: byte-pair encoding with the table in file."));
  const bool bpe = spec.kind == TokenizerKind::kBpe;
  spec.file = reader.text("file", "", "bpe: path of the table that `fedge data tokenizer` wrote.");
  spec.table = reader.text("table", "", "bpe: the content of the table. Set automatically from file.");
  for (const char* key : {"kind", "file", "table"})
    require_beside(reader, key, text, "has no effect on a data set that is not a text", "data.dataset");
  for (const char* key : {"file", "table"})
    require_kind(reader, key, bpe, "has no effect without kind = \"bpe\"");
  if (bpe && spec.file.empty() && spec.table.empty())
    reader.fail("file", "is required with kind = \"bpe\"; name a table written by `fedge data tokenizer`",
                {"data.tokenizer"});
  return spec;
}

DataSpec read_data(config::Reader& reader) {
  DataSpec spec;
  choose_dataset_kind(reader, spec);
  spec.directory = reader.text("directory", "",
                               "Directory of the data set's files. Empty: the default directory of the data "
                               "set; `text` has no default directory.");
  const std::string no_text = "has no effect on a data set that is not a text";
  require_beside(reader, "context", is_text(spec), no_text, "data.dataset");
  spec.context =
      to_size(reader.integer("context", 128, {2, kMaxContext}, "texts: length of a sample in tokens."));
  require_beside(reader, "test_windows", is_text(spec), no_text, "data.dataset");
  spec.test_windows = to_size(reader.integer(
      "test_windows", 0, {0, kMaxSamples},
      "texts: number of test samples from the held-out text of each group, evenly spaced. 0: all."));
  spec.validation = reader.number(
      "validation", 0.0, {0.0, 0.5},
      "Fraction of the training samples, of each label or group, that no client gets and that replace the "
      "test samples in every evaluation. Use it to choose settings, such as the learning rate, without the "
      "test samples. 0: the test samples are used.");
  config::Reader tokenizer = reader.section("tokenizer");
  spec.tokenizer = read_tokenizer(tokenizer, is_text(spec));
  reader.adopt(tokenizer);
  config::Reader partition = reader.section("partition");
  spec.partition = read_partition(partition);
  reader.adopt(partition);
  read_dataset_options(reader, spec);
  return spec;
}

AdapterSpec read_adapter(config::Reader& reader) {
  AdapterSpec spec;
  spec.rank = to_size(reader.integer("rank", 0, {0, kMaxRank},
                                     "Rank of LoRA adapters. Only the adapters are trained; the model is "
                                     "frozen. 0: no adapters, the model is trained."));
  for (const char* key : {"scale", "targets"})
    require_beside(reader, key, spec.rank > 0, "has no effect without adapters; set rank",
                   "model.adapter.rank");
  spec.scale = static_cast<float>(reader.number("scale", 2.0, {1e-3, 1e3},
                                                "Factor on the output of the adapters (alpha / rank in the "
                                                "LoRA paper). It is the same for every rank."));
  spec.targets = reader.texts("targets", std::vector<std::string>{},
                              "Layers with adapters: q, k, v, o, up, down of a transformer; dense1, dense2, "
                              "... of an mlp. Empty: all.");
  return spec;
}

ModelSpec read_model(config::Reader& reader) {
  ModelSpec spec;
  choose_model_kind(reader, spec);
  spec.base = reader.text("base", "",
                          "Path of a .safetensors file with the initial weights, read only by the "
                          "coordinator or the simulator. Empty: random weights.");
  spec.base_hash = reader.text("base_hash", "",
                               "SHA-256 of the values in base, in hexadecimal (`model_hash` in the file's "
                               "metadata). Set automatically from base.");
  require_beside(reader, "base_hash", !spec.base.empty(), "has no effect without model.base", "model.base");
  config::Reader adapter = reader.section("adapter");
  spec.adapter = read_adapter(adapter);
  reader.adopt(adapter);
  read_model_options(reader, spec);
  return spec;
}

void read_optimizer(config::Reader& reader, TrainingSpec& spec) {
  spec.optimizer = static_cast<OptimizerKind>(
      reader.choice("kind", kOptimizerNames, 0,
                    "Optimizer of the clients: stochastic gradient descent (sgd) or AdamW (adamw)."));
  const bool adam = spec.optimizer == OptimizerKind::kAdamW;
  const auto number = [&](const char* key, double fallback, config::NumberBounds bounds, const char* doc) {
    return static_cast<float>(reader.number(key, fallback, bounds, doc));
  };
  spec.learning_rate = number("learning_rate", adam ? 0.001 : 0.05, {0.0, 1000.0},
                              "Learning rate of the clients. The default with adamw is 0.001.");
  require_kind(reader, "momentum", !adam, "has no effect with kind = \"adamw\"; it applies only to sgd");
  spec.momentum = number("momentum", 0.0, {0.0, 0.9999},
                         "sgd: momentum coefficient. The momentum starts at 0 in every round.");
  spec.weight_decay = number("weight_decay", 0.0, {0.0, 10.0},
                             "Coefficient of the weight decay. sgd adds the decay to the gradient (L2 "
                             "penalty); adamw adds it to the step.");
  for (const char* key : {"beta1", "beta2", "epsilon"})
    require_kind(reader, key, adam, "has no effect with kind = \"sgd\"; it applies only to adamw");
  spec.adam.beta1 = number("beta1", 0.9, {0.0, 0.9999},
                           "adamw: decay rate of the first moment, the mean of the gradients.");
  spec.adam.beta2 = number("beta2", 0.999, {0.0, 0.99999},
                           "adamw: decay rate of the second moment, the mean of the squared gradients.");
  spec.adam.epsilon =
      number("epsilon", 1e-8, {1e-12, 1.0}, "adamw: number added to the square root of the second moment.");
}

RateSchedule read_schedule(config::Reader& reader) {
  RateSchedule spec;
  spec.cosine = reader.choice("kind", kScheduleNames, 0,
                              "How the learning rate changes over the run: constant, or a linear warm-up and "
                              "then a cosine decay (cosine).") == 1;
  for (const char* key : {"warmup", "final", "rounds"})
    require_kind(reader, key, spec.cosine, "has no effect without kind = \"cosine\"");
  spec.warmup =
      reader.number("warmup", 0.0, {0.0, 1.0},
                    "cosine: fraction of the run in which the learning rate rises from 0 to learning_rate.");
  spec.final = reader.number("final", 0.0, {0.0, 1.0},
                             "cosine: fraction of learning_rate that is left at the end of the run.");
  spec.rounds =
      to_size(reader.integer("rounds", 1, {1, 1'000'000},
                             "cosine: number of rounds of the run. Set automatically from run.rounds."));
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
  objective.depends_on("strategy.kind");
  spec.objective = read_objective(objective);
  reader.adopt(objective);
  spec.local_model = static_cast<LocalModel>(
      reader.choice("local_model", kLocalModelNames, 0,
                    "Which network a client runs if it trains a part of the model. Set automatically from "
                    "strategy.planner.\nwhole: the whole network, in which only the part is trained.\nslice: "
                    "the narrower network that consists of the part.\nnested: narrower networks of several "
                    "widths, in turn.\nprefix: the model with the first ranks of its adapters."));
  spec.widths = reader.numbers("widths", std::vector<double>{}, {0.0, 1.0},
                               "nested: widths that a step may draw, as fractions of the full width. Set "
                               "automatically from strategy.planner.");
  spec.nesting = static_cast<NestingKind>(
      reader.choice("nesting", kNestingNames, 0,
                    "prefix: how adapters are trained so that their first ranks work alone. Set "
                    "automatically from strategy.kind.\nnone: only at the client's own rank.\nsum: every "
                    "step minimises the mean loss at all ranks in training.ranks and at the client's own "
                    "rank.\nsample: every step uses one of these ranks, drawn at random.\nsandwich: every "
                    "step uses the lowest rank, the highest rank and one random rank between them."));
  spec.ranks = to_sizes(reader.integers(
      "ranks", std::vector<std::int64_t>{}, {1, kMaxRank},
      "prefix: ranks to which adapters may be truncated. Set automatically from strategy.planner."));
  if (reader.has("nesting") && spec.local_model != LocalModel::kPrefix)
    reader.fail("nesting",
                "requires adapters of different ranks; use strategy.planner.kind = \"rank_prefix\"",
                {"strategy.kind", "strategy.planner", "training.local_model"});
  if (!std::ranges::is_sorted(spec.ranks, std::less_equal<>()))
    reader.fail("ranks", "must be in ascending order without duplicates", {"strategy.planner.ranks"});
  spec.local_epochs =
      to_size(reader.integer("local_epochs", static_cast<std::int64_t>(spec.local_epochs), {1, 10'000},
                             "Number of passes of a client over its samples in one round."));
  if (reader.has("local_steps") && reader.has("local_epochs"))
    reader.fail("local_steps", "cannot be set together with local_epochs; remove one of the two keys");
  spec.local_steps = to_size(reader.integer("local_steps", 0, {0, 1'000'000'000},
                                            "Number of optimizer steps of a client in one round, whatever "
                                            "its number of samples. 0: local_epochs applies."));
  spec.batch_size =
      to_size(reader.integer("batch_size", static_cast<std::int64_t>(spec.batch_size), {1, 65'536},
                             "Number of samples in one step. The last step of an epoch may have fewer."));
  spec.partial_work = reader.number("partial_work", 0.0, {0.0, 1.0},
                                    "Fraction of a task's time after which a client stops training and sends "
                                    "its update. 0: it always completes its training.");
  return spec;
}

}  // namespace

bool is_text(const DataSpec& spec) {
  const DatasetKind* kind = find_dataset_kind(spec.dataset);
  return kind != nullptr && kind->traits.text;
}

const std::string& name_of(PartitionKind kind) { return kPartitionNames.at(static_cast<std::size_t>(kind)); }
const std::string& name_of(OptimizerKind kind) { return kOptimizerNames.at(static_cast<std::size_t>(kind)); }

const std::string& name_of(LocalModel model) { return kLocalModelNames.at(static_cast<std::size_t>(model)); }

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
