// How clients evaluate models, for the engine of a run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/coverage.h"
#include "core/ids.h"
#include "learn/evaluation/sums.h"

namespace fedge::server {

struct EvaluationRules {
  std::uint32_t every = 1;             // rounds; the last round is always evaluated
  std::size_t clients = 0;             // that evaluate a model; 0: all that are connected
  Coverage coverage;                   // of the zeros that an evaluation sends as its update
  learn::EvaluationSums::Shape shape;  // of its sums
};

// A client's evaluation of a model.
struct ClientSums {
  ClientId client;
  std::vector<std::int64_t> sums;  // learn::EvaluationSums
};

}  // namespace fedge::server
