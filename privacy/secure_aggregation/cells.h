// Cells: stretches of the parameter vector that the same members train. Masks hide a member only among those
// who contribute to the same cell. A cell with too few contributors is therefore not summed: its sum would
// reveal too much about them. Of each other cell the coordinator learns the sum and the weight of all
// contributors, and of no smaller group. Pure functions; O(kinds of coverage * cells).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/coverage.h"
#include "core/result.h"
#include "privacy/secure_aggregation/session.h"

namespace fedge::privacy {

struct CoveragePlan {
  std::vector<Range> cells;         // ascending; neighbouring cells may touch
  std::vector<Coverage> coverages;  // the distinct coverages of members, restricted to the cells
  // For each member, the index in `coverages`; kNothing for a member that trains no cell.
  std::vector<std::uint32_t> coverage_of;
  std::size_t left_out = 0;  // number of parameters that too few members train

  static constexpr std::uint32_t kNothing = UINT32_MAX;
};
// `trained`: the coverage that each member trains. Cells with fewer than `enough` trainers are left out.
CoveragePlan plan_coverages(std::span<const Coverage> trained, std::uint32_t enough);

// Number of trainers that a cell needs so that rules.enough() of them remain even if the dropout is twice as
// high as expected (at most 90 %).
std::uint32_t enough_trainers(const SecureRules& rules, std::uint32_t members);
// Whether the plan fits into the messages to the members; kResource if not.
Result<void> check_fits(const CoveragePlan& plan);
// Whether these are valid cells of a vector with `parameters` values. kInvalid says what is wrong.
Result<void> check_cells(std::span<const Range> cells, std::size_t parameters);
// Whether this coverage is a union of cells. kInvalid if not.
Result<void> check_made_of(const Coverage& coverage, std::span<const Range> cells);
// Whether this cell is part of `coverage`, which must be a union of cells.
bool has_cell(const Coverage& coverage, const Range& cell);

// For each cell, the number of `members` that contribute to it. An empty `coverage_of` means that all members
// have the first coverage.
std::vector<std::uint32_t> contributors(std::span<const Range> cells, std::span<const Coverage> coverages,
                                        std::span<const std::uint32_t> coverage_of,
                                        std::span<const std::uint32_t> members);

}  // namespace fedge::privacy
