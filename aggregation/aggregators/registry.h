// The table of aggregators by name. Adding one is a file beside mean.cc and a line in registry.cc; a
// program of one's own adds it with register_aggregator() (examples/custom_aggregator).
#pragma once

#include <cstddef>
#include <span>

#include "aggregation/aggregators/aggregator.h"
#include "core/config/reader.h"

namespace fedge::aggregation {

// An aggregator with its options read and checked, not yet bound to a model.
struct AggregatorPart {
  AggregatorFactory make;
  // Fewest updates with which the rule, as configured, can work.
  std::size_t min_updates = 1;
};

struct AggregatorKind {
  const char* name;     // in the run file
  const char* paper;    // who published it
  const char* summary;  // one line, for `fedge strategies`
  AggregatorTraits traits;
  // Reads the options from [strategy.aggregator]; every key the kind has, and no other.
  AggregatorPart (*read)(config::Reader& section);
};

// The first is the default.
std::span<const AggregatorKind> aggregator_kinds();
// Adds one to the table, before anything reads it: first thing in main(). The name must be new.
void register_aggregator(const AggregatorKind& kind);

}  // namespace fedge::aggregation
