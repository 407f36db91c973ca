// The numbered invariants are those of the specification of event screening.
#include "learn/screening/screening.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <string>

#include "core/rng.h"

namespace fedge::learn {
namespace {

// Noise of this deviation.
std::vector<float> road(std::size_t samples, double deviation, std::uint64_t seed = 1) {
  Rng rng(seed);
  std::vector<float> stream(samples);
  for (float& value : stream) value = static_cast<float>(deviation * rng.normal());
  return stream;
}

// Adds this many samples of alternating sign, `height` deviations high.
void add_shock(std::vector<float>& stream, std::size_t at, std::size_t length, double height) {
  for (std::size_t i = 0; i < length; ++i)
    stream.at(at + i) += static_cast<float>(i % 2 == 0 ? height : -height);
}

struct Screened {
  std::vector<Segment> segments;
  std::uint64_t flagged = 0;
  std::uint64_t kept = 0;
};

Screened screen(const ScreeningSpec& spec, std::span<const float> stream, std::size_t chunk = 1000,
                std::size_t freeze_at = SIZE_MAX) {
  REQUIRE(check_screening(spec));
  Screening screening(spec);
  Screened result;
  const auto keep = [&](Segment segment) { result.segments.push_back(std::move(segment)); };
  std::size_t taken = 0;
  while (taken < stream.size()) {
    std::size_t count = std::min(chunk * spec.channels, stream.size() - taken);
    if (taken < freeze_at && taken + count > freeze_at) count = freeze_at - taken;
    if (taken == freeze_at) screening.freeze();
    screening.push(stream.subspan(taken, count), keep);
    taken += count;
  }
  screening.interrupt(keep);
  CHECK(screening.seen() == stream.size() / spec.channels);
  result.flagged = screening.flagged();
  result.kept = screening.kept();
  return result;
}

double sum_of_weights(const Mixture& mixture) {
  double sum = 0;
  for (std::size_t i = 0; i < mixture.count(); ++i) sum += mixture.component(i).weight;
  return sum;
}

// Stauffer and Grimson's mixture as a loop over a list, without any of the class's shortcuts.
struct SlowMixture {
  explicit SlowMixture(MixtureSpec of) : spec(std::move(of)) {}
  void learn(double x, bool foreground) {
    ++values;
    if (parts.empty()) {
      parts.push_back({1, x, spec.first_deviation * spec.first_deviation});
      return;
    }
    const auto t = static_cast<double>(values);
    double rho = t < 1 / spec.rate ? std::max(spec.rate, 1 / t) : spec.rate;
    if (foreground) rho *= spec.foreground_rate;
    std::size_t matched = parts.size();
    for (std::size_t i = parts.size(); i-- > 0;)
      if (std::abs(x - parts[i].mean) <= spec.match * std::sqrt(parts[i].variance)) matched = i;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      parts[i].weight = (1 - rho) * parts[i].weight + (i == matched ? rho : 0);
      if (i != matched) continue;
      parts[i].mean = (1 - rho) * parts[i].mean + rho * x;
      parts[i].variance = std::max(spec.least_deviation * spec.least_deviation,
                                   (1 - rho) * parts[i].variance + rho * std::pow(x - parts[i].mean, 2));
    }
    if (matched == parts.size()) {
      if (parts.size() == spec.components) {
        std::size_t least = 0;
        for (std::size_t i = 1; i < parts.size(); ++i)
          if (parts[i].weight < parts[least].weight) least = i;
        parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(least));
      }
      parts.push_back({0.01, x, spec.first_deviation * spec.first_deviation});
    }
    double sum = 0;
    for (const auto& part : parts) sum += part.weight;
    for (auto& part : parts) part.weight /= sum;
    std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) {
      return a.weight / std::sqrt(a.variance) > b.weight / std::sqrt(b.variance);
    });
  }
  MixtureSpec spec;
  std::deque<Mixture::Component> parts;
  std::size_t values = 0;
};

// With a threshold that noise does not reach by chance.
ScreeningSpec deaf() {
  ScreeningSpec spec;
  spec.open = 6;
  return spec;
}

bool same_number(double a, double b) { return std::abs(a - b) <= 1e-12 * std::max(1.0, std::abs(b)); }

}  // namespace

TEST_CASE(
    "screening 1: weights add up to one, deviations have a floor, and constant input gives one component") {
  Mixture mixture({});
  Rng rng(3);
  for (int i = 0; i < 20'000; ++i) {
    mixture.learn(rng.below(50) == 0 ? 4 + rng.normal() : rng.normal() * 0.5, rng.below(9) == 0);
    CHECK(same_number(sum_of_weights(mixture), 1));
    for (std::size_t k = 0; k < mixture.count(); ++k)
      CHECK(mixture.component(k).variance >= MixtureSpec().least_deviation * MixtureSpec().least_deviation);
  }
  const std::vector<float> still(5000, 9.81F);
  Screening screening({});
  screening.push(still, [](const Segment&) { FAIL("an event in a constant stream"); });
  screening.interrupt([](const Segment&) { FAIL("an event in a constant stream"); });
  CHECK(screening.mixture().count() == 1);
}

TEST_CASE("screening 2: means and variances follow a slow reference, and a rate of 1 forgets everything") {
  Rng rng(5);
  MixtureSpec spec;
  Mixture mixture(spec);
  SlowMixture slow(spec);
  for (int i = 0; i < 5000; ++i) {
    const bool event = rng.below(10) == 0;
    const double x = event ? 3 + 2 * rng.normal() : 0.7 * rng.normal();
    mixture.learn(x, event);
    slow.learn(x, event);
    REQUIRE(mixture.count() == slow.parts.size());
    for (std::size_t k = 0; k < mixture.count(); ++k) {
      REQUIRE(same_number(mixture.component(k).weight, slow.parts[k].weight));
      REQUIRE(same_number(mixture.component(k).mean, slow.parts[k].mean));
      REQUIRE(same_number(mixture.component(k).variance, slow.parts[k].variance));
    }
  }
  spec.rate = 1;
  Mixture forgets(spec);
  for (const double x : {0.0, 0.5, 1.0, 1.5}) forgets.learn(x, false);
  CHECK(forgets.component(0).weight == 1);
  CHECK(forgets.component(0).mean == 1.5);
  CHECK(forgets.component(0).variance == doctest::Approx(spec.least_deviation * spec.least_deviation));
}

TEST_CASE("screening 3: after a step in roughness false alarms stop within a bounded time") {
  const ScreeningSpec spec = deaf();
  std::vector<float> stream = road(6000, 0.02);
  const std::vector<float> rough = road(12'000, 0.2, 2);
  stream.insert(stream.end(), rough.begin(), rough.end());
  const Screened result = screen(spec, stream);
  REQUIRE_FALSE(result.segments.empty());
  const double bound = 6000 + static_cast<double>(spec.samples(spec.relearn_seconds)) + 5 / spec.mixture.rate;
  for (const Segment& segment : result.segments) {
    CHECK(segment.event_begin >= 5900);
    CHECK(static_cast<double>(segment.event_end) <= bound);
  }
  // Without the rule, the new road would be an event for much longer.
  ScreeningSpec never = spec;
  never.relearn_seconds = 3600;
  never.mixture.foreground_rate = 0;
  CHECK(static_cast<double>(screen(never, stream).segments.back().event_end) > bound);
}

TEST_CASE(
    "screening 4: a spike of three samples is one event of its samples, the window and the closing time") {
  ScreeningSpec spec = deaf();
  spec.high_pass_hz = 0;
  spec.close = 5.9;
  std::vector<float> stream = road(4000, 0.02);
  add_shock(stream, 2500, 3, 0.4);
  const Screened result = screen(spec, stream);
  REQUIRE(result.segments.size() == 1);
  const Segment& segment = result.segments.front();
  CHECK(segment.event_begin == 2500);
  CHECK(segment.event_end == 2500 + (3 + spec.window - 1) + spec.samples(spec.close_seconds));
  CHECK(segment.begin == segment.event_begin - 64);
  CHECK(segment.values.size() == segment.event_end + 64 - segment.begin);
  for (std::size_t i = 0; i < segment.values.size(); ++i)
    CHECK(segment.values[i] == stream[segment.begin + i]);
}

TEST_CASE("screening 4: the context is cut at the ends of the stream") {
  ScreeningSpec spec = deaf();
  spec.warmup_seconds = 0.2;
  std::vector<float> stream = road(300, 0.02);
  add_shock(stream, 40, 3, 0.4);
  add_shock(stream, 270, 3, 0.4);
  const Screened result = screen(spec, stream);
  REQUIRE(result.segments.size() == 2);
  CHECK(result.segments[0].begin == 0);
  CHECK(result.segments[1].begin == result.segments[1].event_begin - 64);
  CHECK(result.segments[1].begin + result.segments[1].values.size() == 300);
}

TEST_CASE("screening 5: segments never overlap, and every sample of an event is in one") {
  ScreeningSpec spec;
  Rng rng(11);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    std::vector<float> stream = road(20'000, 0.02, seed);
    for (std::size_t at = 1500; at < 19'000; at += 20 + rng.below(400))
      add_shock(stream, at, 1 + rng.below(rng.below(8) == 0 ? 700 : 30), 0.2 + rng.uniform());
    const Screened result = screen(spec, stream);
    REQUIRE(result.segments.size() > 10);
    std::uint64_t last = 0;
    std::uint64_t flagged = 0;
    std::uint64_t kept = 0;
    for (const Segment& segment : result.segments) {
      CHECK(segment.begin >= last);
      CHECK(segment.event_begin >= segment.begin);
      const std::uint64_t end = segment.begin + segment.values.size();
      CHECK(segment.event_end > segment.event_begin);
      CHECK(segment.event_end <= end);
      CHECK(segment.event_end - segment.event_begin <= spec.samples(spec.most_seconds));
      if (segment.continued) CHECK(segment.begin == last);
      for (std::size_t i = 0; i < segment.values.size(); ++i)
        REQUIRE(segment.values[i] == stream[segment.begin + i]);
      flagged += segment.event_end - segment.event_begin;
      kept += segment.values.size();
      last = end;
    }
    CHECK(flagged == result.flagged);
    CHECK(kept == result.kept);
  }
}

TEST_CASE("screening 6: a stream in pieces of any size gives the same bits") {
  ScreeningSpec spec;
  spec.channels = 3;
  spec.signal = {0, 1, 2};
  std::vector<float> one = road(3 * 9000, 0.02, 4);
  for (std::size_t at = 1500; at < 8500; at += 300)
    for (std::size_t i = 0; i < 3; ++i) one[3 * (at + i) + at % 3] += 0.5F;
  const Screened whole = screen(spec, one, 9000);
  REQUIRE(whole.segments.size() > 5);
  for (const std::size_t chunk : std::vector<std::size_t>{1, 2, 7, 100, 257, 4096}) {
    const Screened pieces = screen(spec, one, chunk);
    CHECK(pieces.segments == whole.segments);
    CHECK(pieces.flagged == whole.flagged);
  }
}

TEST_CASE("screening 7: with a frozen background a lower threshold flags all that a higher one does") {
  std::vector<float> stream = road(12'000, 0.02, 9);
  Rng rng(2);
  for (std::size_t at = 3000; at < 11'500; at += 150 + rng.below(200))
    add_shock(stream, at, 1 + rng.below(20), 0.02 + 0.2 * rng.uniform());
  const auto flags = [&](double open) {
    ScreeningSpec spec;
    spec.open = open;
    spec.close = 1.0;
    spec.least_seconds = 0;
    std::vector<bool> flagged(stream.size());
    for (const Segment& segment : screen(spec, stream, 1000, 2500).segments)
      for (std::uint64_t i = segment.event_begin; i < segment.event_end; ++i) flagged[i] = true;
    return flagged;
  };
  std::vector<bool> higher = flags(6);
  CHECK(std::count(higher.begin(), higher.end(), true) > 100);
  for (const double open : {5.0, 4.0, 3.0, 2.0}) {
    const std::vector<bool> lower = flags(open);
    for (std::size_t i = 0; i < lower.size(); ++i)
      if (higher[i]) REQUIRE(lower[i]);
    CHECK(std::count(lower.begin(), lower.end(), true) >= std::count(higher.begin(), higher.end(), true));
    higher = lower;
  }
}

TEST_CASE("screening: what is missing in a stream ends the event and keeps the background") {
  const ScreeningSpec spec = deaf();
  std::vector<float> stream = road(6000, 0.02);
  add_shock(stream, 2985, 10, 0.5);
  add_shock(stream, 4500, 10, 0.5);
  Screening screening(spec);
  std::vector<Segment> segments;
  const auto keep = [&](Segment segment) { segments.push_back(std::move(segment)); };
  const std::span<const float> all = stream;
  screening.push(all.first(3000), keep);
  screening.interrupt(keep);
  REQUIRE(segments.size() == 1);
  CHECK(segments[0].begin + segments[0].values.size() == 3000);
  screening.push(all.subspan(3000), keep);
  screening.interrupt(keep);
  REQUIRE(segments.size() == 2);
  CHECK(segments[1].event_begin >= 4500);
  CHECK(segments[1].event_begin <= 4501);
}

TEST_CASE("screening: memory is bounded, and stays below 64 KiB for a stream of six channels") {
  ScreeningSpec spec;
  spec.channels = 6;
  Screening screening(spec);
  const std::size_t before = screening.memory_bytes();
  std::vector<float> stream = road(6 * 50'000, 0.02);
  for (std::size_t i = 6 * 2000; i < stream.size(); i += 61) stream[i] += 1;
  screening.push(stream, [](const Segment&) {});
  CHECK(screening.memory_bytes() == before);
  CHECK(before < 64 * 1024);
}

TEST_CASE("screening: a specification that is impossible is refused, naming the value") {
  const auto error_of = [](auto change) {
    ScreeningSpec spec;
    change(spec);
    const auto checked = check_screening(spec);
    REQUIRE_FALSE(checked);
    return checked.error().message;
  };
  using Spec = ScreeningSpec;
  CHECK(error_of([](Spec& s) { s.rate_hz = 0; }) == "the sampling rate is 0, expected 1 to 1e+05");
  CHECK(error_of([](Spec& s) { s.rate_hz = std::numeric_limits<double>::quiet_NaN(); }) ==
        "the sampling rate is nan, expected 1 to 1e+05");
  CHECK(error_of([](Spec& s) { s.channels = 0; }) == "there are 0 channels, expected 1 to 32");
  CHECK(error_of([](Spec& s) { s.signal = {}; }) == "no channel is screened");
  CHECK(error_of([](Spec& s) { s.signal = {1}; }) == "channel 1 is screened, but there are only 1");
  CHECK(error_of([](Spec& s) { s.window = 257; }) == "the window has 257 samples, expected 1 to 256");
  CHECK(error_of([](Spec& s) { s.mixture.components = 9; }) ==
        "the mixture has 9 components, expected 1 to 8");
  CHECK(error_of([](Spec& s) { s.close = 4; }) == "the score at which an event closes is 4, expected 0 to 3");
  CHECK(error_of([](Spec& s) { s.most_seconds = 0; }) == "most_seconds is 0, expected 0.01 to 60");
  CHECK(error_of([](Spec& s) {
          s.rate_hz = 1e5;
          s.most_seconds = 60;
        }).starts_with("the screening would hold "));
}

}  // namespace fedge::learn
