// The runs of the random scripts: a recipe for each seed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/rng.h"

namespace fedge::server::shells {

class Recipe {
 public:
  explicit Recipe(std::uint64_t seed) : draws_(Rng(seed).fork("recipe")) {
    add("run.seed=" + std::to_string(seed));
    add("sampling.clients_per_round=" + one_of({"1", "2", "3"}));
    add("run.round_deadline=" + one_of({"30", "60"}));
    add("run.return_within=" + one_of({"0", "10", "60"}));
  }
  Recipe& direct() {
    const std::string kind = one_of({"fedavg", "fedbuff", "scaffold", "fedadam", "fednova"});
    add("strategy.kind=" + kind);
    if (kind == "fedbuff") add("strategy.schedule.buffer_size=" + one_of({"1", "2"}));
    if (kind == "fedavg")
      add(one_of({"", "sampling.kind=md", "sampling.kind=poisson", "sampling.kind=optimal"}));
    if (kind == "fedavg") add(one_of({"", "", "sampling.over_selection=1.5"}));
    return *this;
  }
  Recipe& secure() {
    add("secure_aggregation.kind=exact");
    add("secure_aggregation.min_clients=2");
    add("sampling.clients_per_round=" + one_of({"2", "3", "4"}));
    add("run.wait_for_clients=" + one_of({"2", "4"}));
    add(one_of({"", "", "sampling.kind=poisson", "sampling.kind=psp"}));
    return *this;
  }
  // Some clients must not share a model with others, at least for some rounds.
  Recipe& tracks() {
    const std::string kind = one_of({"fedavg", "scaffold", "fedadam", "fednova"});
    add("strategy.kind=" + kind);
    add("sampling.clients_per_round=" + one_of({"2", "4", "6"}));
    add("run.wait_for_clients=" + one_of({"1", "4"}));
    std::string list;
    for (auto left = 1 + draws_.below(3); left > 0; --left) list += disagreement() + ",";
    add("tracks.disagreement=[" + list + "]");
    if (kind == "fedavg") add(one_of({"", "tracks.lifting_rounds=2"}));
    return *this;
  }
  Recipe& serverless() {
    add("dissemination.kind=serverless");
    add("strategy.kind=" + one_of({"fedavg", "fedavg", "fednova"}));
    add(one_of({"", "", "sampling.over_selection=1.5", "sampling.kind=poisson"}));
    if (draws_.below(3) > 0) {
      add("run.chunk_size=" + one_of({"4096", "16384", "262144"}));
      return *this;
    }
    add("run.chunk_size=4096");
    add("sampling.clients_per_round=" + one_of({"4", "5"}));
    add("run.wait_for_clients=" + one_of({"1", "5"}));
    add("dissemination.warmup.scheduler=" + one_of({"greedy_fastest_first", "random_fifo", "flooding"}));
    add("dissemination.warmup.lag=" + one_of({"1", "3"}));
    return *this;
  }
  const std::vector<std::string>& settings() const { return settings_; }

 private:
  std::string one_of(const std::vector<std::string>& choices) {
    return choices[static_cast<std::size_t>(draws_.below(choices.size()))];
  }
  void add(const std::string& setting) {
    if (!setting.empty()) settings_.push_back(setting);
  }
  std::string disagreement() {
    const std::string kind = one_of({"full", "partial_data", "inbound", "outbound", "bidirectional"});
    std::string table = "{kind=\"" + kind + "\",clients=[\"" + one_of({"0", "1", "2"}) + "\"]";
    if (kind != "full" && kind != "partial_data")
      table += ",against=[" + one_of({"\"3\"", "\"4\"", "\"4\",\"5\""}) + "]";
    if (kind != "partial_data") table += one_of({"", ",deep=true"});
    return table + one_of({"", ",from_round=2", ",until_round=1", ",from_round=2,until_round=2"}) + "}";
  }

  Rng draws_;
  std::vector<std::string> settings_;
};

}  // namespace fedge::server::shells
