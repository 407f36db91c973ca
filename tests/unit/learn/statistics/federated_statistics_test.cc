// The statistics of several clients: equal to those of all samples in one place, and to slow formulas.
#include "learn/statistics/federated_statistics.h"

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

constexpr float kMissing = std::numeric_limits<float>::quiet_NaN();

DatasetInfo info_of(std::size_t rows = 1) {
  // Two numeric columns around a feature that is none.
  DatasetInfo info{.shape = {rows, 3, 1}, .classes = 2, .outputs = 2, .class_names = {"no", "yes"}};
  info.columns = {.period = 3, .at = {0, 2}, .names = {"age", "dose"}};
  return info;
}

Dataset data_of(std::size_t samples, std::size_t rows = 1) {
  const DatasetInfo info = info_of(rows);
  Dataset data{
      .shape = info.shape, .classes = 2, .floats = AlignedBuffer<float>(samples * 3 * rows), .labels = {}};
  data.columns = info.columns;
  Rng rng(samples);
  for (std::size_t i = 0; i < samples; ++i) data.labels.push_back(static_cast<Label>(i % 3 == 0));
  for (std::size_t i = 0; i < data.floats.size(); ++i) {
    const double u = rng.uniform();
    data.floats.data()[i] = static_cast<float>(i % 3 == 0 ? 20 + 60 * u : i % 3 == 1 ? 1 : std::exp(10 * u));
    if (i % 3 != 1 && rng.uniform() < 0.1) data.floats.data()[i] = kMissing;
  }
  return data;
}

std::vector<std::uint32_t> range(std::size_t first, std::size_t last) {
  std::vector<std::uint32_t> samples(last - first);
  std::iota(samples.begin(), samples.end(), static_cast<std::uint32_t>(first));
  return samples;
}

FederatedStatistics created(const DatasetInfo& info) {
  auto statistics = FederatedStatistics::create(info);
  REQUIRE(statistics);
  return std::move(*statistics);
}

std::vector<std::int64_t> counted(const Counting& shape, const Dataset& data,
                                  std::span<const std::uint32_t> samples, const std::vector<float>& edges) {
  const auto sums = count_values(shape, data, samples, edges);
  REQUIRE_MESSAGE(sums, sums.error().message);
  CHECK(check_counts(shape, *sums, samples.size()));
  return *sums;
}

}  // namespace

TEST_CASE("statistics: three clients and one place have the same, integer for integer") {
  for (const std::size_t rows : {1U, 4U}) {
    const Dataset data = data_of(300, rows);
    FederatedStatistics together = created(info_of(rows));
    while (!together.complete()) {
      std::vector<std::int64_t> total(together.shape().size());
      for (const auto& [first, last] : {std::pair(200, 300), {0, 7}, {7, 200}})
        add_counts(total, counted(together.shape(), data,
                                  range(static_cast<std::size_t>(first), static_cast<std::size_t>(last)),
                                  together.edges()));
      CHECK(check_counts(together.shape(), total, 300));
      together.take(total);
    }
    const auto alone = statistics_of(info_of(rows), data, range(0, 300));
    REQUIRE(alone);
    CHECK(together.edges() == alone->edges());
    std::vector<std::int64_t> sums = alone->sums();
    sums[Counting::kClients] = 3;
    CHECK(together.sums() == sums);
    CHECK(together.normalisation() == alone->normalisation());
    CHECK(together.result().clients == 3);
  }
}

TEST_CASE("statistics: counts, means and deviations are those of the values") {
  const Dataset data = data_of(500);
  const auto statistics = statistics_of(info_of(), data, range(0, 500));
  REQUIRE(statistics);
  const DataStatistics result = statistics->result();
  CHECK(result.samples == 500);
  REQUIRE(result.labels.size() == 2);
  CHECK(result.labels[0].name == "no");
  CHECK(result.labels[0].count == 333);
  CHECK(result.labels[1].count == 167);
  REQUIRE(result.columns.size() == 2);
  for (std::size_t c = 0; c < 2; ++c) {
    const ColumnStatistics& column = result.columns[c];
    double count = 0;
    double sum = 0;
    double least = 1e30;
    double most = -1e30;
    for (std::size_t i = 2 * c; i < 1500; i += 3)
      if (const double value = data.floats.data()[i]; !std::isnan(value)) {
        ++count;
        sum += value;
        least = std::min(least, value);
        most = std::max(most, value);
      }
    const double mean = sum / count;
    double squares = 0;
    for (std::size_t i = 2 * c; i < 1500; i += 3)
      if (const double value = data.floats.data()[i]; !std::isnan(value))
        squares += (value - mean) * (value - mean);
    CHECK(column.name == info_of().columns.names[c]);
    CHECK(static_cast<double>(column.count) == count);
    CHECK(static_cast<double>(column.missing) == 500 - count);
    CHECK(std::abs(column.mean - mean) <= column.mean_error);
    CHECK(std::abs(column.deviation - std::sqrt(squares / count)) <= 2 * column.mean_error);
    CHECK(column.mean_error < 1e-4 * (most - least));
    CHECK(column.minimum->value <= least);
    CHECK(column.minimum->value + column.minimum->error >= least);
    CHECK(column.maximum->value >= most);
    CHECK(column.maximum->value - column.maximum->error <= most);
  }
}

TEST_CASE("statistics: normalised columns have mean 0 and deviation 1, and the missing are at the mean") {
  Dataset data = data_of(500);
  const auto statistics = statistics_of(info_of(), data, range(0, 500));
  REQUIRE(statistics);
  const Dataset before = data_of(500);
  normalise(data.columns, statistics->normalisation(), data.floats.span());
  double sum = 0;
  double squares = 0;
  double count = 0;
  for (std::size_t i = 0; i < 1500; ++i) {
    const float value = data.floats.data()[i];
    REQUIRE(std::isfinite(value));
    if (i % 3 == 1) CHECK(value == 1);  // not a number of a column
    if (i % 3 == 1) continue;
    if (std::isnan(before.floats.data()[i])) {
      CHECK(value == 0);
    } else if (i % 3 == 0) {
      sum += value;
      squares += static_cast<double>(value) * value;
      ++count;
    }
  }
  CHECK(std::abs(sum / count) < 1e-3);
  CHECK(std::abs(squares / count - 1) < 1e-3);
}

TEST_CASE("statistics: a column of equal values, and one without values") {
  Dataset data = data_of(20);
  for (std::size_t i = 0; i < 60; i += 3) data.floats.data()[i] = -7;
  for (std::size_t i = 2; i < 60; i += 3) data.floats.data()[i] = kMissing;
  const auto statistics = statistics_of(info_of(), data, range(0, 20));
  REQUIRE(statistics);
  const Normalisation by = statistics->normalisation();
  CHECK(std::abs(by.mean[0] + 7) < 1e-4);
  CHECK(by.deviation[0] == 1);
  CHECK(by.mean[1] == 0);
  CHECK(by.deviation[1] == 1);
  CHECK(statistics->result().columns[1].count == 0);
  CHECK(statistics->result().columns[1].missing == 20);
  CHECK_FALSE(statistics->result().columns[1].median);
}

TEST_CASE("statistics: sums that no samples have are refused") {
  const Dataset data = data_of(50);
  const FederatedStatistics statistics = created(info_of());
  const Counting shape = statistics.shape();
  const std::vector<std::int64_t> good = counted(shape, data, range(0, 50), statistics.edges());
  const auto refused = [&](auto&& change, std::uint64_t most = 50) {
    std::vector<std::int64_t> sums = good;
    change(sums);
    const auto checked = check_counts(shape, sums, most);
    return checked ? std::string("accepted") : checked.error().message;
  };
  CHECK(refused([](auto&) {}) == "accepted");
  CHECK(contains(refused([](auto& sums) { sums.pop_back(); }), "expected"));
  CHECK(contains(refused([](auto& sums) { sums.back() = -1; }), "no samples can have"));
  CHECK(contains(refused([](auto& sums) { sums[3] = INT64_MAX; }), "no samples can have"));
  CHECK(contains(refused([](auto&) {}, 49), "at most 49"));
  CHECK(contains(refused([](auto& sums) { sums[Counting::kClients] = 51; }), "more clients than samples"));
  CHECK(contains(refused([](auto& sums) { sums[Counting::kClients] = 0; }), "without a client"));
  CHECK(contains(refused([](auto& sums) { ++sums[Counting::kLabels]; }), "labels"));
  CHECK(contains(refused([&](auto& sums) { ++sums[shape.column(1) + Counting::kMissing]; }),
                 "values of a column"));
  CHECK(contains(refused([&](auto& sums) { ++sums[shape.column(0) + Counting::kBins]; }),
                 "values of a column"));
  CHECK(contains(refused([&](auto& sums) { sums[shape.column(0) + Counting::kSum] = 51 * Counting::kUnits; }),
                 "larger than its values"));
  CHECK(contains(refused([&](auto& sums) {
                   sums[shape.column(1) + Counting::kSquares] = 51 * Counting::kUnits * Counting::kUnits;
                 }),
                 "larger than its values"));
}

TEST_CASE("statistics: edges that do not fit are refused, and so are too many columns") {
  const Dataset data = data_of(5);
  const FederatedStatistics statistics = created(info_of());
  std::vector<float> edges = statistics.edges();
  edges.pop_back();
  CHECK(contains(count_values(statistics.shape(), data, range(0, 5), edges).error().message,
                 "edges, expected"));
  edges = statistics.edges();
  std::swap(edges[3], edges[4]);
  CHECK(contains(count_values(statistics.shape(), data, range(0, 5), edges).error().message,
                 "of column age are not ascending"));

  DatasetInfo info = info_of();
  const auto columns = [&](std::size_t count) {
    info.columns = {.period = count};
    for (std::size_t c = 0; c < count; ++c) {
      info.columns.at.push_back(c);
      info.columns.names.push_back(std::to_string(c));
    }
    info.shape = {1, count, 1};
    return FederatedStatistics::create(info);
  };
  const std::size_t most = Counting::most_columns(2);
  REQUIRE(columns(most));
  CHECK(columns(most)->shape().bins == Counting::kLeastBins);
  CHECK(columns(most)->shape().size() <= Counting::kMostSums);
  REQUIRE_FALSE(columns(most + 1));
  CHECK(contains(columns(most + 1).error().message, "at most " + std::to_string(most)));
}

TEST_CASE("statistics: a completed state is taken up again, and that of other data is refused") {
  const auto statistics = statistics_of(info_of(), data_of(60), range(0, 60));
  REQUIRE(statistics);
  FederatedStatistics other = created(info_of());
  REQUIRE(other.restore(statistics->edges(), statistics->sums()));
  CHECK(other.complete());
  CHECK(other.normalisation() == statistics->normalisation());
  std::vector<float> few = statistics->edges();
  few.pop_back();
  CHECK(created(info_of()).restore(few, statistics->sums()).error().code == ErrorCode::kCorrupt);
  std::vector<std::int64_t> sums = statistics->sums();
  sums[Counting::kSamples] = 61;
  CHECK(created(info_of()).restore(statistics->edges(), sums).error().code == ErrorCode::kCorrupt);
}

}  // namespace fedge::learn
