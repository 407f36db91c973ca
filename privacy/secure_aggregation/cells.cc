#include "privacy/secure_aggregation/cells.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "protocol/limits.h"

namespace fedge::privacy {
namespace {

std::vector<Range> cells_of(std::span<const Coverage> coverages) {
  std::vector<std::size_t> borders;
  Coverage all;
  for (const Coverage& coverage : coverages) {
    all = all.unite(coverage);
    for (const Range& range : coverage.ranges()) {
      borders.push_back(range.begin);
      borders.push_back(range.end);
    }
  }
  std::ranges::sort(borders);
  borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
  std::vector<Range> cells;
  for (std::size_t b = 0; b + 1 < borders.size(); ++b)
    if (all.contains(borders[b])) cells.push_back({borders[b], borders[b + 1]});
  return cells;
}

std::vector<Coverage> distinct(std::span<const Coverage> coverages) {
  std::vector<Coverage> result;
  for (const Coverage& coverage : coverages)
    if (std::ranges::find(result, coverage) == result.end()) result.push_back(coverage);
  return result;
}

}  // namespace

bool has_cell(const Coverage& coverage, const Range& cell) { return coverage.contains(cell.begin); }

CoveragePlan plan_coverages(std::span<const Coverage> trained, std::uint32_t enough) {
  const std::vector<Coverage> kinds = distinct(trained);
  std::vector<std::uint32_t> kind_of;
  std::vector<std::uint32_t> all;
  for (const Coverage& coverage : trained) {
    kind_of.push_back(static_cast<std::uint32_t>(std::ranges::find(kinds, coverage) - kinds.begin()));
    all.push_back(static_cast<std::uint32_t>(all.size()));
  }
  CoveragePlan plan;
  const std::vector<Range> cells = cells_of(kinds);
  const std::vector<std::uint32_t> trainers = contributors(cells, kinds, kind_of, all);
  for (std::size_t c = 0; c < cells.size(); ++c) {
    if (trainers[c] >= enough)
      plan.cells.push_back(cells[c]);
    else
      plan.left_out += cells[c].size();
  }
  const Coverage summed = Coverage::of(plan.cells);
  std::vector<std::uint32_t> index_of_kind;
  for (const Coverage& kind : kinds) {
    const Coverage rest = kind.intersect(summed);
    const auto known = std::ranges::find(plan.coverages, rest);
    index_of_kind.push_back(rest.empty() ? CoveragePlan::kNothing
                                         : static_cast<std::uint32_t>(known - plan.coverages.begin()));
    if (!rest.empty() && known == plan.coverages.end()) plan.coverages.push_back(rest);
  }
  for (const std::uint32_t kind : kind_of) plan.coverage_of.push_back(index_of_kind[kind]);
  return plan;
}

std::vector<std::uint32_t> contributors(std::span<const Range> cells, std::span<const Coverage> coverages,
                                        std::span<const std::uint32_t> coverage_of,
                                        std::span<const std::uint32_t> members) {
  std::vector<std::uint32_t> of_kind(coverages.size(), 0);
  for (const std::uint32_t member : members) ++of_kind[coverage_of.empty() ? 0 : coverage_of[member]];
  std::vector<std::uint32_t> result(cells.size(), 0);
  for (std::size_t k = 0; k < coverages.size(); ++k)
    for (std::size_t c = 0; c < cells.size(); ++c)
      if (has_cell(coverages[k], cells[c])) result[c] += of_kind[k];
  return result;
}

std::uint32_t enough_trainers(const SecureRules& rules, std::uint32_t members) {
  const double dropout = std::min(2 * rules.assumptions.dropout, 0.9);
  const std::uint32_t enough = rules.enough(members);
  std::uint32_t trainers = enough;
  while (trainers - static_cast<std::uint32_t>(std::ceil(dropout * trainers)) < enough) ++trainers;
  return trainers;
}

Result<void> check_fits(const CoveragePlan& plan) {
  const auto too_many = [](std::size_t count, const char* what, std::size_t most) {
    return Error{ErrorCode::kResource, "clients train " + std::to_string(count) + " different " + what +
                                           " of the model; at most " + std::to_string(most) +
                                           " are possible with secure aggregation"};
  };
  if (plan.cells.size() > protocol::kMaxSecureCells)
    return too_many(plan.cells.size(), "ranges", protocol::kMaxSecureCells);
  if (plan.coverages.size() > protocol::kMaxSecureCoverages)
    return too_many(plan.coverages.size(), "parts", protocol::kMaxSecureCoverages);
  std::size_t bytes = 0;
  for (const Coverage& coverage : plan.coverages) bytes += coverage.encode().size();
  if (bytes > protocol::kMaxCoverageBytes)
    return Error{ErrorCode::kResource, "the description of the model parts that clients train takes " +
                                           std::to_string(bytes) + " bytes; at most " +
                                           std::to_string(protocol::kMaxCoverageBytes) +
                                           " are possible with secure aggregation"};
  return {};
}

Result<void> check_cells(std::span<const Range> cells, std::size_t parameters) {
  std::size_t end = 0;
  for (const Range& cell : cells) {
    if (cell.begin < end || cell.end <= cell.begin || cell.end > parameters)
      return invalid(
          "a range of parameters to sum is empty, overlaps another range or ends beyond the model");
    end = cell.end;
  }
  if (cells.empty()) return invalid("the list of parameter ranges to sum is empty");
  return {};
}

Result<void> check_made_of(const Coverage& coverage, std::span<const Range> cells) {
  std::size_t covered = 0;
  for (const Range& cell : cells)
    if (has_cell(coverage, cell) && coverage.contains(Coverage::of({cell}))) covered += cell.size();
  if (covered != coverage.count())
    return invalid("the coverage of a client must consist of complete ranges from the list of ranges to sum");
  return {};
}

}  // namespace fedge::privacy
