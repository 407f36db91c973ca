#include "aggregation/samplers/awpsp/aw_psp.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

namespace fedge::aggregation {
namespace {

constexpr std::uint32_t kOpenRounds = 16;  // rounds after which a task without a result is dropped
constexpr double kMaxLatency = 1e9;        // milliseconds
constexpr double kUtilityRange = 1e3;      // bound on a client's utility over the mean, and its reciprocal
constexpr float kMaxAwPspUtility = 1e30F;
constexpr double kRiskRounding = 1e-6;  // risks are kept as floats

double power(double base, double exponent) {
  if (exponent == 0) return 1;
  return exponent == 1 ? base : std::pow(base, exponent);
}

std::uint32_t saturated(SampleCount samples) {
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(samples.value(), std::numeric_limits<std::uint32_t>::max()));
}

// Bit k: a task of k rounds ago was not delivered. Rounds without a task, absence among them, do not count.
std::uint64_t undelivered(const Availability& past) { return past.failed & ~past.down; }

// True if the client is down, or its task of the previous round failed.
bool failed_now(const Availability& past) { return (past.down & 1) != 0 || (undelivered(past) & 2) != 0; }

// True if none of the client's last five tasks was delivered.
bool has_failed_often(const Availability& past) {
  return past.results == 0 && past.results_known == Availability::kMeanWindow;
}

// Labels that the client holds. A noisy count holds a label from half of an even share on.
LabelSet read_labels(const std::vector<double>& counts, bool noisy) {
  const std::size_t labels = std::min(counts.size(), LabelSet::kMaxLabels);
  const auto held = [](double count) { return std::isfinite(count) && count > 0; };
  double least = 0;
  if (noisy)
    for (std::size_t i = 0; i < labels; ++i)
      if (held(counts[i])) least += counts[i] / (2 * static_cast<double>(labels));
  LabelSet set;
  for (std::size_t i = 0; i < labels; ++i)
    if (held(counts[i]) && counts[i] >= least) set.add(i);
  return set;
}

}  // namespace

double freshness(RoundNumber now, RoundNumber last) {
  const double rounds = now.value();
  return last == RoundNumber() ? rounds + 1 : rounds - last.value();
}

void AwPspSampler::grow(std::size_t clients) {
  if (clients <= clients_.size()) return;
  clients_.resize(clients);
  if (options_.labels != protocol::LabelReport::kNone) labels_.resize(clients);
}

void AwPspSampler::forget(std::span<const ClientId> left) {
  for (const ClientId client : left) {
    if (client.value() >= clients_.size()) break;
    Client& state = clients_[client.value()];
    order_is_old_ = order_is_old_ || state.latency >= 0;
    state = {};
    asked_.erase(client.value());
    if (uses_labels()) labels_[client.value()] = {};
  }
}

void AwPspSampler::describe(ClientId client, const NodeRecord& record) {
  if (client.value() >= kMaxClients) return;
  grow(std::size_t{client.value()} + 1);
  Client& state = clients_[client.value()];
  state.past.known = 1;
  if (record.latency_ms >= 0) {
    const auto latency = static_cast<float>(std::min(*record.latency_ms, kMaxLatency));
    order_is_old_ = order_is_old_ || latency != state.latency;
    state.latency = latency;
  }
  if (uses_labels())
    labels_[client.value()] =
        read_labels(record.labels, options_.labels == protocol::LabelReport::kDpHistogram);
}

void AwPspSampler::remember(const Feedback& feedback) {
  if (feedback.client.value() >= clients_.size()) return;
  Client& state = clients_[feedback.client.value()];
  observe_task(state.past, feedback.delivered, options_.predictor);
  asked_.erase(feedback.client.value());
  if (feedback.delivered || has_failed_often(state.past)) state.fresh_since = round_;
  if (feedback.delivered && uses_labels()) delivered_ |= labels_[feedback.client.value()];
  if (!feedback.delivered || !(feedback.loss_rms >= 0)) return;
  const double utility = static_cast<double>(feedback.samples.value()) * feedback.loss_rms;
  state.utility = static_cast<float>(std::min<double>(utility, kMaxAwPspUtility));
}

void AwPspSampler::observe(std::uint32_t client, bool there) {
  Client& state = clients_[client];
  Availability& past = state.past;
  if (past.asked) {
    const auto asked = asked_.find(client);
    const bool open = asked != asked_.end() && round_.value() - asked->second.value() <= kOpenRounds;
    if (open && !there) return;
    if (asked != asked_.end()) asked_.erase(asked);
    past.asked = 0;
  }
  observe_round(past, there, options_.predictor);
  if (!options_.chronic) return;
  if (!there) {
    if (!past.chronic && is_gone(past)) past.chronic = 1;
  } else if (past.chronic && stream_->fork("probe", round_.value(), client).uniform() * past.down_run < 1) {
    past.chronic = 0;
  }
}

void AwPspSampler::begin_round(const SelectionRequest& request, Candidates candidates) {
  if (!stream_) stream_ = request.rng;
  round_ = request.round;
  delivered_ = {};
  samples_ = 0;
  double utilities = 0;
  double useful = 0;
  bool anybody = false;
  auto next = candidates.begin();
  for (std::uint32_t i = 0; i < clients_.size(); ++i) {
    Client& state = clients_[i];
    const bool there = next != candidates.end() && next->client.value() == i;
    if (there) {
      state.past.known = 1;
      state.samples = saturated(next->samples);
      ++next;
    }
    if (!state.past.known) continue;
    observe(i, there);
    anybody = anybody || (there && !state.past.chronic);
    samples_ += state.samples;
    utilities += double{state.utility};
    useful += state.utility > 0 ? 1 : 0;
  }
  mean_utility_ = useful > 0 ? utilities / useful : 0;
  // If no other candidate is available, the presumed offline ones among the candidates are probed.
  if (!anybody)
    for (const Candidate& candidate : candidates) clients_[candidate.client.value()].past.chronic = 0;
  count_labels();
  find_correlations();
}

// The typical number is the median: a minority that claims too many labels cannot move it beyond what the
// others hold.
void AwPspSampler::count_labels() {
  std::array<std::size_t, LabelSet::kMaxLabels + 1> clients{};
  std::size_t known = 0;
  LabelSet once;
  contested_ = {};
  for (const LabelSet& labels : labels_) {
    const int count = labels.count();
    if (count == 0) continue;
    ++clients[static_cast<std::size_t>(count)];
    ++known;
    contested_ |= labels & once;
    once |= labels;
  }
  typical_labels_ = 0;
  std::size_t below = 0;
  for (std::size_t count = 1; count < clients.size() && known > 0; ++count) {
    below += clients[count];
    if (2 * below < known) continue;
    typical_labels_ = static_cast<int>(count);
    return;
  }
}

// Sorts by latency, then number. A radix sort, because comparisons would dominate the run time. Nonnegative
// latencies are ordered like their bit patterns.
void AwPspSampler::sort_by_latency() {
  constexpr std::uint32_t kDigitBits = 11;
  constexpr std::uint32_t kDigits = 1U << kDigitBits;
  constexpr std::size_t kPasses = 3;
  struct Keyed {
    std::uint32_t key;
    std::uint32_t client;
    std::uint32_t digit(std::size_t pass) const { return key >> pass * kDigitBits & (kDigits - 1); }
  };
  std::vector<Keyed> from;
  from.reserve(clients_.size());
  std::array<std::array<std::uint32_t, kDigits>, kPasses> starts{};
  for (std::uint32_t i = 0; i < clients_.size(); ++i) {
    if (clients_[i].latency < 0) continue;
    from.push_back({std::bit_cast<std::uint32_t>(clients_[i].latency + 0.0F), i});
    for (std::size_t pass = 0; pass < kPasses; ++pass) ++starts[pass][from.back().digit(pass)];
  }
  std::vector<Keyed> to(from.size());
  for (std::size_t pass = 0; pass < kPasses; ++pass) {
    std::uint32_t sum = 0;
    for (std::uint32_t& start : starts[pass]) start = std::exchange(sum, sum + start);
    for (const Keyed& item : from) to[starts[pass][item.digit(pass)]++] = item;
    from.swap(to);
  }
  by_latency_.resize(from.size());
  std::vector<float> latencies(from.size());
  for (std::size_t k = 0; k < from.size(); ++k) {
    by_latency_[k] = from[k].client;
    latencies[k] = std::bit_cast<float>(from[k].key);
  }
  neighbourhood_ = find_neighbours(latencies, options_.correlation.neighbours);
  order_is_old_ = false;
}

void AwPspSampler::find_correlations() {
  if (options_.risk == AwPspOptions::Risk::kNone && !options_.diversity) return;
  if (order_is_old_) sort_by_latency();
  if (by_latency_.empty()) {
    shared_.clear();
    largest_cluster_ = 0;
    return;
  }
  constexpr std::size_t kAhead = 32;  // prefetch distance: neighbours in latency lie anywhere in memory
  const std::size_t count = by_latency_.size();
  const auto traces_from = [&](std::size_t first, std::span<Trace> traces) {
    for (std::size_t k = first; k < first + traces.size(); ++k) {
      if (k + kAhead < count) __builtin_prefetch(&clients_[by_latency_[k + kAhead]]);
      const Availability& past = clients_[by_latency_[k]].past;
      traces[k - first] = {past.down, past.failed, by_latency_[k], past.rounds, failed_now(past)};
    }
  };
  CorrelationOptions options = options_.correlation;
  options.stream = stream_;
  const Correlations found = correlate(neighbourhood_, traces_from, options, options_.diversity);
  largest_cluster_ = found.largest;
  shared_.resize(clients_.size());
  if (count < clients_.size()) std::fill(shared_.begin(), shared_.end(), Shared{});  // no latency
  for (std::size_t k = 0; k < count; ++k) {
    if (k + kAhead < count) __builtin_prefetch(&shared_[by_latency_[k + kAhead]], 1);
    shared_[by_latency_[k]] = {found.risk[k], options_.diversity ? found.cluster[k] : Correlations::kAlone};
  }
}

double AwPspSampler::weighted_score(std::uint32_t client) const {
  const Client& state = clients_[client];
  double score = power(std::max(double{state.past.chance}, options_.epsilon), options_.a) *
                 power(1 + freshness(round_, state.fresh_since), options_.b);
  if (options_.d > 0 && state.utility > 0)
    score *= power(std::clamp(double{state.utility} / mean_utility_, 1 / kUtilityRange, kUtilityRange),
                   options_.d);
  return score;
}

std::vector<Unit> AwPspSampler::units_of(Candidates candidates) const {
  const bool greedy = options_.selector != AwPspOptions::Selector::kWeighted;
  // One bit for each round of the probation, before this round.
  const std::uint64_t probation = ((std::uint64_t{1} << options_.probation) - 1) << 1;
  std::vector<Unit> units(candidates.size());
  for (std::size_t k = 0; k < units.size(); ++k) {
    const std::uint32_t client = candidates[k].client.value();
    const Client& state = clients_[client];
    Unit& unit = units[k];
    const Shared shared = client < shared_.size() ? shared_[client] : Shared{};
    unit.cluster = shared.cluster;
    if (state.past.chronic) continue;
    if (greedy) {
      const double fresh = freshness(round_, state.fresh_since);
      unit.weight = double{state.past.chance} * fresh;
      unit.spare = double{state.past.chance} * std::max(fresh, 1.0);
      if ((undelivered(state.past) & probation) != 0) unit.weight = 0;
    } else {
      unit.weight = unit.spare = weighted_score(client);
    }
    const double risk = shared.risk;
    if (options_.risk == AwPspOptions::Risk::kSoft) unit.weight *= 1 - risk;
    if (options_.risk == AwPspOptions::Risk::kHard && risk + kRiskRounding >= options_.correlation.threshold)
      unit.weight = 0;
  }
  if (!greedy && uses_labels()) weigh_labels(candidates, units);
  return units;
}

void AwPspSampler::weigh_labels(Candidates candidates, std::vector<Unit>& units) const {
  std::vector<LabelSet> labels;
  labels.reserve(candidates.size());
  for (const Candidate& candidate : candidates) labels.push_back(labels_[candidate.client.value()]);
  std::vector<double> fresh;
  fresh.reserve(candidates.size());
  for (const Candidate& candidate : candidates)
    fresh.push_back(power(1 + freshness(round_, clients_[candidate.client.value()].fresh_since), options_.b));
  const std::vector<double> factors = label_factors({labels, fresh, covered(), contested_, typical_labels_});
  if (factors.empty()) return;
  for (std::size_t k = 0; k < units.size(); ++k) {
    const double factor = power(factors[k], options_.c);
    units[k].weight *= factor;
    if (factor > 0) units[k].spare *= factor;
  }
}

std::vector<std::size_t> AwPspSampler::draw_labelled(Candidates candidates, const SampleRequest& request,
                                                     Rng& rng) const {
  std::vector<LabelSet> labels;
  labels.reserve(candidates.size());
  const LabelSet old = covered();
  for (const Candidate& candidate : candidates)
    labels.push_back(labels_[candidate.client.value()].without(old));
  return labelled_sample(request, labels, rng);
}

std::vector<std::size_t> AwPspSampler::choose(Candidates candidates, std::span<const Unit> units,
                                              const SelectionRequest& request, std::vector<double>& p) const {
  const std::size_t m = request.count;
  // A cluster of at most half of the cohort cannot exceed the limit.
  const bool guard = options_.diversity && largest_cluster_ > (m + 1) / 2;
  if (options_.selector == AwPspOptions::Selector::kWeighted) {
    Rng rng = request.rng;
    p = inclusion_probabilities(units, m, guard);
    const SampleRequest sample{units, p, m, guard};
    return uses_labels() ? draw_labelled(candidates, sample, rng) : guarded_sample(sample, rng);
  }
  p.assign(units.size(), 1.0);
  if (options_.selector == AwPspOptions::Selector::kGreedy) return best_units(units, m, guard);
  std::vector<LabelSet> labels;
  std::vector<double> fresh;
  for (const Candidate& candidate : candidates) {
    fresh.push_back(freshness(round_, clients_[candidate.client.value()].fresh_since));
    // After five failures in a row, a rare label no longer gives its holder a place in every round.
    const bool counts = uses_labels() && !has_failed_often(clients_[candidate.client.value()].past);
    if (uses_labels()) labels.push_back(counts ? labels_[candidate.client.value()] : LabelSet{});
  }
  return most_covering_units({units, labels, fresh, m, guard, covered(), typical_labels_});
}

LabelSet AwPspSampler::covered() const {
  LabelSet covered = delivered_;
  if (!uses_labels()) return covered;
  for (const auto& [client, round] : asked_)
    if (round == round_) covered |= labels_[client];
  return covered;
}

std::vector<Selected> AwPspSampler::select(const SelectionRequest& request) {
  forget(request.left);
  const auto end = std::partition_point(request.candidates.begin(), request.candidates.end(),
                                        [](const Candidate& c) { return c.client.value() < kMaxClients; });
  const Candidates candidates(request.candidates.begin(), end);
  if (!candidates.empty()) grow(std::size_t{candidates.back().client.value()} + 1);
  if (request.round != round_) begin_round(request, candidates);
  if (uses_labels() && typical_labels_ == 0) count_labels();  // records may have arrived during the round
  const std::vector<Unit> units = units_of(candidates);
  std::vector<double> p;
  const std::vector<std::size_t> places = choose(candidates, units, request, p);
  std::vector<Selected> chosen;
  for (const std::size_t place : places) {
    const ClientId client = candidates[place].client;
    Client& state = clients_[client.value()];
    Selected choice{client, p[place]};
    if (options_.inverse_probability && samples_ > 0)
      choice.coefficient =
          state.samples / samples_ *
          std::min(1 / (choice.inclusion * double{state.past.chance}), options_.max_coefficient);
    state.past.asked = 1;
    asked_[client.value()] = request.round;
    chosen.push_back(choice);
  }
  return chosen;
}

std::size_t AwPspSampler::state_bytes() const {
  return clients_.size() * sizeof(Client) + labels_.size() * sizeof(LabelSet) +
         by_latency_.size() * sizeof(std::uint32_t) + neighbourhood_.before.size() +
         shared_.size() * sizeof(Shared);
}

}  // namespace fedge::aggregation
