#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "aggregation/samplers/awpsp/correlation.h"
#include "aggregation/samplers/awpsp/pair_kernels.h"

namespace fedge::aggregation {
namespace {

Trace trace(std::uint64_t down, std::uint8_t rounds) {
  return {.down = down, .failed = down, .rounds = rounds};
}

// Clients sorted by latency.
struct Clients {
  std::vector<Trace> traces;
  std::vector<float> latencies;

  std::size_t size() const { return traces.size(); }
  Trace& operator[](std::size_t place) { return traces[place]; }
  const Trace& operator[](std::size_t place) const { return traces[place]; }
};

// Clients 0, 1, ... with these traces and latencies one millisecond apart.
Clients in_a_row(std::vector<Trace> traces) {
  Clients clients{std::move(traces), {}};
  for (std::size_t i = 0; i < clients.size(); ++i) {
    clients[i].client = static_cast<std::uint32_t>(i);
    clients.latencies.push_back(static_cast<float>(i));
  }
  return clients;
}

Correlations correlated(const Clients& clients, const CorrelationOptions& options, bool clusters) {
  const auto source = [&](std::size_t first, std::span<Trace> traces) {
    std::copy_n(clients.traces.begin() + static_cast<std::ptrdiff_t>(first), traces.size(), traces.begin());
  };
  return correlate(find_neighbours(clients.latencies, options.neighbours), source, options, clusters);
}

std::vector<std::size_t> neighbours_of(const Clients& clients, std::size_t place, std::size_t count) {
  const Neighbourhood found = find_neighbours(clients.latencies, count);
  std::vector<std::size_t> places;
  for (std::size_t j = place - found.before[place]; places.size() < found.neighbours; ++j)
    if (j != place) places.push_back(j);
  return places;
}

Clients random_clients(std::size_t count, Rng& rng) {
  std::vector<Trace> traces(count);
  const std::uint64_t shared = rng.next_u64() & rng.next_u64();
  for (Trace& one : traces) {
    one.down = rng.next_u64() & rng.next_u64();
    if (rng.below(3) == 0) one.down = shared;
    if (rng.below(8) == 0) one.down = 0;
    one.failed = one.down | (rng.next_u64() & rng.next_u64() & rng.next_u64());
    one.rounds = static_cast<std::uint8_t>(rng.below(3) == 0 ? 1 + rng.below(64) : 40);
    const std::uint64_t known = ~std::uint64_t{0} >> (64 - one.rounds);
    one.down &= known;
    one.failed &= known;
    one.failed_now = rng.below(2) == 0;
  }
  Clients clients = in_a_row(std::move(traces));
  rng.shuffle(std::span(clients.traces));
  for (float& latency : clients.latencies) latency = static_cast<float>(rng.below(2 * count));
  std::sort(clients.latencies.begin(), clients.latencies.end());
  return clients;
}

struct Scores {
  double correlation = 0;
  double co_failure = 0;
};

// Computes the textbook's correlation of two lists of bits, number by number.
double slow_correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const auto n = static_cast<double>(a.size());
  double mean_a = 0, mean_b = 0;
  for (std::size_t k = 0; k < a.size(); ++k) {
    mean_a += a[k] / n;
    mean_b += b[k] / n;
  }
  double covariance = 0, variance_a = 0, variance_b = 0;
  for (std::size_t k = 0; k < a.size(); ++k) {
    covariance += (a[k] - mean_a) * (b[k] - mean_b);
    variance_a += (a[k] - mean_a) * (a[k] - mean_a);
    variance_b += (b[k] - mean_b) * (b[k] - mean_b);
  }
  const bool constant = variance_a < 1e-9 || variance_b < 1e-9;
  return constant ? 0.0 : covariance / std::sqrt(variance_a * variance_b);
}

Scores slow_scores(const Trace& a, const Trace& b) {
  std::vector<double> up_a, up_b, failed_a, failed_b;
  for (int k = 0; k < std::min(a.rounds, b.rounds); ++k) {
    up_a.push_back((a.down >> k & 1) ? 0 : 1);
    up_b.push_back((b.down >> k & 1) ? 0 : 1);
    failed_a.push_back((a.failed >> k & 1) ? 1 : 0);
    failed_b.push_back((b.failed >> k & 1) ? 1 : 0);
  }
  return {slow_correlation(up_a, up_b), slow_correlation(failed_a, failed_b)};
}

double slow_score(const Trace& a, const Trace& b) {
  const Scores scores = slow_scores(a, b);
  return std::max({scores.correlation, scores.co_failure, 0.0});
}

std::vector<std::size_t> slow_neighbours(const Clients& clients, std::size_t place, std::size_t count) {
  std::vector<std::size_t> others;
  for (std::size_t i = 0; i < clients.size(); ++i)
    if (i != place) others.push_back(i);
  std::stable_sort(others.begin(), others.end(), [&](std::size_t a, std::size_t b) {
    const float x = std::abs(clients.latencies[a] - clients.latencies[place]);
    const float y = std::abs(clients.latencies[b] - clients.latencies[place]);
    return x != y ? x < y : clients.latencies[a] < clients.latencies[b];
  });
  others.resize(std::min(others.size(), count));
  return others;
}

// The latencies of the neighbours. If several clients are equally near, the choice between them is an
// implementation detail.
std::multiset<float> latencies(const Clients& clients, const std::vector<std::size_t>& places) {
  std::multiset<float> result;
  for (const std::size_t place : places) result.insert(clients.latencies[place]);
  return result;
}

bool together(const Correlations& found, std::size_t i, std::size_t j) {
  return found.cluster[i] != Correlations::kAlone && found.cluster[i] == found.cluster[j];
}

}  // namespace

TEST_CASE("aw_psp correlation: scores are the textbook's, over the rounds that both were known in") {
  Rng rng(1);
  for (int trial = 0; trial < 500; ++trial) {
    const Clients pair = random_clients(2, rng);
    const Scores expected = slow_scores(pair[0], pair[1]);
    CHECK(availability_correlation(pair[0], pair[1]) == doctest::Approx(expected.correlation).epsilon(1e-9));
    CHECK(co_failure(pair[0], pair[1]) == doctest::Approx(expected.co_failure).epsilon(1e-9));
    CHECK(pair_score(pair[0], pair[1], {}) == doctest::Approx(slow_score(pair[0], pair[1])).epsilon(1e-9));
  }
}

TEST_CASE(
    "aw_psp correlation: a trace that never changed correlates with nothing, where Pearson is no number") {
  CHECK(availability_correlation(trace(0, 10), trace(0b1010, 10)) == 0.0);
  CHECK(availability_correlation(trace(0x3ff, 10), trace(0x3ff, 10)) == 0.0);
  CHECK(availability_correlation(trace(0, 0), trace(0, 0)) == 0.0);
  CHECK(co_failure(trace(0x3ff, 10), trace(0x3ff, 10)) == 0.0);
  CHECK(co_failure(trace(0, 0), trace(0, 0)) == 0.0);
}

TEST_CASE("aw_psp correlation: a negative correlation counts as none, so that no factor exceeds 1") {
  const Trace a = trace(0b0101, 4);
  const Trace b = trace(0b1010, 4);
  CHECK(availability_correlation(a, b) == -1.0);
  CHECK(pair_score(a, b, {}) == 0.0);
  Clients traces = in_a_row({a, b});
  traces[1].failed_now = true;
  CHECK(correlated(traces, {}, false).risk == std::vector<float>{0.0F, 0.0F});
}

TEST_CASE("aw_psp correlation: independent clients that are often down do not score by chance") {
  // Both are down in 64 % of the rounds, so both fail in 41 % of them, which is above the threshold of 0.35.
  Rng rng(12);
  double sum = 0;
  int linked = 0;
  constexpr int kPairs = 2000;
  for (int pair = 0; pair < kPairs; ++pair) {
    Trace a = trace(0, 64), b = trace(0, 64);
    for (int k = 0; k < 64; ++k) {
      a.down |= std::uint64_t{rng.below(100) < 64} << k;
      b.down |= std::uint64_t{rng.below(100) < 64} << k;
    }
    a.failed = a.down;
    b.failed = b.down;
    sum += pair_score(a, b, {});
    linked += pair_score(a, b, {}) >= CorrelationOptions{}.threshold ? 1 : 0;
  }
  // A correlation of 64 independent pairs of bits has a deviation of 1/8; its positive part has the mean
  // 0.05, and it exceeds 0.35 once in 400 pairs.
  CHECK(sum / kPairs < 0.07);
  CHECK(linked < kPairs / 50);
}

TEST_CASE("aw_psp correlation: tasks that fail together score where both clients are always up") {
  Trace a = trace(0, 32), b = trace(0, 32), c = trace(0, 32);
  a.failed = b.failed = 0xff00;
  c.failed = 0x00ff;
  CHECK(pair_score(a, b, {}) == 1.0);
  CHECK(pair_score(a, c, {}) == 0.0);
}

TEST_CASE("aw_psp correlation: the same comings and goings are a correlation of exactly 1") {
  CHECK(availability_correlation(trace(0b0110, 4), trace(0b0110, 4)) == 1.0);
  CHECK(pair_score(trace(0xf0f0f0f0f0f0f0f0, 64), trace(0xf0f0f0f0f0f0f0f0, 64), {}) == 1.0);
}

TEST_CASE("aw_psp correlation: neighbours are the nearest in latency") {
  Rng rng(3);
  for (int trial = 0; trial < 50; ++trial) {
    const auto traces = random_clients(1 + rng.below(12), rng);
    for (std::size_t place = 0; place < traces.size(); ++place) {
      const auto found = neighbours_of(traces, place, 4);
      CHECK(found.size() == std::min<std::size_t>(4, traces.size() - 1));
      CHECK(std::set<std::size_t>(found.begin(), found.end()).size() == found.size());
      CHECK(std::find(found.begin(), found.end(), place) == found.end());
      CHECK(latencies(traces, found) == latencies(traces, slow_neighbours(traces, place, 4)));
    }
  }
}

TEST_CASE("aw_psp correlation: risk is what is left of 1 over all neighbours that have failed") {
  // Client 1 lies between two clients. Its score is 1 with the left one and 1/sqrt(3) with the right one,
  // which fails in one of its two rounds.
  Clients three = in_a_row({trace(0b0110, 4), trace(0b0110, 4), trace(0b0100, 4)});
  three[2].failed_now = true;
  CHECK(correlated(three, {.neighbours = 2}, false).risk[1] == doctest::Approx(1 / std::sqrt(3.0)));
  three[0].failed_now = true;
  CHECK(correlated(three, {.neighbours = 2}, false).risk[1] == 1.0);
  Rng rng(4);
  for (int trial = 0; trial < 50; ++trial) {
    const auto traces = random_clients(20, rng);
    const auto risk = correlated(traces, {}, false).risk;
    CHECK(risk == correlated(traces, {}, true).risk);
    for (std::size_t i = 0; i < traces.size(); ++i) {
      double safe = 1;
      for (const std::size_t j : neighbours_of(traces, i, 4))
        if (traces[j].failed_now && (traces[i].down & 1) == 0) safe *= 1 - slow_score(traces[i], traces[j]);
      CHECK(risk[i] == doctest::Approx(1 - safe).epsilon(1e-6));
      CHECK((risk[i] >= 0 && risk[i] <= 1));
    }
  }
}

TEST_CASE("aw_psp correlation: clusters are the connected components of flagged pairs") {
  Rng rng(5);
  for (int trial = 0; trial < 50; ++trial) {
    const auto traces = random_clients(24, rng);
    const auto found = correlated(traces, {}, true);
    // Labels spread along flagged pairs until no label changes.
    std::vector<std::size_t> name(traces.size());
    for (std::size_t i = 0; i < name.size(); ++i) name[i] = i;
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t i = 0; i < traces.size(); ++i)
        for (const std::size_t j : neighbours_of(traces, i, 4))
          if (slow_score(traces[i], traces[j]) >= 0.35 - 1e-12 && name[i] != name[j]) {
            name[i] = name[j] = std::min(name[i], name[j]);
            changed = true;
          }
    }
    std::ptrdiff_t largest = 0;
    for (const std::size_t one : name) largest = std::max(largest, std::count(name.begin(), name.end(), one));
    CHECK(found.largest == static_cast<std::size_t>(largest));
    for (std::size_t i = 0; i < traces.size(); ++i) {
      CHECK((found.cluster[i] == Correlations::kAlone) ==
            (std::count(name.begin(), name.end(), name[i]) == 1));
      for (std::size_t j = 0; j < traces.size(); ++j)
        if (i != j) CHECK(together(found, i, j) == (name[i] == name[j]));
    }
  }
}

TEST_CASE("aw_psp correlation: all at once, risks and clusters are to the bit those of pair after pair") {
  Rng rng(8);
  for (int trial = 0; trial < 200; ++trial) {
    auto traces = random_clients(1 + rng.below(60), rng);
    if (trial % 4 == 0)
      for (float& latency : traces.latencies) latency = std::floor(latency / 16);  // many latencies are equal
    const CorrelationOptions options{.threshold = 0.05 + 0.9 * rng.uniform(),
                                     .neighbours = 1 + rng.below(trial % 2 == 0 ? 6 : 64),
                                     .noise = trial % 3 == 0 ? 0.3 : 0.0,
                                     .stream = Rng(9)};
    const Correlations found = correlated(traces, options, true);
    std::vector<std::size_t> name(traces.size());
    for (std::size_t i = 0; i < name.size(); ++i) name[i] = i;
    for (std::size_t i = 0; i < traces.size(); ++i) {
      double safe = 1;
      for (const std::size_t j : neighbours_of(traces, i, options.neighbours)) {
        const double score = pair_score(traces[i], traces[j], options);
        if (traces[j].failed_now && (traces[i].down & 1) == 0) safe *= 1 - score;
        if (score >= options.threshold)
          std::replace(name.begin(), name.end(), std::size_t{name[i]}, std::size_t{name[j]});
      }
      CHECK(found.risk[i] == static_cast<float>(1 - safe));
    }
    for (std::size_t i = 0; i < traces.size(); ++i) {
      // A cluster is named after its first member.
      const auto first = std::find(name.begin(), name.end(), name[i]) - name.begin();
      const bool alone = std::count(name.begin(), name.end(), name[i]) == 1;
      CHECK(found.cluster[i] == (alone ? Correlations::kAlone : static_cast<std::uint32_t>(first)));
    }
  }
}

TEST_CASE("aw_psp correlation: in blocks or in one, each is compared with all its neighbours") {
  Rng rng(11);
  struct Case {
    std::size_t clients;
    std::size_t neighbours;
  };
  for (const Case& one :
       {Case{1, 4}, {2, 64}, {64, 64}, {65, 64}, {1024, 4}, {1025, 64}, {1088, 64}, {2500, 6}}) {
    const Clients clients = random_clients(one.clients, rng);
    const CorrelationOptions options{.threshold = 0.8, .neighbours = one.neighbours};
    const Correlations found = correlated(clients, options, true);
    std::vector<std::size_t> name(clients.size());
    for (std::size_t i = 0; i < name.size(); ++i) name[i] = i;
    for (std::size_t i = 0; i < clients.size(); ++i) {
      double safe = 1;
      for (const std::size_t j : neighbours_of(clients, i, one.neighbours)) {
        const double score = pair_score(clients[i], clients[j], options);
        if (clients[j].failed_now && (clients[i].down & 1) == 0) safe *= 1 - score;
        if (score >= options.threshold && name[i] != name[j])
          std::replace(name.begin(), name.end(), std::size_t{name[i]}, std::size_t{name[j]});
      }
      CHECK(found.risk[i] == static_cast<float>(1 - safe));
    }
    for (std::size_t i = 1; i < clients.size(); ++i)
      CHECK(together(found, i - 1, i) == (name[i - 1] == name[i]));
  }
}

#if defined(__x86_64__)
TEST_CASE("aw_psp correlation: kernels for newer processors give the same bits as those for all") {
  if (best_pair_kernels().name != std::string_view("avx2")) return;
  struct Found {
    std::vector<double> scores;
    std::vector<std::uint64_t> links;
    std::vector<double> safe;
  };
  Rng rng(10);
  for (int trial = 0; trial < 100; ++trial) {
    const Clients clients = random_clients(2 + rng.below(200), rng);
    const std::size_t distances =
        std::min<std::size_t>(1 + rng.below(trial % 2 == 0 ? 8 : 64), clients.size() - 1);
    const Neighbourhood neighbourhood = find_neighbours(clients.latencies, distances);
    std::vector<std::uint64_t> down, failed, rounds, failed_now, before;
    for (std::size_t k = 0; k < clients.size(); ++k) {
      down.push_back(clients[k].down);
      failed.push_back(clients[k].failed);
      rounds.push_back(clients[k].rounds);
      failed_now.push_back(clients[k].failed_now ? 1 : 0);
      before.push_back(neighbourhood.before[k]);
    }
    const auto run = [&](const PairKernels& kernels) {
      const std::size_t count = clients.size();
      Found found{std::vector<double>(distances * count), std::vector<std::uint64_t>(count),
                  std::vector<double>(count)};
      std::vector<double> downs(count), failures(count);
      const TraceArrays traces{count,         down.data(),       failed.data(),
                               rounds.data(), failed_now.data(), before.data()};
      const PairScores result{distances,         found.scores.data(), 0.35,           found.links.data(),
                              found.safe.data(), downs.data(),        failures.data()};
      kernels.score(traces, result);
      kernels.judge(traces, result);
      return found;
    };
    const Found newer = run(avx2_pair_kernels());
    const Found portable = run(portable_pair_kernels());
    CHECK(newer.scores == portable.scores);
    CHECK(newer.links == portable.links);
    CHECK(newer.safe == portable.safe);
  }
}
#endif

TEST_CASE("aw_psp correlation: a higher threshold flags nobody that a lower one does not") {
  Rng rng(6);
  for (int trial = 0; trial < 20; ++trial) {
    const auto traces = random_clients(40, rng);
    Correlations before = correlated(traces, {.threshold = 0.05}, true);
    for (const double threshold : {0.1, 0.2, 0.35, 0.5, 0.7, 0.9, 1.0}) {
      const Correlations now = correlated(traces, {.threshold = threshold}, true);
      for (std::size_t i = 0; i < traces.size(); ++i) {
        CHECK_FALSE((now.cluster[i] != Correlations::kAlone && before.cluster[i] == Correlations::kAlone));
        for (std::size_t j = 0; j < i; ++j) CHECK_FALSE((together(now, i, j) && !together(before, i, j)));
      }
      before = now;
    }
  }
}

TEST_CASE(
    "aw_psp correlation: noise turns the scores of its share of pairs round, the same ones every time") {
  Rng rng(7);
  const auto traces = random_clients(100, rng);
  const CorrelationOptions some{.noise = 0.4, .stream = Rng(9)};
  const CorrelationOptions all{.noise = 1.0, .stream = Rng(9)};
  int flipped = 0;
  for (std::size_t i = 0; i < traces.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const double plain = pair_score(traces[i], traces[j], {});
      CHECK(pair_score(traces[i], traces[j], all) == 1 - plain);
      const double noisy = pair_score(traces[i], traces[j], some);
      CHECK(noisy == pair_score(traces[j], traces[i], some));
      CHECK((noisy == plain || noisy == 1 - plain));
      flipped += noisy != plain ? 1 : 0;
    }
  // 1,980 of 4,950 pairs are expected, within five standard deviations of 34.5.
  CHECK(std::abs(flipped - 1980) < 173);
}

}  // namespace fedge::aggregation
