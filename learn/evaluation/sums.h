// EvaluationSums: how well a model predicts some samples, as integers that add up: the sums of two parts of
// the samples, added, are exactly the sums of both. So they are the same whoever evaluates which samples,
// they can be added under the masks of secure aggregation, and every metric is computed once, from the
// totals.
//
// AUROC and calibration are computed from histograms, so the AUROC has an error, which is known: within a
// bin, the order of two samples is not. Scores are counted by their log-odds, log(p / (1 - p)), in bins of
// equal width over [-kMostLogOdds, kMostLogOdds]; the first and the last bin also have everything beyond.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/result.h"
#include "learn/data/targets/target.h"

namespace fedge::learn {

// The metrics of evaluated samples. A prediction is that of a sample's class, or of each of its tokens,
// points, labels or values. Metrics of classes are those of labels, too; they are absent for texts and
// values, and where no sample decides them.
struct EvaluationMetrics {
  std::uint64_t clients = 0;  // that evaluated at least one sample
  std::uint64_t samples = 0;
  double loss = 0;                         // mean over the predictions (learn/models/loss.h)
  double accuracy = 0;                     // fraction of predictions that are right; NaN for values
  std::vector<double> per_class_accuracy;  // recall of each class; NaN for a class without samples
  // classes x classes, row by row: how often each class was predicted for a true class; empty with more than
  // Shape::kMostClasses classes, and for labels.
  std::vector<std::uint64_t> confusion;
  std::optional<double> macro_f1;  // mean over the classes with samples or predictions
  // Points: mean over the same classes of |both| / |either|, where both are the points of the class that are
  // predicted as such (intersection over union).
  std::optional<double> mean_iou;
  // Points of a sequence: of events (learn/evaluation/events.h), the fraction of the predicted ones that are
  // right, the fraction of the true ones that are found, their harmonic mean, and the mean distance of a
  // boundary of a found event from the true one, in points or in the unit of the points' distance.
  std::optional<double> event_precision;
  std::optional<double> event_recall;
  std::optional<double> event_f1;
  std::optional<double> boundary_error;
  // Values: mean over the outputs of the mean absolute error, of the root of the mean squared error, and of
  // the coefficient of determination, 1 - sum of squared errors / sum of squared distances from the mean. The
  // last leaves out outputs whose target is always the same.
  std::optional<double> mae;
  std::optional<double> rmse;
  std::optional<double> r2;
  // Area under the receiver operating characteristic: of class 1 against class 0, or with more classes the
  // mean over the classes of each one against all others. It is right within auroc_error.
  std::optional<double> auroc;
  double auroc_error = 0;
  // Where clients keep parameters for themselves: of the shared model without them. All other metrics are
  // those of the models with them.
  std::optional<double> shared_loss;
  std::optional<double> shared_accuracy;  // NaN for values
  // Expected calibration error: mean over the samples of |accuracy - confidence| of their bin (Guo et al.,
  // ICML 2017, eq. 3), with 16 bins.
  std::optional<double> calibration_error;
  std::optional<double> perplexity;     // texts: exp(loss)
  std::optional<double> bits_per_byte;  // texts: total loss in bits / number of predicted bytes
};

class EvaluationSums {
 public:
  static constexpr std::size_t kMostSums = 8000;
  static constexpr std::uint64_t kMostSamples = std::uint64_t{1} << 32;
  static constexpr double kMostLogOdds = 16;
  static constexpr std::size_t kCalibrationBins = 16;
  static constexpr double kUnit = 0x1p20;      // of losses and confidences
  static constexpr double kMostLoss = 0x1p10;  // of one prediction; larger losses count as this
  // Predicted values are normalised; larger ones, and larger errors, count as this.
  static constexpr double kMostValue = 0x1p10;
  static constexpr double kSquareUnit = 0x1p26;  // of squared errors and squared values

  // What is counted for a model with these outputs. With more than kMostClasses classes there is no confusion
  // matrix and no AUROC; with more than kMostCounted, or kMostValues values, only totals are counted.
  struct Shape {
    static constexpr std::size_t kMostClasses = 32;
    static constexpr std::size_t kMostCounted = 2000;
    static constexpr std::size_t kMostValues = 1000;
    bool text = false;
    std::size_t outputs = 0;  // classes, labels, values, or tokens in the vocabulary
    std::size_t tokens = 1;   // texts: most predictions of a sample; points: their number
    TargetKind kind = TargetKind::kClass;
    bool steps = false;  // the points are the steps of a sequence, in which events are counted

    // Predictions of a sample; of a text, at most.
    std::size_t predictions() const;
    std::size_t size() const;
    bool has_labels() const { return kind == TargetKind::kLabels; }
    // The first class whose scores are counted: of two classes, only those of class 1 are.
    std::size_t first_scored() const { return outputs == 2 && !has_labels() ? 1 : 0; }
    // Number of bins of each class's scores; 0: scores are not counted.
    std::size_t bins() const;
    bool operator==(const Shape&) const = default;
  };

  EvaluationSums() : EvaluationSums(Shape{.text = true}) {}
  explicit EvaluationSums(const Shape& shape) : shape_(shape), values_(shape.size(), 0) {}
  // kInvalid if these values cannot be the sums of any samples: another number of values, a negative count,
  // or counts that contradict each other. `most`: maximum number of samples.
  static Result<EvaluationSums> from(const Shape& shape, std::span<const std::int64_t> values,
                                     std::uint64_t most = kMostSamples);

  struct Prediction {
    double loss = 0;        // sum over the predictions; not finite if a score is not
    std::size_t right = 0;  // number of right ones
  };
  // Counts a prediction: the scores before softmax of each output, of which `target` is right; ties go to the
  // lower output. A text's predictions are tokens; `bytes` is the length of the target. Scores that are not
  // finite count as wrong, with the largest loss.
  Prediction add(std::span<const float> scores, std::size_t target, std::size_t bytes = 0);
  // The same for the labels of a sample, each 0 or 1: a score above 0 predicts that the label is set.
  Prediction add_labels(std::span<const float> scores, std::span<const float> labels);
  // The same for the values of a sample. Both are normalised, as the model is trained on them.
  Prediction add_values(std::span<const float> predicted, std::span<const float> values);
  // Counts the events of a sample whose points are steps, after its points were added; nothing for others.
  // `scores` are points x outputs.
  void add_events(std::span<const float> scores, std::span<const std::uint32_t> targets);
  // Where clients keep parameters for themselves: adds what the shared model, without them, predicts of the
  // same samples.
  void add_shared(const EvaluationSums& shared);
  // Ends the counting of one client: it counts as a client if it has a sample. `samples`: of a text, which
  // has several predictions in each.
  void end_client(std::uint64_t samples);
  // These are the sums of parts of one client's samples.
  void count_as_one_client() { values_[kClients] = std::min<std::int64_t>(values_[kClients], 1); }
  // The other has the same shape. A sum too large for its integer stays at the largest one.
  EvaluationSums& operator+=(const EvaluationSums& other);
  bool operator==(const EvaluationSums&) const = default;

  const Shape& shape() const { return shape_; }
  std::span<const std::int64_t> values() const { return values_; }
  std::uint64_t clients() const { return static_cast<std::uint64_t>(values_[kClients]); }
  std::uint64_t samples() const { return static_cast<std::uint64_t>(values_[kSamples]); }
  // `scale`: the deviation of each value, by which its errors are multiplied, or the distance of two points
  // of a sequence; empty: 1.
  EvaluationMetrics metrics(std::span<const float> scale = {}) const;

 private:
  enum Total : std::size_t {
    kClients,
    kSamples,
    kPredictions,
    kRight,
    kLoss,
    kBytes,
    kSharedRight,
    kSharedLoss,
    kTotals
  };
  // Position of the first value of each part.
  std::size_t confusion() const { return kTotals; }
  std::size_t scores() const;
  std::size_t calibration() const;
  // The sums of events, at the end.
  enum OfEvents : std::size_t { kTrueEvents, kPredictedEvents, kFoundEvents, kBoundarySteps, kOfEvents };
  std::size_t events() const { return values_.size() - kOfEvents; }
  // The sums of each value.
  enum OfValue : std::size_t { kErrors, kSquaredErrors, kValues, kSquaredValues, kPerValue };

  bool has_confusion() const {
    return has_classes() && !shape_.has_labels() && shape_.outputs <= Shape::kMostClasses;
  }
  bool has_classes() const {
    return !shape_.text && shape_.kind != TargetKind::kValues && shape_.outputs <= Shape::kMostCounted;
  }
  bool has_values() const { return shape_.kind == TargetKind::kValues && values_.size() > kTotals; }
  // Predictions of each class: one for each sample, and for each point.
  std::int64_t chances() const { return shape_.has_labels() ? values_[kSamples] : values_[kPredictions]; }
  // Samples of a class, predictions of a class, and samples of a class that are predicted right.
  std::int64_t of_class(std::size_t k) const;
  std::int64_t predicted(std::size_t k) const;
  std::int64_t right(std::size_t k) const;
  std::span<const std::int64_t> histogram(std::size_t k, bool positive) const;
  Result<void> check(std::uint64_t most) const;
  Result<void> check_classes() const;
  Result<void> check_values() const;
  Result<void> check_events() const;
  void add_scores(std::span<const float> scores, std::size_t target, double total, float largest);
  void add_confidence(double confidence, bool right);
  void add_class_metrics(EvaluationMetrics& metrics) const;
  void add_event_metrics(std::span<const float> scale, EvaluationMetrics& metrics) const;
  void add_value_metrics(std::span<const float> scale, EvaluationMetrics& metrics) const;

  Shape shape_;
  std::vector<std::int64_t> values_;
};

}  // namespace fedge::learn
