// Cells: the stretches of the parameter vector that the same members train. Masks hide a member among those
// who contribute to the same cell, so a cell to which too few contribute is not summed at all: its sum would
// tell of them, whatever else is added. Of the others the coordinator learns the sum and the weight of all,
// and of no fewer. Pure functions; O(kinds of coverage * cells).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/coverage.h"
#include "core/result.h"
#include "privacy/secure_aggregation/session.h"

namespace fedge::privacy {

struct CoveragePlan {
  std::vector<Range> cells;         // ascending; neighbouring ones may touch
  std::vector<Coverage> coverages;  // distinct: what somebody trains, as far as it is summed
  // For each member, which of them; kNothing for one that trains nothing that is summed.
  std::vector<std::uint32_t> coverage_of;
  std::size_t left_out = 0;  // parameters that too few train

  static constexpr std::uint32_t kNothing = UINT32_MAX;
};
// `trained`: what each member trains. Cells that fewer than `enough` of them train are left out.
CoveragePlan plan_coverages(std::span<const Coverage> trained, std::uint32_t enough);

// So many trainers of a cell that not all members train that enough are left even when twice as many of them
// drop out as are expected to.
std::uint32_t enough_trainers(const SecureRules& rules, std::uint32_t members);
// Whether members can be told of it.
Result<void> check_fits(const CoveragePlan& plan);
// Whether these are cells of a vector of this size. kInvalid says what is wrong.
Result<void> check_cells(std::span<const Range> cells, std::size_t parameters);
// Whether this coverage is a union of cells.
Result<void> check_made_of(const Coverage& coverage, std::span<const Range> cells);
// Whether a union of cells has this one.
bool has_cell(const Coverage& coverage, const Range& cell);

// For each cell, how many of `members` contribute to it. `coverage_of` may be empty: all have the first.
std::vector<std::uint32_t> contributors(std::span<const Range> cells, std::span<const Coverage> coverages,
                                        std::span<const std::uint32_t> coverage_of,
                                        std::span<const std::uint32_t> members);

}  // namespace fedge::privacy
