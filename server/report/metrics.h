// RoundMetrics: what a run reports about each round, written by simulator and coordinator alike as
// one JSON object a line (metrics.jsonl) and as a table (metrics.csv, RFC 4180), and read back for
// reports. Both hold the same figures, tracks apart, which have a table of their own; for users they are
// explained in docs/reference/metrics.md. A figure that was not taken is NaN here, null in JSON and an empty
// field in the table; JSON has no infinities, so those become null too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "server/engine/track_description.h"
#include "server/report/label_figures.h"
#include "server/report/participation.h"

namespace fedge::server {

inline constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();

// The model with the first ranks of its adapters alone.
struct RankMetrics {
  std::uint64_t rank = 0;
  double accuracy = kNotMeasured;
  double loss = kNotMeasured;
  double bits_per_byte = kNotMeasured;
};

// A track's part of a round.
struct TrackMetrics {
  TrackDescription track;
  std::string model_hash;
  double test_accuracy = kNotMeasured;
  double test_loss = kNotMeasured;
  double train_loss = kNotMeasured;
  std::uint64_t clients_selected = 0;
  std::uint64_t clients_completed = 0;
};

// Where there are several tracks, model and accuracy are those of the first, which is the one that excludes
// nobody if there is one; clients and bytes are those of all.
struct RoundMetrics {
  std::uint64_t round = 0;                 // from 1; 0 is the initial model
  std::string model_hash;                  // of the model this round ended with, 64 hexadecimal digits
  double test_accuracy = kNotMeasured;     // 0 to 1
  double test_loss = kNotMeasured;         // mean cross-entropy
  std::vector<double> per_class_accuracy;  // empty if not measured
  double train_loss = kNotMeasured;        // of the clients that completed, by their samples
  double epsilon = kNotMeasured;        // that the run's models have cost so far, with differential privacy
  double clipping_norm = kNotMeasured;  // of the next round's updates, in such a run
  // With secure aggregation: parameters that are in no sum of the round, since too few of its clients train
  // them; of the track with the most.
  double parameters_left_out = kNotMeasured;
  std::uint64_t clients_selected = 0;
  std::uint64_t clients_completed = 0;
  std::uint64_t bytes_up = 0;                    // clients to server, in this round
  std::uint64_t bytes_down = 0;                  // server to clients, in this round
  double virtual_seconds = 0;                    // since the run began, on the clock that drove it
  double wall_seconds = 0;                       // since the run began, as one waits for it
  double between_class_variance = kNotMeasured;  // learn/evaluate.h
  double within_class_variance = kNotMeasured;
  double bits_per_byte = kNotMeasured;        // of texts: learn/evaluate.h
  double group_bits_per_byte = kNotMeasured;  // the mean over groups
  std::vector<RankMetrics> ranks;             // of models with adapters, ascending; may be empty
  LabelFigures labels;                        // of this round's contributors
  ParticipationFigures participation;         // from the first round to this one
  std::vector<TrackMetrics> tracks;           // empty in a run without disagreements
};

// The most parameters that secure sums left out in any of these rounds; 0 in a run without.
std::uint64_t most_left_out(std::span<const RoundMetrics> rounds);

// What a table has columns for.
struct CsvColumns {
  std::size_t classes = 0;           // of per_class_accuracy
  std::vector<std::uint64_t> ranks;  // of RankMetrics, ascending
};
CsvColumns columns_of(std::span<const RoundMetrics> rounds);

// One line of metrics.jsonl, without the line feed. Doubles are written so that they read back exactly.
std::string to_json(const RoundMetrics& metrics);
// kCorrupt for what is no such object; keys it does not know are passed over. `where` stands in front
// of the message.
Result<RoundMetrics> parse_metrics(std::string_view line, const std::string& where);
// All lines of a file, at most 1 GiB. An unfinished last line (a program stopped in the middle of it)
// is left out.
Result<std::vector<RoundMetrics>> read_metrics(const std::filesystem::path& path);

// The table's first line and one for a round, each with its CR LF.
std::string csv_header(const CsvColumns& columns);
std::string to_csv(const RoundMetrics& metrics, const CsvColumns& columns);
// A line for each track of each round, names as joined_names() puts them, apart by spaces, with its header.
std::string tracks_csv(std::span<const RoundMetrics> rounds);
// Names in one text, apart by this character. One that holds it or a quotation mark, or is empty, is put in
// quotation marks, and those within it are doubled.
std::string joined_names(std::span<const std::string> names, char separator);
// One field, in quotation marks if it needs them.
std::string csv_field(std::string_view text);

}  // namespace fedge::server
