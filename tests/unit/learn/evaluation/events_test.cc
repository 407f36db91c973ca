#include "learn/evaluation/events.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "core/rng.h"
#include "learn/evaluation/sums.h"

namespace fedge::learn {
namespace {

std::vector<std::uint32_t> digits_of(const std::string& digits) {
  std::vector<std::uint32_t> classes;
  for (const char digit : digits) classes.push_back(static_cast<std::uint32_t>(digit - '0'));
  return classes;
}

EventMatch match_digits(const std::string& truth, const std::string& predicted) {
  return match_events(digits_of(truth), digits_of(predicted));
}

using Shape = EvaluationSums::Shape;
const Shape kSteps{.outputs = 3, .tokens = 8, .kind = TargetKind::kPoints, .steps = true};

// The scores of these predicted classes.
std::vector<float> sure_scores(const std::vector<std::uint32_t>& classes) {
  std::vector<float> scores;
  for (const std::uint32_t k : classes)
    for (std::uint32_t other = 0; other < 3; ++other) scores.push_back(other == k ? 2.0F : -1.0F);
  return scores;
}

EvaluationSums counted_events(const std::string& truth, const std::string& predicted) {
  EvaluationSums sums(kSteps);
  const auto targets = digits_of(truth);
  const auto scores = sure_scores(digits_of(predicted));
  for (std::size_t i = 0; i < targets.size(); ++i)
    (void)sums.add(std::span(scores).subspan(3 * i, 3), targets[i]);
  sums.add_events(scores, targets);
  sums.end_client(1);
  return sums;
}

}  // namespace

TEST_CASE("events: the longest runs of one class other than the background") {
  CHECK(events_of(digits_of("")).empty());
  CHECK(events_of(digits_of("0000")).empty());
  CHECK(events_of(digits_of("1102200011")) == std::vector<StepEvent>{{0, 2, 1}, {3, 5, 2}, {8, 10, 1}});
  CHECK(events_of(digits_of("1122")) == std::vector<StepEvent>{{0, 2, 1}, {2, 4, 2}});
}

TEST_CASE("events: one is found by a prediction of its class that shares half of their union") {
  struct Case {
    const char* truth;
    const char* predicted;
    std::uint64_t found;
    std::uint64_t boundary;
  };
  for (const Case& one : {Case{"00111100", "00111100", 1, 0}, Case{"00111100", "00011110", 1, 2},
                          Case{"00111100", "00110000", 1, 2}, Case{"00111100", "00100000", 0, 0},
                          Case{"00111100", "00222200", 0, 0}, Case{"00111100", "00000000", 0, 0},
                          Case{"00000000", "00111100", 0, 0}, Case{"11111111", "01100110", 0, 0},
                          Case{"01100110", "11111111", 0, 0}, Case{"10000001", "11111111", 0, 0},
                          Case{"11002200", "11102200", 2, 1}}) {
    CAPTURE(one.truth);
    CAPTURE(one.predicted);
    const EventMatch result = match_digits(one.truth, one.predicted);
    CHECK(result.found == one.found);
    CHECK(result.boundary_steps == one.boundary);
    CHECK(result.truths == events_of(digits_of(one.truth)).size());
    CHECK(result.predicted == events_of(digits_of(one.predicted)).size());
  }
}

TEST_CASE("events: sums have the metrics of the definitions, add up, and are accepted") {
  EvaluationSums total = counted_events("00111100", "00011110");
  total += counted_events("00220000", "00000000");
  total += counted_events("00000000", "00000220");
  total += counted_events("10220000", "10220000");
  const EvaluationMetrics metrics = total.metrics(std::vector<float>{0.01F});
  CHECK(*metrics.event_precision == doctest::Approx(3.0 / 4));
  CHECK(*metrics.event_recall == doctest::Approx(3.0 / 4));
  CHECK(*metrics.event_f1 == doctest::Approx(3.0 / 4));
  CHECK(*metrics.boundary_error == doctest::Approx(0.01 * 2 / 6));
  CHECK(*total.metrics().boundary_error == doctest::Approx(2.0 / 6));
  CHECK(EvaluationSums::from(kSteps, total.values()));
  const EvaluationMetrics none = counted_events("00000000", "00000000").metrics();
  CHECK_FALSE(none.event_f1);
  CHECK_FALSE(none.boundary_error);
  // Points of an image have no events.
  CHECK(Shape{.outputs = 3, .tokens = 8, .kind = TargetKind::kPoints}.size() + 4 == kSteps.size());
}

TEST_CASE("events: sums of events that cannot be are refused") {
  const EvaluationSums sums = counted_events("00111100", "00011110");
  const std::size_t events = sums.values().size() - 4;
  struct Case {
    std::size_t place;
    std::int64_t value;
    const char* message;
  };
  for (const Case& one :
       {Case{0, 9, "more events than points"}, Case{1, 9, "more events than points"},
        Case{2, 2, "more events are found than there are"}, Case{3, 9, "further off than any"},
        Case{2, 0, "further off than any"}, Case{3, -1, "negative"}}) {
    std::vector<std::int64_t> values(sums.values().begin(), sums.values().end());
    values[events + one.place] = one.value;
    const auto refused = EvaluationSums::from(kSteps, values);
    REQUIRE_FALSE(refused);
    CAPTURE(refused.error().message);
    CHECK(refused.error().message.find(one.message) != std::string::npos);
  }
}

TEST_CASE("events: whatever is predicted, the sums are accepted") {
  Rng rng(5);
  for (int i = 0; i < 200; ++i) {
    std::string truth, predicted;
    for (int k = 0; k < 8; ++k) {
      truth += static_cast<char>('0' + rng.below(3));
      predicted += static_cast<char>('0' + rng.below(3));
    }
    CHECK(EvaluationSums::from(kSteps, counted_events(truth, predicted).values()));
  }
}

}  // namespace fedge::learn
