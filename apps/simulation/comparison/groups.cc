#include "apps/simulation/comparison/groups.h"

#include <algorithm>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "apps/simulation/results/settings.h"
#include "core/config/document.h"
#include "core/platform/files.h"

namespace fedge::apps {
namespace {

namespace fs = std::filesystem;
using FlatFile = std::map<std::string, std::string>;  // a run file: key, value as TOML

constexpr const char* kCells = "cells.toml";

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

Result<config::Document> parse(const fs::path& path) {
  FEDGE_TRY(text, read_file(path, config::kMaxDocumentBytes));
  return config::parse_toml(text, path.string());
}

// Lists of strings; empty if the value is something else.
std::vector<std::string> texts(const config::Table& table, const char* key) {
  std::vector<std::string> out;
  const config::Value* value = config::find(table, key);
  const auto* items = value == nullptr ? nullptr : std::get_if<config::Array>(&value->data);
  if (items == nullptr) return out;
  for (const config::Value& item : *items)
    if (const auto* text = std::get_if<std::string>(&item.data)) out.push_back(*text);
  return out;
}

std::string name_of(const fs::path& directory) {
  std::error_code ignored;
  return fs::weakly_canonical(directory, ignored).filename().string();
}

bool is_run(const fs::path& directory) {
  return is_there(directory / "run.toml") && is_there(directory / "metrics.jsonl");
}

// Groups of several sweeps may have the same name: the directory of the sweep tells them apart.
void tell_apart(std::vector<RunGroup>& groups, const std::vector<fs::path>& sweeps) {
  std::map<std::string, std::size_t> counts;
  for (const RunGroup& group : groups) ++counts[group.name];
  for (std::size_t i = 0; i < groups.size(); ++i)
    if (counts[groups[i].name] > 1 && i < sweeps.size())
      groups[i].name = sweeps[i].lexically_normal().string() + ": " + groups[i].name;
}

Result<std::vector<RunGroup>> read_sweep_groups(const fs::path& directory) {
  FEDGE_TRY(document, parse(directory / kCells));
  const config::Value* cells = config::find(document.root, "cells");
  const auto* items = cells == nullptr ? nullptr : std::get_if<config::Array>(&cells->data);
  if (items == nullptr)
    return Error{ErrorCode::kCorrupt, (directory / kCells).string() + ": `cells` is not a list"};
  std::vector<RunGroup> groups;
  for (const config::Value& item : *items) {
    const auto* cell = std::get_if<config::Table>(&item.data);
    if (cell == nullptr)
      return Error{ErrorCode::kCorrupt, (directory / kCells).string() + ": a cell is not a table"};
    RunGroup group;
    for (const std::string& choice : texts(*cell, "choices"))
      group.name += (group.name.empty() ? "" : ", ") + choice;
    if (group.name.empty()) group.name = name_of(directory);
    for (const std::string& run : texts(*cell, "runs")) {
      FEDGE_TRY(results, read_finished_run(directory / run));
      group.runs.push_back(std::move(results));
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

// A group of runs outside of sweeps.
struct Alike {
  FlatFile settings;  // without the seed and the name
  RunGroup group;
};

Result<void> add_run(const fs::path& directory, std::vector<Alike>& groups) {
  FEDGE_TRY(document, parse(directory / "run.toml"));
  FEDGE_TRY(results, read_finished_run(directory));
  FlatFile settings = flat_settings(document.root);
  settings.erase("run.seed");
  settings.erase("run.name");
  auto found = std::ranges::find(groups, settings, &Alike::settings);
  if (found == groups.end()) found = groups.insert(groups.end(), {settings, {}});
  found->group.runs.push_back(std::move(results));
  return {};
}

// Names a strategy by its kind, and another setting by the last part of its key and its value.
std::string setting_text(const std::string& key, std::string value) {
  if (value.size() >= 2 && value.front() == '"' && value.back() == '"')
    value = value.substr(1, value.size() - 2);
  if (key == "strategy.kind") return value;
  return key.substr(key.rfind('.') + 1) + "=" + value;
}

// Names each group by the settings that not all groups have.
void name_groups(std::vector<Alike>& groups) {
  std::set<std::string> differing;
  for (const Alike& one : groups)
    for (const Alike& other : groups)
      for (const auto& [key, value] : one.settings) {
        const auto found = other.settings.find(key);
        if (found == other.settings.end() || found->second != value) differing.insert(key);
      }
  std::set<std::string> names;
  for (Alike& one : groups) {
    std::string& name = one.group.name;
    for (const std::string& key : differing)
      if (const auto found = one.settings.find(key); found != one.settings.end())
        name += (name.empty() ? "" : ", ") + setting_text(key, found->second);
    const fs::path directory = one.group.runs.front().directory;
    if (name.empty()) name = groups.size() == 1 ? one.group.runs.front().name : directory.filename().string();
    if (name.empty() || !names.insert(name).second) name = directory.string();
  }
}

// The sweeps' groups with their directories, and the other runs.
struct Found {
  std::vector<RunGroup> groups;
  std::vector<fs::path> sweeps;
  std::vector<Alike> others;
};

Result<void> add_directory(const fs::path& directory, Found& into) {
  if (is_there(directory / kCells)) {
    FEDGE_TRY(found, read_sweep_groups(directory));
    into.sweeps.insert(into.sweeps.end(), found.size(), directory);
    std::ranges::move(found, std::back_inserter(into.groups));
    return {};
  }
  if (is_run(directory)) return add_run(directory, into.others);
  std::error_code error;
  std::vector<fs::path> runs;
  fs::recursive_directory_iterator entry(directory, error);
  if (error) return system_error("cannot read", directory, error.value());
  for (; entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    if (error) return system_error("cannot read", directory, error.value());
    if (entry->path().filename() == "tuning") entry.disable_recursion_pending();  // of an unfinished sweep
    if (entry->path().filename() == "run.toml" && is_run(entry->path().parent_path()))
      runs.push_back(entry->path().parent_path());
  }
  if (runs.empty())
    return Error{ErrorCode::kNotFound,
                 directory.string() + " has no results of a run (run.toml and metrics.jsonl)"};
  std::ranges::sort(runs);
  for (const fs::path& run : runs) FEDGE_TRY_VOID(add_run(run, into.others));
  return {};
}

Result<void> check(const std::vector<RunGroup>& groups) {
  if (groups.size() > kMostGroups)
    return invalid("there are " + std::to_string(groups.size()) + " groups of runs; at most " +
                   std::to_string(kMostGroups) + " can be compared at once");
  std::set<fs::path> seen;
  for (const RunGroup& group : groups)
    for (const FinishedRun& run : group.runs) {
      if (run.rounds.empty()) return Error{ErrorCode::kNotFound, run.directory.string() + " has no round"};
      std::error_code ignored;
      if (!seen.insert(fs::canonical(run.directory, ignored)).second)
        return invalid(run.directory.string() + " is given twice");
    }
  for (const RunGroup& group : groups)
    for (std::size_t i = 1; i < group.runs.size(); ++i)
      if (group.runs[i].seed == group.runs[i - 1].seed)
        return invalid(group.runs[i - 1].directory.string() + " and " + group.runs[i].directory.string() +
                       " have the same settings and seed; they are not two samples");
  return {};
}

}  // namespace

Result<std::vector<RunGroup>> read_groups(const std::vector<std::string>& directories) {
  Found found;
  for (const std::string& directory : directories) FEDGE_TRY_VOID(add_directory(directory, found));
  name_groups(found.others);
  std::vector<RunGroup> groups = std::move(found.groups);
  for (Alike& one : found.others) groups.push_back(std::move(one.group));
  tell_apart(groups, found.sweeps);
  for (RunGroup& group : groups) std::ranges::stable_sort(group.runs, {}, &FinishedRun::seed);
  FEDGE_TRY_VOID(check(groups));
  return groups;
}

}  // namespace fedge::apps
