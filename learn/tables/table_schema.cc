#include "learn/tables/table_schema.h"

#include <algorithm>
#include <optional>
#include <set>
#include <span>

#include "learn/data/files/data_files.h"
#include "learn/data/label.h"
#include "learn/data/targets/task_key.h"

namespace fedge::learn {
namespace {

constexpr char kAlternative = '|';  // between the values of one class
const std::vector<std::string> kSeparatorNames = {"comma", "semicolon", "tab"};
constexpr const char* kSeparators = ",;\t";

std::vector<std::string> alternatives(const std::string& text) {
  std::vector<std::string> values;
  std::size_t begin = 0;
  for (std::size_t end = 0; end != std::string::npos; begin = end + 1) {
    end = text.find(kAlternative, begin);
    values.push_back(text.substr(begin, end - begin));
    if (end == std::string::npos) break;
  }
  return values;
}

// Refuses a value that occurs twice.
void check_distinct(config::Reader& section, const std::string& key, const std::vector<std::string>& values) {
  std::set<std::string> seen;
  for (const std::string& value : values)
    if (!seen.insert(value).second) return section.fail(key, "contains \"" + value + "\" twice");
}

void check_columns(config::Reader& section, const TableSchema& schema) {
  std::set<std::string> features(schema.numeric.begin(), schema.numeric.end());
  for (const CategoricalColumn& column : schema.categorical)
    if (!features.insert(column.column).second)
      return section.fail("categorical", "the column \"" + column.column + "\" is already a feature");
  for (const std::string& target : schema.targets)
    if (features.contains(target))
      return section.fail(schema.target().has_values() ? "target_columns" : "target",
                          "the column \"" + target +
                              "\" is also a feature; a model that sees its target learns nothing else");
  if (features.empty())
    return section.fail("dataset", "a table needs features; name its columns in numeric or categorical");
  if (schema.shape().size() > kMaxFeatures)
    section.fail("categorical", "a sample has " + std::to_string(schema.shape().size()) +
                                    " features; at most " + std::to_string(kMaxFeatures) + " are supported");
}

std::vector<CategoricalColumn> read_categorical(config::Reader& section) {
  std::vector<CategoricalColumn> columns;
  for (config::Reader& one :
       section.tables("categorical", "Columns whose values are names: a feature for each value, 1 or 0.")) {
    CategoricalColumn column;
    column.column = one.text("column", std::nullopt, "Name of the column in the table's header.");
    column.values =
        one.texts("values", std::vector<std::string>{},
                  "Its values. Two numbers are the same value if they are equal: 1 and 1.0. Not set: "
                  "the clients agree on them, without naming them.");
    check_distinct(one, "values", column.values);
    if (one.has("values") && column.values.empty())
      one.fail("values", "is empty; name the values of the column");
    column.most = static_cast<std::size_t>(
        one.integer("most", 16, {1, 64},
                    "Without values: the largest number of values that become features, the most "
                    "frequent ones of all clients."));
    if (one.has("values") && one.has("most")) one.fail("most", "has no effect beside values");
    section.adopt(one);
    columns.push_back(std::move(column));
  }
  return columns;
}

// One number for each of the columns that `beside` names.
std::vector<double> read_scale(config::Reader& section, const std::string& key, const char* beside,
                               std::span<const std::string> columns, config::NumberBounds bounds,
                               const char* doc) {
  std::vector<double> values = section.numbers(key, std::vector<double>{}, bounds, doc);
  if (!values.empty() && values.size() != columns.size())
    section.fail(key,
                 "has " + std::to_string(values.size()) + " numbers, but " + beside + " names " +
                     std::to_string(columns.size()) + " columns; give one for each",
                 {beside});
  return values;
}

void read_classes(config::Reader& section, TableSchema& schema) {
  const bool needed = !schema.target().has_values();
  require_task(section, "classes", schema.task, needed, "classification and segmentation");
  const std::vector<std::string> names =
      section.texts("classes", needed ? std::nullopt : std::optional(std::vector<std::string>{}),
                    "classification, segmentation: the target's values, one for each class, in the order of "
                    "their labels: 0, 1, ... A vertical bar "
                    "between values makes them one class.");
  std::vector<std::string> all;
  for (const std::string& name : names) {
    schema.classes.push_back(alternatives(name));
    all.insert(all.end(), schema.classes.back().begin(), schema.classes.back().end());
  }
  check_distinct(section, "classes", all);
  if (section.has("classes") && (names.size() < 2 || names.size() > kMaxClasses))
    section.fail("classes", "has " + std::to_string(names.size()) + " classes, expected 2 to " +
                                std::to_string(kMaxClasses));
}

void read_targets(config::Reader& section, TableSchema& schema) {
  schema.task = read_task_kind(section);
  const bool several = schema.task == TargetKind::kLabels || schema.task == TargetKind::kValues;
  require_task(section, "target", schema.task, !several, "classification and segmentation");
  require_task(section, "target_columns", schema.task, several, "regression and multi-label");
  const std::string target = section.text("target", several ? std::optional<std::string>("") : std::nullopt,
                                          "classification, segmentation: name of the column that the model "
                                          "predicts.");
  schema.targets =
      section.texts("target_columns", several ? std::nullopt : std::optional(std::vector<std::string>{}),
                    "regression, multi-label: names of the columns that the model predicts. In regression "
                    "they are numbers; in "
                    "multi-label each is 1 or 0, for a label that is set or not.");
  if (!several) schema.targets = {target};
  check_distinct(section, "target_columns", schema.targets);
  if (several && section.has("target_columns") && schema.targets.empty())
    section.fail("target_columns", "is empty; name the columns that the model predicts");
  const bool values = schema.task == TargetKind::kValues;
  for (const char* key : {"target_mean", "target_deviation"})
    require_task(section, key, schema.task, values, "regression");
  schema.target_mean =
      read_scale(section, "target_mean", "data.target_columns", schema.targets, {-1e30, 1e30},
                 "regression: mean of each target column, which is subtracted. Empty: nothing.");
  schema.target_deviation =
      read_scale(section, "target_deviation", "data.target_columns", schema.targets, {1e-30, 1e30},
                 "regression: standard deviation of each target column, by which it is divided. Errors are "
                 "reported in units of the columns. Empty: no division.");
}

}  // namespace

TargetShape TableSchema::target() const {
  if (task == TargetKind::kLabels || task == TargetKind::kValues) return {task, targets.size()};
  return {task, classes.size(), task == TargetKind::kPoints ? window : 1};
}

std::size_t TableSchema::features() const {
  std::size_t count = numeric.size() * (missing_flags ? 2 : 1);
  for (const CategoricalColumn& column : categorical) count += column.features();
  return count;
}

std::vector<std::string> TableSchema::class_names() const {
  if (task == TargetKind::kLabels) return targets;
  std::vector<std::string> names;
  for (const std::vector<std::string>& values : classes) {
    std::string name = values.front();
    for (std::size_t i = 1; i < values.size(); ++i) name += kAlternative + values[i];
    names.push_back(std::move(name));
  }
  return names;
}

std::vector<float> TableSchema::target_scale() const {
  return {target_deviation.begin(), target_deviation.end()};
}

FeatureColumns TableSchema::columns() const {
  if (!raw) return {};
  FeatureColumns columns{.period = features()};
  for (std::size_t i = 0; i < numeric.size(); ++i) {
    columns.at.push_back(i * (missing_flags ? 2 : 1));
    columns.names.push_back(numeric[i]);
    columns.slots.push_back(0);
  }
  std::size_t first = numeric.size() * (missing_flags ? 2 : 1);
  for (const CategoricalColumn& column : categorical) {
    if (column.agreed()) {
      columns.at.push_back(first);
      columns.names.push_back(column.column);
      columns.slots.push_back(column.most);
    }
    first += column.features();
  }
  if (task == TargetKind::kValues) columns.targets = targets;
  return columns;
}

bool TableSchema::has_agreed() const {
  return std::ranges::any_of(categorical, [](const CategoricalColumn& column) { return column.agreed(); });
}

TableSchema read_table_schema(config::Reader& section, bool json) {
  TableSchema schema{.json = json};
  if (!json)
    schema.separator =
        kSeparators[section.choice("separator", kSeparatorNames, 0, "What separates the fields.")];
  schema.numeric = section.texts("numeric", std::vector<std::string>{},
                                 "Columns that are numbers, by their names in the table's header.");
  check_distinct(section, "numeric", schema.numeric);
  schema.mean = read_scale(section, "mean", "data.numeric", schema.numeric, {-1e30, 1e30},
                           "Mean of each numeric column, which is subtracted. Empty: nothing is subtracted.");
  schema.deviation =
      read_scale(section, "deviation", "data.numeric", schema.numeric, {1e-30, 1e30},
                 "Standard deviation of each numeric column, by which it is divided. Empty: no division.");
  schema.missing_flags = section.boolean(
      "missing_flags", false,
      "Whether each numeric column has a second feature: 1 where the value is missing, 0 elsewhere.");
  schema.categorical = read_categorical(section);
  schema.missing = section.texts("missing", std::vector<std::string>{""},
                                 "Fields that stand for a missing value. A missing number becomes the "
                                 "column's mean, or 0 if no mean is given; a missing name becomes zeros.");
  read_targets(section, schema);
  read_classes(section, schema);
  schema.window = static_cast<std::size_t>(section.integer(
      "window", 1, {1, 65'536},
      "Number of consecutive rows that make one sample. Its class is the most frequent one of its rows; its "
      "values are those of the last row; a label is set if it is in any row."));
  schema.hop = static_cast<std::size_t>(section.integer(
      "hop", static_cast<std::int64_t>(schema.window), {1, 65'536},
      "Number of rows from the beginning of a sample to the beginning of the next. The default is window."));
  schema.group = section.text("group", "",
                              "Name of a column that has the same value in all rows of a sample, such as the "
                              "number of a recording. Empty: a sample may be any rows of a file.");
  for (const char* key : {"hop", "group"})
    if (section.has(key) && schema.window == 1)
      section.fail(key, "has no effect without data.window", {"data.window"});
  if (schema.task == TargetKind::kPoints && schema.window == 1)
    section.fail("task", "segmentation predicts the class of each row of a window; set data.window",
                 {"data.window"});
  check_columns(section, schema);
  return schema;
}

}  // namespace fedge::learn
