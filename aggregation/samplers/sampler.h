// Sampler: decides which clients take part in a round. One class for each way of choosing, one
// table of their names; a strategy picks one by name and never subclasses another.
// Pure: the request holds all that a choice may depend on besides the sampler's own state.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "aggregation/spec.h"
#include "core/ids.h"
#include "core/rng.h"

namespace fedge::aggregation {

struct Candidate {
  ClientId client;
  SampleCount samples;  // its training samples, 0 if not known
};

struct SelectionRequest {
  RoundNumber round;
  std::span<const Candidate> candidates;  // sorted by client, each once
  std::size_t count = 0;                  // clients wanted
  Rng rng;                                // this decision's own stream
};

class Sampler {
 public:
  virtual ~Sampler() = default;
  // At most `count` distinct clients of the candidates, sorted; all of them if there are no more.
  virtual std::vector<ClientId> select(const SelectionRequest& request) = 0;
};

// Names of the samplers there are; the first is the default.
std::vector<std::string> sampler_kinds();
// spec.kind must be one of sampler_kinds(), as read_sampling() sees to.
std::unique_ptr<Sampler> make_sampler(const SamplingSpec& spec);

}  // namespace fedge::aggregation
