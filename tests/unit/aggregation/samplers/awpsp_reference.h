// A federation as AW-PSP's sampler sees it, and a slow, obvious reference of its weighted selection: whole
// histories in place of counts and masks, bisection in place of water-filling.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "aggregation/samplers/awpsp/aw_psp.h"

namespace fedge::aggregation::test {

struct RememberedClient {
  std::vector<bool> there;   // by round: was up
  std::vector<bool> failed;  // by round: failed
  std::vector<bool> tasks;   // by task: delivered
  double latency = -1;
  double samples = 0;
  double utility = 0;
  unsigned fresh_since = 0;  // round of its last delivery, or of the last of five failed tasks in a row
};

// Uses the default predictor, no guard, and presumes no client gone.
class SlowAwPsp {
 public:
  SlowAwPsp(const AwPspOptions& options, std::size_t clients) : options_(options), clients_(clients) {}
  std::vector<RememberedClient>& clients() { return clients_; }

  struct Expected {
    std::map<unsigned, double> inclusion;  // by candidate
    std::map<unsigned, double> coefficient;
  };

  Expected begin_round(unsigned round, const std::vector<Candidate>& candidates, std::size_t m) {
    std::map<unsigned, double> chance, weight, spare;
    for (const Candidate& candidate : candidates) {
      RememberedClient& client = clients_[candidate.client.value()];
      client.samples = static_cast<double>(candidate.samples.value());
      chance[candidate.client.value()] = live_chance(client) * arrival(client);
    }
    for (unsigned i = 0; i < clients_.size(); ++i) {
      clients_[i].there.push_back(chance.contains(i));
      clients_[i].failed.push_back(!chance.contains(i));
    }
    for (const auto& [i, availability] : chance) {
      const RememberedClient& client = clients_[i];
      const double fresh = client.fresh_since == 0 ? round + 1.0 : round - client.fresh_since;
      spare[i] = std::pow(std::max(availability, options_.epsilon), options_.a) *
                 std::pow(1 + fresh, options_.b) * std::pow(relative_utility(client), options_.d);
      weight[i] = options_.risk == AwPspOptions::Risk::kSoft ? spare[i] * (1 - risk(i)) : spare[i];
      if (options_.risk == AwPspOptions::Risk::kHard && risk(i) >= options_.correlation.threshold - 1e-6)
        weight[i] = 0;
    }
    Expected expected;
    expected.inclusion = probabilities(weight, spare, m);
    double all = 0;
    for (const RememberedClient& client : clients_) all += client.samples;
    for (const auto& [i, p] : expected.inclusion)
      expected.coefficient[i] =
          clients_[i].samples / all * std::min(1 / (p * chance[i]), options_.max_coefficient);
    return expected;
  }

  // Returns the chance to be up in the next round, from all transitions so far.
  double live_chance(const RememberedClient& client) const {
    double count[2][2] = {{1, 1}, {1, 1}};
    const std::vector<bool>& there = client.there;
    for (std::size_t t = 1; t < there.size(); ++t)
      count[there[t - 1]][there[t]] +=
          std::pow(options_.predictor.forgetting, static_cast<double>(there.size() - 1 - t));
    const auto& from = count[there.empty() || there.back()];
    return from[1] / (from[0] + from[1]);
  }

  double arrival(const RememberedClient& client) const {
    double delivered = 1, all = 1;
    for (std::size_t k = 0; k < client.tasks.size(); ++k) {
      const double worth =
          std::pow(options_.predictor.forgetting, static_cast<double>(client.tasks.size() - 1 - k));
      all += worth;
      delivered += client.tasks[k] ? worth : 0;
    }
    return delivered / all;
  }

 private:
  double relative_utility(const RememberedClient& client) const {
    double sum = 0, count = 0;
    for (const RememberedClient& other : clients_) {
      sum += other.utility;
      count += other.utility > 0 ? 1 : 0;
    }
    return client.utility > 0 ? client.utility / (sum / count) : 1;
  }

  double risk(unsigned i) const {
    std::vector<unsigned> others;
    for (unsigned j = 0; j < clients_.size(); ++j)
      if (j != i && clients_[j].latency >= 0) others.push_back(j);
    std::sort(others.begin(), others.end(), [&](unsigned a, unsigned b) {
      return std::abs(clients_[a].latency - clients_[i].latency) <
             std::abs(clients_[b].latency - clients_[i].latency);
    });
    if (clients_[i].latency < 0) return 0;
    others.resize(std::min(others.size(), options_.correlation.neighbours));
    double safe = 1;
    for (const unsigned j : others) {
      const RememberedClient& other = clients_[j];
      const std::size_t t = other.there.size();
      const bool undelivered = t > 1 && other.there[t - 2] && other.failed[t - 2];
      if (!other.there.back() || undelivered) safe *= 1 - score(clients_[i], other);
    }
    return 1 - safe;
  }

  static double score(const RememberedClient& a, const RememberedClient& b) {
    const std::size_t all = a.there.size();
    const std::size_t n = std::min<std::size_t>(64, all);
    const auto correlation = [&](const std::vector<bool>& x, const std::vector<bool>& y) {
      double mean_x = 0, mean_y = 0, covariance = 0, variance_x = 0, variance_y = 0;
      for (std::size_t t = all - n; t < all; ++t) {
        mean_x += x[t] / static_cast<double>(n);
        mean_y += y[t] / static_cast<double>(n);
      }
      for (std::size_t t = all - n; t < all; ++t) {
        covariance += (x[t] - mean_x) * (y[t] - mean_y);
        variance_x += (x[t] - mean_x) * (x[t] - mean_x);
        variance_y += (y[t] - mean_y) * (y[t] - mean_y);
      }
      const bool constant = variance_x < 1e-9 || variance_y < 1e-9;
      return constant ? 0 : covariance / std::sqrt(variance_x * variance_y);
    };
    return std::clamp(std::max(correlation(a.there, b.there), correlation(a.failed, b.failed)), 0.0, 1.0);
  }

  static std::map<unsigned, double> filled(const std::map<unsigned, double>& weights, double m) {
    double low = 0, high = 1e15;
    for (int step = 0; step < 400; ++step) {
      const double middle = (low + high) / 2;
      double sum = 0;
      for (const auto& [i, weight] : weights) sum += std::min(1.0, middle * weight);
      (sum < m ? low : high) = middle;
    }
    std::map<unsigned, double> p;
    for (const auto& [i, weight] : weights) p[i] = std::min(1.0, high * weight);
    return p;
  }

  static std::map<unsigned, double> probabilities(const std::map<unsigned, double>& weight,
                                                  const std::map<unsigned, double>& spare, std::size_t m) {
    std::map<unsigned, double> first, second;
    for (const auto& [i, value] : weight) (value > 1e-12 ? first : second)[i] = value;
    auto p = filled(first, std::min(static_cast<double>(m), static_cast<double>(first.size())));
    for (auto& [i, value] : second) value = spare.at(i);
    const double left = std::clamp(static_cast<double>(m) - static_cast<double>(first.size()), 0.0,
                                   static_cast<double>(second.size()));
    for (const auto& [i, value] : filled(second, left)) p[i] = left > 0 ? value : 0.0;
    return p;
  }

  AwPspOptions options_;
  std::vector<RememberedClient> clients_;
};

}  // namespace fedge::aggregation::test
