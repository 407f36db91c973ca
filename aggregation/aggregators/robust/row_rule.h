// RowRule: a rule on the rows of a round (kept_updates.h), and the Aggregator made of one: it keeps
// every update until the round is over and hands the rule their matrix.
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
  // The round's rows are there, at least one. kUnavailable if they are too few (require_rows()).
  virtual Result<void> prepare(KeptUpdates& rows, Parallel& parallel) = 0;
  // The aggregate of parameters first, first + 1, ...
  virtual Result<void> read(KeptUpdates& rows, std::size_t first, std::span<double> out,
                            Parallel& parallel) = 0;
  // As Aggregator::memory(), for a model of so many parameters.
  virtual std::vector<std::span<std::byte>> memory(std::size_t) { return {}; }
};

using RowRuleFactory = std::function<std::unique_ptr<RowRule>(const AggregatorContext&)>;

struct RowRulePart {
  const char* name;  // the rule's
  RowOptions options;
  std::size_t min_rows = 1;  // fewest with which the rule, as configured, can work
};

AggregatorPart on_rows(const RowRulePart& part, RowRuleFactory make);

}  // namespace fedge::aggregation
