#include "privacy/secure_aggregation/graph_parameters.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>
#include <string>

namespace fedge::privacy {
namespace {

// Each of the two insecure events gets half of the probability.
constexpr double kLogInsecure = -41 * std::numbers::ln2;
constexpr double kLogStuck = -20 * std::numbers::ln2;
// Against rounding errors, which would make 0.3 * 10 less than 3 and 0.7 * 10 more than 7.
constexpr double kSlack = 1e-14;

double log_choose(double n, double k) {
  if (k < 0 || k > n) return -std::numeric_limits<double>::infinity();
  return std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1);
}

// Distribution of the number of hits: `drawn` members are drawn from `members`, of whom `marked` are hits.
struct Hypergeometric {
  double members;
  double marked;
  std::uint32_t drawn;

  double probability(std::uint32_t hits) const {
    return std::exp(log_choose(marked, hits) + log_choose(members - marked, drawn - hits) -
                    log_choose(members, drawn));
  }
  // The least x such that P(hits > x) is below this probability.
  std::uint32_t most(double probability_of_more) const {
    double tail = 0;
    std::uint32_t x = drawn;
    while (x > 0 && tail + probability(x) < probability_of_more) tail += probability(x--);
    return x;
  }
  // The largest x such that P(hits < x) is below this probability.
  std::uint32_t least(double probability_of_fewer) const {
    double tail = 0;
    std::uint32_t x = 0;
    while (x < drawn && tail + probability(x) < probability_of_fewer) tail += probability(x++);
    return x;
  }
};

// Bounds the log-probability that the ring is cut in two: that degree / 2 members in a row are corrupt or
// dropped out at two places.
double log_disconnected(std::uint32_t members, std::uint32_t degree, const GraphAssumptions& assumptions) {
  const double bad = at_most(assumptions.corrupt, members) + at_most(assumptions.dropout, members);
  if (degree > bad) return -std::numeric_limits<double>::infinity();
  const double n = members;
  const double pairs_of_gaps = std::log(n) + std::log(n - degree - 1) - std::numbers::ln2;
  return pairs_of_gaps + log_choose(bad, degree) - log_choose(n, degree);
}

std::uint32_t least_threshold(std::uint32_t members, std::uint32_t degree,
                              const GraphAssumptions& assumptions) {
  const Hypergeometric corrupt{static_cast<double>(members),
                               static_cast<double>(at_most(assumptions.corrupt, members)), degree};
  const double most = corrupt.most(std::exp(kLogInsecure) / members);
  // With the + 1 below, this is the least integer above (most + degree) / 2, whether the sum is odd or even.
  const double needed =
      assumptions.adversary == Adversary::kCurious ? most : std::ceil((most + degree - 1.25) / 2);
  return static_cast<std::uint32_t>(needed + 1);
}

std::optional<std::uint32_t> threshold_for(std::uint32_t members, std::uint32_t degree,
                                           const GraphAssumptions& assumptions) {
  if (log_disconnected(members, degree, assumptions) >= kLogInsecure) return std::nullopt;
  const std::uint32_t threshold = least_threshold(members, degree, assumptions);
  const auto surviving = static_cast<std::uint32_t>(std::ceil((1 - assumptions.dropout - kSlack) * members));
  const Hypergeometric alive{static_cast<double>(members), static_cast<double>(surviving), degree};
  if (threshold > alive.least(std::exp(kLogStuck) / members)) return std::nullopt;
  // At least two shares are required. The bounds above ignore the second share where one would do, as
  // published; this happens only with about a dozen members.
  return std::max(threshold, 2U);
}

std::string percent(double share) {
  return std::to_string(static_cast<int>(std::lround(share * 100))) + " %";
}

}  // namespace

std::uint32_t at_most(double share, std::uint32_t members) {
  return static_cast<std::uint32_t>(std::floor((share + kSlack) * members));
}

Result<GraphParameters> sparse_graph(std::uint32_t members, const GraphAssumptions& assumptions) {
  for (std::uint32_t degree = 2; degree + 1 < members; degree += 2)
    if (const auto threshold = threshold_for(members, degree, assumptions))
      return GraphParameters{.degree = degree, .threshold = *threshold, .complete = false};
  return invalid("no mask graph of " + std::to_string(members) + " clients is secure if " +
                 percent(assumptions.corrupt) + " of the clients are corrupt and " +
                 percent(assumptions.dropout) + " drop out");
}

GraphParameters complete_graph(std::uint32_t members) {
  return {.degree = members - 1, .threshold = 2 * members / 3 + 1, .complete = true};
}

Result<void> check_secure(std::uint32_t members, const GraphParameters& graph,
                          const GraphAssumptions& assumptions) {
  const auto refused = [](const std::string& what) { return Error{ErrorCode::kRefused, what}; };
  if (graph.complete) {
    const std::uint32_t least = complete_graph(members).threshold;
    if (graph.degree != members - 1)
      return refused("the mask graph is declared complete, but not all clients are neighbours in it");
    if (graph.threshold < least || graph.threshold > members)
      return refused("the mask graph has a threshold of " + std::to_string(graph.threshold) + " among " +
                     std::to_string(members) + " clients; at least " + std::to_string(least) + " are needed");
    return {};
  }
  if (graph.degree % 2 != 0 || graph.degree < 2 || graph.degree + 1 > members)
    return refused("a client cannot have " + std::to_string(graph.degree) +
                   " neighbours in a mask graph of " + std::to_string(members) + " clients");
  if (log_disconnected(members, graph.degree, assumptions) >= kLogInsecure)
    return refused("a client has only " + std::to_string(graph.degree) +
                   " neighbours in the mask graph, too few for " + std::to_string(members) + " clients");
  const std::uint32_t least = std::max(least_threshold(members, graph.degree, assumptions), 2U);
  if (graph.threshold < least || graph.threshold > graph.degree)
    return refused("the mask graph has a threshold of " + std::to_string(graph.threshold) + " of " +
                   std::to_string(graph.degree) + " neighbours; at least " + std::to_string(least) +
                   " are needed");
  return {};
}

}  // namespace fedge::privacy
