// How clients answer with integer sums over their own samples, for the engine of a run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/coverage.h"
#include "core/ids.h"
#include "core/result.h"

namespace fedge::server {

struct SumsRules {
  Coverage coverage;     // of the zeros that a client sends as its update
  std::size_t size = 0;  // number of sums
  // kInvalid if no client with at most this many samples can have these sums.
  std::function<Result<void>(std::span<const std::int64_t> sums, std::uint64_t most)> check;
};

struct EvaluationRules {
  std::uint32_t every = 1;  // rounds; the last round is always evaluated
  std::size_t clients = 0;  // that evaluate a model; 0: all that are connected
  bool apart = false;       // only clients without training samples evaluate
  SumsRules sums;
};

// Before the first round, all connected clients count their values.
struct StatisticsRules {
  std::size_t steps = 0;  // each needs the result of the one before
  SumsRules sums;
};

// The sums of a client.
struct ClientSums {
  ClientId client;
  std::vector<std::int64_t> sums;
};

}  // namespace fedge::server
