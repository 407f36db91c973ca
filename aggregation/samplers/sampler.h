// Sampler: decides which clients take part in a round. One class for each way of choosing, one
// table of their names; a strategy picks one by name and never subclasses another.
// Pure: the request holds all that a choice may depend on besides the sampler's own state.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/config/reader.h"
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

// A client that has trained and says how much its update would move the model.
struct TrainedClient {
  ClientId client;
  SampleCount samples;
  double norm = 0;   // Euclidean, of its update
  double share = 1;  // part of the model that it would upload, in (0, 1]
};

class Sampler {
 public:
  virtual ~Sampler() = default;
  // Who trains: at most `count` distinct clients of the candidates, sorted; all of them if there are no more.
  virtual std::vector<ClientId> select(const SelectionRequest& request) = 0;
  // Whether not everybody who has trained uploads: then probabilities() is asked once they all have said
  // how large their updates are.
  virtual bool draws_uploads() const { return false; }
  // With which probability in (0, 1] each of these uploads, drawn independently.
  virtual std::vector<double> probabilities(std::span<const TrainedClient> trained);
  // Whether an upload stands for those not drawn as well: it counts 1 / p, and the mean is over everybody
  // who has trained (Horvitz and Thompson). Otherwise the mean is over the uploads as they are.
  virtual bool unbiased() const { return false; }
};

using SamplerFactory = std::function<std::unique_ptr<Sampler>()>;

struct SamplerKind {
  const char* name;
  const char* paper;
  const char* summary;
  // Reads the kind's own options from [sampling].
  SamplerFactory (*read)(config::Reader& section);
};

// The first is the default.
std::span<const SamplerKind> sampler_kinds();

}  // namespace fedge::aggregation
