// A sweep: a run file and the settings that vary. Read from a sweep file (TOML with a table [sweep]), or made
// of a run file and --grid options. docs/guide/sweeps.md explains the file to users.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/config/reader.h"
#include "core/result.h"

namespace fedge::apps {

using Settings = std::vector<std::string>;  // KEY=VALUE, as --set takes them

struct Choice {
  std::string name;
  Settings settings = {};
};

struct Axis {
  // The place of its choices in the results: each is a row, a column, or a table of its own.
  enum class Place { kRows, kColumns, kTables };
  std::string name;
  std::string key = {};  // the key whose values the choices are; empty: they have names
  std::vector<Choice> choices = {};
  Place place = Place::kRows;
};

// Choice of settings by runs that train with the first seed and are evaluated on validation samples.
struct Tuning {
  std::string by;  // a column; of accuracies the highest, of other metrics the lowest is best
  Settings settings;
  std::vector<Axis> axes;
};

// A model that is pretrained once, and with which all runs begin.
struct Pretraining {
  std::string run_file;
  std::vector<std::int64_t> labels;  // of the samples that are used; empty: all
};

struct Sweep {
  std::string run_file;
  Settings settings;                    // of all runs
  std::optional<std::size_t> seeds;     // nothing: not said
  std::vector<std::string> columns;     // empty: as the task suggests
  std::optional<std::string> baseline;  // name of a choice
  std::vector<std::string> paired;      // columns of the differences to the baseline; empty: all
  std::vector<Axis> axes;               // those of tables first, then rows, then columns
  std::optional<Tuning> tuning;
  std::optional<Pretraining> pretraining;
};

inline constexpr std::size_t kMostSeeds = 1000;
inline constexpr std::size_t kMostCells = 10'000;

// Reads a sweep file or a run file. Paths of run files are relative to the sweep file's directory. All errors
// of the file at once, each with its line.
Result<Sweep> read_sweep(const std::string& path);
// Adds an axis to a sweep. kInvalid: an axis has this name already.
Result<void> add_axis(Sweep& sweep, Axis axis);
// kInvalid: two axes set the same key, or the --set assignments set one that an axis varies, so that a result
// would have the name of a setting that it does not have; or an axis varies run.seed.
Result<void> check_settings(const Sweep& sweep, const Settings& assignments);
// "training.batch_size=10,20": an axis of these values, which are separated by commas outside of quotation
// marks and brackets.
Result<Axis> parse_grid(const std::string& text);

// The keys of a sweep file, for the generated reference.
std::vector<config::KeyDoc> describe_sweep();

}  // namespace fedge::apps
