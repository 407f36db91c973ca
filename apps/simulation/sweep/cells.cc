#include "apps/simulation/sweep/cells.h"

#include <cctype>
#include <map>
#include <set>
#include <utility>

namespace fedge::apps {
namespace {

constexpr std::size_t kLongestDirectory = 240;

// Names of a sweep's own files.
const std::set<std::string> kReserved = {"tables.md",  "runs.csv", "summary.csv", "differences.csv",
                                         "cells.toml", "lock",     "tuning",      "base.safetensors",
                                         "base.toml",  "base.log", "options.toml"};

// "learning_rate=0.1" of a key's value, or the choice's name.
std::string label(const Axis& axis, const Choice& choice) {
  if (axis.key.empty()) return choice.name;
  return axis.key.substr(axis.key.rfind('.') + 1) + "=" + choice.name;
}

Cell cell_of(const std::vector<Axis>& axes, std::vector<std::size_t> choices) {
  Cell cell{.choices = std::move(choices)};
  for (std::size_t a = 0; a < axes.size(); ++a) {
    const Choice& choice = axes[a].choices[cell.choices[a]];
    const std::string part = label(axes[a], choice);
    cell.name += (cell.name.empty() ? "" : "; ") + part;
    cell.directory += (cell.directory.empty() ? "" : ",") + file_part(part);
    cell.settings.insert(cell.settings.end(), choice.settings.begin(), choice.settings.end());
  }
  return cell;
}

}  // namespace

std::string file_part(const std::string& text) {
  static const std::string kept = "._=+-";
  std::string out;
  for (const char c : text) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || kept.find(c) != std::string::npos;
    if (plain)
      out += c;
    else if (!out.empty() && out.back() != '_')
      out += '_';
  }
  while (!out.empty() && out.back() == '_') out.pop_back();
  return out.empty() || out.front() == '.' ? "_" + out : out;
}

Result<std::vector<Cell>> cells_of(const std::vector<Axis>& axes) {
  std::size_t count = 1;
  for (const Axis& axis : axes) {
    count *= axis.choices.size();
    if (count > kMostCells)
      return invalid("the axes have more than " + std::to_string(kMostCells) + " combinations of choices");
  }
  std::vector<Cell> cells;
  std::map<std::string, std::string> names;  // by directory
  std::vector<std::size_t> choices(axes.size(), 0);
  for (std::size_t i = 0; i < count; ++i) {
    Cell cell = cell_of(axes, choices);
    if (cell.directory.size() > kLongestDirectory)
      return invalid("\"" + cell.name.substr(0, 60) + "...\" is too long for the name of a directory");
    if (kReserved.contains(cell.directory))
      return invalid("\"" + cell.name + "\" would have the directory " + cell.directory +
                     ", which the sweep uses itself; give it another name");
    const auto [other, added] = names.emplace(cell.directory, cell.name);
    if (!added)
      return invalid("\"" + other->second + "\" and \"" + cell.name + "\" would have the same directory, " +
                     cell.directory + "; give one of them another name");
    cells.push_back(std::move(cell));
    for (std::size_t a = axes.size(); a-- > 0 && ++choices[a] == axes[a].choices.size();) choices[a] = 0;
  }
  return cells;
}

}  // namespace fedge::apps
