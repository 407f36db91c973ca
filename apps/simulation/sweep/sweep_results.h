// SweepResults: the numbers of a sweep by cell, column and seed, with their statistics and differences to a
// baseline, and as CSV files (RFC 4180). Externally synchronised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/simulation/results/column.h"
#include "apps/simulation/sweep/cells.h"
#include "apps/simulation/sweep/sweep_file.h"
#include "core/result.h"
#include "core/statistics/sample.h"

namespace fedge::apps {

// The runs of a cell, one for each seed in order.
struct CellResults {
  struct Run {
    std::uint64_t seed = 0;
    std::string directory = {};
    bool failed = false;
    std::vector<double> values = {};  // one for each column; NaN: none
  };
  std::vector<Run> runs;
  std::string tuned = {};  // the chosen combination; empty without tuning
};

class SweepResults {
 public:
  // kInvalid: the sweep's baseline is not a choice of exactly one axis, or is missing where a column is
  // relative to it.
  static Result<SweepResults> create(const Sweep& sweep, std::vector<Cell> cells,
                                     std::vector<Column> columns);

  void add(std::size_t cell, CellResults results) { results_[cell] = std::move(results); }
  bool has(std::size_t cell) const { return results_[cell].has_value(); }
  const CellResults& of(std::size_t cell) const { return *results_[cell]; }

  const std::vector<Axis>& axes() const { return axes_; }
  const std::vector<Cell>& cells() const { return cells_; }
  const std::vector<Column>& columns() const { return columns_; }
  // The cell with the baseline's choice and otherwise the same choices; nothing without a baseline.
  std::optional<std::size_t> baseline_of(std::size_t cell) const;
  const std::optional<std::string>& baseline() const { return baseline_; }

  // The values by seed, in the unit of metrics.csv; of a relative column, shares of the baseline's values.
  std::vector<double> values(std::size_t cell, std::size_t column) const;
  // The differences by seed: this cell's value minus the baseline's with the same seed, NaN if it has none.
  std::vector<double> differences(std::size_t cell, std::size_t column) const;

  // "81.97 ± 1.05": mean and standard deviation in the unit of the column's title; or what is missing.
  std::string shown(std::size_t cell, std::size_t column) const;
  // "**+1.20** ± 0.31": mean difference and half of its 95 % confidence interval, bold if that excludes 0;
  // empty for the baseline.
  std::string shown_difference(std::size_t cell, std::size_t column) const;

  // One row for each run: choices, seed, directory, whether it failed, values in the units of metrics.csv.
  std::string runs_csv() const;
  // One row for each cell and column: number of values, mean, standard deviation, 95 % confidence interval.
  std::string summary_csv() const;
  // One row for each cell but the baseline and each column, with the same statistics of the differences; the
  // header alone without a baseline.
  std::string differences_csv() const;

 private:
  SweepResults(const Sweep& sweep, std::vector<Cell> cells, std::vector<Column> columns)
      : axes_(sweep.axes),
        baseline_(sweep.baseline),
        cells_(std::move(cells)),
        columns_(std::move(columns)),
        results_(cells_.size()) {}
  Result<void> find_baseline();
  std::vector<double> baseline_values(std::size_t cell, std::size_t column) const;
  std::string choices_csv(std::size_t cell) const;

  std::vector<Axis> axes_;
  std::optional<std::string> baseline_;
  std::size_t baseline_axis_ = 0;
  std::size_t baseline_choice_ = 0;
  std::vector<Cell> cells_;
  std::vector<Column> columns_;
  std::vector<std::optional<CellResults>> results_;
};

}  // namespace fedge::apps
