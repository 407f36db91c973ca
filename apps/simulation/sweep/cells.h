// The cells of a sweep: every combination of its axes' choices.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "apps/simulation/sweep/sweep_file.h"
#include "core/result.h"

namespace fedge::apps {

struct Cell {
  std::vector<std::size_t> choices;  // one for each axis
  std::string name;                  // "FedProx, mu 0.1; learning_rate=0.1"
  std::string directory;             // of its results; empty for a sweep without axes
  Settings settings;                 // of its choices, in the order of the axes
};

// Returns the cells in order; the last axis varies fastest. kInvalid: more than kMostCells, or two cells have
// the same directory.
Result<std::vector<Cell>> cells_of(const std::vector<Axis>& axes);
// The text with characters that need no quoting in a shell, as a part of a file name.
std::string file_part(const std::string& text);

}  // namespace fedge::apps
