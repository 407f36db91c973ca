#include "learn/statistics/federated_statistics.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "core/check.h"
#include "learn/statistics/shares.h"

namespace fedge::learn {
namespace {

using Shape = StatisticsShape;

// The largest sum; larger ones stay there.
constexpr std::int64_t kMostSum = std::int64_t{1} << 62;

void add(std::int64_t& sum, std::int64_t more) { sum = std::min(sum, kMostSum - more) + more; }

// Counts a column's value; NaN: it is missing.
void count(std::span<std::int64_t> sums, std::span<const float> edges, float value) {
  if (std::isnan(value)) return add(sums[Shape::kMissing], 1);
  add(sums[Shape::kBins + bin_of(edges, value)], 1);
  const double low = edges.front();
  const double distance = static_cast<double>(edges.back()) - low;
  const double share = distance > 0 ? std::clamp((static_cast<double>(value) - low) / distance, 0.0, 1.0) : 0;
  const std::int64_t units = std::llround(share * static_cast<double>(Shape::kUnits));
  add(sums[Shape::kSum], units);
  add(sums[Shape::kSquares], units * units);
}

void count_labels(const Shape& shape, const Dataset& data, std::size_t sample, std::span<std::int64_t> sums) {
  const Targets& targets = data.targets;
  switch (data.target().kind) {
    case TargetKind::kClass:
      return add(sums[data.labels[sample]], 1);
    case TargetKind::kPoints:
      for (std::size_t i = 0; i < shape.points; ++i) add(sums[targets.points[sample * shape.points + i]], 1);
      return;
    case TargetKind::kLabels:
      for (std::size_t k = 0; k < shape.labels; ++k)
        add(sums[k], targets.values[sample * shape.labels + k] > 0 ? 1 : 0);
      return;
    case TargetKind::kValues:
      return;
  }
}

Error wrong(const std::string& what) { return invalid("the statistics " + what); }

// Mean and deviation of a column, in units of its sums.
struct Moments {
  double count = 0;
  double mean = 0;
  double deviation = 0;
};

Moments moments_of(std::span<const std::int64_t> sums) {
  const auto bins = sums.subspan(Shape::kBins);
  Moments moments{.count = static_cast<double>(std::accumulate(bins.begin(), bins.end(), std::int64_t{0}))};
  if (moments.count == 0) return moments;
  moments.mean = static_cast<double>(sums[Shape::kSum]) / moments.count;
  const double squares = static_cast<double>(sums[Shape::kSquares]) / moments.count;
  moments.deviation = std::sqrt(std::max(squares - moments.mean * moments.mean, 0.0));
  return moments;
}

// A quantile whose rank may be off by this share of all ranks.
Estimate quantile_within(std::span<const float> edges, std::span<const std::int64_t> counts, double q,
                         double ranks) {
  Estimate estimate = quantile(edges, counts, q);
  if (ranks == 0) return estimate;
  const double low = quantile(edges, counts, std::max(q - ranks, 0.0)).value;
  const double high = quantile(edges, counts, std::min(q + ranks, 1.0)).value;
  estimate.error += std::max(estimate.value - low, high - estimate.value);
  return estimate;
}

}  // namespace

std::size_t StatisticsShape::most_columns(std::size_t labels) {
  return (kMostSums - kLabels - labels) / (kBins + kLeastBins);
}

StatisticsShape StatisticsShape::of(const DatasetInfo& info, std::int64_t whole) {
  const TargetShape target = info.target();
  const bool counted = target.kind != TargetKind::kValues && target.outputs <= kMostLabels;
  StatisticsShape shape{.columns = info.columns.size(),
                        .features = info.columns.features(),
                        .labels = counted ? target.outputs : 0,
                        .points = target.kind == TargetKind::kLabels ? 0 : target.points,
                        .rows = info.shape.size() / info.columns.period,
                        .whole = whole};
  if (shape.columns == 0 || shape.columns > most_columns(shape.labels)) return shape;
  const std::size_t each = (kMostSums - kLabels - shape.labels) / shape.columns;
  shape.bins = std::min(whole > 0 ? kSharedBins : kMostBins, each - kBins) / 2 * 2;
  return shape;
}

StatisticsShape StatisticsShape::of_clients() const {
  StatisticsShape shape = *this;
  shape.rows = 1;
  shape.points = std::min<std::size_t>(points, 1);
  return shape;
}

Result<std::vector<std::int64_t>> count_values(const Shape& shape, const Dataset& data,
                                               std::span<const std::uint32_t> samples,
                                               std::span<const float> edges) {
  if (edges.size() != shape.columns * (shape.bins + 1))
    return invalid("the task of statistics has " + std::to_string(edges.size()) + " edges, expected " +
                   std::to_string(shape.columns * (shape.bins + 1)));
  for (std::size_t c = 0; c < shape.columns; ++c)
    if (const auto own = edges.subspan(c * (shape.bins + 1), shape.bins + 1); !std::ranges::is_sorted(own))
      return invalid("the edges of the bins of column " + data.columns.name(c) + " are not ascending");
  std::vector<std::int64_t> sums(shape.size());
  if (samples.empty()) return sums;
  sums[Shape::kClients] = 1;
  sums[Shape::kSamples] = static_cast<std::int64_t>(samples.size());
  std::vector<float> inputs(data.shape.size());
  const auto count_in = [&](std::size_t c, float value) {
    count(std::span(sums).subspan(shape.column(c), Shape::kBins + shape.bins),
          edges.subspan(c * (shape.bins + 1), shape.bins + 1), value);
  };
  for (const std::uint32_t sample : samples) {
    if (shape.labels > 0) count_labels(shape, data, sample, std::span(sums).subspan(Shape::kLabels));
    data.read_inputs(sample, inputs);
    for (std::size_t c = 0; c < shape.features; ++c)
      for (std::size_t at = data.columns.at[c]; at < inputs.size(); at += data.columns.period)
        count_in(c, inputs[at]);
    for (std::size_t c = shape.features; c < shape.columns; ++c)
      count_in(c, data.targets.values[sample * data.targets.shape.outputs + c - shape.features]);
  }
  return sums;
}

Result<void> check_counts(const Shape& shape, std::span<const std::int64_t> sums, std::uint64_t most) {
  if (sums.size() != shape.size())
    return wrong("have " + std::to_string(sums.size()) + " sums, expected " + std::to_string(shape.size()));
  for (const std::int64_t sum : sums)
    if (sum < 0 || sum > kMostSum) return wrong("have a sum that no samples can have");
  const auto total = [](std::span<const std::int64_t> counts) {
    std::int64_t sum = 0;
    for (const std::int64_t one : counts) add(sum, one);
    return sum;
  };
  const std::int64_t samples = sums[Shape::kSamples];
  if (static_cast<std::uint64_t>(samples) > most)
    return wrong("are of " + std::to_string(samples) + " samples, but at most " + std::to_string(most) +
                 " are possible");
  if (sums[Shape::kClients] > samples) return wrong("are of more clients than samples");
  if ((sums[Shape::kClients] == 0) != (samples == 0)) return wrong("are of samples without a client");
  const auto labels = sums.subspan(Shape::kLabels, shape.labels);
  if (shape.points == 0 && std::ranges::any_of(labels, [&](std::int64_t count) { return count > samples; }))
    return wrong("have more of a label than samples");
  if (shape.points > 0 && shape.labels > 0 &&
      static_cast<double>(total(labels)) != static_cast<double>(samples) * static_cast<double>(shape.points))
    return wrong("have more or fewer labels than samples");
  for (std::size_t c = 0; c < shape.columns; ++c) {
    const auto own = sums.subspan(shape.column(c), Shape::kBins + shape.bins);
    const std::int64_t present = total(own.subspan(Shape::kBins));
    const auto values = static_cast<double>(samples) * static_cast<double>(shape.values(c));
    if (static_cast<double>(present) + static_cast<double>(own[Shape::kMissing]) != values)
      return wrong("have more or fewer values of a column than samples");
    const double most_sum = static_cast<double>(present) * static_cast<double>(Shape::kUnits);
    if (static_cast<double>(own[Shape::kSum]) > most_sum ||
        static_cast<double>(own[Shape::kSquares]) > most_sum * static_cast<double>(Shape::kUnits))
      return wrong("have a sum of values that is larger than its values");
  }
  return {};
}

void add_counts(std::span<std::int64_t> total, std::span<const std::int64_t> more) {
  for (std::size_t i = 0; i < total.size(); ++i) add(total[i], more[i]);
}

FederatedStatistics::FederatedStatistics(const Shape& shape, const DatasetInfo& info, double deviation)
    : shape_(shape), deviation_(deviation), label_names_(info.class_names) {
  for (std::size_t c = 0; c < shape_.columns; ++c) names_.push_back(info.columns.name(c));
  for (std::size_t c = 0; c < shape_.columns; ++c) slots_.push_back(info.columns.slots_of(c));
  const Edges first = first_edges(shape_.bins);
  for (std::size_t c = 0; c < shape_.columns; ++c) edges_.insert(edges_.end(), first.begin(), first.end());
}

Result<FederatedStatistics> FederatedStatistics::create(const DatasetInfo& info, const ShareNoise& noise) {
  const Shape shape = Shape::of(info, noise.whole);
  if (shape.bins > 0) return FederatedStatistics(shape, info, noise.deviation);
  if (shape.columns == 0) return invalid("the data has no numeric columns");
  return invalid("the data has " + std::to_string(shape.columns) +
                 " numeric columns; statistics of at most " +
                 std::to_string(Shape::most_columns(shape.labels)) + " are supported");
}

std::span<const float> FederatedStatistics::edges_of(std::size_t c) const {
  return std::span(edges_).subspan(c * (shape_.bins + 1), shape_.bins + 1);
}

std::span<const std::int64_t> FederatedStatistics::counts_of(std::size_t c) const {
  return std::span(sums_).subspan(shape_.column(c) + Shape::kBins, shape_.bins);
}

void FederatedStatistics::take(std::span<const std::int64_t> sums) {
  FEDGE_CHECK(!complete() && sums.size() == shape_.size(), "the sums of a step");
  sums_.assign(sums.begin(), sums.end());
  if (++steps_ == Shape::kSteps) return;
  std::vector<float> finer;
  for (std::size_t c = 0; c < shape_.columns; ++c) {
    const auto own = edges_of(c);
    const Edges next = divided(Edges(own.begin(), own.end()), counts_of(c),
                               slots_[c] > 0 ? Divide::kEvenly : Divide::kByCount);
    finer.insert(finer.end(), next.begin(), next.end());
  }
  edges_ = std::move(finer);
}

Result<void> FederatedStatistics::take_noisy(std::span<const std::int64_t> shares) {
  // The first bins are so wide that the values are well inside.
  const StepEdges step{.edges = edges_, .widens = steps_ == 1};
  FEDGE_TRY(counts, without_noise(shape_, shares, deviation_, step, names_));
  take(counts);
  return {};
}

Result<void> FederatedStatistics::restore(std::vector<float> edges, std::vector<std::int64_t> sums) {
  const bool ascending = edges.size() == edges_.size() &&
                         std::ranges::all_of(edges, [](float edge) { return std::isfinite(edge); });
  if (!ascending || !check_counts(shape_.whole > 0 ? shape_.of_clients() : shape_, sums, INT64_MAX))
    return Error{ErrorCode::kCorrupt, "the checkpoint has statistics of other data"};
  edges_ = std::move(edges);
  sums_ = std::move(sums);
  steps_ = Shape::kSteps;
  return {};
}

ColumnStatistics FederatedStatistics::column(std::size_t c) const {
  const auto sums = std::span(sums_).subspan(shape_.column(c), Shape::kBins + shape_.bins);
  const Moments moments = moments_of(sums);
  const std::span<const float> edges = edges_of(c);
  const double unit = (static_cast<double>(edges.back()) - static_cast<double>(edges.front())) /
                      static_cast<double>(Shape::kUnits);
  ColumnStatistics column{.name = names_[c],
                          .count = shown(static_cast<std::int64_t>(moments.count)),
                          .missing = shown(sums[Shape::kMissing])};
  if (slots_[c] > 0) {
    for (const std::size_t bin : agreed_bins(c)) column.agreed.push_back(shown(counts_of(c)[bin]));
    return column;
  }
  if (moments.count == 0) return column;
  const double noise = kLikelyNoise * deviation_ / moments.count;
  column.mean = edges.front() + moments.mean * unit;
  column.mean_error = unit / 2 + noise * std::sqrt(2.0) * unit * static_cast<double>(Shape::kUnits);
  column.deviation = moments.deviation * unit;
  const std::span<const std::int64_t> counts = counts_of(c);
  const auto last = static_cast<std::size_t>(
      std::find_if(counts.rbegin(), counts.rend(), [](std::int64_t n) { return n > 0; }).base() -
      counts.begin());
  const auto first = static_cast<std::size_t>(
      std::ranges::find_if(counts, [](std::int64_t n) { return n > 0; }) - counts.begin());
  column.minimum = Estimate{edges[first], static_cast<double>(edges[first + 1]) - edges[first]};
  column.maximum = Estimate{edges[last], static_cast<double>(edges[last]) - edges[last - 1]};
  const double ranks = noise * std::sqrt(static_cast<double>(shape_.bins));
  column.lower_quartile = quantile_within(edges, counts, 0.25, ranks);
  column.median = quantile_within(edges, counts, 0.5, ranks);
  column.upper_quartile = quantile_within(edges, counts, 0.75, ranks);
  return column;
}

// The bins of the most frequent names, in this order.
std::vector<std::size_t> FederatedStatistics::agreed_bins(std::size_t c) const {
  const auto counts = counts_of(c);
  std::vector<std::size_t> bins;
  for (std::size_t b = 0; b < counts.size(); ++b)
    // No name has a place below 0, whatever a client has counted.
    if (counts[b] > 0 && edges_of(c)[b + 1] > 0) bins.push_back(b);
  std::ranges::stable_sort(bins, std::greater<>(), [&](std::size_t b) { return counts[b]; });
  bins.resize(std::min(bins.size(), slots_[c]));
  return bins;
}

// A count as people read it.
std::uint64_t FederatedStatistics::shown(std::int64_t count) const {
  const std::int64_t unit = std::max<std::int64_t>(shape_.whole, 1);
  return static_cast<std::uint64_t>((count + unit / 2) / unit);
}

DataStatistics FederatedStatistics::result() const {
  FEDGE_CHECK(complete(), "statistics that are known");
  DataStatistics result{.clients = static_cast<std::uint64_t>(sums_[Shape::kClients]),
                        .samples = shape_.whole > 0 ? 0 : static_cast<std::uint64_t>(sums_[Shape::kSamples])};
  for (std::size_t k = 0; k < shape_.labels; ++k)
    result.labels.push_back(
        {label_names_.empty() ? std::to_string(k) : label_names_[k], shown(sums_[Shape::kLabels + k])});
  for (std::size_t c = 0; c < shape_.columns; ++c) result.columns.push_back(column(c));
  return result;
}

Normalisation FederatedStatistics::normalisation() const {
  FEDGE_CHECK(complete(), "statistics that are known");
  Normalisation by;
  for (std::size_t c = 0; c < shape_.columns; ++c) {
    const ColumnStatistics one = column(c);
    const auto deviation = static_cast<float>(one.deviation);
    by.mean.push_back(static_cast<float>(one.mean));
    by.deviation.push_back(std::isnormal(deviation) ? deviation : 1.0F);
  }
  for (std::size_t c = 0; c < shape_.columns; ++c) {
    std::vector<std::size_t> bins = agreed_bins(c);
    for (std::size_t i = 0; i < slots_[c]; ++i) {
      // A slot without a name has no places.
      by.mean.push_back(i < bins.size() ? edges_of(c)[bins[i]] : 1.0F);
      by.deviation.push_back(i < bins.size() ? edges_of(c)[bins[i] + 1] : 1.0F);
    }
  }
  return by;
}

Result<FederatedStatistics> statistics_of(const DatasetInfo& info, const Dataset& data,
                                          std::span<const std::uint32_t> samples) {
  FEDGE_TRY(statistics, FederatedStatistics::create(info));
  while (!statistics.complete()) {
    FEDGE_TRY(sums, count_values(statistics.shape(), data, samples, statistics.edges()));
    statistics.take(sums);
  }
  return statistics;
}

}  // namespace fedge::learn
