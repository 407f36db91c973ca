// RoundMetrics holds what a run reports about a round. Simulator and coordinator write it as one line of
// metrics.jsonl (a JSON object) and one row of metrics.csv (RFC 4180), and read it back for reports. Both
// files have the same metrics, except that tracks have a table of their own (tracks.csv).
// docs/reference/metrics.md explains them to users. A metric without a value is NaN here, null in JSON and an
// empty field in the tables. JSON has no infinities: they become null too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "learn/statistics/federated_statistics.h"
#include "server/engine/track_description.h"
#include "server/report/client_evaluation.h"
#include "server/report/energy_figures.h"
#include "server/report/page/label_figures.h"
#include "server/report/participation.h"

namespace fedge::server {

// Results of the model with only the first ranks of its adapters.
struct RankMetrics {
  std::uint64_t rank = 0;
  double accuracy = kNotMeasured;
  double loss = kNotMeasured;
  double bits_per_byte = kNotMeasured;
};

// Calls visit(key, value) for each, in the order of the files that contain them.
template <class Metrics, class Visit>
void for_each_task_metric(Metrics&& metrics, const Visit& visit) {
  visit("test_macro_f1", metrics.macro_f1);
  visit("test_auroc", metrics.auroc);
  visit("test_auroc_error", metrics.auroc_error);
  visit("test_mean_iou", metrics.mean_iou);
  visit("test_mae", metrics.mae);
  visit("test_rmse", metrics.rmse);
  visit("test_r2", metrics.r2);
  visit("test_event_precision", metrics.event_precision);
  visit("test_event_recall", metrics.event_recall);
  visit("test_event_f1", metrics.event_f1);
  visit("test_boundary_error", metrics.boundary_error);
}

// A track's results in a round.
struct TrackMetrics {
  TrackDescription track;
  std::string model_hash;
  double test_accuracy = kNotMeasured;
  double test_loss = kNotMeasured;
  double train_loss = kNotMeasured;
  std::uint64_t clients_selected = 0;
  std::uint64_t clients_completed = 0;
  std::optional<ClientEvaluation> evaluation = {};
};

// With several tracks, model and accuracy are those of the first track: the one that excludes no client, if
// there is one. Bytes are the sum over tracks. A client counts once, however many tracks it trained.
struct RoundMetrics {
  std::uint64_t round = 0;              // from 1; 0 is the initial model
  std::string model_hash;               // of the model this round ended with, 64 hexadecimal digits
  double test_accuracy = kNotMeasured;  // 0 to 1
  double test_loss = kNotMeasured;      // mean loss (learn/models/loss.h)
  TaskMetrics test = {};
  std::vector<double> per_class_accuracy;  // empty if not measured
  double train_loss = kNotMeasured;        // mean over the clients that completed, weighted by samples
  double epsilon = kNotMeasured;           // with differential privacy: spent since the start of the run
  double clipping_norm = kNotMeasured;     // with differential privacy: of the next round's updates
  // With secure aggregation: trainable parameters that no sum of the round covers, because fewer than
  // min_clients clients trained them. With several tracks, the largest number of a track.
  double parameters_left_out = kNotMeasured;
  std::uint64_t clients_selected = 0;
  std::uint64_t clients_completed = 0;
  std::uint64_t bytes_up = 0;    // clients to server, in this round
  std::uint64_t bytes_down = 0;  // server to clients, in this round
  // Split training: activations and their gradients, among the bytes above.
  std::uint64_t activation_bytes_up = 0;
  std::uint64_t activation_bytes_down = 0;
  // The largest distance correlation, of a client, of its token embeddings and its activations at the cut.
  double activation_correlation = kNotMeasured;
  EnergyFigures energy = {};                     // of devices
  double virtual_seconds = 0;                    // since the start of the run, on the clock that drives it
  double wall_seconds = 0;                       // since the start of the run, of wall-clock time
  double between_class_variance = kNotMeasured;  // learn/evaluation/evaluate.h
  double within_class_variance = kNotMeasured;
  double bits_per_byte = kNotMeasured;              // of text data: learn/evaluation/evaluate.h
  double group_bits_per_byte = kNotMeasured;        // the mean over groups
  std::vector<RankMetrics> ranks;                   // of models with adapters, ascending; may be empty
  LabelFigures labels;                              // of this round's contributors
  ParticipationFigures participation;               // since the start of the run
  std::vector<TrackMetrics> tracks;                 // empty in a run without tracks
  std::optional<ClientEvaluation> evaluation = {};  // by clients, of the model this round ended with
  // The statistics of the clients' data, in the first round of a run that normalises by them.
  std::optional<learn::DataStatistics> statistics = {};
};

// The trainings that the server assigned in this round, and the updates that it accepted. With tracks, a
// client may train several times in a round.
std::uint64_t trainings_selected(const RoundMetrics& round);
std::uint64_t trainings_completed(const RoundMetrics& round);

// What to show where there is room for one figure and one loss: the coordinator's, or those of the clients'
// evaluation if the coordinator evaluates nothing. NaN if neither does. A run has accuracy or, if its model
// predicts values, their root mean square error.
struct ShownResults {
  double accuracy = kNotMeasured;
  double loss = kNotMeasured;
  double rmse = kNotMeasured;

  bool measured() const;
  // "84.21 %", or the error as "0.4213"; "-" if there is neither.
  std::string score() const;
  bool has_error() const;
  // By accuracy, or by the error.
  bool better_than(const ShownResults& other) const;
};
ShownResults shown_results(const RoundMetrics& round);

// The energy of the whole run, in joules; NaN if it is unknown.
double total_joules(std::span<const RoundMetrics> rounds);
// "12.3 J", "4.56 kJ", "1.23 MJ".
std::string format_joules(double joules);

// The largest parameters_left_out of these rounds; 0 without secure aggregation.
std::uint64_t most_left_out(std::span<const RoundMetrics> rounds);

// One line of metrics.jsonl, without the line feed. Doubles read back exactly.
std::string to_json(const RoundMetrics& metrics);
// What the statistics are about, for people: "120 training samples of 4 clients".
std::string count_text(const learn::DataStatistics& statistics);
// The numbers of values of the names on which the clients agreed, for people: "3 names: 113, 50, 30".
std::string agreed_text(const learn::ColumnStatistics& column);
// The statistics as in such a line.
std::string to_json(const learn::DataStatistics& statistics);
// Parses such a line. Unknown keys are ignored. kCorrupt if the line is not a round's object; the message
// begins with `where`.
Result<RoundMetrics> parse_metrics(std::string_view line, const std::string& where);
// Reads a file of at most 1 GiB. An unfinished last line, left by a program that was killed, is ignored.
Result<std::vector<RoundMetrics>> read_metrics(const std::filesystem::path& path);

}  // namespace fedge::server
