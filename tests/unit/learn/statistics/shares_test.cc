// Counts as shares: what one client can change at most, and what is found out beneath the noise.
#include "learn/statistics/shares.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "core/rng.h"
#include "tests/support/text.h"

namespace fedge::learn {
namespace {

using fedge::test::contains;
using Counting = StatisticsShape;

constexpr std::int64_t kClientWhole = 4096;

DatasetInfo sharing_info(std::size_t rows = 1) {
  DatasetInfo info{.shape = {rows, 2, 1}, .classes = 2, .outputs = 2, .class_names = {"no", "yes"}};
  info.columns = {.period = 2, .at = {0, 1}, .names = {"age", "tiny"}};
  return info;
}

// `samples` of a client; some clients are extreme, and some values are missing.
Dataset client_data(std::size_t samples, std::uint64_t seed, std::size_t rows = 1, bool extreme = false) {
  const DatasetInfo info = sharing_info(rows);
  Dataset data{
      .shape = info.shape, .classes = 2, .floats = AlignedBuffer<float>(samples * 2 * rows), .labels = {}};
  data.columns = info.columns;
  Rng rng(seed);
  for (std::size_t i = 0; i < samples; ++i)
    data.labels.push_back(extreme ? 1 : static_cast<Label>(rng.below(2)));
  for (std::size_t i = 0; i < data.floats.size(); ++i) {
    const double normal = rng.normal();
    data.floats.data()[i] = extreme      ? std::numeric_limits<float>::max()
                            : i % 2 == 0 ? static_cast<float>(50 + 10 * normal)
                                         : static_cast<float>(0.01 * normal);
    if (!extreme && rng.uniform() < 0.02) data.floats.data()[i] = std::nanf("");
  }
  return data;
}

std::vector<std::int64_t> shares(const Counting& shape, const Dataset& data,
                                 const std::vector<float>& edges) {
  std::vector<std::uint32_t> all(data.labels.size());
  std::iota(all.begin(), all.end(), 0U);
  const auto counts = count_values(shape, data, all, edges);
  REQUIRE_MESSAGE(counts, counts.error().message);
  return shares_of(shape, *counts);
}

double norm_of(const std::vector<std::int64_t>& numbers) {
  double squares = 0;
  for (const std::int64_t number : numbers)
    squares += static_cast<double>(number) * static_cast<double>(number);
  return std::sqrt(squares);
}

FederatedStatistics sharing(const DatasetInfo& info, double deviation) {
  auto statistics = FederatedStatistics::create(info, {kClientWhole, deviation});
  REQUIRE(statistics);
  return std::move(*statistics);
}

// The statistics of this many clients with noise of this standard deviation, in wholes.
Result<FederatedStatistics> noisy_statistics(std::size_t clients, double wholes) {
  const double deviation = wholes * kClientWhole;
  FederatedStatistics statistics = sharing(sharing_info(), deviation);
  Rng rng(5);
  while (!statistics.complete()) {
    std::vector<std::int64_t> total(statistics.shape().size());
    for (std::size_t i = 0; i < clients; ++i)
      add_counts(total, shares(statistics.shape(), client_data(1 + i % 7, i), statistics.edges()));
    for (std::int64_t& sum : total) sum += std::llround(deviation * rng.normal());
    FEDGE_TRY_VOID(statistics.take_noisy(total));
  }
  return statistics;
}

}  // namespace

TEST_CASE("shares: no client's have a larger norm than stated, whatever its data") {
  for (const std::size_t rows : {1U, 3U}) {
    const FederatedStatistics statistics = sharing(sharing_info(rows), 1);
    const Counting& shape = statistics.shape();
    CHECK(share_norm(shape) == doctest::Approx(std::sqrt(1 + 1 + 3 * 2.0)));
    double largest = 0;
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      const auto own =
          shares(shape, client_data(1 + seed % 9, seed, rows, seed % 10 == 0), statistics.edges());
      CHECK(check_shares(shape, own));
      CHECK(norm_of(own) <= share_norm(shape) * kClientWhole);
      largest = std::max(largest, norm_of(own));
    }
    // The bound is not far from what extreme data reach.
    CHECK(largest > 0.99 * share_norm(shape) * kClientWhole);
  }
}

TEST_CASE("shares: each client counts once, whatever its number of samples") {
  const FederatedStatistics statistics = sharing(sharing_info(), 0);
  const Dataset once = client_data(3, 1);
  Dataset twice = client_data(6, 1);
  for (std::size_t i = 0; i < 6; ++i) {
    twice.labels[i] = once.labels[i % 3];
    for (std::size_t k = 0; k < 2; ++k) twice.floats.data()[2 * i + k] = once.floats.data()[2 * (i % 3) + k];
  }
  CHECK(shares(statistics.shape(), once, statistics.edges()) ==
        shares(statistics.shape(), twice, statistics.edges()));
}

TEST_CASE("shares: those of a liar are refused") {
  const FederatedStatistics statistics = sharing(sharing_info(), 1);
  const Counting& shape = statistics.shape();
  const auto good = shares(shape, client_data(5, 2), statistics.edges());
  const auto refused = [&](auto&& change) {
    auto sums = good;
    change(sums);
    const auto checked = check_shares(shape, sums);
    return checked ? std::string("accepted") : checked.error().message;
  };
  CHECK(refused([](auto&) {}) == "accepted");
  CHECK(contains(refused([](auto& sums) { sums.pop_back(); }), "expected"));
  CHECK(contains(refused([](auto& sums) { sums[Counting::kClients] = 2 * kClientWhole; }),
                 "not of one client"));
  CHECK(contains(refused([](auto& sums) { sums[Counting::kClients] -= 1; }), "not of one client"));
  CHECK(contains(refused([](auto& sums) { sums[Counting::kClients] = -kClientWhole; }), "not of one client"));
  CHECK(contains(refused([](auto& sums) { sums[Counting::kSamples] = 1; }), "number of samples"));
  CHECK(contains(refused([](auto& sums) { sums[Counting::kLabels] = -1; }), "between 0 and the whole"));
  CHECK(contains(
      refused([](auto& sums) { sums[Counting::kLabels] = sums[Counting::kLabels + 1] = kClientWhole; }),
      "of the labels are more"));
  CHECK(contains(refused([&](auto& sums) { sums[shape.column(1) + Counting::kSquares] = kClientWhole + 1; }),
                 "between 0 and the whole"));
  CHECK(contains(refused([&](auto& sums) { sums[shape.column(0) + Counting::kMissing] = kClientWhole; }),
                 "of a column are more"));
  CHECK(contains(refused([&](auto& sums) { sums[shape.column(0) + Counting::kBins] = kClientWhole; }),
                 "of a column are more"));
  CHECK(contains(refused([&](auto& sums) { sums.assign(sums.size(), 0); }), "not of one client"));
}

TEST_CASE("shares: with many clients the statistics are found beneath the noise, within their bounds") {
  const auto statistics = noisy_statistics(3000, 15);
  REQUIRE_MESSAGE(statistics, statistics.error().message);
  const DataStatistics result = statistics->result();
  CHECK(result.samples == 0);
  CHECK(std::abs(static_cast<double>(result.clients) - 3000) < 60);
  REQUIRE(result.columns.size() == 2);
  const ColumnStatistics& age = result.columns[0];
  CHECK(std::abs(age.mean - 50) < age.mean_error);
  CHECK(age.mean_error < 5);
  CHECK(age.deviation > 5);
  CHECK(age.deviation < 20);
  CHECK(std::abs(age.median->value - 50) < age.median->error);
  const ColumnStatistics& tiny = result.columns[1];
  CHECK(std::abs(tiny.mean) < tiny.mean_error);
  CHECK(tiny.mean_error < 0.02);
  CHECK(tiny.deviation > 0.003);
  CHECK(tiny.deviation < 0.03);
  CHECK(static_cast<double>(result.labels[0].count + result.labels[1].count) ==
        doctest::Approx(static_cast<double>(result.clients)).epsilon(0.001));
  // What is kept is taken up again.
  FederatedStatistics again = sharing(sharing_info(), 15.0 * kClientWhole);
  REQUIRE(again.restore(statistics->edges(), statistics->sums()));
  CHECK(again.normalisation() == statistics->normalisation());
}

TEST_CASE("shares: ten thousand clients with large images stay far from what integers can hold") {
  // What each client says: half of its 1024 values of a column are 0 of the range, half are 1.
  FederatedStatistics statistics = sharing(sharing_info(1024), 10.0 * kClientWhole);
  const Counting& shape = statistics.shape();
  std::vector<std::int64_t> total(shape.size());
  total[Counting::kClients] = 10'000 * kClientWhole;
  for (std::size_t k = 0; k < 2; ++k) total[Counting::kLabels + k] = 5'000 * kClientWhole;
  for (std::size_t c = 0; c < 2; ++c) {
    total[shape.column(c) + Counting::kSum] = total[shape.column(c) + Counting::kSquares] =
        5'000 * kClientWhole;
    total[shape.column(c) + Counting::kBins] = 5'000 * kClientWhole;
    total[shape.column(c) + Counting::kBins + shape.bins - 1] = 5'000 * kClientWhole;
  }
  while (!statistics.complete()) REQUIRE(statistics.take_noisy(total));
  const DataStatistics result = statistics.result();
  CHECK(result.clients == 10'000);
  CHECK(result.columns[0].count == 10'000);
  CHECK(result.labels[0].count == 5'000);
  const double range = result.columns[0].maximum->value - result.columns[0].minimum->value;
  CHECK(result.columns[0].deviation == doctest::Approx(range / 2).epsilon(0.001));
  FederatedStatistics again = sharing(sharing_info(1024), 10.0 * kClientWhole);
  REQUIRE(again.restore(statistics.edges(), statistics.sums()));
  CHECK(again.normalisation() == statistics.normalisation());
}

TEST_CASE("shares: whatever a liar adds to a masked total, the statistics are numbers or a refusal") {
  Rng rng(3);
  for (int i = 0; i < 300; ++i) {
    FederatedStatistics statistics = sharing(sharing_info(1 + rng.below(3)), 10.0 * kClientWhole);
    while (!statistics.complete()) {
      std::vector<std::int64_t> total(statistics.shape().size());
      for (std::int64_t& sum : total) {
        const auto bits = static_cast<std::int64_t>(rng.next_u64() >> (1 + rng.below(63)));
        sum = rng.below(8) == 0 ? INT64_MIN : rng.below(2) == 0 ? bits : -bits;
      }
      if (!statistics.take_noisy(total)) break;
    }
    if (!statistics.complete()) continue;
    const Normalisation by = statistics.normalisation();
    for (std::size_t c = 0; c < 2; ++c) {
      CHECK(std::isfinite(by.mean[c]));
      CHECK(by.deviation[c] > 0);
    }
    FederatedStatistics again = sharing(sharing_info(statistics.shape().rows), 1);
    CHECK(again.restore(statistics.edges(), statistics.sums()));
  }
}

TEST_CASE("shares: without noise they are near the statistics of all clients' distributions") {
  const auto statistics = noisy_statistics(400, 0);
  REQUIRE_MESSAGE(statistics, statistics.error().message);
  const DataStatistics result = statistics->result();
  CHECK(result.clients == 400);
  CHECK(std::abs(result.columns[0].mean - 50) < 1.5);
  CHECK(std::abs(result.columns[0].deviation - 10) < 1);
  CHECK(std::abs(result.columns[1].deviation - 0.01) < 0.001);
}

TEST_CASE("shares: where the noise hides a column, the error names it and says what helps") {
  const auto few = noisy_statistics(4, 15);
  REQUIRE_FALSE(few);
  CHECK(few.error().code == ErrorCode::kInvalid);
  CHECK(contains(few.error().message, "hides the values of column age"));
  CHECK(contains(few.error().message, "there are too few clients"));
  CHECK(contains(few.error().message, "data.mean and data.deviation"));
}

}  // namespace fedge::learn
