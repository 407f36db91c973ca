// Sampler: decides which clients take part in a round. One class for each way of choosing, one
// table of their names; a strategy picks one by name and never subclasses another.
// Pure: the request holds all that a choice may depend on besides the sampler's own state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/config/reader.h"
#include "core/crypto/secret.h"
#include "core/ids.h"
#include "core/node_record.h"
#include "core/rng.h"
#include "core/time.h"
#include "protocol/status_spec.h"

namespace fedge::aggregation {

// A client that is there and could take part.
struct Candidate {
  ClientId client;
  SampleCount samples;  // its training samples, 0 if not known
};

// n_i of the samplers that go by size: from 1, for a client whose samples are not known, to
// protocol::kMaxSamples.
std::uint64_t size_of(const Candidate& candidate);

struct SelectionRequest {
  RoundNumber round;
  std::span<const Candidate> candidates;  // sorted by client, each once
  std::size_t count = 0;                  // clients wanted
  Rng rng;                                // this decision's own stream
  // Ascending: those that no round may ask any more, until they are candidates again. Other than who is away,
  // they count in nothing.
  std::span<const ClientId> left = {};
  // A key for this decision alone, which poisson draws from instead: where nobody may know who is drawn.
  const Secret* secret = nullptr;
};

// A client of a round.
struct Selected {
  ClientId client;
  double inclusion = 1;  // probability with which a choice among these candidates holds it, in (0, 1]
  // What its update is multiplied by in the sum that moves the model; such coefficients add up to about 1.
  // 0: as the aggregator weighs it.
  double coefficient = 0;
  bool operator==(const Selected&) const = default;
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

struct SamplerTraits {
  Draw draw = Draw::kNever;
  // Of those drawn: whether an upload stands for those not drawn as well. It counts 1 / p then, and the mean
  // is over everybody in the round (Horvitz and Thompson). Otherwise the mean is over the uploads as they
  // are.
  bool unbiased = false;
  // Whether somebody else takes the place of a client that drops out, and a round is complete with
  // clients_per_round updates. Otherwise exactly those selected are waited for; one with a coefficient that
  // does not deliver counts as an update of zeros.
  bool substitutes = true;
  // Whether it gives coefficients: the aggregator must be a mean.
  bool weighs = false;
  // With which probability each candidate is drawn, by itself, whoever the others are and however many: what
  // amplification by sampling rests on. 0: not so.
  double chance = 0;
  // What it goes by of the labels in clients' records.
  protocol::LabelReport labels = protocol::LabelReport::kNone;
};

// How a selected client's task ended.
struct Feedback {
  ClientId client;
  RoundNumber round;
  bool delivered = false;  // its update has been accepted; otherwise it dropped out, and the rest is 0
  SampleCount samples;
  double norm = 0;      // Euclidean, of its update
  double loss = 0;      // mean training loss
  double loss_rms = 0;  // root of the mean of the squared losses of its samples
  Duration time{};      // from the assignment to the update's arrival
};

class Sampler {
 public:
  virtual ~Sampler() = default;
  virtual SamplerTraits traits() const { return {}; }
  // Who is in the round: distinct candidates, sorted by client; about `count` of them, or all if there are no
  // more.
  virtual std::vector<Selected> select(const SelectionRequest& request) = 0;
  // If traits().draw is not kNever: with which probability in (0, 1] each of these contributes, drawn
  // independently.
  virtual std::vector<double> probabilities(std::span<const Participant> participants);
  virtual void remember(const Feedback&) {}
  // What a client says about itself in the directory.
  virtual void describe(ClientId, const NodeRecord&) {}
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
// Adds a sampler to the table. Call it before anything reads the table, first in main(). The name must be
// new.
void register_sampler(const SamplerKind& kind);

}  // namespace fedge::aggregation
