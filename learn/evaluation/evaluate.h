// Evaluation of a model on a data set.
#pragma once

#include <cstdint>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "core/parallel.h"
#include "core/result.h"
#include "learn/data/dataset.h"
#include "learn/evaluation/sums.h"
#include "learn/model.h"

namespace fedge::learn {

struct Evaluation {
  std::uint64_t samples = 0;
  double loss = 0;      // mean over the predictions: of samples, tokens, points, labels or values
  double accuracy = 0;  // fraction of predictions that are right; ties go to the lower class; NaN for values
  std::vector<double>
      per_class_accuracy;  // by class or label; NaN for one without samples; of a text by group
  // Computed over the classes with at least two samples; 0 if there are none. `between` is the population
  // variance of the classes' mean losses; `within` is the mean of the classes' sample variances (n - 1). NaN:
  // not known.
  double between_class_variance = 0;
  double within_class_variance = 0;
  // Texts: the total loss in bits divided by the number of predicted bytes, and the mean of the same ratio
  // over the groups with predicted bytes. 0 for other data.
  double bits_per_byte = 0;
  double group_bits_per_byte = 0;
  EvaluationSums sums = {};        // of the same samples, as one client
  EvaluationMetrics metrics = {};  // of these sums
};

// The evaluation that these sums of one client contain: without variances and without means of groups.
// `scale`: of values, as in EvaluationSums::metrics().
Evaluation evaluation_of(EvaluationSums sums, std::span<const float> scale = {});

// What is counted of this model's predictions.
EvaluationSums::Shape sums_shape(const Model& model);

// Evaluates the model on all of `data`. `ranks`: number of ranks of the model's adapters that run. The result
// does not depend on parallel.width(). kInvalid: a model of a kind that a program registers has failed.
Result<Evaluation> evaluate(const Model& model, std::span<const float> parameters, const Dataset& data,
                            Parallel& parallel, std::size_t ranks = SIZE_MAX);

// The part of an evaluation that one of several processes does: every parts-th block of samples.
struct EvaluationShare {
  std::size_t part = 0;
  std::size_t parts = 1;
};
// Returns what evaluation_of_shares() needs of this share, in native byte order. kInvalid as for evaluate().
Result<std::string> evaluate_share(const Model& model, std::span<const float> parameters, const Dataset& data,
                                   Parallel& parallel, const EvaluationShare& share);
// The result of evaluate(), bit for bit, from the shares of all parts in order. kCorrupt: these are not such
// shares.
Result<Evaluation> evaluation_of_shares(const Model& model, const Dataset& data,
                                        std::span<const std::string> shares);

// Options of one client's evaluation.
struct SampleEvaluation {
  std::stop_token stop = {};
  const Normalisation* normalisation = nullptr;  // of the data's columns; null: none
  const CompactWeights* base = nullptr;          // Workspace::base
};
// The sums of one client with these samples of `data`, in one thread. kInvalid as for evaluate(); kStale if
// it was stopped.
Result<EvaluationSums> evaluate_samples(const Model& model, std::span<const float> parameters,
                                        const Dataset& data, std::span<const std::uint32_t> samples,
                                        const SampleEvaluation& how = {});

}  // namespace fedge::learn
