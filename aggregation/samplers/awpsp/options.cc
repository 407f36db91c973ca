// The run file's options of the samplers aw_psp and availability.
#include "aggregation/samplers/awpsp/aw_psp.h"

namespace fedge::aggregation {
namespace {

SamplerFactory made_with(const AwPspOptions& options) {
  return [options]() -> std::unique_ptr<Sampler> { return std::make_unique<AwPspSampler>(options); };
}

void read_predictor(config::Reader& section, AwPspOptions& options) {
  options.epsilon = section.number("epsilon", options.epsilon, {1e-6, 1},
                                   "A predicted availability below this counts as this in the weight.");
  options.predictor.kind = static_cast<PredictorOptions::Kind>(section.choice(
      "predictor", {"markov", "window"}, 0,
      "How availability is predicted. markov: from counted transitions between there and down; "
      "window: the authors' code, means over the last five rounds and tasks."));
  options.predictor.forgetting = section.number("forgetting", options.predictor.forgetting, {0.01, 1},
                                                "markov: what a counted transition is worth a round later.");
  options.predictor.horizon = static_cast<int>(section.integer(
      "horizon", options.predictor.horizon, {1, 1000}, "markov: rounds ahead that it predicts for."));
  options.chronic = section.boolean(
      "chronic", options.chronic,
      "Whether a client that was down for longer than chance explains is presumed gone: it is left out, and "
      "when it is there again, probed with probability 1 / (rounds it was down) in each round.");
}

void read_weights(config::Reader& section, AwPspOptions& options) {
  options.inverse_probability =
      section.choice(
          "weights", {"samples", "ipw"}, 0,
          "samples: the aggregator weighs updates as it does; ipw: by samples and inversely to the "
          "probability to be selected and to deliver; who does not deliver counts as zeros.") == 1;
  options.max_coefficient = section.number("max_coefficient", options.max_coefficient, {1, 1e6},
                                           "ipw: the inverse probability counts at most as this (c_max).");
  if (options.inverse_probability && options.selector != AwPspOptions::Selector::kWeighted)
    section.fail("weights", "\"ipw\" needs selector = \"weighted\": a greedy choice has no probabilities");
  if (options.inverse_probability && options.predictor.horizon != 1)
    section.fail("weights", "\"ipw\" needs horizon = 1: it weighs by the chance to be there in this round");
}

void read_exponents(config::Reader& section, AwPspOptions& options) {
  options.a = section.number("a", options.a, {0, 10}, "weighted: exponent of the predicted availability.");
  options.b = section.number("b", options.b, {0, 10},
                             "weighted: exponent of 1 + rounds since the client was last selected.");
  options.c = section.number("c", options.c, {0, 10},
                             "weighted: exponent of 1 + its labels that nobody who delivered in the round "
                             "before has; needs labels.");
  options.d = section.number("d", options.d, {0, 10},
                             "weighted: exponent of its samples times root mean square loss, to the mean.");
}

void read_correlation(config::Reader& section, AwPspOptions& options) {
  const bool greedy = options.selector != AwPspOptions::Selector::kWeighted;
  options.risk = static_cast<AwPspOptions::Risk>(section.choice(
      "risk", {"soft", "hard", "none"}, greedy ? 1 : 0,
      "Of correlated failures. soft: weights are multiplied by 1 - risk; hard: who has a risk of "
      "correlation_threshold or more comes in only where others are too few, which is a greedy selector's "
      "default; none: it does not matter."));
  CorrelationOptions& correlation = options.correlation;
  correlation.threshold = section.number("correlation_threshold", correlation.threshold, {0.01, 1},
                                         "Two clients whose failures score this or more are one cluster.");
  correlation.neighbours = static_cast<std::size_t>(
      section.integer("neighbours", static_cast<std::int64_t>(correlation.neighbours), {1, 64},
                      "Clients nearest in latency that a client's failures are compared with."));
  correlation.noise = section.number("correlation_noise", correlation.noise, {0, 1},
                                     "For experiments: share of random pairs whose score s becomes 1 - s.");
  options.diversity = section.boolean(
      "diversity", options.diversity,
      "Whether at most half of a round, rounded up, comes from one cluster where others are enough.");
}

}  // namespace

SamplerFactory read_aw_psp(config::Reader& section) {
  AwPspOptions options;
  options.selector = static_cast<AwPspOptions::Selector>(section.choice(
      "selector", {"weighted", "greedy", "greedy_coverage"}, 0,
      "weighted: drawn with probabilities; greedy: the authors' code, the largest products of availability "
      "and freshness; greedy_coverage: its mode for many clients, by new labels, then freshness."));
  read_exponents(section, options);
  read_predictor(section, options);
  read_correlation(section, options);
  options.labels = static_cast<protocol::LabelReport>(section.choice(
      "labels", protocol::label_reports(), 0,
      "What clients publish of their labels, the first 128 of them. none: nothing, and nothing "
      "is used; sets: which they have; dp_histogram: noisy counts."));
  options.probation = static_cast<int>(section.integer(
      "probation", options.probation, {0, 60},
      "greedy: rounds after a failure in which a client comes in only where others are too few."));
  read_weights(section, options);
  return made_with(options);
}

SamplerFactory read_availability(config::Reader& section) {
  AwPspOptions options;
  options.b = options.c = options.d = 0;
  options.risk = AwPspOptions::Risk::kNone;
  options.diversity = false;
  read_predictor(section, options);
  read_weights(section, options);
  return made_with(options);
}

}  // namespace fedge::aggregation
