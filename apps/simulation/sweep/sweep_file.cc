#include "apps/simulation/sweep/sweep_file.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "apps/common.h"
#include "apps/simulation/results/column.h"
#include "apps/simulation/results/settings.h"
#include "core/text.h"

namespace fedge::apps {
namespace {

using config::Array;
using config::Document;
using config::Reader;
using config::Table;
using config::Value;

// Adds each key of a table, with those of the tables in it, as KEY=VALUE.
void add_settings(const Table& table, Settings& settings) {
  for (const auto& [key, value] : flat_settings(table)) settings.push_back(key + "=" + value);
}

std::string name_of(const Value& value) {
  const auto* text = std::get_if<std::string>(&value.data);
  return text != nullptr ? *text : toml_of(value);
}

Choice choice_of(const std::string& key, const Value& value) {
  Choice choice{.name = name_of(value)};
  add_settings({{key, value}}, choice.settings);
  return choice;
}

constexpr std::size_t kLongestName = 200;

void check_name(Reader& reader, const char* key, const std::string& name) {
  if (name.empty()) return reader.fail(key, "a name is empty");
  if (const auto sound = check_text(name, kLongestName, "a name"); !sound)
    reader.fail(key, sound.error().message);
}

// Reads the tables of a sweep file. A table's settings are free, so they are taken from the document.
class SweepReader {
 public:
  explicit SweepReader(std::vector<config::KeyDoc>* docs) : docs_(docs) {}

  Result<Sweep> read(const Document& document, const std::filesystem::path& directory);

 private:
  void read_sweep_table(Reader& root, const Document& document);
  void read_columns(Reader& section);
  Settings settings(Reader& reader, const Value* table, const char* doc) const;
  std::vector<Axis> axes(Reader& reader, const Table& table, bool placed);
  Axis axis(Reader& reader, const Value& table, bool placed);
  void read_choices(Reader& reader, const Value& table, Axis& axis);
  void read_tuning(Reader& root, const Document& document);
  void read_pretraining(Reader& root);
  std::string beside(const std::string& path) const {
    return path.empty() ? path : (directory_ / path).lexically_normal().string();
  }

  std::vector<config::KeyDoc>* docs_;
  std::filesystem::path directory_;
  Sweep sweep_;
};

const Value* value_at(const Value* table, const char* key) {
  const auto* inner = table == nullptr ? nullptr : std::get_if<Table>(&table->data);
  return inner == nullptr ? nullptr : config::find(*inner, key);
}

Settings SweepReader::settings(Reader& reader, const Value* table, const char* doc) const {
  reader.ignore("set");
  if (docs_ != nullptr) docs_->push_back({reader.path() + ".set", "table", "{}", doc});
  Settings settings;
  const Value* value = value_at(table, "set");
  if (value == nullptr) return settings;
  if (const auto* inner = std::get_if<Table>(&value->data))
    add_settings(*inner, settings);
  else
    reader.fail("set", std::string("found ") + config::type_name(*value) +
                           ", expected a table, such as { training.local_epochs = 2 }");
  return settings;
}

void SweepReader::read_columns(Reader& section) {
  const auto read = [&](const char* key, const char* doc) {
    std::vector<std::string> texts = section.texts(key, std::vector<std::string>(), doc);
    for (const std::string& text : texts)
      if (const auto column = parse_column(text); !column) section.fail(key, column.error().message);
    return texts;
  };
  sweep_.columns =
      read("columns", "The columns of the results (docs/guide/sweeps.md). Default: what the task suggests.");
  sweep_.paired = read("paired", "The columns of the differences to the baseline. Default: all.");
}

void SweepReader::read_sweep_table(Reader& root, const Document& document) {
  Reader section = root.section("sweep");
  sweep_.run_file = beside(section.text("run", {}, "The run file, relative to this file's directory."));
  const std::int64_t seeds =
      section.integer("seeds", 1, {1, kMostSeeds},
                      "Runs of each choice, with run.seed of the run file and the numbers after it.");
  if (section.has("seeds")) sweep_.seeds = static_cast<std::size_t>(seeds);
  sweep_.settings =
      settings(section, config::find(document.root, "sweep"),
               "Settings of all runs, as in a run file: { run.rounds = 50 }. Other keys of its tables stay.");
  read_columns(section);
  const std::string baseline =
      section.text("baseline", "", "The choice to which the others are compared seed by seed; \"\": none.");
  if (!baseline.empty()) sweep_.baseline = baseline;
  root.adopt(section);
}

void SweepReader::read_choices(Reader& reader, const Value& table, Axis& axis) {
  axis.key = reader.text("key", "", "A key of the run file that takes `values`.");
  reader.ignore("values");
  if (docs_ != nullptr)
    docs_->push_back({reader.path() + ".values", "list", "[]", "The values of `key`, of any type."});
  std::vector<Reader> choices = reader.tables("choices", "Named choices of several settings.");
  const Value* named = value_at(&table, "choices");
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const auto* items = named == nullptr ? nullptr : std::get_if<Array>(&named->data);
    Choice choice;
    choice.name = choices[i].text("name", {}, "Its name in the results.");
    choice.settings = settings(choices[i], items == nullptr ? nullptr : &(*items)[i], "Its settings.");
    axis.choices.push_back(std::move(choice));
    reader.adopt(choices[i]);
  }
  const Value* values = value_at(&table, "values");
  const auto* list = values == nullptr ? nullptr : std::get_if<Array>(&values->data);
  if (values != nullptr && list == nullptr)
    return reader.fail("values", std::string("found ") + config::type_name(*values) + ", expected a list");
  if (axis.key.empty() != (list == nullptr))
    return reader.fail(axis.key.empty() ? "values" : "key", "`key` and `values` belong together");
  if (list != nullptr && named != nullptr)
    return reader.fail("choices", "an axis has `choices`, or `key` and `values`, not both");
  if (list != nullptr)
    for (const Value& value : *list) axis.choices.push_back(choice_of(axis.key, value));
  if (axis.name.empty()) axis.name = axis.key;
}

Axis SweepReader::axis(Reader& reader, const Value& table, bool placed) {
  Axis axis;
  axis.name = reader.text("name", "", "Its name in the results. Default: `key`.");
  if (placed)
    axis.place = static_cast<Axis::Place>(
        reader.choice("place", {"rows", "columns", "tables"}, 0,
                      "Whether each choice is a row of the results, a column, or a table of its own."));
  read_choices(reader, table, axis);
  if (docs_ != nullptr) return axis;
  if (axis.choices.empty())
    reader.fail("choices", "the axis has no choices; set `choices`, or `key` and `values`");
  if (axis.name.empty()) {
    reader.fail("name", "is missing; an axis with `choices` needs a name");
    return axis;
  }
  for (const Choice& choice : axis.choices) check_name(reader, "choices", choice.name);
  check_name(reader, "name", axis.name);
  for (std::size_t i = 0; i < axis.choices.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (axis.choices[i].name == axis.choices[j].name)
        reader.fail("choices", "\"" + axis.choices[i].name + "\" occurs twice");
  return axis;
}

std::vector<Axis> SweepReader::axes(Reader& reader, const Table& table, bool placed) {
  std::vector<Axis> axes;
  std::vector<Reader> readers =
      reader.tables("axis", placed ? "The axes: every combination of their choices is run."
                                   : "The axes whose choices are tried.");
  static const Value kEmpty{Table{}, ""};
  const Value* value = config::find(table, "axis");
  for (std::size_t i = 0; i < readers.size(); ++i) {
    const auto* items = value == nullptr ? nullptr : std::get_if<Array>(&value->data);
    axes.push_back(axis(readers[i], items == nullptr ? kEmpty : (*items)[i], placed));
    reader.adopt(readers[i]);
  }
  return axes;
}

void SweepReader::read_tuning(Reader& root, const Document& document) {
  if (docs_ == nullptr && !root.has("tune")) return;
  Reader section = root.section("tune");
  Tuning tuning;
  tuning.by = section.text("by", "final",
                           "The column that decides: of accuracies the highest value is best, of others the "
                           "lowest.");
  if (const auto column = parse_column(tuning.by); !column) section.fail("by", column.error().message);
  static const Value kNothing{Table{}, ""};
  const Value* table = config::find(document.root, "tune");
  if (table == nullptr || !std::holds_alternative<Table>(table->data)) table = &kNothing;
  tuning.settings = settings(section, table,
                             "Settings of the tuning runs alone. They train with the first seed, and with "
                             "data.validation = 0.1 unless it is set here.");
  tuning.axes = axes(section, std::get<Table>(table->data), false);
  if (docs_ == nullptr && tuning.axes.empty())
    section.fail("axis", "is missing; [[tune.axis]] names what is tuned");
  root.adopt(section);
  sweep_.tuning = std::move(tuning);
}

void SweepReader::read_pretraining(Reader& root) {
  if (docs_ == nullptr && !root.has("pretrain")) return;
  Reader section = root.section("pretrain");
  Pretraining pretraining;
  pretraining.run_file =
      beside(section.text("run", {}, "The run file whose model is pretrained; all runs begin with it."));
  pretraining.labels = section.integers("labels", std::vector<std::int64_t>(), {0, 1 << 20},
                                        "Labels of the samples that are used. Default: all.");
  root.adopt(section);
  sweep_.pretraining = std::move(pretraining);
}

Result<Sweep> SweepReader::read(const Document& document, const std::filesystem::path& directory) {
  directory_ = directory;
  Reader root(document.root, "", document.name, docs_);
  read_sweep_table(root, document);
  std::vector<Axis> found = axes(root, document.root, true);
  read_tuning(root, document);
  read_pretraining(root);
  for (Axis& axis : found)
    if (const auto added = add_axis(sweep_, std::move(axis)); !added)
      root.fail("axis", added.error().message);
  FEDGE_TRY_VOID(root.finish());
  return std::move(sweep_);
}

}  // namespace

Result<void> add_axis(Sweep& sweep, Axis axis) {
  for (const Axis& other : sweep.axes)
    if (other.name == axis.name) return invalid("two axes have the name \"" + axis.name + "\"");
  // Tables, then rows, then columns.
  const auto rank = [](const Axis& one) {
    return one.place == Axis::Place::kTables ? 0 : one.place == Axis::Place::kRows ? 1 : 2;
  };
  const auto at =
      std::ranges::find_if(sweep.axes, [&](const Axis& other) { return rank(other) > rank(axis); });
  sweep.axes.insert(at, std::move(axis));
  return {};
}

namespace {

std::string key_of(const std::string& setting) { return setting.substr(0, setting.find('=')); }

// Whether one key is the other, or a table that contains it.
bool overlap(const std::string& a, const std::string& b) {
  const std::string& shorter = a.size() < b.size() ? a : b;
  const std::string& longer = a.size() < b.size() ? b : a;
  return longer.starts_with(shorter) && (longer.size() == shorter.size() || longer[shorter.size()] == '.');
}

std::optional<std::string> common_key(const Axis& axis, const Settings& settings) {
  for (const Choice& choice : axis.choices)
    for (const std::string& own : choice.settings)
      for (const std::string& other : settings)
        if (overlap(key_of(own), key_of(other))) return key_of(own);
  return {};
}

Settings all_settings(const Axis& axis) {
  Settings settings;
  for (const Choice& choice : axis.choices)
    settings.insert(settings.end(), choice.settings.begin(), choice.settings.end());
  return settings;
}

}  // namespace

Result<void> check_settings(const Sweep& sweep, const Settings& assignments) {
  std::vector<const Axis*> axes;
  for (const Axis& axis : sweep.axes) axes.push_back(&axis);
  if (sweep.tuning)
    for (const Axis& axis : sweep.tuning->axes) axes.push_back(&axis);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (common_key(*axes[i], {"run.seed="}))
      return invalid("axis \"" + axes[i]->name +
                     "\": run.seed cannot vary along an axis; use --seeds, or `seeds` of the sweep file");
    if (const auto key = common_key(*axes[i], assignments))
      return invalid("--set would override " + *key + ", which axis \"" + axes[i]->name + "\" varies");
    for (std::size_t j = 0; j < i; ++j)
      if (const auto key = common_key(*axes[i], all_settings(*axes[j])))
        return invalid("axes \"" + axes[j]->name + "\" and \"" + axes[i]->name + "\" both set " + *key);
  }
  return {};
}

Result<Axis> parse_grid(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    return invalid("--grid " + text + ": expected KEY=VALUE,VALUE,..., such as training.batch_size=10,20");
  Axis axis;
  axis.name = axis.key = text.substr(0, equals);
  std::size_t begin = equals + 1;
  int depth = 0;
  char quote = 0;
  for (std::size_t i = begin; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ',';
    if (i < text.size() && quote != 0) {
      if (c == quote) quote = 0;
      continue;
    }
    if (c == '"' || c == '\'') quote = c;
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (c != ',' || (depth > 0 && i < text.size())) continue;
    const std::string value = text.substr(begin, i - begin);
    begin = i + 1;
    if (value.empty()) return invalid("--grid " + text + ": a value is empty");
    if (std::ranges::find(axis.choices, value, &Choice::name) != axis.choices.end())
      return invalid("--grid " + text + ": " + value + " occurs twice");
    axis.choices.push_back({value, {axis.key + "=" + value}});
  }
  return axis;
}

Result<Sweep> read_sweep(const std::string& path) {
  FEDGE_TRY(document, load_document(path, {}));
  if (!document.root.contains("sweep")) return Sweep{.run_file = path};
  return SweepReader(nullptr).read(document, std::filesystem::path(path).parent_path());
}

std::vector<config::KeyDoc> describe_sweep() {
  std::vector<config::KeyDoc> docs;
  (void)SweepReader(&docs).read({.name = "sweep.toml", .root = {}}, "");
  return docs;
}

}  // namespace fedge::apps
