// Drives an engine without a coordinator: inputs, effects, and a manual clock.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

#include "aggregation/samplers/uniform.h"
#include "server/engine/buffered/buffered_engine.h"
#include "server/engine/round_engine.h"

namespace fedge::server {

inline const RunId kRun(9);
inline const Digest kLayout = sha256("layout");
inline constexpr std::size_t kParameters = 100;

struct Harness {
  RoundRules rules{.run = kRun,
                   .layout = kLayout,
                   .parameters = kParameters,
                   .rounds = 2,
                   .clients_per_round = 3,
                   .over_selection = 1.0,
                   .first_round_clients = 3,
                   .min_available = 1,
                   .deadline = seconds(60),
                   .max_samples = SampleCount(1000)};
  std::optional<aggregation::ScheduleSpec> schedule;  // a buffered run if set
  aggregation::Policy policy{.clients = 100};
  std::uint32_t lifting_rounds = 0;
  aggregation::SamplerFactory sampler = [] { return std::make_unique<aggregation::UniformSampler>(); };
  std::unique_ptr<RunEngine> engine_;
  Rng rng{3};
  Time now{};
  std::vector<RunEngine::Effect> effects;

  // Plans full models for all clients.
  static Deciders deciders(const aggregation::SamplerFactory& sampler) {
    auto layout = std::make_shared<ParameterLayout>();
    layout->add("weights", {kParameters});
    const config::Table empty;
    config::Reader section(empty, "", "");
    auto planner = aggregation::planner_kinds().front().read(section).make({layout, 100, Rng(3)});
    REQUIRE(planner);
    return {sampler(), std::move(*planner)};
  }
  RunEngine& engine() {
    if (!engine_ && schedule) engine_ = std::make_unique<BufferedEngine>(rules, *schedule, deciders(sampler));
    if (!engine_)
      engine_ = std::make_unique<RoundEngine>(
          rules, TrackBook(policy, [make = sampler] { return deciders(make); }, {lifting_rounds}));
    return *engine_;
  }
  void feed(const RunEngine::Input& input) {
    effects.clear();
    engine().step(input, {now, rng}, effects);
  }
  void arrive(std::initializer_list<std::uint32_t> clients) {
    for (const std::uint32_t client : clients)
      feed(RunEngine::ClientArrived{ClientId(client), SampleCount(60)});
  }
  template <class T>
  std::vector<T> all() const {
    std::vector<T> found;
    for (const auto& effect : effects)
      if (const auto* match = std::get_if<T>(&effect)) found.push_back(*match);
    return found;
  }
  template <class T>
  std::optional<T> one() const {
    const auto found = all<T>();
    return found.size() == 1 ? std::optional<T>(found.front()) : std::nullopt;
  }
  template <class M>
  std::optional<M> sent_to(std::uint32_t client) const {
    for (const auto& send : all<RunEngine::Send>())
      if (send.client == ClientId(client))
        if (const auto* message = std::get_if<M>(&send.message)) return *message;
    if constexpr (std::is_same_v<M, protocol::RunEnded>)
      for (const auto& finished : all<RunEngine::Finished>())
        if (std::ranges::find(finished.connected, ClientId(client)) != finished.connected.end())
          return protocol::RunEnded{kRun, finished.reason};
    return std::nullopt;
  }
  std::optional<Event> event(const char* name) const {
    for (const auto& candidate : all<Event>())
      if (candidate.name == name) return candidate;
    return std::nullopt;
  }
  protocol::UpdateOffer offer(std::uint32_t round, std::uint64_t samples = 60) const {
    protocol::UpdateOffer result;
    result.run = kRun;
    result.round = RoundNumber(round);
    result.update.layout = kLayout;
    result.update.coverage = Coverage::all(kParameters);
    result.samples = SampleCount(samples);
    result.steps = 3;
    result.train_loss = static_cast<double>(samples);
    return result;
  }
  void deliver(std::uint32_t client, std::uint32_t round, std::uint64_t samples = 60) {
    feed(RunEngine::Offered{ClientId(client), offer(round, samples)});
    REQUIRE(one<RunEngine::Fetch>());
    feed(RunEngine::Stored{ClientId(client), RoundNumber(round)});
    REQUIRE(one<RunEngine::Fold>());
  }
};

}  // namespace fedge::server
