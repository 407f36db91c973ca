// RoundMetrics as named numbers, and as tables: metrics.csv and tracks.csv (RFC 4180).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "server/report/metrics.h"

namespace fedge::server {

// What tells the rows of several runs apart: the last columns of every row.
struct RunLabels {
  std::string run;
  std::string strategy;
  std::uint64_t seed = 0;
};

// The columns of metrics.csv that depend on the run.
struct CsvColumns {
  std::size_t classes = 0;           // of per_class_accuracy
  std::vector<std::uint64_t> ranks;  // of RankMetrics, ascending
  bool evaluation = false;           // clients evaluate models
  bool task = false;                 // there are TaskMetrics
  bool split = false;                // there are activations
  bool energy = false;               // the energy of devices is known
};
CsvColumns columns_of(std::span<const RoundMetrics> rounds);

// A number of a round by the name of its column; NaN: not measured.
struct NamedNumber {
  std::string name;
  std::variant<std::uint64_t, double> value;
};
// The numbers of a round apart from the round itself, in the order of the columns.
std::vector<NamedNumber> named_numbers(const RoundMetrics& metrics, const CsvColumns& columns);

// The header of metrics.csv, and the row of a round, each with its CR LF.
std::string csv_header(const CsvColumns& columns);
std::string to_csv(const RoundMetrics& metrics, const CsvColumns& columns, const RunLabels& labels);
// tracks.csv: the header, and one row for each track of each round. Names are joined with spaces.
std::string tracks_csv(std::span<const RoundMetrics> rounds, const RunLabels& labels);
// Joins names with the separator. A name that is empty, or contains the separator or a quotation mark, is put
// in quotation marks, and quotation marks inside it are doubled.
std::string joined_names(std::span<const std::string> names, char separator);
// One CSV field, in quotation marks if it needs them.
std::string csv_field(std::string_view text);

}  // namespace fedge::server
