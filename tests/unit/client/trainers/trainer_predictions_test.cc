#include "client/trainers/trainer_predictions.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "core/safetensors.h"

namespace fedge::client {
namespace {

using learn::EvaluationSums;
using learn::TargetKind;

struct Sent {
  std::vector<std::size_t> scores_shape;
  std::vector<float> scores;
  std::vector<std::size_t> targets_shape;
  std::vector<float> targets;
};

std::vector<std::byte> file_of(const Sent& sent) {
  ParameterLayout layout;
  layout.add("targets", sent.targets_shape).add("scores", sent.scores_shape);
  const auto header = safetensors_header(layout, {});
  REQUIRE(header);
  std::vector<float> values = sent.targets;
  values.insert(values.end(), sent.scores.begin(), sent.scores.end());
  const auto* begin = reinterpret_cast<const std::byte*>(header->data());
  std::vector<std::byte> file(begin, begin + header->size());
  const auto data = std::as_bytes(std::span(values));
  file.insert(file.end(), data.begin(), data.end());
  return file;
}

std::string failure(const Sent& sent, const EvaluationSums::Shape& shape, std::uint64_t most = 100) {
  EvaluationSums sums(shape);
  const auto counted = count_predictions(file_of(sent), SampleCount(most), sums);
  if (counted) return "";
  CHECK(sums == EvaluationSums(shape));  // nothing was added
  return counted.error().message;
}

std::span<const float> row(const std::vector<float>& values, std::size_t i, std::size_t width) {
  return std::span(values).subspan(i * width, width);
}

}  // namespace

TEST_CASE("trainer predictions: each task's scores and targets are counted as an evaluation counts its own") {
  const std::vector<float> scores = {0.5F, -1, 2, 0, 3, -2, 1, 1.5F, -0.5F, 0.25F, 4, -4};
  const auto check = [](const Sent& sent, const EvaluationSums& expected, std::uint64_t samples) {
    EvaluationSums sums(expected.shape());
    const auto counted = count_predictions(file_of(sent), SampleCount(samples), sums);
    REQUIRE_MESSAGE(counted, counted.error().message);
    CHECK(*counted == SampleCount(samples));
    CHECK(sums == expected);
  };
  SUBCASE("classes") {
    EvaluationSums expected({.outputs = 3});
    const std::vector<float> targets = {2, 1, 1, 0};
    for (std::size_t i = 0; i < 4; ++i) expected.add(row(scores, i, 3), static_cast<std::size_t>(targets[i]));
    check({{4, 3}, scores, {4}, targets}, expected, 4);
  }
  SUBCASE("a class of each point") {
    EvaluationSums expected({.outputs = 3, .tokens = 2, .kind = TargetKind::kPoints});
    const std::vector<float> targets = {2, 1, 1, 0};
    for (std::size_t i = 0; i < 4; ++i) expected.add(row(scores, i, 3), static_cast<std::size_t>(targets[i]));
    check({{2, 2, 3}, scores, {2, 2}, targets}, expected, 2);
  }
  SUBCASE("tokens, some of which are not predicted") {
    EvaluationSums expected({.text = true, .outputs = 3, .tokens = 8});
    const std::vector<float> targets = {2, -1, 1, 0};
    for (const std::size_t i : {0U, 2U, 3U})
      expected.add(row(scores, i, 3), static_cast<std::size_t>(targets[i]));
    check({{2, 2, 3}, scores, {2, 2}, targets}, expected, 2);
  }
  SUBCASE("labels") {
    EvaluationSums expected({.outputs = 3, .kind = TargetKind::kLabels});
    const std::vector<float> targets = {1, 0, 0, 1, 1, 1, 0, 0, 0, 1, 0, 1};
    for (std::size_t i = 0; i < 4; ++i) expected.add_labels(row(scores, i, 3), row(targets, i, 3));
    check({{4, 3}, scores, {4, 3}, targets}, expected, 4);
  }
  SUBCASE("values") {
    EvaluationSums expected({.outputs = 2, .kind = TargetKind::kValues});
    const std::vector<float> targets = {1, 0.5F, -3, 1, 2, 2, 0, 0, 0, 1, 3, -4};
    for (std::size_t i = 0; i < 6; ++i) expected.add_values(row(scores, i, 2), row(targets, i, 2));
    check({{6, 2}, scores, {6, 2}, targets}, expected, 6);
  }
}

TEST_CASE("trainer predictions: what cannot be predictions is refused by name, and nothing is counted") {
  const EvaluationSums::Shape classes{.outputs = 3};
  const Sent good{{2, 3}, {0, 1, 2, 3, 4, 5}, {2}, {0, 2}};
  CHECK(failure(good, classes) == "");
  CHECK(failure(good, classes, 1) ==
        "the trainer program sent predictions for more samples than it has for this task");
  const auto with_target = [&](float target) {
    Sent sent = good;
    sent.targets[1] = target;
    return sent;
  };
  for (const float target : {3.0F, -1.0F, 0.5F, 1e30F, std::numeric_limits<float>::quiet_NaN(),
                             std::numeric_limits<float>::infinity()})
    CHECK(failure(with_target(target), classes).ends_with("a class must be an integer from 0 to 2"));
  const EvaluationSums::Shape text{.text = true, .outputs = 3, .tokens = 1};
  const Sent sequence{{2, 1, 3}, {0, 1, 2, 3, 4, 5}, {2, 1}, {0, -1}};
  CHECK(failure(sequence, text) == "");
  CHECK(failure({{2, 1, 3}, sequence.scores, {2, 1}, {0, -2}}, text) != "");
  CHECK(failure({{3, 2}, good.scores, {2}, good.targets}, classes) ==
        "the predictions of the trainer program have scores of shape [3, 2] and targets of shape [2]; "
        "expected [2, 3] "
        "and [2]");
  CHECK(failure({{6}, good.scores, {2}, good.targets}, classes) != "");
  CHECK(failure({{2, 3}, good.scores, {2, 1}, good.targets}, classes) != "");
  CHECK(failure({{1}, {0}, {}, {0}}, classes) != "");
  const EvaluationSums::Shape labels{.outputs = 1, .kind = TargetKind::kLabels};
  CHECK(failure({{1, 1}, {0}, {1, 1}, {0.5F}}, labels).ends_with("a label must be 0 or 1"));
  const EvaluationSums::Shape values{.outputs = 1, .kind = TargetKind::kValues};
  CHECK(failure({{1, 1}, {0}, {1, 1}, {INFINITY}}, values).ends_with("a value must be finite"));
  EvaluationSums sums(classes);
  CHECK_FALSE(count_predictions({}, SampleCount(1), sums));
}

}  // namespace fedge::client
