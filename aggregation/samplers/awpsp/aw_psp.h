// AwPspSampler: availability-weighted probabilistic synchronous parallel (Behfar and Mortier 2026,
// arXiv:2604.16090). It prefers clients that are likely to be available, have not delivered for long, or add
// labels, and avoids clients whose neighbours in latency have failed. docs/algorithms/aw-psp.md says which
// parts are from the paper, from the authors' code and from this project.
//
// State: a candidate at the start of a round is up; a known client that is no candidate is down; a task
// without an update has failed. A client in SelectionRequest::left is forgotten. Absence does not count
// against a client whose task is still open. A client that is down for longer than chance explains is
// presumed offline: it is not selected. After it reconnects it is probed with probability 1 / L a round, L
// the rounds that it was down.
//
// In an asynchronous run a round lasts from one move of the model to the next.
//
// Inclusion probabilities are exact (selection.h); those of the greedy selector are 1. They are conditional
// on the candidates and all earlier input.
//
// Inverse probability weights: the coefficient is (n_i / n) min(1 / (p_i A_i), c_max), n the samples of all
// known clients. A_i is the chance, seen from before the round, that the client is up when the round begins
// AND delivers if selected. For candidates C and a draw S: E sum_{i in S, delivered} (n_i / n) U_i / (p_i
// A_i) = sum_i (n_i / n) U_i P(i in C) P(delivers | in S) / A_i, since p_i is conditional on C. This is the
// mean over all known clients if A_i is exact. So A_i must not use that i is up in this round; otherwise
// clients that are seldom up would count too little.
//
// Pure; single-threaded. 64 bytes a known client, 13 more with correlation and 16 with labels; about 50 bytes
// an open task. A selection is O(known clients), with told labels plus a bounded time (labelled_sample()).
// Clients with a number of kMaxClients or above are ignored.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "aggregation/samplers/awpsp/correlation.h"
#include "aggregation/samplers/awpsp/predictor.h"
#include "aggregation/samplers/awpsp/selection.h"
#include "aggregation/samplers/sampler.h"

namespace fedge::aggregation {

struct AwPspOptions {
  enum class Selector { kWeighted, kGreedy, kGreedyCoverage };
  enum class Risk { kSoft, kHard, kNone };
  Selector selector = Selector::kWeighted;
  // w = max(A, epsilon)^a (1 + F)^b s^c util^d (1 - rho), with F from freshness() and s from label_factors()
  double a = 1;
  double b = 1;
  double c = 1;
  double d = 0;
  double epsilon = 0.05;
  PredictorOptions predictor;
  bool chronic = true;  // whether clients may be presumed offline
  Risk risk = Risk::kSoft;
  CorrelationOptions correlation;
  bool diversity = true;
  bool records = true;  // whether clients publish status records for it
  protocol::LabelReport labels = protocol::LabelReport::kNone;
  // Rounds after an undelivered task in which the greedy selectors prefer other clients. Absence does not
  // count.
  int probation = 3;
  bool inverse_probability = false;
  double max_coefficient = 10;  // c_max
};

// F: rounds since the client last delivered an update; for a client that never did, rounds so far plus one.
double freshness(RoundNumber now, RoundNumber last);

class AwPspSampler final : public Sampler {
 public:
  static constexpr std::uint32_t kMaxClients = (1U << 24) - 1;

  explicit AwPspSampler(const AwPspOptions& options) : options_(options) {}

  SamplerTraits traits() const override {
    return {.substitutes = !options_.inverse_probability,
            .weighs = options_.inverse_probability,
            .blind = options_.d == 0 && !options_.inverse_probability,
            .estimates_availability = true,
            .reads_records = options_.records,
            .labels = options_.labels};
  }
  // The first call in a round treats the candidates as the clients that are up; later calls (for substitutes)
  // do not.
  std::vector<Selected> select(const SelectionRequest& request) override;
  void remember(const Feedback& feedback) override;
  // Ignores an invalid or negative latency (the last one stays) and invalid label counts.
  void describe(ClientId client, const NodeRecord& record) override;
  std::size_t state_bytes() const;

 private:
  struct Client {
    Availability past;
    float latency = -1;  // milliseconds; negative: not reported
    float utility = 0;   // samples times root mean square loss of its last update; 0: none yet
    std::uint32_t samples = 0;
    // Round of its last delivered update, or of the last of five undelivered tasks in a row: a client that
    // never delivers must not come first for ever.
    RoundNumber fresh_since;
  };
  static_assert(sizeof(Client) == 64, "the header states it");
  // A client's failures in common with its neighbours.
  struct Shared {
    float risk = 0;
    std::uint32_t cluster = Correlations::kAlone;
  };
  using Candidates = std::span<const Candidate>;

  void grow(std::size_t clients);
  void forget(std::span<const ClientId> left);
  void begin_round(const SelectionRequest& request, Candidates candidates);
  void count_labels();
  void observe(std::uint32_t client, bool there);
  void find_correlations();
  void sort_by_latency();
  std::vector<Unit> units_of(Candidates candidates) const;
  double weighted_score(std::uint32_t client) const;
  bool uses_labels() const { return !labels_.empty(); }
  // Multiplies the units' weights by their label factors, the weighted selector's gain of labels.
  void weigh_labels(Candidates candidates, std::vector<Unit>& units) const;
  // Draws a sample with these probabilities, balanced over the labels that are not covered yet.
  std::vector<std::size_t> draw_labelled(Candidates candidates, const SampleRequest& request, Rng& rng) const;
  // Labels covered by this round's deliveries and by the open tasks of this round.
  LabelSet covered() const;
  // Returns the indices of the chosen candidates; `p` receives every candidate's inclusion probability.
  std::vector<std::size_t> choose(Candidates candidates, std::span<const Unit> units,
                                  const SelectionRequest& request, std::vector<double>& p) const;

  AwPspOptions options_;
  std::optional<Rng> stream_;  // the sampler's own stream: that of its first request
  RoundNumber round_;
  std::vector<Client> clients_;  // by number
  std::vector<LabelSet> labels_;
  int typical_labels_ = 0;  // labels of a typical client; a client's new labels count up to this number
  std::vector<std::uint32_t> by_latency_;  // clients with a reported latency
  Neighbourhood neighbourhood_;            // among by_latency_
  bool order_is_old_ = false;
  std::vector<Shared> shared_;
  std::size_t largest_cluster_ = 0;
  double samples_ = 0;                          // of all known clients
  double mean_utility_ = 0;                     // of clients with a utility
  LabelSet delivered_;                          // labels of this round's deliveries
  LabelSet contested_;                          // labels that at least two known clients claim
  std::map<std::uint32_t, RoundNumber> asked_;  // clients with an open task: the round of their selection
};

SamplerFactory read_aw_psp(config::Reader& section);
// AwPspSampler with the predicted availability alone: w = max(A, epsilon).
SamplerFactory read_availability(config::Reader& section);

}  // namespace fedge::aggregation
