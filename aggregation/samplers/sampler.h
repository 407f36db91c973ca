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

// A client of a round of which it is drawn who uploads.
struct Participant {
  ClientId client;
  SampleCount samples;
  double norm = 0;   // Euclidean, of its update as it reports it; 0 before it has trained
  double share = 1;  // part of the model that it uploads, in (0, 1]
};

// When it is drawn who of the selected clients contributes to a round.
enum class Draw {
  kNever,           // all do
  kBeforeTraining,  // only those drawn train
  kBeforeUpload,    // all train, those drawn upload
};

class Sampler {
 public:
  virtual ~Sampler() = default;
  // Who is in the round: at most `count` distinct clients of the candidates, sorted; all of them if there are
  // no more.
  virtual std::vector<ClientId> select(const SelectionRequest& request) = 0;
  virtual Draw draw() const { return Draw::kNever; }
  // Unless kNever: with which probability in (0, 1] each of these contributes, drawn independently.
  virtual std::vector<double> probabilities(std::span<const Participant> participants);
  // Whether an upload stands for those not drawn as well: it counts 1 / p, and the mean is over everybody
  // in the round (Horvitz and Thompson). Otherwise the mean is over the uploads as they are.
  virtual bool unbiased() const { return false; }
  // This client's update, of this norm, has been accepted.
  virtual void remember(ClientId, double /*norm*/) {}
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
