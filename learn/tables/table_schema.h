// TableSchema: which columns of a table are features, which is the target, and how their values become
// numbers. It is declared by the run file, so that every device makes the same features from its own table.
//
// A sample's features are, in this order: for each numeric column its value, (x - mean) / deviation, and with
// missing_flags a second feature that is 1 where the value is missing and 0 elsewhere; then for each
// categorical column one feature for each of its values, 1 for the value of the row and 0 for the others. A
// missing number becomes 0, which is the mean if means are given; a missing category becomes zeros, and so
// does one that is not among the values on which the clients have agreed.
//
// With a window, a sample is several consecutive rows of one file. Its class is the most frequent one of its
// rows, the first of them in a tie; its values are those of the last row, its labels those of any row; in
// segmentation, each row is a point. Rows at the end of a file or group that fill no window are left out.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/config/reader.h"
#include "core/result.h"
#include "learn/data/dataset.h"

namespace fedge::learn {

struct CategoricalColumn {
  std::string column;
  std::vector<std::string> values{};  // distinct; a feature for each
  // Without values, the clients agree on the most frequent ones: at most this many, a feature for each.
  std::size_t most = 0;

  bool agreed() const { return values.empty(); }
  std::size_t features() const { return agreed() ? most : values.size(); }
};

struct TableSchema {
  bool json = false;  // JSON lines instead of CSV
  char separator = ',';
  std::vector<std::string> numeric;  // columns
  std::vector<double> mean;          // of each numeric column; empty: 0
  std::vector<double> deviation;     // of each numeric column, above 0; empty: 1
  bool missing_flags = false;
  std::vector<CategoricalColumn> categorical;
  std::vector<std::string> missing = {""};  // fields that stand for a missing value
  TargetKind task = TargetKind::kClass;
  std::vector<std::string> targets;      // columns; of classes, one
  std::vector<double> target_mean;       // of each value; empty: 0
  std::vector<double> target_deviation;  // of each value, above 0; empty: 1
  // A sample is this many rows, and begins `hop` rows after the one before.
  std::size_t window = 1;
  std::size_t hop = 1;
  std::string group;  // column whose value is the same in all rows of a sample; empty: none
  // The target's values of each class; a class may have several.
  std::vector<std::vector<std::string>> classes;
  // Numbers stay as they are, and a missing one becomes NaN: they are normalised when they are used.
  bool raw = false;

  // Features of one row.
  std::size_t features() const;
  InputShape shape() const { return {window, features(), 1}; }
  TargetShape target() const;
  std::vector<std::string> class_names() const;  // or of labels; empty for values
  std::vector<float> target_scale() const;
  FeatureColumns columns() const;  // empty unless raw
  bool has_agreed() const;         // a categorical column whose values the clients agree on
};

// Reads the keys of a table from [data]; errors stay in `section`.
TableSchema read_table_schema(config::Reader& section, bool json);

}  // namespace fedge::learn
