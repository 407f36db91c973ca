// Own parts: the coordinator's parts that a program registers (core/config/own_part.h). read_part() wraps an
// own part so that Fedge gets an error that names the part: an own aggregator returns the error; an own
// sampler or planner throws PartFailure, which RunEngine::try_step() catches; the step of an own server
// optimizer throws it too, and step_model() catches it. Built-in parts are not wrapped.
#pragma once

#include "aggregation/aggregators/registry.h"
#include "aggregation/planners/planner.h"
#include "aggregation/samplers/sampler.h"
#include "aggregation/server_optimizers/server_optimizer.h"
#include "core/config/own_part.h"
#include "core/config/reader.h"

namespace fedge::aggregation {

using config::PartFailure;

// Reads the kind's options from its section and wraps the part if it is an own one. An exception of an own
// part, also of its factory, is an error of the section's key `kind`.
AggregatorPart read_part(const AggregatorKind& kind, config::Reader& section);
SamplerFactory read_part(const SamplerKind& kind, config::Reader& section);
PlannerPart read_part(const PlannerKind& kind, config::Reader& section);
ServerOptimizerFactory read_part(const ServerOptimizerKind& kind, config::Reader& section);

}  // namespace fedge::aggregation
