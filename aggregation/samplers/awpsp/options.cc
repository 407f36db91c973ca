// Options of the samplers aw_psp and availability in the run file.
#include "aggregation/samplers/awpsp/aw_psp.h"

namespace fedge::aggregation {
namespace {

SamplerFactory made_with(const AwPspOptions& options) {
  return [options]() -> std::unique_ptr<Sampler> { return std::make_unique<AwPspSampler>(options); };
}

void read_predictor(config::Reader& section, AwPspOptions& options) {
  options.epsilon = section.number(
      "epsilon", options.epsilon, {1e-6, 1},
      "Lower bound of the predicted availability from which the weight of a client is computed.");
  options.predictor.kind = static_cast<PredictorOptions::Kind>(section.choice(
      "predictor", {"markov", "window"}, 0,
      "How availability is predicted.\nmarkov: from the counted transitions between up and down.\nwindow: "
      "from means over the last five rounds and tasks, as in the authors' code."));
  options.predictor.forgetting = section.number(
      "forgetting", options.predictor.forgetting, {0.01, 1},
      "markov: after every round, the weight of each counted transition is multiplied by this factor.");
  options.predictor.horizon = static_cast<int>(section.integer(
      "horizon", options.predictor.horizon, {1, 1000}, "markov: number of rounds to predict ahead."));
  options.chronic = section.boolean(
      "chronic", options.chronic,
      "Whether a client is excluded after it was down for longer than its transitions explain. Once it is up "
      "again, each round readmits it with probability 1 / (rounds that it was down).");
}

void read_weights(config::Reader& section, AwPspOptions& options) {
  options.inverse_probability =
      section.choice(
          "weights", {"samples", "ipw"}, 0,
          "Weight of an update.\nsamples: the weight that the aggregator gives it.\nipw: its samples, "
          "divided by the probability of selection and delivery; a missing update counts as zeros.") == 1;
  options.max_coefficient = section.number("max_coefficient", options.max_coefficient, {1, 1e6},
                                           "ipw: maximum of the inverse probability (c_max).");
  if (options.inverse_probability && options.selector != AwPspOptions::Selector::kWeighted)
    section.fail("weights",
                 "\"ipw\" requires selector = \"weighted\", because a greedy selection has no probabilities",
                 {"sampling.selector"});
  if (options.inverse_probability && options.predictor.horizon != 1)
    section.fail("weights",
                 "\"ipw\" requires horizon = 1, because it uses the probability that a client is available "
                 "in this round",
                 {"sampling.horizon"});
}

void read_exponents(config::Reader& section, AwPspOptions& options) {
  options.a = section.number("a", options.a, {0, 10},
                             "weighted: exponent of the predicted availability in the weight of a client.");
  options.b = section.number("b", options.b, {0, 10},
                             "weighted: exponent of (1 + rounds since the client last delivered an update).");
  options.c =
      section.number("c", options.c, {0, 10},
                     "weighted: exponent of the factor that raises the weight of clients with rare labels. "
                     "It requires the key labels.");
  options.d = section.number("d", options.d, {0, 10},
                             "weighted: exponent of the client's utility relative to the mean. The utility "
                             "is the number of samples times root mean square loss.");
}

void read_correlation(config::Reader& section, AwPspOptions& options) {
  const bool greedy = options.selector != AwPspOptions::Selector::kWeighted;
  options.risk = static_cast<AwPspOptions::Risk>(section.choice(
      "risk", {"soft", "hard", "none"}, greedy ? 1 : 0,
      "How the risk of correlated failures is used. With a greedy selector, the default is hard.\nsoft: the "
      "weight is multiplied by 1 - risk.\nhard: clients with a risk below correlation_threshold are "
      "preferred.\nnone: the risk is ignored."));
  CorrelationOptions& correlation = options.correlation;
  correlation.threshold = section.number(
      "correlation_threshold", correlation.threshold, {0.01, 1},
      "Two clients belong to the same cluster if their score of correlated failures is at least this value.");
  correlation.neighbours = static_cast<std::size_t>(
      section.integer("neighbours", static_cast<std::int64_t>(correlation.neighbours), {1, 64},
                      "The failures of a client are compared with the failures of this many clients: those "
                      "with the most similar latency."));
  correlation.noise =
      section.number("correlation_noise", correlation.noise, {0, 1},
                     "Fraction of random pairs whose score s is replaced by 1 - s, for experiments.");
  options.diversity = section.boolean("diversity", options.diversity,
                                      "Whether one cluster provides at most half of a round (rounded up), if "
                                      "there are enough other clients. weighted with labels: on average.");
}

}  // namespace

SamplerFactory read_aw_psp(config::Reader& section) {
  AwPspOptions options;
  options.selector = static_cast<AwPspOptions::Selector>(section.choice(
      "selector", {"weighted", "greedy", "greedy_coverage"}, 0,
      "How clients are selected.\nweighted: drawn with probabilities proportional to their "
      "weights; with the key labels, the draw is balanced over labels.\ngreedy: the clients with the largest "
      "product of availability and freshness, as in the authors' code.\ngreedy_coverage: the clients with "
      "the most new labels and, among equals, the highest freshness; the authors' code uses this mode for "
      "many clients."));
  read_exponents(section, options);
  read_predictor(section, options);
  read_correlation(section, options);
  options.labels = static_cast<protocol::LabelReport>(
      section.choice("labels", protocol::label_reports(), 0,
                     "What clients publish about their labels. Only the first 128 labels are used.\nnone: "
                     "nothing, and labels are not used.\nsets: which labels they have.\ndp_histogram: the "
                     "noisy number of samples of each label."));
  options.probation = static_cast<int>(
      section.integer("probation", options.probation, {0, 60},
                      "greedy, greedy_coverage: number of rounds after an undelivered task in which other "
                      "clients are preferred. Absence does not count."));
  read_weights(section, options);
  return made_with(options);
}

SamplerFactory read_availability(config::Reader& section) {
  AwPspOptions options;
  options.b = options.c = options.d = 0;
  options.risk = AwPspOptions::Risk::kNone;
  options.diversity = options.records = false;
  read_predictor(section, options);
  read_weights(section, options);
  return made_with(options);
}

}  // namespace fedge::aggregation
