#include "server/report/metrics.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <type_traits>

#include "core/detail/json.h"
#include "core/platform/files.h"
#include "server/report/detail/data_statistics.h"
#include "server/report/detail/fields.h"

namespace fedge::server {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kMaxFileBytes = std::size_t{1} << 30;

ordered_json to_object(const ClientEvaluation& evaluation) {
  ordered_json object;
  for_each_metric(evaluation, [&](const char* name, const auto& value) {
    if constexpr (std::is_floating_point_v<std::remove_cvref_t<decltype(value)>>)
      object[name] = json_number(value);
    else
      object[name] = value;
  });
  object["per_class_accuracy"] = ordered_json::array();
  for (const double accuracy : evaluation.per_class_accuracy)
    object["per_class_accuracy"].push_back(json_number(accuracy));
  if (!evaluation.confusion.empty()) object["confusion"] = evaluation.confusion;
  return object;
}

ordered_json to_object(const TrackMetrics& metrics) {
  ordered_json object;
  object["exclude"] = metrics.track.exclude;
  object["owners"] = metrics.track.owners;
  object["owner_count"] = metrics.track.owner_count;
  object["members"] = metrics.track.members;
  object["model_hash"] = metrics.model_hash;
  object["test_accuracy"] = json_number(metrics.test_accuracy);
  object["test_loss"] = json_number(metrics.test_loss);
  object["train_loss"] = json_number(metrics.train_loss);
  object["clients_selected"] = metrics.clients_selected;
  object["clients_completed"] = metrics.clients_completed;
  if (metrics.evaluation) object["evaluation"] = to_object(*metrics.evaluation);
  return object;
}

Result<void> read_evaluation(const ordered_json& object, std::optional<ClientEvaluation>& evaluation) {
  if (!object.contains("evaluation")) return {};
  if (!object.at("evaluation").is_object()) return invalid("evaluation is not an object");
  Fields fields(object.at("evaluation"));
  evaluation.emplace();
  for_each_metric(*evaluation, [&](const char* name, auto& value) {
    if constexpr (std::is_floating_point_v<std::remove_cvref_t<decltype(value)>>) {
      if (fields.has(name)) value = fields.real(name);  // files of earlier versions have fewer
    } else {
      value = fields.count(name);
    }
  });
  evaluation->per_class_accuracy = fields.reals("per_class_accuracy");
  if (fields.has("confusion")) evaluation->confusion = fields.square("confusion");
  if (!fields.problem().empty()) return invalid("evaluation: " + fields.problem());
  return {};
}

// The keys that a round and a track have in common.
template <class Metrics>
void read_model(Fields& fields, Metrics& metrics) {
  metrics.model_hash = fields.text("model_hash");
  metrics.test_accuracy = fields.real("test_accuracy");
  metrics.test_loss = fields.real("test_loss");
  metrics.train_loss = fields.real("train_loss");
  metrics.clients_selected = fields.count("clients_selected");
  metrics.clients_completed = fields.count("clients_completed");
}

TrackMetrics read_track(Fields& fields) {
  TrackMetrics metrics;
  metrics.track.exclude = fields.texts("exclude");
  metrics.track.owners = fields.texts("owners");
  metrics.track.owner_count = fields.count("owner_count");
  metrics.track.members = fields.count("members");
  read_model(fields, metrics);
  return metrics;
}

Result<void> read_ranks(const ordered_json& ranks, RoundMetrics& metrics) {
  if (!ranks.is_array() || ranks.size() > Fields::kMostListed) return invalid("ranks is not a list");
  for (const ordered_json& rank : ranks) {
    if (!rank.is_object()) return invalid("ranks is not a list of objects");
    Fields fields(rank);
    metrics.ranks.push_back({.rank = fields.count("rank"),
                             .accuracy = fields.real("accuracy"),
                             .loss = fields.real("loss"),
                             .bits_per_byte = fields.real("bits_per_byte")});
    if (!fields.problem().empty()) return invalid("ranks: " + fields.problem());
  }
  return {};
}

// Keys that files of earlier versions do not have.
Result<void> read_newer(const ordered_json& object, Fields& fields, RoundMetrics& metrics) {
  if (fields.has("participation_gini")) {
    metrics.participation.gini = fields.real("participation_gini");
    metrics.participation.jain = fields.real("participation_jain");
    metrics.participation.gap = fields.count("participation_gap");
  }
  if (fields.has("between_class_variance")) {
    metrics.between_class_variance = fields.real("between_class_variance");
    metrics.within_class_variance = fields.real("within_class_variance");
  }
  if (fields.has("covered_labels")) {
    metrics.labels.covered = fields.real("covered_labels");
    metrics.labels.accuracy = fields.real("covered_accuracy");
    metrics.labels.divergence = fields.real("label_divergence");
    metrics.labels.variance = fields.real("label_variance");
  }
  if (fields.has("bits_per_byte")) {
    metrics.bits_per_byte = fields.real("bits_per_byte");
    metrics.group_bits_per_byte = fields.real("group_bits_per_byte");
  }
  if (fields.has("activation_bytes_up")) {
    metrics.activation_bytes_up = fields.count("activation_bytes_up");
    metrics.activation_bytes_down = fields.count("activation_bytes_down");
    metrics.activation_correlation = fields.real("activation_correlation");
  }
  for_each_energy_metric(metrics.energy, [&](const char* key, double& value) {
    if (fields.has(key)) value = fields.real(key);
  });
  if (fields.has("epsilon")) {
    metrics.epsilon = fields.real("epsilon");
    metrics.clipping_norm = fields.real("clipping_norm");
  }
  for_each_task_metric(metrics.test, [&](const char* key, double& value) {
    if (fields.has(key)) value = fields.real(key);
  });
  if (fields.has("test_confusion")) metrics.test.confusion = fields.square("test_confusion");
  if (fields.has("parameters_left_out")) metrics.parameters_left_out = fields.real("parameters_left_out");
  FEDGE_TRY_VOID(read_evaluation(object, metrics.evaluation));
  if (fields.has("statistics")) {
    FEDGE_TRY(statistics, read_statistics(object.at("statistics")));
    metrics.statistics = std::move(statistics);
  }
  if (fields.has("ranks")) FEDGE_TRY_VOID(read_ranks(object.at("ranks"), metrics));
  if (!fields.has("tracks")) return {};
  const ordered_json& tracks = object.at("tracks");
  if (!tracks.is_array() || tracks.size() > Fields::kMostListed) return invalid("tracks is not a list");
  for (const ordered_json& track : tracks) {
    if (!track.is_object()) return invalid("tracks is not a list of objects");
    Fields inner(track);
    metrics.tracks.push_back(read_track(inner));
    FEDGE_TRY_VOID(read_evaluation(track, metrics.tracks.back().evaluation));
    if (!inner.problem().empty()) return invalid("tracks: " + inner.problem());
  }
  return {};
}

}  // namespace

double total_joules(std::span<const RoundMetrics> rounds) {
  double sum = kNotMeasured;
  for (const RoundMetrics& round : rounds)
    if (const double joules = round.energy.shown(); !std::isnan(joules))
      sum = (std::isnan(sum) ? 0 : sum) + joules;
  return sum;
}

std::string format_joules(double joules) {
  char text[32];
  const bool mega = joules >= 1e6;
  const bool kilo = joules >= 1e3;
  std::snprintf(text, sizeof text, "%.3g %s",
                joules / (mega   ? 1e6
                          : kilo ? 1e3
                                 : 1),
                mega   ? "MJ"
                : kilo ? "kJ"
                       : "J");
  return text;
}

std::string to_json(const RoundMetrics& metrics) {
  ordered_json line;
  line["round"] = metrics.round;
  line["model_hash"] = metrics.model_hash;
  line["test_accuracy"] = json_number(metrics.test_accuracy);
  line["test_loss"] = json_number(metrics.test_loss);
  line["per_class_accuracy"] = ordered_json::array();
  for (const double accuracy : metrics.per_class_accuracy)
    line["per_class_accuracy"].push_back(json_number(accuracy));
  if (metrics.test.measured())
    for_each_task_metric(metrics.test,
                         [&](const char* key, double value) { line[key] = json_number(value); });
  if (!metrics.test.confusion.empty()) line["test_confusion"] = metrics.test.confusion;
  line["train_loss"] = json_number(metrics.train_loss);
  line["clients_selected"] = metrics.clients_selected;
  line["clients_completed"] = metrics.clients_completed;
  line["bytes_up"] = metrics.bytes_up;
  line["bytes_down"] = metrics.bytes_down;
  if (metrics.activation_bytes_up > 0) {
    line["activation_bytes_up"] = metrics.activation_bytes_up;
    line["activation_bytes_down"] = metrics.activation_bytes_down;
    line["activation_correlation"] = json_number(metrics.activation_correlation);
  }
  if (metrics.energy.measured())
    for_each_energy_metric(metrics.energy,
                           [&](const char* key, double value) { line[key] = json_number(value); });
  line["virtual_seconds"] = json_number(metrics.virtual_seconds);
  line["wall_seconds"] = json_number(metrics.wall_seconds);
  line["participation_gini"] = json_number(metrics.participation.gini);
  line["participation_jain"] = json_number(metrics.participation.jain);
  line["participation_gap"] = metrics.participation.gap;
  line["between_class_variance"] = json_number(metrics.between_class_variance);
  line["within_class_variance"] = json_number(metrics.within_class_variance);
  line["covered_labels"] = json_number(metrics.labels.covered);
  line["covered_accuracy"] = json_number(metrics.labels.accuracy);
  line["label_divergence"] = json_number(metrics.labels.divergence);
  line["label_variance"] = json_number(metrics.labels.variance);
  line["bits_per_byte"] = json_number(metrics.bits_per_byte);
  line["group_bits_per_byte"] = json_number(metrics.group_bits_per_byte);
  line["epsilon"] = json_number(metrics.epsilon);
  line["clipping_norm"] = json_number(metrics.clipping_norm);
  line["parameters_left_out"] = json_number(metrics.parameters_left_out);
  for (const RankMetrics& rank : metrics.ranks)
    line["ranks"].push_back({{"rank", rank.rank},
                             {"accuracy", json_number(rank.accuracy)},
                             {"loss", json_number(rank.loss)},
                             {"bits_per_byte", json_number(rank.bits_per_byte)}});
  if (metrics.evaluation) line["evaluation"] = to_object(*metrics.evaluation);
  for (const TrackMetrics& track : metrics.tracks) line["tracks"].push_back(to_object(track));
  if (metrics.statistics) line["statistics"] = to_object(*metrics.statistics);
  return json_text(line);
}

std::string count_text(const learn::DataStatistics& statistics) {
  const std::string clients = std::to_string(statistics.clients);
  if (statistics.samples == 0) return "about " + clients + " clients, each counted once, with noise";
  return std::to_string(statistics.samples) + " training samples of " + clients + " clients";
}

std::string agreed_text(const learn::ColumnStatistics& column) {
  std::string text =
      std::to_string(column.agreed.size()) + (column.agreed.size() == 1 ? " name: " : " names: ");
  for (std::size_t i = 0; i < column.agreed.size(); ++i)
    text += (i > 0 ? ", " : "") + std::to_string(column.agreed[i]);
  return text;
}

std::string to_json(const learn::DataStatistics& statistics) { return json_text(to_object(statistics)); }

Result<RoundMetrics> parse_metrics(std::string_view line, const std::string& where) {
  constexpr int kLevels = 5;  // of the counts of agreed names
  const auto object = parse_ordered_json(line, kLevels);
  if (!object.is_object()) return Error{ErrorCode::kCorrupt, where + ": is not the JSON object of a round"};
  Fields fields(object);
  RoundMetrics metrics;
  metrics.round = fields.count("round");
  read_model(fields, metrics);
  metrics.per_class_accuracy = fields.reals("per_class_accuracy");
  metrics.bytes_up = fields.count("bytes_up");
  metrics.bytes_down = fields.count("bytes_down");
  metrics.virtual_seconds = fields.real("virtual_seconds");
  metrics.wall_seconds = fields.real("wall_seconds");
  const auto newer = read_newer(object, fields, metrics);
  if (!fields.problem().empty()) return Error{ErrorCode::kCorrupt, where + ": " + fields.problem()};
  if (!newer) return Error{ErrorCode::kCorrupt, where + ": " + newer.error().message};
  return metrics;
}

Result<std::vector<RoundMetrics>> read_metrics(const std::filesystem::path& path) {
  FEDGE_TRY(text, read_file(path, kMaxFileBytes));
  std::vector<RoundMetrics> rounds;
  std::string_view rest = text;
  for (std::size_t line = 1; !rest.empty(); ++line) {
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) break;
    FEDGE_TRY(metrics, parse_metrics(rest.substr(0, end), path.string() + ":" + std::to_string(line)));
    rounds.push_back(std::move(metrics));
    rest.remove_prefix(end + 1);
  }
  return rounds;
}

std::uint64_t trainings_selected(const RoundMetrics& round) {
  if (round.tracks.empty()) return round.clients_selected;
  std::uint64_t sum = 0;
  for (const TrackMetrics& track : round.tracks) sum += track.clients_selected;
  return sum;
}

std::uint64_t trainings_completed(const RoundMetrics& round) {
  if (round.tracks.empty()) return round.clients_completed;
  std::uint64_t sum = 0;
  for (const TrackMetrics& track : round.tracks) sum += track.clients_completed;
  return sum;
}

ShownResults shown_results(const RoundMetrics& round) {
  const ShownResults own{round.test_accuracy, round.test_loss, round.test.rmse};
  if (own.measured() || !round.evaluation) return own;
  return {round.evaluation->accuracy, round.evaluation->loss, round.evaluation->rmse};
}

bool ShownResults::measured() const { return !std::isnan(accuracy) || !std::isnan(rmse); }

bool ShownResults::has_error() const { return std::isnan(accuracy) && !std::isnan(rmse); }

bool ShownResults::better_than(const ShownResults& other) const {
  return has_error() ? rmse < other.rmse : accuracy > other.accuracy;
}

std::string ShownResults::score() const {
  char text[32] = "-";
  if (!std::isnan(accuracy)) std::snprintf(text, sizeof text, "%.2f %%", 100 * accuracy);
  if (has_error()) std::snprintf(text, sizeof text, "%.4g", rmse);
  return text;
}

std::uint64_t most_left_out(std::span<const RoundMetrics> rounds) {
  double most = 0;
  for (const RoundMetrics& round : rounds) most = std::fmax(most, round.parameters_left_out);
  return static_cast<std::uint64_t>(most);
}

}  // namespace fedge::server
