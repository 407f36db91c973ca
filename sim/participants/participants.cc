#include "sim/participants/participants.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <system_error>
#include <utility>
#include <vector>

#include "core/platform/files.h"

namespace fedge::sim {
namespace {

using Type = ColumnFiles::Type;
using Value = ColumnFiles::Value;

constexpr const char* kDirectory = "participants";

std::vector<ColumnFiles::Column> training_columns() {
  return {{"round", Type::kUnsigned32},   {"track", Type::kUnsigned32}, {"client", Type::kUnsigned32},
          {"samples", Type::kUnsigned64}, {"steps", Type::kUnsigned64}, {"arrived_seconds", Type::kFloat64},
          {"loss", Type::kFloat64},       {"norm", Type::kFloat64}};
}

std::vector<ColumnFiles::Column> evaluation_columns() {
  return {{"round", Type::kUnsigned32},   {"track", Type::kUnsigned32}, {"client", Type::kUnsigned32},
          {"samples", Type::kUnsigned64}, {"loss", Type::kFloat64},     {"accuracy", Type::kFloat64},
          {"rmse", Type::kFloat64}};
}

Result<ColumnFiles> open_table(const std::filesystem::path& directory,
                               std::vector<ColumnFiles::Column> columns, std::uint64_t rounds) {
  if (rounds == 0) return ColumnFiles::create(directory, std::move(columns));
  return ColumnFiles::open(directory, std::move(columns), rounds);
}

Value integer(std::uint64_t value) { return value; }

}  // namespace

Result<Participants> Participants::open(const std::filesystem::path& results, std::uint64_t rounds) {
  FEDGE_TRY(trainings, open_table(results / kDirectory / "trainings", training_columns(), rounds));
  FEDGE_TRY(evaluations, open_table(results / kDirectory / "evaluations", evaluation_columns(), rounds));
  return Participants(std::move(trainings), std::move(evaluations), rounds);
}

Result<void> Participants::remove(const std::filesystem::path& results) {
  std::error_code error;
  std::filesystem::remove_all(results / kDirectory, error);
  if (error) return system_error("cannot remove", results / kDirectory, error.value());
  return {};
}

Result<Participants::Summary> Participants::read(const std::filesystem::path& results) {
  Summary summary;
  std::error_code ignored;
  const auto directory = results / kDirectory;
  if (!std::filesystem::exists(directory, ignored)) return summary;
  FEDGE_TRY(clients, ColumnFiles::read(directory / "trainings", {"client", Type::kUnsigned32}));
  std::map<double, double> trainings;
  for (const double client : clients) ++trainings[client];
  for (const auto& [client, count] : trainings) summary.trainings.push_back(count);
  FEDGE_TRY(rounds, ColumnFiles::read(directory / "evaluations", {"round", Type::kUnsigned32}));
  FEDGE_TRY(accuracies, ColumnFiles::read(directory / "evaluations", {"accuracy", Type::kFloat64}));
  for (std::size_t i = 0; i < std::min(rounds.size(), accuracies.size()); ++i)
    if (rounds[i] == rounds.back() && !std::isnan(accuracies[i])) summary.accuracies.push_back(accuracies[i]);
  std::ranges::sort(summary.trainings);
  std::ranges::sort(summary.accuracies);
  return summary;
}

void Participants::add(const Training& training) {
  const std::array<Value, 8> row = {integer(round_),
                                    integer(training.track.value()),
                                    integer(training.client.value()),
                                    integer(training.samples),
                                    integer(training.steps),
                                    to_seconds(training.arrived),
                                    training.loss,
                                    training.norm};
  trainings_.add(row);
}

void Participants::add(const Evaluation& evaluation) {
  const std::array<Value, 7> row = {integer(round_),
                                    integer(evaluation.track.value()),
                                    integer(evaluation.client.value()),
                                    integer(evaluation.samples),
                                    evaluation.loss,
                                    evaluation.accuracy,
                                    evaluation.rmse};
  evaluations_.add(row);
}

Result<void> Participants::end_round() {
  ++round_;
  FEDGE_TRY_VOID(trainings_.commit());
  return evaluations_.commit();
}

}  // namespace fedge::sim
