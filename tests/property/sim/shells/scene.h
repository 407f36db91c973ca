// The run that both shells execute.
#pragma once

#include <doctest/doctest.h>

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/config/document.h"
#include "core/crypto/ed25519.h"
#include "core/ids.h"
#include "core/platform/thread_pool.h"
#include "core/rng.h"
#include "learn/data/dataset.h"
#include "learn/evaluation/evaluate.h"
#include "learn/model.h"
#include "learn/task.h"
#include "run/run_config.h"
#include "swarm/warmup/round_warmup.h"
#include "tests/support/tiny_dataset.h"

namespace fedge::server::shells {

// The node key of a client.
inline const SecretKey& node_key(ClientId client) {
  static std::map<ClientId, SecretKey> keys;
  const auto known = keys.find(client);
  if (known != keys.end()) return known->second;
  std::array<std::uint8_t, 32> seed{};
  seed[0] = static_cast<std::uint8_t>(client.value() + 1);
  return keys.emplace(client, SecretKey::from_seed(seed)).first->second;
}

struct Scene {
  explicit Scene(const std::filesystem::path& data, const std::vector<std::string>& settings) {
    auto document =
        config::parse_toml("[data]\ndirectory = \"" + data.string() +
                               "\"\npartition = { clients = 6 }\n[model]\nkind = \"softmax\"\n[run]\nname = "
                               "\"scene\"\nrounds = 3\n",
                           "run.toml");
    REQUIRE(document);
    for (const std::string& setting : settings) REQUIRE(config::set(*document, setting));
    auto read = run::read_run_config(*document);
    REQUIRE_MESSAGE(read, read.error().message);
    config = std::move(*read);
    config.id = RunId(77);
    test = *learn::load_test(config.task.data);
    model = *learn::make_model(config.task.model, test->shape, test->classes);
    training = *learn::Task::build_without_data(config.task, config.seed, ClientId());
  }
  // Draws for the warm-ups of serverless rounds; and those of one, as the simulator draws them.
  Rng warmup_draws() const { return Rng(config.seed).fork("warm-up"); }
  swarm::RoundWarmup::Seeds warmup_seeds(TaskId task) const {
    const auto draw = [&](const char* what) {
      return warmup_draws().fork(what, task.round.value(), task.track.value()).next_u64();
    };
    return {draw("overlay"), draw("secret")};
  }

  run::RunConfig config;
  std::shared_ptr<const learn::Dataset> test;
  std::shared_ptr<const learn::Model> model;
  std::shared_ptr<const learn::Task> training;
};

}  // namespace fedge::server::shells
