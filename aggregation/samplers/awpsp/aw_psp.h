// AwPspSampler: availability-weighted probabilistic synchronous parallel (Behfar and Mortier 2026,
// arXiv:2604.16090). Clients are asked by their predicted availability, by how long they have not been, by
// what labels they add, and less the more of their neighbours in latency have failed.
// docs/algorithms/aw-psp.md says what is the paper's, the authors' code's, and ours.
//
// Its state is a view of what comes in. Who is a candidate when a round begins is there, who is known and is
// not is down, and a task without an update has failed. Who has left (SelectionRequest::left) is not known. A
// client whose task is not over is not judged by its absence. One that has been down for longer than chance
// explains is presumed gone: it is not selected, and when it is there again it is probed with probability 1 /
// L a round, L the rounds that it was down.
//
// In an asynchronous run a round lasts from one move of the model to the next.
//
// Inclusion probabilities are exact (selection.h), those of the greedy selector 1. They are given the
// candidates and everything that came in before.
//
// Weights by inverse probability: the coefficient is (n_i / n) min(1 / (p_i A_i), c_max), n the samples of
// all known clients, A_i the chance, seen from before the round, that the client is there when the round
// begins AND delivers if asked. With candidates C and a draw S of them, E sum_{i in S, delivered} (n_i / n)
// U_i / (p_i A_i) = sum_i (n_i / n) U_i P(i in C) P(delivers | in S) / A_i, since p_i is given C: that is the
// mean over all known clients if A_i is what it stands for. So A_i must not know that i is there now, or
// those who are seldom there would count too little.
//
// Pure; single-threaded. 64 bytes a known client, 13 more with correlation and 16 with labels. A selection is
// O(known clients). Clients are numbers from 0 on; those from kMaxClients on do not take part.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
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
  // w = max(A, epsilon)^a (1 + F)^b (1 + cov)^c util^d (1 - rho)
  double a = 1;
  double b = 1;
  double c = 1;
  double d = 0;
  double epsilon = 0.05;
  PredictorOptions predictor;
  bool chronic = true;  // whether clients may be presumed gone
  Risk risk = Risk::kSoft;
  CorrelationOptions correlation;
  bool diversity = true;
  protocol::LabelReport labels = protocol::LabelReport::kNone;
  int probation = 3;  // rounds after a failure in which the greedy selectors pass over a client
  bool inverse_probability = false;
  double max_coefficient = 10;  // c_max
};

// F: rounds since the last selection; of a client that never was, one more than the rounds so far.
double freshness(RoundNumber now, RoundNumber last);

class AwPspSampler final : public Sampler {
 public:
  static constexpr std::uint32_t kMaxClients = (1U << 24) - 1;

  explicit AwPspSampler(const AwPspOptions& options) : options_(options) {}

  SamplerTraits traits() const override {
    return {.substitutes = !options_.inverse_probability,
            .weighs = options_.inverse_probability,
            .labels = options_.labels};
  }
  // The first call with a round's number takes its candidates for those who are there; later ones (for
  // substitutes) do not.
  std::vector<Selected> select(const SelectionRequest& request) override;
  void remember(const Feedback& feedback) override;
  // A latency that is no number of at least 0 leaves the last one; labels that are none are not held.
  void describe(ClientId client, const NodeRecord& record) override;
  std::size_t state_bytes() const;

 private:
  struct Client {
    Availability past;
    float latency = -1;  // milliseconds; negative: it has not said
    float utility = 0;   // samples times root mean square loss of its last update; 0: none yet
    std::uint32_t samples = 0;
    RoundNumber last_selected;
  };
  static_assert(sizeof(Client) == 64, "the header states it");
  // Of failures, with its neighbours.
  struct Shared {
    float risk = 0;
    std::uint32_t cluster = Correlations::kAlone;
  };
  using Candidates = std::span<const Candidate>;

  void grow(std::size_t clients);
  void forget(std::span<const ClientId> left);
  void begin_round(const SelectionRequest& request, Candidates candidates);
  int typical_labels() const;
  void observe(std::uint32_t client, bool there);
  void find_correlations();
  void sort_by_latency();
  std::vector<Unit> units_of(Candidates candidates) const;
  double weighted_score(std::uint32_t client) const;
  // By this round's deliveries and by those asked in it who have not been heard of since.
  LabelSet covered() const;
  // The places of the chosen candidates, and the inclusion probability of every candidate.
  std::vector<std::size_t> choose(Candidates candidates, std::span<const Unit> units,
                                  const SelectionRequest& request, std::vector<double>& p) const;

  AwPspOptions options_;
  std::optional<Rng> stream_;  // the sampler's own: that of its first request
  RoundNumber round_;
  std::vector<Client> clients_;  // by number
  std::vector<LabelSet> labels_;
  int typical_labels_ = 0;                 // that a client has; what it adds counts up to so many
  std::vector<std::uint32_t> by_latency_;  // those who have said theirs
  Neighbourhood neighbourhood_;            // among these
  bool order_is_old_ = false;
  std::vector<Shared> shared_;
  std::size_t largest_cluster_ = 0;
  double samples_ = 0;       // of all known clients
  double mean_utility_ = 0;  // of those who have one
  // Where labels are known: what those cover that have delivered in this round, and in the one before; and,
  // for kGreedyCoverage, who has been asked in this round.
  LabelSet delivered_;
  LabelSet delivered_before_;
  std::set<std::uint32_t> asked_;
};

SamplerFactory read_aw_psp(config::Reader& section);
// The same with nothing but the predicted availability: w = max(A, epsilon).
SamplerFactory read_availability(config::Reader& section);

}  // namespace fedge::aggregation
