#include "lab/overlay/measurements.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "lab/statistics.h"

namespace fedge::lab {
namespace {

constexpr std::size_t kFirstRounds = 12;    // rounds in which cold and warm starts differ
constexpr std::size_t kStartupWindow = 10;  // rounds whose lookups are evaluated together
constexpr double kStartupSuccess = 0.99;
constexpr double kEnoughRounds = 0.1;  // fewest rounds up, as a share of the run, for a node's load to count

double share(double part, double whole) { return whole == 0 ? kNaN : part / whole; }

}  // namespace

const std::vector<FigureName>& figure_names() {
  static const std::vector<FigureName> names = {
      {"lookups", "lookups", 0},
      {"success_percent", "success, %", 2},
      {"correct_owner_percent", "correct owner, %", 2},
      {"useful_percent", "success with a warm agent, %", 2},
      {"first_success_percent", "success, first 12 rounds, %", 2},
      {"first_latency_ms", "latency, first 12 rounds, mean, ms", 0},
      {"first_messages", "messages per lookup, first 12 rounds", 1},
      {"startup_rounds", "startup: rounds until 99 % succeed", 1},
      {"hops_mean", "hops, mean", 2},
      {"hops_p50", "hops, p50", 1},
      {"hops_p95", "hops, p95", 1},
      {"hops_p99", "hops, p99", 1},
      {"latency_p50_ms", "latency, p50, ms", 0},
      {"latency_p95_ms", "latency, p95, ms", 0},
      {"latency_p99_ms", "latency, p99, ms", 0},
      {"timeouts_per_lookup", "timeouts per lookup", 3},
      {"messages_per_lookup", "messages per lookup", 1},
      {"maintenance_messages", "maintenance messages per node and round", 2},
      {"publish_messages", "publishing messages per node and round", 3},
      {"repair_messages", "repair messages per node and round", 3},
      {"all_messages", "all messages per node and round", 2},
      {"maintenance_bytes", "maintenance bytes per node and round", 0},
      {"all_bytes", "all bytes per node and round", 0},
      {"join_messages", "messages per join", 1},
      {"join_bytes", "bytes per join", 0},
      {"state_contacts", "contacts per node", 1},
      {"load_imbalance", "load: maximum over mean messages of a node", 2},
      {"values_per_node", "values per node", 2},
      {"values_gini", "values: Gini coefficient over nodes", 3}};
  return names;
}

void Measurements::begin(const sim::OverlayNetwork& network, std::size_t first_round) {
  first_round_ = first_round;
  at_begin_ = network.counters();
  for (std::size_t i = 0; i < network.size(); ++i)
    load_at_begin_.push_back(network.load(static_cast<dht::Address>(i)));
  rounds_up_.assign(network.size(), 0);
}

void Measurements::round(const sim::OverlayNetwork& network) {
  node_rounds_ += network.members().size();
  for (const dht::Contact& member : network.members()) ++rounds_up_[member.address];
}

void Measurements::end(const sim::OverlayNetwork& network) {
  add_traffic(network, of_network_);
  add_nodes(network, of_network_);
}

std::vector<double> Measurements::figures() const {
  std::vector<double> out;
  add_lookups(out);
  out.insert(out.end(), of_network_.begin(), of_network_.end());
  return out;
}

// The first round from which a window of rounds has enough successful lookups.
double Measurements::startup() const {
  std::vector<double> all(options_->rounds);
  std::vector<double> good(options_->rounds);
  for (const LookupNote& note : notes_) {
    if (note.round >= all.size()) continue;
    all[note.round] += 1;
    good[note.round] += note.success ? 1 : 0;
  }
  for (std::size_t first = 0; first + kStartupWindow <= all.size(); ++first) {
    const auto sum = [&](const std::vector<double>& values) {
      const auto begin = values.begin() + static_cast<std::ptrdiff_t>(first);
      return std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(kStartupWindow), 0.0);
    };
    if (sum(all) > 0 && sum(good) >= kStartupSuccess * sum(all))
      return static_cast<double>(first_round_ + first);
  }
  return kNaN;
}

void Measurements::add_lookups(std::vector<double>& out) const {
  double success = 0, correct = 0, useful = 0, timeouts = 0, messages = 0;
  double first = 0, first_success = 0, first_messages = 0;
  std::vector<double> hops, latency, first_latency;
  for (const LookupNote& note : notes_) {
    const double milliseconds = to_seconds(note.result.latency) * 1e3;
    timeouts += note.result.timeouts;
    messages += note.result.messages;
    correct += note.correct ? 1 : 0;
    useful += note.useful ? 1 : 0;
    const bool early = note.round < kFirstRounds;
    first += early ? 1 : 0;
    first_messages += early ? note.result.messages : 0;
    if (!note.success) continue;
    ++success;
    hops.push_back(note.result.hops);
    latency.push_back(milliseconds);
    if (!early) continue;
    ++first_success;
    first_latency.push_back(milliseconds);
  }
  const auto all = static_cast<double>(notes_.size());
  out.insert(
      out.end(),
      {all, 100 * share(success, all), 100 * share(correct, all),
       options_->agent_cold_rounds > 0 ? 100 * share(useful, all) : kNaN, 100 * share(first_success, first),
       mean_of(first_latency), share(first_messages, first), startup(), mean_of(hops), quantile(hops, 0.5),
       quantile(hops, 0.95), quantile(hops, 0.99), quantile(latency, 0.5), quantile(latency, 0.95),
       quantile(latency, 0.99), share(timeouts, all), share(messages, all)});
}

void Measurements::add_traffic(const sim::OverlayNetwork& network, std::vector<double>& out) const {
  const dht::Traffic& end = network.counters().sent;
  const dht::Traffic& begin = at_begin_.sent;
  const auto node_rounds = static_cast<double>(node_rounds_);
  const auto since = [&](const auto& ends, const auto& begins, dht::Purpose purpose) {
    const auto at = static_cast<std::size_t>(purpose);
    return share(static_cast<double>(ends[at] - begins[at]), node_rounds);
  };
  const auto sum = [&](const auto& ends, const auto& begins) {
    double total = 0;
    for (std::size_t i = 0; i < dht::kPurposes; ++i)
      total += since(ends, begins, static_cast<dht::Purpose>(i));
    return total;
  };
  const auto joining = static_cast<std::size_t>(dht::Purpose::kJoin);
  const auto joins = static_cast<double>(joins_);
  out.insert(out.end(),
             {since(end.messages, begin.messages, dht::Purpose::kMaintenance),
              since(end.messages, begin.messages, dht::Purpose::kPublish),
              since(end.messages, begin.messages, dht::Purpose::kRepair), sum(end.messages, begin.messages),
              since(end.bytes, begin.bytes, dht::Purpose::kMaintenance), sum(end.bytes, begin.bytes),
              share(static_cast<double>(end.messages[joining]), joins),
              share(static_cast<double>(end.bytes[joining]), joins)});
}

void Measurements::add_nodes(const sim::OverlayNetwork& network, std::vector<double>& out) const {
  std::vector<double> contacts, values, load;
  for (const dht::Contact& member : network.members()) {
    const dht::OverlayNode& node = network.node(member.address);
    contacts.push_back(static_cast<double>(node.routing().contacts()));
    values.push_back(static_cast<double>(node.store().values().size()));
  }
  for (std::size_t i = 0; i < rounds_up_.size(); ++i) {
    if (rounds_up_[i] < kEnoughRounds * static_cast<double>(options_->rounds)) continue;
    const auto messages = network.load(static_cast<dht::Address>(i)) - load_at_begin_[i];
    load.push_back(static_cast<double>(messages) / rounds_up_[i]);
  }
  const double most = load.empty() ? kNaN : *std::max_element(load.begin(), load.end());
  out.insert(out.end(), {mean_of(contacts), share(most, mean_of(load)), mean_of(values), gini(values)});
}

}  // namespace fedge::lab
