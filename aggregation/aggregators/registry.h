// The table of aggregators by name. To add one, write a file beside mean.cc and a line in registry.cc. A
// program outside this repository calls register_aggregator() (examples/custom_aggregator).
#pragma once

#include <cstddef>
#include <span>

#include "aggregation/aggregators/aggregator.h"
#include "core/config/reader.h"

namespace fedge::aggregation {

// An aggregator with its options read and checked, not yet bound to a model.
struct AggregatorPart {
  AggregatorFactory make;
  // Fewest updates that the configured rule accepts.
  std::size_t min_updates = 1;
  // The means multiply parameters that only some of the updates cover by a factor with this exponent. 0: they
  // do not.
  double damping = 0;
};

struct AggregatorKind {
  const char* name;     // in the run file
  const char* paper;    // publication
  const char* summary;  // one line, for `fedge strategies`
  AggregatorTraits traits;
  // Reads every option of the kind from [strategy.aggregator]; other keys are errors.
  AggregatorPart (*read)(config::Reader& section);
  bool own = false;  // set by register_aggregator()
};

// The first is the default.
std::span<const AggregatorKind> aggregator_kinds();
// Adds a kind to the table. Call it at the start of main(), before anything reads the table. The name must be
// new, and no member null; otherwise the program ends with a message and exit code 1.
void register_aggregator(const AggregatorKind& kind);

}  // namespace fedge::aggregation
