// Own parts: aggregators and samplers that a program registers (register_aggregator(), register_sampler()).
// Unlike a built-in part, an own part may throw an exception or return what the interface forbids.
// read_part() wraps an own part so that Fedge gets an error that names the part: an own aggregator returns
// the error, an own sampler throws PartFailure, which RunEngine::try_step() catches. Built-in parts are not
// wrapped.
#pragma once

#include "aggregation/aggregators/registry.h"
#include "aggregation/samplers/sampler.h"
#include "core/config/own_part.h"
#include "core/config/reader.h"

namespace fedge::aggregation {

using config::PartFailure;

// Reads the kind's options from its section and wraps the part if it is an own one. An exception of an own
// part, also of its factory, is an error of the section's key `kind`.
AggregatorPart read_part(const AggregatorKind& kind, config::Reader& section);
SamplerFactory read_part(const SamplerKind& kind, config::Reader& section);

}  // namespace fedge::aggregation
