#include "learn/spec.h"

#include <algorithm>
#include <array>
#include <optional>

#include "learn/data/data_section.h"
#include "learn/models/kinds.h"
#include "learn/objectives/kinds.h"

namespace fedge::learn {
namespace {

constexpr std::int64_t kMaxRank = 1024;

const std::vector<std::string> kOptimizerNames = {"sgd", "adamw"};
const std::vector<std::string> kScheduleNames = {"constant", "cosine"};
const std::vector<std::string> kLocalModelNames = {"whole", "slice", "nested", "prefix", "block", "split"};
const std::vector<std::string> kOverlapNames = {"none", "local", "stale"};
const std::vector<std::string> kNestingNames = {"none", "sum", "sample", "sandwich"};

std::vector<std::size_t> to_sizes(const std::vector<std::int64_t>& values) {
  return {values.begin(), values.end()};
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
                          "coordinator or the simulator. Empty: random weights. Without model.kind, kind and "
                          "sizes are those of this file, and so is data.tokenizer if it is not set.");
  spec.base_hash = reader.text("base_hash", "",
                               "SHA-256 of the values in base, in hexadecimal (`model_hash` in the file's "
                               "metadata). Set automatically from base.");
  require_beside(reader, "base_hash", !spec.base.empty(), "has no effect without model.base", "model.base");
  spec.personal =
      reader.texts("personal", std::vector<std::string>{},
                   "Layers that stay on the clients: each client trains and keeps its own, and they "
                   "are in no update (training.personal). For example [\"dense2\"].");
  config::Reader adapter = reader.section("adapter");
  spec.adapter = read_adapter(adapter);
  reader.adopt(adapter);
  spec.base_dtype = static_cast<BaseDtype>(
      reader.choice("base_dtype", base_dtype_names(), 0,
                    "Type of the matrices of a language model that are not trained. With bfloat16 or int8 "
                    "(groups of 64 values) a device needs less memory for them, a half or a quarter; they "
                    "are rounded before the run begins."));
  require_beside(reader, "base_dtype", spec.adapter.rank > 0,
                 "has no effect without adapters, because all weights are trained", "model.adapter.rank");
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

TrainingSpec read_training(config::Reader& reader, const ModelSpec& model) {
  TrainingSpec spec;
  config::Reader optimizer = reader.section("optimizer");
  read_optimizer(optimizer, spec);
  reader.adopt(optimizer);
  config::Reader schedule = reader.section("schedule");
  spec.schedule = read_schedule(schedule);
  reader.adopt(schedule);
  config::Reader loss = reader.section("loss");
  spec.loss = read_loss(loss);
  reader.adopt(loss);
  config::Reader personal = reader.section("personal");
  spec.personal = read_personal(personal, model.personal);
  reader.adopt(personal);
  config::Reader split = reader.section("split");
  spec.split = read_split_training(split);
  reader.adopt(split);
  config::Reader objective = reader.section("objective");
  objective.depends_on("strategy.kind");
  spec.objective = read_objective(objective);
  reader.adopt(objective);
  spec.local_model = static_cast<LocalModel>(reader.choice(
      "local_model", kLocalModelNames, 0,
      "Which network a client runs if it trains a part of the model. Set automatically from "
      "strategy.planner.\nwhole: the whole network, in which only the part is trained.\nslice: "
      "the narrower network that consists of the part.\nnested: narrower networks of several "
      "widths, in turn.\nprefix: the model with the first ranks of its adapters.\nblock: the whole "
      "network, of which all clients train one block in a round.\nsplit: the first blocks of the network; "
      "the "
      "coordinator runs the others."));
  spec.overlap = static_cast<OverlapKind>(reader.choice(
      "overlap", kOverlapNames, 0,
      "Whether a client trains the next round's part of the model while its update is under way, and from "
      "which values of the part that it has just trained. Set automatically from strategy.kind.\nnone: a "
      "client waits for the next round's model.\nlocal: from its own new values.\nstale: from the values "
      "before its training."));
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
  spec.recompute =
      reader.boolean("recompute", false,
                     "Whether a transformer or llama keeps only the inputs of its blocks and computes "
                     "the rest again in the backward pass. It takes less memory and a third more time; "
                     "the result is the same, bit for bit.");
  spec.partial_work = reader.number("partial_work", 0.0, {0.0, 1.0},
                                    "Fraction of a task's time after which a client stops training and sends "
                                    "its update. 0: it always completes its training.");
  spec.start_loss = reader.boolean(
      "start_loss", false,
      "Whether the training loss that a client reports is the loss of the round's model on its samples, "
      "before "
      "it trains. This takes one more pass over them. If not set, strategy.aggregator determines it.");
  return spec;
}

}  // namespace

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
  spec.training = read_training(training, spec.model);
  root.adopt(training);
  return spec;
}

const std::vector<std::string>& task_sections() {
  static const std::vector<std::string> kSections = {"data", "model", "training"};
  return kSections;
}

}  // namespace fedge::learn
