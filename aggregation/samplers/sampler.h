// Sampler: selects the clients of a round. Each method is one class, and one table lists their names; a
// strategy picks a method by name and never subclasses another. Pure: a choice depends only on the request
// and the sampler's own state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
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

// A connected client that may take part.
struct Candidate {
  ClientId client;
  SampleCount samples;  // its training samples, 0 if unknown
};

// n_i for samplers that draw by size: clamped to 1 (also if unknown) .. protocol::kMaxSamples.
std::uint64_t size_of(const Candidate& candidate);

// Candidates by ascending client, each once. begin() and all() list all of them, which takes O(candidates);
// size() and operator[] may take less.
class CandidateView {
 public:
  // Candidates that are no list yet. It must outlive the view.
  class Source {
   public:
    virtual ~Source() = default;
    virtual std::size_t size() const = 0;
    virtual Candidate at(std::size_t index) const = 0;
    virtual std::span<const Candidate> all() const = 0;
  };

  CandidateView() = default;
  CandidateView(std::span<const Candidate> list) : list_(list) {}
  CandidateView(const std::vector<Candidate>& list) : list_(list) {}
  CandidateView(const Source& source) : source_(&source) {}

  std::size_t size() const { return source_ != nullptr ? source_->size() : list_.size(); }
  bool empty() const { return size() == 0; }
  Candidate operator[](std::size_t index) const {
    return source_ != nullptr ? source_->at(index) : list_[index];
  }
  std::span<const Candidate> all() const { return source_ != nullptr ? source_->all() : list_; }
  auto begin() const { return all().begin(); }
  auto end() const { return all().end(); }

 private:
  std::span<const Candidate> list_;
  const Source* source_ = nullptr;
};

struct SelectionRequest {
  RoundNumber round;
  CandidateView candidates;
  std::size_t count = 0;  // clients wanted
  Rng rng;                // random stream of this decision
  // Clients that left the run, ascending: no round may select them until they are candidates again. Unlike
  // disconnected clients, they do not count at all.
  std::span<const ClientId> left = {};
  // Key of this decision. If set, poisson draws from it, so that the draw stays secret.
  const Secret* secret = nullptr;
};

// A client of a round.
struct Selected {
  ClientId client;
  double inclusion = 1;  // probability that a choice among these candidates includes it, in (0, 1]
  // Factor of its update in the sum that moves the model; a round's coefficients add up to about 1. 0: the
  // aggregator's own weight.
  double coefficient = 0;
  bool operator==(const Selected&) const = default;
};

// A selected client in a round with a second draw of the clients that upload.
struct Participant {
  ClientId client;
  SampleCount samples;
  double norm = 0;   // Euclidean norm of its update as reported; 0 before training
  double share = 1;  // part of the model that it uploads, in (0, 1]
};

// When a second draw decides which selected clients contribute to the round.
enum class Draw {
  kNever,           // all contribute
  kBeforeTraining,  // only the clients drawn train
  kBeforeUpload,    // all train, the clients drawn upload
};

// Needs and abilities of a sampler as configured. The engines read the first ones. check_recipe()
// (run/recipe.h) reads all and refuses impossible combinations before a run starts, for samplers of this
// repository and for own ones alike.
struct SamplerTraits {
  Draw draw = Draw::kNever;
  // With a second draw: true if an upload also stands for clients not drawn. It then counts 1 / p, and the
  // mean is over all clients of the round (Horvitz and Thompson). False: the mean is over the uploads as they
  // are.
  bool unbiased = false;
  // True: another client replaces one that drops out, and a round is complete with clients_per_round updates.
  // False: the round waits for exactly the selected clients; one with a coefficient that does not deliver
  // counts as an update of zeros.
  bool substitutes = true;
  // True if it sets coefficients: the aggregator must be a mean.
  bool weighs = false;
  // True if neither the selection nor the weights depend on what clients report about their data or updates:
  // samples, loss, norm. Presence, deliveries and latency do not count. Secure aggregation and differential
  // privacy require it.
  bool blind = false;
  // True if it draws every candidate independently of the others with the same probability (Poisson
  // sampling), so that a round may have any number of clients. With differential_privacy.kind = "central",
  // the privacy loss is that of Poisson sampling, and poisson draws in its place: its draws stay secret.
  bool independent = false;
  // Gives that probability, if it does not depend on the number of candidates. 0: it does.
  double chance = 0;
  // True if it draws clients_per_round times with replacement: there may be more draws than clients.
  bool with_replacement = false;
  // True if it counts clients that are not candidates as offline. A buffered schedule must not hold clients
  // back at a barrier then.
  bool estimates_availability = false;
  // True if it uses clients' status records (describe()): they are published by default, with the labels
  // below and no others.
  bool reads_records = false;
  // True if it uses the battery level in them, which is then published by default in place of the latency.
  bool reads_battery = false;
  // Label report in clients' records that the sampler uses.
  protocol::LabelReport labels = protocol::LabelReport::kNone;
};

// How a selected client's task ended.
struct Feedback {
  ClientId client;
  RoundNumber round;
  bool delivered = false;  // its update was accepted; false: it dropped out, and the fields below are 0
  SampleCount samples;
  double norm = 0;                    // Euclidean norm of its update
  double loss = 0;                    // mean training loss
  double loss_rms = 0;                // root of the mean of the squared losses of its samples
  Duration time{};                    // from the assignment to the update's arrival
  std::optional<double> joules = {};  // of its training, as it reports; empty: unknown
};

class Sampler {
 public:
  virtual ~Sampler() = default;
  virtual SamplerTraits traits() const { return {}; }
  // Selects the clients of a round: distinct candidates, sorted by client; `count` or fewer, or any number if
  // traits().independent.
  virtual std::vector<Selected> select(const SelectionRequest& request) = 0;
  // If traits().draw is not kNever: the probability in (0, 1] with which each participant contributes,
  // independently of the others.
  virtual std::vector<double> probabilities(std::span<const Participant> participants);
  virtual void remember(const Feedback&) {}
  // Receives a client's directory record.
  virtual void describe(ClientId, const NodeRecord&) {}
};

using SamplerFactory = std::function<std::unique_ptr<Sampler>()>;

struct SamplerKind {
  const char* name;
  const char* paper;
  const char* summary;
  // Reads the kind's own options from [sampling].
  SamplerFactory (*read)(config::Reader& section);
  bool own = false;  // set by register_sampler()
};

// The first is the default.
std::span<const SamplerKind> sampler_kinds();
// Adds a sampler to the table. Call it at the start of main(), before anything reads the table. The name must
// be new, and no member null; otherwise the program ends with a message and exit code 1.
void register_sampler(const SamplerKind& kind);

}  // namespace fedge::aggregation
