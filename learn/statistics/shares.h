// Shares: a client's counts as shares of a whole, so that every client counts once, whatever its number of
// samples. One client can therefore change only so much, and noise on the total of all clients hides it:
// federated statistics with differential privacy. The totals with noise are post-processed into counts that
// samples could have. The construction is our own: adaptive histograms as in bins.h, with the Gaussian
// mechanism on each step.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/result.h"
#include "learn/statistics/federated_statistics.h"

namespace fedge::learn {

// Noise is at most this many standard deviations in 99.7 % of all draws.
inline constexpr double kLikelyNoise = 3;

// The Euclidean norm of a client's shares is at most this many wholes.
double share_norm(const StatisticsShape& shape);

// Returns a client's counts as shares of shape.whole, rounded so that the norm holds. The counts are of at
// least one sample, and check_counts() accepts them.
std::vector<std::int64_t> shares_of(const StatisticsShape& shape, std::span<const std::int64_t> counts);

// kInvalid if one client cannot have these shares.
Result<void> check_shares(const StatisticsShape& shape, std::span<const std::int64_t> shares);

// The edges of the bins of a step, of one column after the other.
struct StepEdges {
  std::span<const float> edges;
  bool widens = false;  // the next step's bins begin and end beyond those that stand out of the noise
};

// The counts, in units of 1 / shape.whole of a client, that explain a total of shares with noise of this
// standard deviation, whatever it is; check_counts() accepts them for shape.of_clients(). Bins far from those
// with values that the noise does not hide are empty. kInvalid if it hides a whole column; `names` has its
// name.
Result<std::vector<std::int64_t>> without_noise(const StatisticsShape& shape,
                                                std::span<const std::int64_t> shares, double deviation,
                                                const StepEdges& step, std::span<const std::string> names);

}  // namespace fedge::learn
