#include "server/report/metrics_csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

namespace fedge::server {
namespace {

std::string in_quotation_marks(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}

std::string csv_number(double value) {
  if (!std::isfinite(value)) return "";
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value);
  return {text, end.ptr};
}

constexpr const char* kLabelColumns = ",run,strategy,seed\r\n";

std::string label_fields(const RunLabels& labels) {
  return "," + csv_field(labels.run) + "," + csv_field(labels.strategy) + "," + std::to_string(labels.seed) +
         "\r\n";
}

}  // namespace

std::string csv_field(std::string_view text) {
  return text.find_first_of(",\"\r\n") == std::string_view::npos ? std::string(text)
                                                                 : in_quotation_marks(text);
}

std::string joined_names(std::span<const std::string> names, char separator) {
  std::string text;
  for (const std::string& name : names) {
    if (!text.empty()) text += separator;
    const bool plain =
        !name.empty() && name.find(separator) == std::string::npos && name.find('"') == std::string::npos;
    text += plain ? name : in_quotation_marks(name);
  }
  return text;
}

CsvColumns columns_of(std::span<const RoundMetrics> rounds) {
  CsvColumns columns;
  std::set<std::uint64_t> ranks;
  for (const RoundMetrics& round : rounds) {
    columns.classes = std::max(columns.classes, round.per_class_accuracy.size());
    for (const RankMetrics& rank : round.ranks) ranks.insert(rank.rank);
    columns.task = columns.task || round.test.measured();
    columns.split = columns.split || round.activation_bytes_up > 0;
    columns.energy = columns.energy || round.energy.measured();
  }
  columns.evaluation =
      std::ranges::any_of(rounds, [](const RoundMetrics& round) { return round.evaluation.has_value(); });
  columns.ranks.assign(ranks.begin(), ranks.end());
  return columns;
}

std::vector<NamedNumber> named_numbers(const RoundMetrics& metrics, const CsvColumns& columns) {
  std::vector<NamedNumber> numbers = {{"test_accuracy", metrics.test_accuracy},
                                      {"test_loss", metrics.test_loss},
                                      {"train_loss", metrics.train_loss},
                                      {"clients_selected", metrics.clients_selected},
                                      {"clients_completed", metrics.clients_completed},
                                      {"bytes_up", metrics.bytes_up},
                                      {"bytes_down", metrics.bytes_down},
                                      {"virtual_seconds", metrics.virtual_seconds},
                                      {"wall_seconds", metrics.wall_seconds},
                                      {"participation_gini", metrics.participation.gini},
                                      {"participation_jain", metrics.participation.jain},
                                      {"participation_gap", metrics.participation.gap},
                                      {"between_class_variance", metrics.between_class_variance},
                                      {"within_class_variance", metrics.within_class_variance},
                                      {"covered_labels", metrics.labels.covered},
                                      {"covered_accuracy", metrics.labels.accuracy},
                                      {"label_divergence", metrics.labels.divergence},
                                      {"label_variance", metrics.labels.variance},
                                      {"bits_per_byte", metrics.bits_per_byte},
                                      {"group_bits_per_byte", metrics.group_bits_per_byte},
                                      {"epsilon", metrics.epsilon},
                                      {"clipping_norm", metrics.clipping_norm},
                                      {"parameters_left_out", metrics.parameters_left_out}};
  if (columns.split) {
    numbers.push_back({"activation_bytes_up", metrics.activation_bytes_up});
    numbers.push_back({"activation_bytes_down", metrics.activation_bytes_down});
    numbers.push_back({"activation_correlation", metrics.activation_correlation});
  }
  if (columns.energy)
    for_each_energy_metric(metrics.energy, [&](const char* name, double value) {
      numbers.push_back({name, value});
    });
  if (columns.evaluation)
    for_each_metric(metrics.evaluation.value_or(ClientEvaluation()),
                    [&](const char* name, const auto& value) {
                      numbers.push_back({std::string("evaluation_") + name, value});
                    });
  if (columns.task)
    for_each_task_metric(metrics.test, [&](const char* name, double value) {
      numbers.push_back({name, value});
    });
  for (const std::uint64_t rank : columns.ranks) {
    const auto found = std::ranges::find(metrics.ranks, rank, &RankMetrics::rank);
    const RankMetrics at = found == metrics.ranks.end() ? RankMetrics{} : *found;
    const std::string name = "rank_" + std::to_string(rank);
    numbers.push_back({name + "_accuracy", at.accuracy});
    numbers.push_back({name + "_loss", at.loss});
    numbers.push_back({name + "_bits_per_byte", at.bits_per_byte});
  }
  for (std::size_t k = 0; k < columns.classes; ++k)
    numbers.push_back({"class_" + std::to_string(k) + "_accuracy",
                       k < metrics.per_class_accuracy.size() ? metrics.per_class_accuracy[k] : kNotMeasured});
  return numbers;
}

std::string csv_header(const CsvColumns& columns) {
  std::string line = "round,model_hash";
  for (const NamedNumber& number : named_numbers({}, columns)) line += "," + number.name;
  return line + kLabelColumns;
}

std::string to_csv(const RoundMetrics& metrics, const CsvColumns& columns, const RunLabels& labels) {
  std::string line = std::to_string(metrics.round) + "," + csv_field(metrics.model_hash);
  for (const NamedNumber& number : named_numbers(metrics, columns)) {
    const auto* whole = std::get_if<std::uint64_t>(&number.value);
    line += "," + (whole != nullptr ? std::to_string(*whole) : csv_number(std::get<double>(number.value)));
  }
  return line + label_fields(labels);
}

std::string tracks_csv(std::span<const RoundMetrics> rounds, const RunLabels& labels) {
  std::string text =
      "round,exclude,owners,members,model_hash,test_accuracy,test_loss,train_loss,clients_selected,"
      "clients_completed" +
      std::string(kLabelColumns);
  for (const RoundMetrics& round : rounds)
    for (const TrackMetrics& track : round.tracks) {
      text += std::to_string(round.round) + "," + csv_field(joined_names(track.track.exclude, ' ')) + "," +
              std::to_string(track.track.owner_count) + "," + std::to_string(track.track.members) + "," +
              track.model_hash;
      for (const double value : {track.test_accuracy, track.test_loss, track.train_loss})
        text += "," + csv_number(value);
      text += "," + std::to_string(track.clients_selected) + "," + std::to_string(track.clients_completed) +
              label_fields(labels);
    }
  return text;
}

}  // namespace fedge::server
