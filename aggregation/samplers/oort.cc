#include "aggregation/samplers/oort.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "aggregation/samplers/systematic.h"
#include "aggregation/samplers/uniform.h"

namespace fedge::aggregation {
namespace {

constexpr double kMaxOortUtility = 1e60;  // keeps the sum of a round finite
constexpr double kUtilityFloor = 1e-9;    // fraction of the largest: every client in the draw is possible

// The quantile at `part`, computed as in the authors' code; `values` is not empty.
double quantile(std::vector<double> values, double part) {
  const auto place =
      std::min(static_cast<std::size_t>(static_cast<double>(values.size()) * part), values.size() - 1);
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(place);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

// Draws `count` of the tried candidates, in proportion to utility among the best.
std::vector<Selected> exploit(std::span<const Candidate> tried, std::span<const double> utilities,
                              std::size_t count, double cut_off, Rng rng) {
  if (count == 0) return {};
  std::vector<double> sorted(utilities.begin(), utilities.end());
  const auto last = sorted.begin() + static_cast<std::ptrdiff_t>(count - 1);
  std::nth_element(sorted.begin(), last, sorted.end(), std::greater<>());
  const double least = cut_off * *last;
  const double largest = *std::max_element(utilities.begin(), utilities.end());
  std::vector<double> weights;
  weights.reserve(utilities.size());
  for (const double utility : utilities) {
    const double weight = largest > 0 ? std::max(utility, kUtilityFloor * largest) : 1.0;
    weights.push_back(utility >= least ? weight : 0.0);
  }
  const std::vector<double> p = capped_proportional(weights, count);
  std::vector<Selected> selected;
  for (const std::size_t place : systematic_sample(p, rng))
    selected.push_back({tried[place].client, p[place]});
  return selected;
}

}  // namespace

double OortSampler::exploration(RoundNumber round) const {
  return std::max(options_.exploration_min,
                  options_.exploration * std::pow(options_.exploration_decay, round.value()));
}

// Looks up the records of candidates; candidates and records_ are both sorted by client.
std::vector<const OortSampler::Record*> OortSampler::records(std::span<const Candidate> candidates) const {
  std::vector<const Record*> found;
  found.reserve(candidates.size());
  // Walks along both, unless few of the known clients are candidates.
  const bool few = candidates.size() < records_.size() / 32;
  auto entry = records_.begin();
  for (const Candidate& candidate : candidates) {
    if (few) entry = records_.lower_bound(candidate.client);
    while (entry != records_.end() && entry->first < candidate.client) ++entry;
    const bool known = entry != records_.end() && entry->first == candidate.client;
    found.push_back(known ? &entry->second : nullptr);
  }
  return found;
}

std::vector<double> OortSampler::utilities(std::span<const Candidate> candidates, RoundNumber round) const {
  return utilities(records(candidates), round);
}

std::vector<double> OortSampler::utilities(std::span<const Record* const> records, RoundNumber round) const {
  std::vector<double> result(records.size(), 0.0);
  std::vector<double> statistical;
  std::vector<double> times;
  for (const Record* record : records) {
    if (record == nullptr) continue;
    statistical.push_back(record->utility);
    times.push_back(record->seconds);
  }
  if (statistical.empty()) return result;
  const double lowest = *std::min_element(statistical.begin(), statistical.end());
  const double highest = quantile(std::move(statistical), options_.clip);
  const double preferred = time_quantile_ < 1 ? quantile(std::move(times), time_quantile_)
                                              : std::numeric_limits<double>::infinity();
  const double logarithm = std::log(static_cast<double>(std::max(round.value(), 1U)));
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (records[i] == nullptr) continue;
    double utility = std::min(records[i]->utility, highest);
    if (options_.range) utility = highest > lowest ? (utility - lowest) / (highest - lowest) : 1.0;
    utility += std::sqrt(0.1 * logarithm / static_cast<double>(std::max(records[i]->round.value(), 1U)));
    const double time = records[i]->seconds;
    if (time > preferred) utility *= std::pow(preferred / time, options_.penalty);
    result[i] = utility;
  }
  return result;
}

std::vector<Selected> OortSampler::select(const SelectionRequest& request) {
  pace(request.round);
  const std::size_t wanted = std::min(request.count, request.candidates.size());
  if (wanted == 0) return {};
  const std::vector<const Record*> known = records(request.candidates.all());
  const std::vector<double> all = utilities(known, request.round);
  std::vector<Candidate> tried;
  std::vector<Candidate> untried;
  std::vector<double> tried_utilities;
  for (std::size_t i = 0; i < known.size(); ++i) {
    (known[i] != nullptr ? tried : untried).push_back(request.candidates[i]);
    if (known[i] != nullptr) tried_utilities.push_back(all[i]);
  }
  const auto greedy =
      static_cast<std::size_t>((1 - exploration(request.round)) * static_cast<double>(wanted) + 1e-9);
  const std::size_t fewest = wanted > untried.size() ? wanted - untried.size() : 0;
  const std::size_t exploited = std::min(std::max(greedy, fewest), tried.size());
  std::vector<Selected> selected =
      exploit(tried, tried_utilities, exploited, options_.cut_off, request.rng.fork("exploit"));
  const std::vector<Selected> explored = UniformSampler().select({.round = request.round,
                                                                  .candidates = untried,
                                                                  .count = wanted - exploited,
                                                                  .rng = request.rng.fork("explore")});
  selected.insert(selected.end(), explored.begin(), explored.end());
  std::sort(selected.begin(), selected.end(),
            [](const Selected& a, const Selected& b) { return a.client < b.client; });
  return selected;
}

void OortSampler::remember(const Feedback& feedback) {
  if (!feedback.delivered) return;
  pace(feedback.round);
  const double loss = feedback.loss_rms > 0 ? feedback.loss_rms : feedback.loss;
  double utility = static_cast<double>(feedback.samples.value()) * loss;
  if (!std::isfinite(utility) || utility < 0) utility = 0;
  Record& record = records_[feedback.client];
  record = {std::min(utility, kMaxOortUtility), std::max(to_seconds(feedback.time), 0.0), feedback.round};
  delivered_ += record.utility;
}

void OortSampler::pace(RoundNumber round) {
  const std::uint32_t window = (std::max(round.value(), 1U) - 1) / options_.pacer_rounds;
  if (window <= window_) return;
  // Compares only consecutive windows: a skipped window has no utility to compare with.
  const bool next_one = window == window_ + 1;
  if (next_one && before_ && *before_ > delivered_)
    time_quantile_ = std::min(1.0, time_quantile_ + options_.pacer_step);
  before_ = next_one ? std::optional(delivered_) : std::nullopt;
  delivered_ = 0;
  window_ = window;
}

SamplerFactory read_oort(config::Reader& section) {
  OortSampler::Options o;
  o.exploration = section.number(
      "exploration", o.exploration, {0.0, 1.0},
      "Fraction of a round's clients that are chosen among those that never delivered an update. Round "
      "R uses this value times exploration_decay^R.");
  o.exploration_decay =
      section.number("exploration_decay", o.exploration_decay, {0.0, 1.0},
                     "In every round, also in the first, exploration is multiplied by this factor.");
  o.exploration_min =
      section.number("exploration_min", o.exploration_min, {0.0, 1.0}, "Lower bound of exploration.");
  o.clip = section.number(
      "clip", o.clip, {0.0, 1.0},
      "Quantile of the statistical utilities. Utilities above this quantile are clipped to it.");
  o.cut_off = section.number("cut_off", o.cut_off, {0.0, 1.0},
                             "A client can be drawn if its utility is at least this fraction of the lowest "
                             "utility in a greedy selection.");
  o.penalty = section.number("penalty", o.penalty, {0.0, 100.0},
                             "Exponent alpha. The utility of a client that is slower than the preferred time "
                             "T is multiplied by (T / time)^penalty.");
  o.time_quantile = section.number(
      "time_quantile", o.time_quantile, {0.0, 1.0},
      "Initial preferred time T, as a quantile of the clients' times. 1: no client is too slow.");
  o.pacer_step = section.number(
      "pacer_step", o.pacer_step, {0.0, 1.0},
      "Amount added to time_quantile when a window of rounds yields less utility than the previous window.");
  o.pacer_rounds = static_cast<std::uint32_t>(section.integer(
      "pacer_rounds", o.pacer_rounds, {1, 1'000'000}, "Number of rounds in a window, for pacer_step."));
  o.range = section.choice("utility", {"paper", "range"}, 0,
                           "How the utility of a client is computed.\npaper: number of samples times root "
                           "mean square loss.\nrange: the same, scaled to the range 0 to 1 before the "
                           "staleness bonus is added, as in the authors' code.") == 1;
  return [o]() -> std::unique_ptr<Sampler> { return std::make_unique<OortSampler>(o); };
}

}  // namespace fedge::aggregation
