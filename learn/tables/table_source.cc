#include "learn/tables/table_source.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "core/text.h"
#include "learn/data/files/data_files.h"
#include "learn/data/files/split.h"
#include "learn/evaluation/sums.h"
#include "learn/tables/csv_reader.h"
#include "learn/tables/json_lines.h"

namespace fedge::learn {
namespace {

constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kShownBytes = 40;    // of a field, in messages
constexpr std::size_t kShownColumns = 20;  // of a header, in messages
// Features of all samples together: 4 GiB. A schema with a window or many values needs far more than its
// file.
constexpr std::size_t kMaxValues = std::size_t{1} << 30;

std::string shown(std::string_view field) {
  const bool cut = field.size() > kShownBytes;
  return "\"" + clean_text(field.substr(0, kShownBytes), kShownBytes) + (cut ? "...\"" : "\"");
}

std::string listed(std::span<const std::string> names) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kShownColumns); ++i)
    text += (i > 0 ? ", " : "") + shown(names[i]);
  return text + (names.size() > kShownColumns ? ", ..." : "");
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Nothing if it is not a finite number.
std::optional<double> number_in(std::string_view text) {
  text = trimmed(text);
  if (text.size() > 1 && text.front() == '+' && text[1] != '-') text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

// Finds a field among the values of a column: by its characters, or by its number if both are numbers.
class Vocabulary {
 public:
  // Call sort() after the last value.
  void add(std::string_view value, std::size_t meaning) {
    words_.emplace_back(trimmed(value), meaning);
    if (const auto number = number_in(value)) numbers_.emplace_back(*number, meaning);
  }
  void sort() { std::ranges::sort(words_); }
  std::optional<std::size_t> find(std::string_view field) const {
    return find(field, numbers_.empty() ? std::nullopt : number_in(field));
  }
  // `number`: the field's, if it is one.
  std::optional<std::size_t> find(std::string_view field, std::optional<double> number) const {
    field = trimmed(field);
    const auto word = std::ranges::lower_bound(
        words_, field, {}, [](const auto& entry) { return std::string_view(entry.first); });
    if (word != words_.end() && word->first == field) return word->second;
    for (const auto& [value, meaning] : numbers_)
      if (number && value == *number) return meaning;
    return std::nullopt;
  }

 private:
  std::vector<std::pair<std::string, std::size_t>> words_;  // ascending
  std::vector<std::pair<double, std::size_t>> numbers_;
};

// The place of a field as a name; equal numbers are the same name.
float place_of(std::string_view field) {
  field = trimmed(field);
  const auto number = number_in(field);
  // 0 and -0 are equal.
  return place_of_name(number ? number_text(*number + 0.0) : std::string(field));
}

// Converts the rows of tables to samples.
class TableLoader {
 public:
  explicit TableLoader(const TableSchema& schema) : schema_(schema), categories_(schema.categorical.size()) {
    for (std::size_t c = 0; c < categories_.size(); ++c)
      for (std::size_t v = 0; v < schema.categorical[c].values.size(); ++v)
        categories_[c].add(schema.categorical[c].values[v], v);
    for (std::size_t k = 0; k < schema.classes.size(); ++k)
      for (const std::string& value : schema.classes[k]) classes_.add(value, k);
    for (const std::string& value : schema.missing) missing_.add(value, 0);
    for (Vocabulary& words : categories_) words.sort();
    classes_.sort();
    missing_.sort();
  }

  Result<void> read(const std::filesystem::path& path) {
    if (schema_.json) {
      FEDGE_TRY(reader, JsonLines::open(path, used_columns()));
      FEDGE_TRY(columns, find_columns(used_columns(), path.string()));
      return read_rows(reader, columns, path);
    }
    FEDGE_TRY(reader, CsvReader::open(path, schema_.separator));
    FEDGE_TRY(some, reader.next());
    if (!some) return invalid(path.string() + ": the file is empty; its first line must name the columns");
    std::vector<std::string> names;
    for (const std::string_view field : reader.fields()) names.emplace_back(trimmed(field));
    FEDGE_TRY(columns, find_columns(names, path.string()));
    return read_rows(reader, columns, path);
  }

  Dataset take() && {
    Dataset data{.shape = schema_.shape(),
                 .classes = schema_.target().groups(),
                 .floats = AlignedBuffer<float>(features_.size()),
                 .labels = std::move(labels_)};
    std::ranges::copy(features_, data.floats.data());
    data.class_names = schema_.class_names();
    data.columns = schema_.columns();
    if (schema_.task == TargetKind::kClass) return data;
    data.targets = {.shape = schema_.target(),
                    .points = std::move(points_),
                    .values = std::move(values_),
                    .scale = schema_.target_scale()};
    return data;
  }

 private:
  // Where the schema's columns are in a file.
  struct Columns {
    std::size_t in_header = 0;
    std::vector<std::size_t> numeric;
    std::vector<std::size_t> categorical;
    std::vector<std::size_t> targets;
    std::size_t group = 0;
  };

  // Every column of the schema once.
  std::vector<std::string> used_columns() const {
    std::vector<std::string> names = schema_.numeric;
    for (const CategoricalColumn& column : schema_.categorical) names.push_back(column.column);
    names.insert(names.end(), schema_.targets.begin(), schema_.targets.end());
    if (!schema_.group.empty() && std::ranges::find(names, schema_.group) == names.end())
      names.push_back(schema_.group);
    return names;
  }

  Result<Columns> find_columns(const std::vector<std::string>& names, const std::string& file) const {
    const auto position = [&](const std::string& name) -> Result<std::size_t> {
      const auto found = std::ranges::find(names, trimmed(name));
      if (found == names.end())
        return invalid(file + ": there is no column " + shown(name) + "; the header has " + listed(names));
      if (std::find(found + 1, names.end(), trimmed(name)) != names.end())
        return invalid(file + ": the header has the column " + shown(name) + " twice");
      return static_cast<std::size_t>(found - names.begin());
    };
    Columns columns{.in_header = names.size()};
    for (const std::string& name : schema_.numeric) {
      FEDGE_TRY(at, position(name));
      columns.numeric.push_back(at);
    }
    for (const CategoricalColumn& column : schema_.categorical) {
      FEDGE_TRY(at, position(column.column));
      columns.categorical.push_back(at);
    }
    for (const std::string& name : schema_.targets) {
      FEDGE_TRY(at, position(name));
      columns.targets.push_back(at);
    }
    if (schema_.group.empty()) return columns;
    FEDGE_TRY(group, position(schema_.group));
    columns.group = group;
    return columns;
  }

  Result<void> read_rows(RowReader& reader, const Columns& columns, const std::filesystem::path& path) {
    while (true) {
      FEDGE_TRY(more, reader.next());
      if (!more) return end_group(path.string());
      const auto fields = reader.fields();
      if (fields.size() != columns.in_header)
        return invalid(reader.place() + ": the row has " + std::to_string(fields.size()) +
                       " fields, but the header has " + std::to_string(columns.in_header));
      if (!schema_.group.empty() && fields[columns.group] != group_) {
        FEDGE_TRY_VOID(end_group(path.string()));
        group_ = fields[columns.group];
      }
      FEDGE_TRY_VOID(add_row(reader, columns));
    }
  }

  Error wrong(const RowReader& reader, const std::string& column, const std::string& what) const {
    return invalid(reader.place() + ": column " + shown(column) + ": " + what);
  }

  Result<void> add_row(const RowReader& reader, const Columns& columns) {
    const auto fields = reader.fields();
    for (std::size_t i = 0; i < columns.numeric.size(); ++i) {
      const std::string_view field = fields[columns.numeric[i]];
      const auto number = number_in(field);
      const bool missing = missing_.find(field, number).has_value();
      std::optional<double> value = missing ? (schema_.raw ? kNotANumber : 0.0) : number;
      if (!value)
        return wrong(reader, schema_.numeric[i],
                     shown(field) +
                         " is not a finite number; data.missing lists what stands for a missing "
                         "value: " +
                         listed(schema_.missing));
      if (!missing && !schema_.mean.empty()) *value -= schema_.mean[i];
      if (!missing && !schema_.deviation.empty()) *value /= schema_.deviation[i];
      const auto feature = static_cast<float>(*value);
      if (!missing && !std::isfinite(feature))
        return wrong(reader, schema_.numeric[i], shown(field) + " is too large for a 32-bit float");
      features_.push_back(feature);
      if (schema_.missing_flags) features_.push_back(missing ? 1.0F : 0.0F);
    }
    for (std::size_t i = 0; i < columns.categorical.size(); ++i) {
      const std::string_view field = fields[columns.categorical[i]];
      const CategoricalColumn& column = schema_.categorical[i];
      if (column.agreed()) {
        features_.push_back(missing_.find(field) ? static_cast<float>(kNotANumber) : place_of(field));
        features_.resize(features_.size() + column.most - 1, 0.0F);
        continue;
      }
      const auto value = categories_[i].find(field);
      if (!value && !missing_.find(field))
        return wrong(reader, column.column,
                     shown(field) + " is not one of its values: " + listed(column.values));
      const std::size_t first = features_.size();
      features_.resize(first + column.features(), 0.0F);
      if (value) features_[first + *value] = 1.0F;
    }
    FEDGE_TRY_VOID(schema_.target().has_values() ? add_values(reader, columns) : add_class(reader, columns));
    return features_.size() > kMaxValues ? too_large(reader.place()) : Result<void>();
  }

  Result<void> add_class(const RowReader& reader, const Columns& columns) {
    const std::string_view field = reader.fields()[columns.targets.front()];
    const auto label = classes_.find(field);
    if (!label)
      return wrong(reader, schema_.targets.front(),
                   shown(field) + " is not one of data.classes: " + listed(schema_.class_names()));
    labels_.push_back(static_cast<Label>(*label));
    return {};
  }

  Result<void> add_values(const RowReader& reader, const Columns& columns) {
    for (std::size_t i = 0; i < columns.targets.size(); ++i) {
      const std::string_view field = reader.fields()[columns.targets[i]];
      auto number = number_in(field);
      // A boolean of JSON.
      if (schema_.task == TargetKind::kLabels && (field == "true" || field == "false"))
        number = field == "true" ? 1 : 0;
      if (!number) return wrong(reader, schema_.targets[i], shown(field) + " is not a finite number");
      FEDGE_TRY_VOID(add_value(reader, i, *number));
    }
    labels_.push_back(0);
    return {};
  }

  Result<void> add_value(const RowReader& reader, std::size_t i, double number) {
    if (schema_.task == TargetKind::kLabels && number != 0 && number != 1)
      return wrong(reader, schema_.targets[i], number_text(number) + " is not a label, expected 0 or 1");
    double value = number;
    if (!schema_.target_mean.empty()) value -= schema_.target_mean[i];
    if (!schema_.target_deviation.empty()) value /= schema_.target_deviation[i];
    // Far values make the training diverge, and their errors cannot be counted.
    if (!schema_.raw && std::abs(value) > EvaluationSums::kMostValue)
      return wrong(reader, schema_.targets[i],
                   number_text(number) + " is more than " + number_text(EvaluationSums::kMostValue) +
                       " deviations from the mean; the run must set data.target_mean and "
                       "data.target_deviation, or data.normalise = \"federated\"");
    if (!std::isfinite(static_cast<float>(value)))
      return wrong(reader, schema_.targets[i], number_text(number) + " is too large for a 32-bit float");
    values_.push_back(static_cast<float>(value));
    return {};
  }

  // Not the file but the schema, which is the coordinator's, decides how much memory the samples need.
  static Error too_large(const std::string& place) {
    return invalid(place + ": the samples have more than " + std::to_string(kMaxValues) +
                   " features together, which is not supported");
  }

  // Turns the rows since the last group into windows.
  Result<void> end_group(const std::string& file) {
    if (schema_.window == 1) return {};
    const std::size_t width = schema_.features();
    const std::size_t added = labels_.size() - windows_;
    const std::size_t count = added < schema_.window ? 0 : (added - schema_.window) / schema_.hop + 1;
    if ((windows_ + count) * schema_.window * width > kMaxValues) return too_large(file);
    std::vector<float> rows(
        features_.begin() + static_cast<std::ptrdiff_t>(windows_ * schema_.window * width), features_.end());
    const std::vector<Label> labels(labels_.begin() + static_cast<std::ptrdiff_t>(windows_), labels_.end());
    features_.resize(windows_ * schema_.window * width);
    labels_.resize(windows_);
    const std::size_t outputs = schema_.target().has_values() ? schema_.targets.size() : 0;
    const std::vector<float> values(values_.begin() + static_cast<std::ptrdiff_t>(windows_ * outputs),
                                    values_.end());
    values_.resize(windows_ * outputs);
    std::vector<std::size_t> counts(schema_.target().groups());
    for (std::size_t w = 0; w < count; ++w) {
      const std::size_t first = w * schema_.hop;
      const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(first * width);
      features_.insert(features_.end(), begin, begin + static_cast<std::ptrdiff_t>(schema_.window * width));
      std::ranges::fill(counts, 0);
      for (std::size_t i = first; i < first + schema_.window; ++i) ++counts[labels[i]];
      labels_.push_back(static_cast<Label>(std::ranges::max_element(counts) - counts.begin()));
      const auto row = labels.begin() + static_cast<std::ptrdiff_t>(first);
      if (schema_.task == TargetKind::kPoints)
        points_.insert(points_.end(), row, row + static_cast<std::ptrdiff_t>(schema_.window));
      add_window_values(std::span(values).subspan(first * outputs, schema_.window * outputs), outputs);
    }
    windows_ += count;
    return {};
  }

  // The values of the last of these rows, or the labels of any of them.
  void add_window_values(std::span<const float> rows, std::size_t outputs) {
    for (std::size_t k = 0; k < outputs; ++k) {
      float value = rows[rows.size() - outputs + k];
      for (std::size_t i = k; schema_.task == TargetKind::kLabels && i < rows.size(); i += outputs)
        value = std::max(value, rows[i]);
      values_.push_back(value);
    }
  }

  const TableSchema& schema_;
  std::vector<Vocabulary> categories_;
  Vocabulary classes_;
  Vocabulary missing_;
  // These three hold the windows so far, then the rows since the last group.
  std::vector<float> features_;
  std::vector<Label> labels_;
  std::vector<float> values_;
  std::vector<Label> points_;  // of the windows
  std::size_t windows_ = 0;
  std::string group_;
};

class TableSource final : public DataSource {
 public:
  explicit TableSource(TableSchema schema) : schema_(std::move(schema)) {}

  Result<DatasetInfo> describe(const DataSpec& spec) const override {
    const TargetShape target = schema_.target();
    return DatasetInfo{schema_.shape(),           target.groups(), target.outputs, schema_.class_names(),
                       schema_of(spec).columns(), target.kind,     target.points,  schema_.target_scale()};
  }
  bool needs_statistics() const override { return schema_.has_agreed(); }
  Result<Dataset> load(const DataSpec& spec, Split split) const override {
    const TableSchema schema = schema_of(spec);
    return load_split(
        spec, split, schema.json ? kJsonEndings : kCsvEndings,
        [&](std::span<const std::filesystem::path> files) { return read_table(schema, files); });
  }

 private:
  TableSchema schema_of(const DataSpec& spec) const {
    TableSchema schema = schema_;
    schema.raw = spec.federated_normalisation;
    return schema;
  }

  static constexpr std::array<std::string_view, 2> kCsvEndings = {".csv", ".csv.gz"};
  static constexpr std::array<std::string_view, 2> kJsonEndings = {".jsonl", ".jsonl.gz"};
  TableSchema schema_;
};

}  // namespace

Result<Dataset> read_table(const TableSchema& schema, std::span<const std::filesystem::path> files) {
  TableLoader loader(schema);
  for (const std::filesystem::path& file : files) FEDGE_TRY_VOID(loader.read(file));
  return std::move(loader).take();
}

std::shared_ptr<const DataSource> read_csv_source(config::Reader& section) {
  return std::make_shared<TableSource>(read_table_schema(section, /*json=*/false));
}

std::shared_ptr<const DataSource> read_json_source(config::Reader& section) {
  return std::make_shared<TableSource>(read_table_schema(section, /*json=*/true));
}

}  // namespace fedge::learn
