// The programs on a small run with several models, and the models that they compute.
#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "server/report/metrics.h"
#include "tests/integration/run_program.h"
#include "tests/support/tiny_dataset.h"

namespace fedge::test {

// Model hashes by round and by the clients that the track excludes.
using TrackModels = std::map<std::pair<std::uint64_t, std::vector<std::string>>, std::string>;

// Reads the models of the rounds in a program's results so far.
inline TrackModels read_models(const std::filesystem::path& results) {
  TrackModels models;
  const auto rounds = server::read_metrics(results / "metrics.jsonl");
  if (!rounds) return models;
  for (const auto& round : *rounds)
    for (const auto& track : round.tracks) models[{round.round, track.track.exclude}] = track.model_hash;
  return models;
}

struct TrackPrograms {
  TemporaryDirectory data;
  TemporaryDirectory out;
  TrackPrograms() { write_tiny_dataset(data); }

  std::filesystem::path results(const std::string& name) const { return out.path() / name; }
  std::string run_file() const { return FEDGE_SOURCE_DIR "/examples/fashion-mlp.toml"; }
  // Four clients, all of them in each of four rounds; a policy with this list of disagreements.
  std::vector<std::string> settings(const std::string& disagreements) const {
    return {"data.directory=" + data.path().string(),
            "data.partition.clients=4",
            "sampling.clients_per_round=4",
            "run.rounds=4",
            "model.hidden=[20]",
            "tracks.disagreement=[" + disagreements + "]"};
  }
  // Returns the models of a simulation with these settings; `more` is appended to them.
  TrackModels models(const std::string& name, const std::string& disagreements,
                     const std::string& more) const {
    std::string command = "fedge-sim run " + run_file() + " --out " + results(name).string();
    for (const std::string& setting : settings(disagreements)) command += " --set '" + setting + "'";
    const Outcome outcome = run(command + " " + more);
    REQUIRE_MESSAGE(outcome.code == 0, outcome.output);
    return read_models(results(name));
  }
};

}  // namespace fedge::test
