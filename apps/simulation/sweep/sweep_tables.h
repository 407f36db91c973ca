// SweepTables: the results of a sweep as Markdown tables, whose lines become available as the runs end: a
// table for each choice of the axes in tables, a row for each choice of those in rows, and a column for each
// column of the results, or else for each choice of the axes in columns. Externally synchronised.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "apps/simulation/sweep/sweep_results.h"

namespace fedge::apps {

class SweepTables {
 public:
  // `results` must outlive this object. `paired`: the columns whose differences to the baseline are shown.
  // `tuned`: the names of the tuned settings, in one text; empty without tuning. kInvalid: axes in columns
  // need exactly one column of results.
  static Result<SweepTables> create(const SweepResults& results, std::vector<std::size_t> paired,
                                    std::string tuned, std::size_t seeds);

  // The lines that have become complete since the last call, each with its line feed.
  std::string take_lines();
  // All lines; all cells must have results.
  std::string markdown() const;

 private:
  struct Line {
    std::vector<std::size_t> needs;  // cells
    std::function<std::string(const SweepTables&)> text;
  };
  // A row of a table: the names of its choices, and its cells, one for each combination across.
  struct Row {
    std::vector<std::string> names;
    std::vector<std::size_t> cells;
  };

  SweepTables(const SweepResults& results, std::vector<std::size_t> paired, std::string tuned,
              std::size_t seeds);
  void add_text(std::string text);
  void add_table(std::size_t first, std::size_t count);
  void add_differences(const std::vector<Row>& rows);
  // The number of neighbouring cells that differ only in axes with this place or a later one.
  std::size_t cells_from(Axis::Place place) const;
  bool pivoted() const { return cells_from(Axis::Place::kColumns) > 1; }
  std::string choices(std::size_t cell, Axis::Place place) const;
  std::vector<Row> rows_of(std::size_t first, std::size_t count) const;
  std::vector<std::string> titles(const std::vector<std::size_t>& columns) const;
  std::vector<std::string> figures(const Row& row) const;
  std::vector<std::string> differences(const Row& row) const;
  // `titles`: of the figures' columns, which decide the widths.
  std::string line(const std::vector<std::string>& names, const std::vector<std::string>& figures,
                   const std::vector<std::string>& titles) const;
  std::string header(const std::vector<std::string>& titles) const;

  const SweepResults* results_;
  std::vector<std::size_t> paired_;
  std::string tuned_;
  std::size_t seeds_;
  std::vector<std::size_t> name_widths_;
  std::vector<Line> lines_;
  std::size_t taken_ = 0;
};

}  // namespace fedge::apps
