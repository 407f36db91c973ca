#include "server/report/page/run_facts.h"

#include <array>
#include <charconv>
#include <cmath>

namespace fedge::server {
namespace {

// Returns the shortest text that reads back as the same number, as users write it in a run file.
template <class Number>
std::string shortest(Number value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), end.ptr};
}

// "199,210"
std::string grouped_digits(std::size_t value) {
  std::string text = std::to_string(value);
  for (std::size_t i = text.size(); i > 3;) text.insert(i -= 3, ",");
  return text;
}

std::string plural(std::size_t count, const std::string& word) {
  return grouped_digits(count) + " " + word + (count == 1 ? "" : "s");
}

std::string listed_sizes(const std::vector<std::size_t>& sizes) {
  std::string text;
  for (const std::size_t size : sizes) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "[" + text + "]";
}

std::string model_text(const learn::ModelSpec& model, std::size_t parameters) {
  std::string text = model.kind;
  if (model.kind == "layers") text = plural(model.network.size(), "layer");
  if (model.kind == "mlp") text += ", hidden " + listed_sizes(model.hidden);
  if (model.kind == "cnn")
    text += ", channels " + listed_sizes(model.channels) + ", dense " + std::to_string(model.dense);
  if (model.kind == "transformer" || model.kind == "llama")
    text += ", " + plural(model.language.layers, "layer") + ", width " +
            std::to_string(model.language.width) + ", " + plural(model.language.heads, "head");
  if (model.adapter.rank > 0) text += ", adapters of rank " + std::to_string(model.adapter.rank);
  if (parameters > 0) text += ", " + plural(parameters, "parameter");
  return text;
}

std::string partition_text(const learn::PartitionSpec& partition) {
  std::string text = learn::name_of(partition.kind);
  if (partition.kind == learn::PartitionKind::kDirichlet) text += ", alpha " + shortest(partition.alpha);
  if (partition.kind == learn::PartitionKind::kPathological)
    text += ", " + std::to_string(partition.classes_per_client) + " classes per client";
  if (partition.kind == learn::PartitionKind::kShards)
    text += ", " + std::to_string(partition.shards_per_client) + " shards per client";
  if (partition.samples_per_client > 0)
    text += ", " + plural(partition.samples_per_client, "sample") + " per client";
  return text + ", " + plural(partition.clients, "client");
}

std::string strategy_text(const aggregation::StrategySpec& strategy) {
  std::string text = strategy.recipe->name;
  if (strategy.schedule.buffered) text += ", buffer of " + plural(strategy.schedule.buffer_size, "update");
  return text;
}

std::string training_text(const learn::TrainingSpec& training) {
  const std::string length = training.local_steps > 0 ? plural(training.local_steps, "local step")
                                                      : plural(training.local_epochs, "local epoch");
  return learn::name_of(training.optimizer) + ", " + length + ", batch size " +
         std::to_string(training.batch_size);
}

std::string rate_text(const learn::TrainingSpec& training) {
  return shortest(training.learning_rate) + (training.schedule.cosine ? ", cosine schedule" : "");
}

const char* kind_text(run::DifferentialPrivacySpec::Kind kind) {
  using Kind = run::DifferentialPrivacySpec::Kind;
  switch (kind) {
    case Kind::kCentral:
      return "central";
    case Kind::kDistributed:
      return "distributed";
    case Kind::kTree:
      return "tree";
    case Kind::kLocal:
      return "local";
    case Kind::kNone:
      break;
  }
  return "none";
}

std::string privacy_text(const run::RunConfig& config) {
  std::string text = config.secure.on ? "secure aggregation" : "";
  const run::DifferentialPrivacySpec& privacy = config.privacy;
  if (!privacy.on()) return text;
  text += std::string(text.empty() ? "" : ", ") + kind_text(privacy.kind) + " differential privacy";
  if (std::isfinite(privacy.epsilon)) text += ", epsilon at most " + shortest(privacy.epsilon);
  return text + ", delta " + shortest(privacy.delta);
}

}  // namespace

Facts run_facts(const run::RunConfig& config, const RunCircumstances& circumstances) {
  Facts facts = {{"Strategy", strategy_text(config.strategy)},
                 {"Model", model_text(config.task.model, circumstances.parameters)},
                 {"Data set", config.task.data.dataset},
                 {"Partition", partition_text(config.task.data.partition)},
                 {"Sampler", config.sampling.kind + ", " +
                                 plural(config.sampling.clients_per_round, "client") + " per round"},
                 {"Learning rate", rate_text(config.task.training)},
                 {"Local training", training_text(config.task.training)},
                 {"Rounds", grouped_digits(config.rounds)},
                 {"Seed", std::to_string(config.seed)}};
  if (const double validation = config.task.data.validation; validation > 0)
    facts.emplace_back("Evaluation",
                       "validation samples, " + shortest(validation) + " of the training samples");
  if (const std::string privacy = privacy_text(config); !privacy.empty())
    facts.emplace_back("Privacy", privacy);
  if (!circumstances.version.empty()) facts.emplace_back("Program version", "Fedge " + circumstances.version);
  return facts;
}

}  // namespace fedge::server
