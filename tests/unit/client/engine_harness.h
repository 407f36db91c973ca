// Drives one ClientEngine step by step and records its effects.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "client/client_engine.h"

namespace fedge::test {

inline constexpr RunId kRun(77);
inline constexpr RunId kOther(78);

struct EngineHarness {
  using Engine = client::ClientEngine;

  explicit EngineHarness(bool traced = false)
      : engine({.first = seconds(1), .longest = seconds(8)}, traced) {}

  Engine engine;
  Rng rng{5};
  Time now{};
  std::vector<Engine::Effect> effects;  // of the latest input

  void feed(const Engine::Input& input) {
    effects.clear();
    engine.step(input, {now, rng}, effects);
  }
  template <class T>
  const T* effect() const {
    for (const auto& candidate : effects)
      if (const auto* found = std::get_if<T>(&candidate)) return found;
    return nullptr;
  }
  template <class M>
  const M* sent() const {
    for (const auto& candidate : effects)
      if (const auto* send = std::get_if<Engine::Send>(&candidate))
        if (const auto* message = std::get_if<M>(&send->message)) return message;
    return nullptr;
  }
  // Returns the event as a log line; empty if there was none.
  std::string event(const std::string& name) const {
    for (const auto& candidate : effects)
      if (const auto* found = std::get_if<Event>(&candidate); found && found->name == name)
        return to_string(*found);
    return "";
  }
  // Returns the engine's work in the run; empty if it does not know the run.
  std::string work(RunId run = kRun) const {
    for (const auto& part : engine.parts())
      if (part.run == run) return part.work;
    return "";
  }

  void connected(std::vector<RunId> runs = {kRun, kOther}) {
    feed(Engine::Connected{{.software = "", .client = {}, .runs = std::move(runs)}});
  }
  void go_online() {
    feed(Engine::Start{});
    REQUIRE(effect<Engine::Connect>() != nullptr);
    connected();
  }
  void lose_link() { feed(Engine::Disconnected{{ErrorCode::kUnavailable, "cut"}}); }
  // Describes a run whose name is its number.
  void describe(RunId run = kRun) {
    feed(Engine::Received{protocol::RunDescription{
        .run = run, .name = std::to_string(run.value()), .seed = 1, .task = "", .layout = {}}});
  }
  void describe_and_prepare(RunId run = kRun) {
    describe(run);
    REQUIRE(effect<Engine::PrepareRun>() != nullptr);
    feed(Engine::RunPrepared{run});
  }
  void request(std::uint32_t round, const protocol::Manifest& model = {}, RunId run = kRun) {
    protocol::TrainRequest request;
    request.model = model;
    request.run = run;
    request.round = RoundNumber(round);
    request.coverage = Coverage::all(10);
    feed(Engine::Received{request});
  }
  void request_of(RunId run, std::uint32_t round) { request(round, {}, run); }
  void fetched(std::uint32_t round, RunId run = kRun) {
    feed(Engine::ModelFetched{run, {RoundNumber(round), {}}});
  }
  void train(std::uint32_t round, RunId run = kRun) {
    request_of(run, round);
    REQUIRE(effect<Engine::FetchModel>() != nullptr);
    fetched(round, run);
    REQUIRE(effect<Engine::Train>() != nullptr);
  }
  void finish_training(std::uint32_t round, RunId run = kRun) {
    protocol::UpdateOffer offer;
    offer.run = run;
    offer.round = RoundNumber(round);
    offer.samples = SampleCount(60);
    feed(Engine::Trained{run, {RoundNumber(round), {}}, offer});
  }
  // Requests a task, lets the engine train and offers the update.
  void offer(std::uint32_t round, RunId run = kRun) {
    train(round, run);
    finish_training(round, run);
    REQUIRE(sent<protocol::UpdateOffer>() != nullptr);
  }
};

}  // namespace fedge::test
