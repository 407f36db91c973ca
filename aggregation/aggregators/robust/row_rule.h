// RowRule: a rule on the rows of a round (kept_updates.h). on_rows() turns it into an Aggregator that keeps
// every update until the end of the round and then passes the matrix to the rule.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "aggregation/aggregators/registry.h"
#include "aggregation/aggregators/robust/kept_updates.h"

namespace fedge::aggregation {

class RowRule {
 public:
  virtual ~RowRule() = default;
  // Starts the rule on the round's rows, at least one. kUnavailable if there are too few (require_rows()).
  virtual Result<void> prepare(KeptUpdates& rows, Parallel& parallel) = 0;
  // Writes the aggregate of parameters first, first + 1, ...
  virtual Result<void> read(KeptUpdates& rows, std::size_t first, std::span<double> out,
                            Parallel& parallel) = 0;
  // As Aggregator::memory(), for a model with this number of parameters.
  virtual std::vector<std::span<std::byte>> memory(std::size_t) { return {}; }
};

using RowRuleFactory = std::function<std::unique_ptr<RowRule>(const AggregatorContext&)>;

struct RowRulePart {
  const char* name;  // name of the rule
  RowOptions options;
  std::size_t min_rows = 1;  // fewest rows that the configured rule accepts
};

AggregatorPart on_rows(const RowRulePart& part, RowRuleFactory make);

}  // namespace fedge::aggregation
