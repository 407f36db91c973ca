#include "lab/overlay/overlay_run.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <memory>
#include <utility>

#include "lab/overlay/measurements.h"
#include "sim/event_queue.h"
#include "sim/overlays/network.h"

namespace fedge::lab {
namespace {

double exponential(Rng& rng, double mean) { return -mean * std::log(1.0 - rng.uniform()); }

// An agent on a node: alternately warm and cold, for exponentially distributed times from its own stream. It
// starts warm with the probability of its warm share.
class Agent {
 public:
  Agent(const OverlayRunOptions& options, const Rng& rng, std::size_t node)
      : warm_mean_(options.agent_warm_rounds),
        cold_mean_(options.agent_cold_rounds),
        rng_(rng.fork("overlay agent", node)) {
    warm_ = rng_.uniform() < warm_mean_ / (warm_mean_ + cold_mean_);
    until_ = exponential(rng_, warm_ ? warm_mean_ : cold_mean_);
  }
  // `round` must never decrease.
  bool warm_at(double round) {
    while (until_ <= round) {
      warm_ = !warm_;
      until_ += exponential(rng_, warm_ ? warm_mean_ : cold_mean_);
    }
    return warm_;
  }

 private:
  double warm_mean_;
  double cold_mean_;
  Rng rng_;
  bool warm_ = true;
  double until_ = 0;
};

class OverlayRun {
 public:
  explicit OverlayRun(const OverlayRunOptions& options)
      : options_(options),
        rng_(options.seed),
        lookup_rng_(rng_.fork("overlay lookups")),
        churn_rng_(rng_.fork("overlay churn")),
        network_(options.overlay, identities(), rng_),
        measurements_(options_),
        down_since_(identities(), -1) {
    for (std::size_t i = 0; options.agent_cold_rounds > 0 && i < identities(); ++i)
      agents_.emplace_back(options, rng_, i);
    bytes_ = std::make_shared<const std::vector<std::byte>>(options.value_bytes);
    keys_of_.resize(identities());
    for (std::size_t i = 0; i < options.keys; ++i) {
      const std::string name = "capability " + std::to_string(options.seed) + "/" + std::to_string(i);
      const auto publisher = static_cast<dht::Address>(lookup_rng_.below(options.nodes));
      published_.push_back({dht::key_of(name), publisher});
      keys_of_[publisher].push_back(published_.back().key);
    }
  }

  OverlayRunResult run() {
    const auto begin = std::chrono::steady_clock::now();
    const double joined = options_.static_tables ? 0 : static_cast<double>(options_.join_rounds);
    schedule_arrivals(joined);
    if (options_.session_rounds > 0) schedule_churn(joined);
    const double warm = options_.warm_up ? static_cast<double>(*options_.warm_up)
                                         : std::ceil(std::log2(static_cast<double>(options_.nodes)));
    const double first = joined + warm;
    run_until(first);
    measurements_.begin(network_, static_cast<std::size_t>(first));
    for (std::size_t round = 0; round < options_.rounds; ++round) {
      schedule_lookups(first + static_cast<double>(round), round);
      run_until(first + static_cast<double>(round + 1));
      measurements_.round(network_);
    }
    OverlayRunResult result;
    measurements_.end(network_);
    run_until(first + static_cast<double>(options_.rounds) +
              kLookupPatience / to_seconds(options_.overlay.round));
    result.figures = measurements_.figures();
    result.events = network_.counters().events;
    result.trace_hash = network_.trace_hash();
    result.wall_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return result;
  }

 private:
  enum class What : std::uint8_t { kUp, kDown, kLookup };
  struct Plan {
    What what = What::kUp;
    dht::Address node = dht::kNobody;
    std::size_t round = 0;
  };
  struct Published {
    dht::Id key = 0;
    dht::Address publisher = dht::kNobody;
  };

  std::size_t identities() const {
    if (options_.session_rounds == 0) return options_.nodes;
    return static_cast<std::size_t>(std::ceil(static_cast<double>(options_.nodes) / options_.availability));
  }
  Time at(double round) const { return Time(seconds(round * to_seconds(options_.overlay.round))); }
  double round_now() const { return to_seconds(network_.now()) / to_seconds(options_.overlay.round); }

  void run_until(double round) {
    const Time end = at(round);
    while (!plans_.empty() && plans_.next().at <= end) {
      const auto entry = plans_.pop();
      network_.run_until(entry.at);
      carry_out(entry.payload);
    }
    network_.run_until(end);
  }

  void schedule_arrivals(double window) {
    std::vector<dht::Address> order;
    for (std::size_t i = 0; i < options_.nodes; ++i) order.push_back(static_cast<dht::Address>(i));
    if (options_.static_tables) {
      network_.start_static(order);
      for (const dht::Address node : order) publish_keys(node);
      return;
    }
    for (std::size_t i = 0; i < order.size(); ++i)
      plans_.push(at(window * static_cast<double>(i) / static_cast<double>(order.size())),
                  {.what = What::kUp, .node = order[i]});
  }

  double mean_down() const {
    return options_.session_rounds * (1 - options_.availability) / options_.availability;
  }

  void schedule_churn(double from) {
    for (std::size_t i = 0; i < identities(); ++i) {
      const bool up = i < options_.nodes;
      const double stay = exponential(churn_rng_, up ? options_.session_rounds : mean_down());
      plans_.push(at(from + stay),
                  {.what = up ? What::kDown : What::kUp, .node = static_cast<dht::Address>(i)});
    }
  }

  void schedule_lookups(double from, std::size_t round) {
    lookups_owed_ += options_.lookups_per_round;
    for (; lookups_owed_ >= 1; lookups_owed_ -= 1)
      plans_.push(at(from + lookup_rng_.uniform()), {.what = What::kLookup, .round = round});
  }

  void carry_out(const Plan& plan) {
    if (plan.what == What::kLookup) return look_up(plan.round);
    const bool churning =
        options_.session_rounds > 0 &&
        (options_.static_tables || round_now() >= static_cast<double>(options_.join_rounds));
    if (plan.what == What::kDown) {
      down_since_[plan.node] = round_now();
      network_.stop(plan.node, churn_rng_.uniform() < options_.graceful);
      schedule_change(What::kUp, plan.node, mean_down());
      return;
    }
    network_.start(plan.node);
    measurements_.count_join();
    down_since_[plan.node] = -1;
    publish_keys(plan.node);
    if (churning) schedule_change(What::kDown, plan.node, options_.session_rounds);
  }

  void schedule_change(What what, dht::Address node, double mean) {
    plans_.push(at(round_now() + exponential(churn_rng_, mean)), {.what = what, .node = node});
  }

  void publish_keys(dht::Address node) {
    for (const dht::Id key : keys_of_[node])
      network_.publish(node, {.key = key, .slot = node, .sequence = ++sequence_, .bytes = bytes_});
  }

  // A key that should exist: its publisher is up, or has not been down for long enough that the value may
  // have expired.
  std::optional<Published> draw_key() {
    constexpr int kTries = 1000;
    for (int i = 0; i < kTries; ++i) {
      const Published& drawn = published_[lookup_rng_.below(published_.size())];
      const double down = down_since_[drawn.publisher];
      if (down < 0 || round_now() - down < 2 * options_.overlay.republish) return drawn;
    }
    return std::nullopt;
  }

  void look_up(std::size_t round) {
    const auto& members = network_.members();
    const auto key = draw_key();
    if (members.empty() || !key) return;
    const dht::Address from = members[lookup_rng_.below(members.size())].address;
    network_.lookup(from, key->key, [this, round, published = *key](const dht::LookupResult& result) {
      if (!result.aborted) note(round, published, result);
    });
  }

  void note(std::size_t round, const Published& published, const dht::LookupResult& result) {
    LookupNote note{.round = round, .result = result};
    note.success =
        result.ok && network_.up(result.holder.address) && to_seconds(result.latency) <= kLookupPatience;
    note.correct = note.success && result.owner == network_.owner(published.key);
    note.useful = note.success && network_.up(published.publisher) &&
                  (agents_.empty() || agents_[published.publisher].warm_at(round_now()));
    note.result.values.clear();
    measurements_.add(std::move(note));
  }

  const OverlayRunOptions& options_;
  Rng rng_;
  Rng lookup_rng_;
  Rng churn_rng_;
  sim::OverlayNetwork network_;
  Measurements measurements_;
  sim::EventQueue<Plan> plans_;
  std::shared_ptr<const std::vector<std::byte>> bytes_;
  std::vector<Published> published_;
  std::vector<std::vector<dht::Id>> keys_of_;
  std::vector<Agent> agents_;
  std::vector<double> down_since_;  // round, or negative if up
  std::uint64_t sequence_ = 0;
  double lookups_owed_ = 0;
};

}  // namespace

Result<void> check_run(const OverlayRunOptions& options) {
  FEDGE_TRY_VOID(check_options(options.overlay));
  if (options.nodes < 1 || options.nodes > 100'000) return invalid(dht::must_be("--nodes", "1 to 100000"));
  if (options.rounds < 1 || options.rounds > 1'000'000)
    return invalid(dht::must_be("--rounds", "1 to 1000000"));
  if (options.join_rounds < 1 || options.join_rounds > 100'000)
    return invalid(dht::must_be("--join-rounds", "1 to 100000"));
  if (options.warm_up && *options.warm_up > 100'000) return invalid(dht::must_be("--warm-up", "0 to 100000"));
  if (!(options.session_rounds == 0 || (options.session_rounds >= 1 && options.session_rounds <= 1e9)))
    return invalid(dht::must_be("--session-rounds", "0 (nodes never leave) or at least 1"));
  if (!(options.availability > 0 && options.availability <= 1))
    return invalid(dht::must_be("--availability", "above 0 and at most 1"));
  if (options.session_rounds > 0 && (options.availability < 0.05 || options.availability > 0.99))
    return invalid(dht::must_be("--availability", "0.05 to 0.99 if --session-rounds is above 0"));
  if (!(options.graceful >= 0 && options.graceful <= 1)) return invalid(dht::must_be("--graceful", "0 to 1"));
  if (!(options.lookups_per_round > 0 && options.lookups_per_round <= 1e6))
    return invalid(dht::must_be("--lookups-per-round", "above 0 and at most 1000000"));
  if (options.keys < 1 || options.keys > 1'000'000) return invalid(dht::must_be("--keys", "1 to 1000000"));
  if (options.value_bytes > options.overlay.store.value_bytes)
    return invalid(dht::must_be("--value-bytes", "at most 4096, the largest value that a node stores"));
  if (!(options.agent_cold_rounds >= 0 && options.agent_warm_rounds >= 0) ||
      (options.agent_cold_rounds > 0) != (options.agent_warm_rounds > 0))
    return invalid("--agent-warm-rounds and --agent-cold-rounds must both be above 0 or both be omitted");
  return {};
}

OverlayRunResult run_overlay(const OverlayRunOptions& options) { return OverlayRun(options).run(); }

}  // namespace fedge::lab
