// FederatedStatistics: the mean, deviation, extremes and quantiles of each numeric column over the training
// samples of all clients, and their labels, from integers that add up (compare EvaluationSums). The clients
// count three times: each time the bins are narrower, and after the last the statistics are known. They do
// not depend on the order of the clients, or on which client has which samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"
#include "learn/data/dataset.h"
#include "learn/statistics/bins.h"
#include "learn/statistics/columns.h"

namespace fedge::learn {

// What is counted, and where in the sums.
struct StatisticsShape {
  static constexpr std::size_t kSteps = 3;
  static constexpr std::size_t kMostSums = 8000;
  static constexpr std::size_t kMostBins = 256;
  static constexpr std::size_t kLeastBins = 16;
  static constexpr std::size_t kSharedBins = 64;    // most bins of counts as shares: each bin has its noise
  static constexpr std::size_t kMostLabels = 2000;  // with more classes, labels are not counted
  // A sum of values counts in units of 2^-15 of the distance between the outermost edges.
  static constexpr std::int64_t kUnits = std::int64_t{1} << 15;
  static constexpr std::size_t kClients = 0;
  static constexpr std::size_t kSamples = 1;
  static constexpr std::size_t kLabels = 2;
  static constexpr std::size_t kMissing = 0;  // of the sums of a column
  static constexpr std::size_t kSum = 1;
  static constexpr std::size_t kSquares = 2;
  static constexpr std::size_t kBins = 3;

  std::size_t columns = 0;
  std::size_t features = 0;  // the first of them, which are features
  std::size_t labels = 0;    // classes that are counted
  std::size_t points = 1;    // labels of a sample; 0: any number of different ones
  std::size_t rows = 1;      // values of each feature in a sample
  std::size_t bins = 0;      // of each column, even; 0: there are too many columns
  std::int64_t whole = 0;    // each client's counts are shares of this (shares.h); 0: they are counts

  static StatisticsShape of(const DatasetInfo& info, std::int64_t whole = 0);
  // The largest number of columns with these counted labels.
  static std::size_t most_columns(std::size_t labels);
  std::size_t size() const { return kLabels + labels + columns * (kBins + bins); }
  std::size_t column(std::size_t c) const { return kLabels + labels + c * (kBins + bins); }
  // The shape of counts in which each client, whole many times, has one value of each column and one label.
  StatisticsShape of_clients() const;
  // Values of a column in a sample.
  std::size_t values(std::size_t c) const { return c < features ? rows : 1; }
  bool operator==(const StatisticsShape&) const = default;
};

// Returns the sums of these samples, which a client counts. `edges` has bins + 1 edges of each column.
// kInvalid if they are not ascending, or not as many.
Result<std::vector<std::int64_t>> count_values(const StatisticsShape& shape, const Dataset& data,
                                               std::span<const std::uint32_t> samples,
                                               std::span<const float> edges);

// kInvalid if no samples can have these sums: another number of sums, a negative one, or sums that contradict
// each other. `most`: the largest possible number of samples.
Result<void> check_counts(const StatisticsShape& shape, std::span<const std::int64_t> sums,
                          std::uint64_t most);

// Adds the sums of others; one too large for its integer stays at the largest.
void add_counts(std::span<std::int64_t> total, std::span<const std::int64_t> more);

// ColumnStatistics describes one column over all clients. With noise, a client counts as one value, and
// an error is three standard deviations of the noise; it does not cover what the noise hides.
struct ColumnStatistics {
  std::string name;
  std::uint64_t count = 0;  // values that are not missing
  std::uint64_t missing = 0;
  // The values' mean is right within mean_error, apart from the error of floating point.
  double mean = 0;
  double mean_error = 0;
  double deviation = 0;
  // The outermost edges of the bins with values, and quantiles. Absent if there are no values.
  std::optional<Estimate> minimum;
  std::optional<Estimate> lower_quartile;
  std::optional<Estimate> median;
  std::optional<Estimate> upper_quartile;
  std::optional<Estimate> maximum;
  // Has, for a column of names, the number of values of each agreed name, the most frequent first. Nobody but
  // the clients knows the names. Its mean and deviation are 0.
  std::vector<std::uint64_t> agreed{};
};

struct DataStatistics {
  struct LabelCount {
    std::string name;         // the class's, or its number
    std::uint64_t count = 0;  // of samples, or of points that have a class each
  };
  std::uint64_t clients = 0;
  std::uint64_t samples = 0;         // 0: unknown, because each client counts once and there is noise
  std::vector<LabelCount> labels{};  // empty if they are not counted
  std::vector<ColumnStatistics> columns{};
};

// Counts as shares of this whole, with noise of this standard deviation on each total of all clients.
struct ShareNoise {
  std::int64_t whole = 0;  // 0: there is no noise, and counts are counts
  double deviation = 0;
};

class FederatedStatistics {
 public:
  // `columns` are those of the data set; kInvalid if there are too many.
  static Result<FederatedStatistics> create(const DatasetInfo& info, const ShareNoise& noise = {});

  const StatisticsShape& shape() const { return shape_; }
  // Steps that are done.
  std::size_t steps() const { return steps_; }
  bool complete() const { return steps_ == StatisticsShape::kSteps; }
  // The edges of the next step, or after the last step of that one; of one column after the other.
  const std::vector<float>& edges() const { return edges_; }
  // Ends a step with the sums of all clients, which check_counts() has accepted.
  void take(std::span<const std::int64_t> sums);
  // Ends a step with the shares of all clients and noise. kInvalid if the noise hides a column.
  Result<void> take_noisy(std::span<const std::int64_t> shares);
  // Of the last step. Empty before.
  const std::vector<std::int64_t>& sums() const { return sums_; }
  // Takes up a completed state. kCorrupt if it does not fit.
  Result<void> restore(std::vector<float> edges, std::vector<std::int64_t> sums);

  // These two need complete().
  DataStatistics result() const;
  // A column of equal values has the deviation 1, and one without values also the mean 0. The most frequent
  // names get the slots of their column.
  Normalisation normalisation() const;

 private:
  FederatedStatistics(const StatisticsShape& shape, const DatasetInfo& info, double deviation);
  ColumnStatistics column(std::size_t c) const;
  std::uint64_t shown(std::int64_t count) const;
  std::vector<std::size_t> agreed_bins(std::size_t c) const;
  std::span<const float> edges_of(std::size_t c) const;
  std::span<const std::int64_t> counts_of(std::size_t c) const;

  StatisticsShape shape_;
  double deviation_;  // of the noise on a sum
  std::vector<std::string> names_;
  std::vector<std::size_t> slots_;  // of each column; 0: it has numbers
  std::vector<std::string> label_names_;
  std::size_t steps_ = 0;
  std::vector<float> edges_;
  std::vector<std::int64_t> sums_;
};

// The statistics of samples that are all here; the same as those of clients who have them.
Result<FederatedStatistics> statistics_of(const DatasetInfo& info, const Dataset& data,
                                          std::span<const std::uint32_t> samples);

}  // namespace fedge::learn
