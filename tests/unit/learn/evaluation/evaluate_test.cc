#include "learn/evaluation/evaluate.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/platform/thread_pool.h"
#include "core/rng.h"

using namespace fedge;
using namespace fedge::learn;

namespace {

// A model whose class scores are its inputs: the data set determines the answers.
class EchoModel final : public Model {
 public:
  explicit EchoModel(std::size_t classes) {
    auto layout = std::make_shared<ParameterLayout>();
    layout->add("unused", {1});
    layout_ = std::move(layout);
    input_size_ = classes_ = classes;
  }
  void initialise(std::span<float>, const Rng&) const override {}
  std::unique_ptr<Workspace> make_workspace(std::size_t) const override {
    return std::make_unique<Workspace>();
  }
  BatchLoss loss_and_gradient(std::span<const float>, const Batch&, std::span<float>,
                              Workspace&) const override {
    return {};
  }
  void forward(std::span<const float>, const Batch& batch, std::span<float> logits,
               Workspace&) const override {
    REQUIRE(logits.size() == batch.inputs.size());
    std::copy(batch.inputs.begin(), batch.inputs.end(), logits.begin());
  }
};

// Runs tasks from last to first and claims to have several threads.
class Backwards final : public Parallel {
 public:
  explicit Backwards(std::size_t width) : width_(width) {}
  void for_each(std::size_t tasks, const std::function<void(std::size_t)>& task) override {
    for (std::size_t i = tasks; i-- > 0;) task(i);
  }
  std::size_t width() const override { return width_; }

 private:
  std::size_t width_;
};

Dataset data_of(const std::vector<float>& scores, const std::vector<Label>& labels) {
  const std::size_t classes = scores.size() / labels.size();
  Dataset data{{1, classes, 1}, classes, AlignedBuffer<float>(scores.size()), labels};
  std::copy(scores.begin(), scores.end(), data.floats.data());
  return data;
}

Evaluation evaluate_scores(const Dataset& data, Parallel& parallel) {
  const EchoModel model(data.classes);
  const float unused[1] = {};
  return evaluate(model, unused, data, parallel).value();
}

Evaluation evaluate_scores(const std::vector<float>& scores, const std::vector<Label>& labels) {
  Sequential sequential;
  return evaluate_scores(data_of(scores, labels), sequential);
}

bool same_evaluation(const Evaluation& a, const Evaluation& b) {
  const auto same = [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); };
  return a.samples == b.samples && a.loss == b.loss && a.accuracy == b.accuracy &&
         std::ranges::equal(a.per_class_accuracy, b.per_class_accuracy, same);
}

}  // namespace

TEST_CASE("evaluate: loss and accuracies of a case computed by hand") {
  const float ln3 = std::log(3.0F);
  // The probabilities are 1/4 3/4, 3/4 1/4, 1/2 1/2 and 1/4 3/4; those of the labels 3/4, 1/4, 1/2, 3/4.
  const Evaluation result = evaluate_scores({0, ln3, ln3, 0, 5, 5, -ln3, 0}, {1, 1, 0, 1});
  CHECK(result.samples == 4);
  CHECK(result.loss ==
        doctest::Approx((2 * std::log(4.0 / 3.0) + std::log(4.0) + std::log(2.0)) / 4).epsilon(1e-7));
  CHECK(result.accuracy == 0.75);
  REQUIRE(result.per_class_accuracy.size() == 2);
  CHECK(result.per_class_accuracy[0] == 1.0);
  CHECK(result.per_class_accuracy[1] == doctest::Approx(2.0 / 3.0));
}

TEST_CASE("evaluate: the spread of losses over and within classes, computed by hand") {
  // Scores {0, s} have the loss ln(1 + e^s) for label 0 and ln(1 + e^-s) for label 1.
  const auto loss = [](float score) { return std::log(1 + std::exp(static_cast<double>(score))); };
  const Evaluation result = evaluate_scores({0, 0, 0, 1, 0, 2, 0, -1, 0, -3}, {0, 0, 0, 1, 1});
  const double zero[] = {loss(0), loss(1), loss(2)};
  const double one[] = {loss(1), loss(3)};
  const double mean0 = (zero[0] + zero[1] + zero[2]) / 3;
  const double mean1 = (one[0] + one[1]) / 2;
  const double middle = (mean0 + mean1) / 2;
  double within0 = 0;
  for (const double value : zero) within0 += (value - mean0) * (value - mean0) / 2;
  double within1 = 0;
  for (const double value : one) within1 += (value - mean1) * (value - mean1);
  CHECK(result.between_class_variance ==
        doctest::Approx(((mean0 - middle) * (mean0 - middle) + (mean1 - middle) * (mean1 - middle)) / 2));
  CHECK(result.within_class_variance == doctest::Approx((within0 + within1) / 2));
  // A class with one sample has no variance and does not count.
  CHECK(evaluate_scores({0, 0, 0, 1}, {0, 1}).within_class_variance == 0);
}

TEST_CASE("evaluate: a tie goes to the lower class") {
  const std::vector<float> tie = {-1, 2, 2};
  CHECK(evaluate_scores(tie, {1}).accuracy == 1.0);
  CHECK(evaluate_scores(tie, {2}).accuracy == 0.0);
}

TEST_CASE("evaluate: a class without samples has no accuracy and does not count") {
  const Evaluation result = evaluate_scores({9, 0, 0, 0, 0, 9}, {0, 2});
  CHECK(result.accuracy == 1.0);
  REQUIRE(result.per_class_accuracy.size() == 3);
  CHECK(result.per_class_accuracy[0] == 1.0);
  CHECK(std::isnan(result.per_class_accuracy[1]));
  CHECK(result.per_class_accuracy[2] == 1.0);
}

TEST_CASE("evaluate: scores of 1000 apart give the loss they must, not infinity") {
  CHECK(evaluate_scores({1000, 0}, {1}).loss == doctest::Approx(1000.0));
  CHECK(evaluate_scores({1000, 0}, {0}).loss == 0.0);
}

TEST_CASE("evaluate: no samples, no numbers") {
  Sequential sequential;
  const EchoModel model(3);
  const float unused[1] = {};
  const Evaluation result = evaluate(model, unused, Dataset{{1, 3, 1}, 3, {}, {}}, sequential).value();
  CHECK(result.samples == 0);
  CHECK(result.loss == 0.0);
  CHECK(result.accuracy == 0.0);
  CHECK(result.per_class_accuracy.size() == 3);
  CHECK(std::ranges::all_of(result.per_class_accuracy, [](double value) { return std::isnan(value); }));
}

TEST_CASE("evaluate: one thread, several, and tasks run in reverse give the same bits") {
  // Sizes around the block size of evaluation.
  for (const std::size_t samples : {1U, 99U, 100U, 101U, 250U, 1000U, 1037U}) {
    CAPTURE(samples);
    std::vector<float> scores(samples * 4);
    std::vector<Label> labels(samples);
    Rng rng = Rng(3).fork("evaluate", samples);
    for (float& score : scores) score = static_cast<float>(rng.normal() * 3.0);
    for (Label& label : labels) label = static_cast<Label>(rng.below(4));
    const Dataset data = data_of(scores, labels);
    Sequential sequential;
    Backwards two(2);
    Backwards three(3);
    ThreadPool pool(3);
    const Evaluation expected = evaluate_scores(data, sequential);
    CHECK(same_evaluation(evaluate_scores(data, two), expected));
    CHECK(same_evaluation(evaluate_scores(data, three), expected));
    for (int repeat = 0; repeat < 5; ++repeat) CHECK(same_evaluation(evaluate_scores(data, pool), expected));

    double loss = 0;
    std::size_t right = 0;
    for (std::size_t i = 0; i < samples; ++i) {
      double total = 0;
      std::size_t best = 0;
      for (std::size_t c = 0; c < 4; ++c) {
        total += std::exp(static_cast<double>(scores[i * 4 + c]));
        if (scores[i * 4 + c] > scores[i * 4 + best]) best = c;
      }
      loss += std::log(total) - static_cast<double>(scores[i * 4 + labels[i]]);
      right += best == labels[i] ? 1U : 0U;
    }
    CHECK(expected.samples == samples);
    CHECK(expected.loss == doctest::Approx(loss / static_cast<double>(samples)).epsilon(1e-12));
    CHECK(expected.accuracy == static_cast<double>(right) / static_cast<double>(samples));
  }
}

TEST_CASE("evaluate: a real model is scored as by its own forward, one sample at a time") {
  ModelSpec spec;
  spec.hidden = {7};
  auto model = make_model(spec, {3, 3, 1}, 4);
  REQUIRE(model.has_value());
  std::vector<float> parameters((*model)->layout()->size());
  (*model)->initialise(parameters, Rng(1));
  Dataset data{{3, 3, 1}, 4, AlignedBuffer<float>(230 * 9), {}};
  Rng rng(2);
  for (float& pixel : data.floats.span()) pixel = static_cast<float>(rng.normal());
  for (std::size_t i = 0; i < 230; ++i) data.labels.push_back(static_cast<Label>(i % 4));
  const auto workspace = (*model)->make_workspace(1);
  std::size_t right[4] = {};
  for (std::size_t i = 0; i < 230; ++i) {
    float scores[4];
    (*model)->forward(parameters, {.inputs = data.floats.span().subspan(i * 9, 9)}, scores, *workspace);
    right[i % 4] += std::max_element(scores, scores + 4) - scores == data.labels[i] ? 1U : 0U;
  }
  ThreadPool pool(2);
  const Evaluation result = evaluate(**model, parameters, data, pool).value();
  CHECK(result.accuracy == static_cast<double>(right[0] + right[1] + right[2] + right[3]) / 230.0);
  for (std::size_t c = 0; c < 4; ++c)
    CHECK(result.per_class_accuracy[c] == static_cast<double>(right[c]) / (c < 2 ? 58.0 : 57.0));
}

TEST_CASE("evaluate: the shares of several processes give the evaluation of one, bit for bit") {
  Rng rng(4);
  std::vector<float> scores(1234 * 7);
  for (float& score : scores) score = static_cast<float>(rng.normal());
  std::vector<Label> labels(1234);
  for (Label& label : labels) label = static_cast<Label>(rng.below(6));  // none of the last class
  const Dataset data = data_of(scores, labels);
  const EchoModel model(7);
  const float unused[1] = {};
  ThreadPool pool(3);
  const Evaluation whole = evaluate(model, unused, data, pool).value();
  std::vector<std::string> shares;
  for (const std::size_t parts : {1U, 2U, 3U, 20U}) {
    shares.clear();
    for (std::size_t part = 0; part < parts; ++part)
      shares.push_back(evaluate_share(model, unused, data, pool, {part, parts}).value());
    const Evaluation together = evaluation_of_shares(model, data, shares).value();
    CHECK(same_evaluation(together, whole));
    CHECK(together.between_class_variance == whole.between_class_variance);
    CHECK(together.within_class_variance == whole.within_class_variance);
    CHECK(together.sums == whole.sums);
  }
  // Shares of another data set, in another order, and cut ones.
  const auto damaged = [&](const Dataset& of, std::vector<std::string> changed) {
    const auto result = evaluation_of_shares(model, of, changed);
    return !result &&
           (result.error().code == ErrorCode::kCorrupt || result.error().code == ErrorCode::kInvalid);
  };
  scores.resize(100 * 7);
  labels.resize(100);
  CHECK(damaged(data_of(scores, labels), shares));
  shares[3].resize(shares[3].size() - 8);
  CHECK(damaged(data, shares));
  shares[3].clear();
  CHECK(damaged(data, shares));
  shares[3] = std::string(80, '\xff');
  CHECK(damaged(data, shares));
}
