// Runs of the fuzz target of the admin API: their documents, models, metrics and results, as a coordinator
// leaves them in its data directory, and what is seen of a run that goes on.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/crypto/sha256.h"
#include "core/safetensors.h"
#include "protocol/chunks/chunk_store.h"
#include "server/coordinator/run_parts.h"
#include "server/data_directory.h"
#include "server/live/live.h"
#include "server/report/metrics.h"
#include "server/report/model_files.h"
#include "server/store/saved_state.h"

namespace fedge::fuzz {

template <class T>
T fulfilled(Result<T> result) {
  FEDGE_CHECK(result.has_value(), result ? "" : result.error().message);
  return std::move(*result);
}
inline void fulfil(const Result<void>& result) {
  FEDGE_CHECK(result.has_value(), result ? "" : result.error().message);
}

struct ApiTeam {
  std::string project;
  std::string mark;                          // in the strings of runs, tokens, users
  std::string client_mark;                   // in those of clients, which may move to another project
  std::vector<std::string> marks = {};       // that only this project may see
  std::vector<std::string> of_clients = {};  // the same of clients
};

struct ApiRun {
  server::RunNumber run;
  const ApiTeam& team;
};

inline std::string document_of(const ApiTeam& team, const std::string& name) {
  return "[run]\nname = \"" + team.mark + " " + name +
         "\"\nrounds = 3\nkeep_best = true\n[data]\ndataset = \"csv\"\nname = \"" + team.mark +
         "\"\nnumeric = [\"t\"]\nmean = [70.0]\ndeviation = [12.0]\ntarget = \"ok\"\n"
         "classes = [\"no\", \"yes\"]\npartition = { kind = \"own\", clients = 3 }\n[model]\n"
         "kind = \"softmax\"\n";
}

// The model of these rounds has four parameters.
inline void keep_rounds(const std::filesystem::path& data, server::RunStore& store, const ApiRun& of,
                        int rounds) {
  const auto& [run, team] = of;
  const std::array<float, 4> values{1, 2, 3, 4};
  const auto bytes = std::as_bytes(std::span(values));
  const auto chunks = fulfilled(protocol::open_file_chunk_store(
      server::models_of(data, run), {.max_bytes = 1 << 20, .durable = true, .all_wanted = true}));
  protocol::Manifest shape{
      .coverage = Coverage::all(values.size()), .payload_size = bytes.size(), .chunk_size = 16 << 10};
  const auto object = fulfilled(chunks->build(shape, [&](std::size_t, std::span<std::byte> out) {
    std::ranges::copy(bytes, out.begin());
    return Result<void>();
  }));
  fulfil(object->sync());
  server::SavedState state;
  state.tracks.push_back({.hash = sha256(bytes), .model = object->manifest()});
  for (int round = 1; round <= rounds; ++round) {
    server::RoundMetrics metrics;
    metrics.round = static_cast<std::uint64_t>(round);
    metrics.model_hash = to_hex(sha256(bytes));
    metrics.test_accuracy = 0.5 + 0.125 * round;
    metrics.tracks = {{.track = {.members = 3}, .model_hash = metrics.model_hash},
                      {.track = {.exclude = {team.mark + " one"}, .owners = {team.mark + " two"}}}};
    if (round == 1) metrics.statistics = learn::DataStatistics{.clients = 3, .labels = {{team.mark, 7}}};
    const auto at = metrics.round;
    const std::array batches{
        server::Batch{.run = run,
                      .entries = {},
                      .checkpoint = server::Checkpoint{at, server::encode_state(state), to_json(metrics)}}};
    fulfil(store.append(batches));
  }
}

inline void keep_results(const std::filesystem::path& data, const ApiRun& of) {
  const auto& [run, team] = of;
  auto layout = std::make_shared<ParameterLayout>();
  layout->add("weights", {4});
  const ParameterVector model(layout);
  const auto results = server::run_results(data, run);
  const server::TrackDescription track{.exclude = {team.mark + " one"}};
  for (const auto& [file, round] : {std::pair(results / "model.safetensors", "3"),
                                    std::pair(results / "tracks" / (file_name(track) + ".safetensors"), "3"),
                                    std::pair(server::kept_model(results, 1), "1")}) {
    std::filesystem::create_directories(file.parent_path());
    fulfil(write_safetensors(file, model, {{"round", round}, {"name", team.mark}}));
  }
}

// A round with a task in hand, one that failed, a client that declined, and a secure sum.
inline std::shared_ptr<server::RunWatch> watched(server::Live& live, const ApiRun& of, ClientId online) {
  const auto& [run, team] = of;
  const auto timeline = std::make_shared<server::RunWatch>(
      server::RunFacts{.model_bytes = 16, .last_round = 3, .epsilon = 8, .delta = 1e-5});
  timeline->begin([&live, number = run](const server::WatchedTask& task) {
    live.fleet.ended(number, task, server::calendar_now());
  });
  const TaskId task{RoundNumber(2), {}};
  for (const std::uint32_t client : {online.value(), online.value() + 3, online.value() + 4}) {
    timeline->linked(ClientId(client), Time());
    timeline->decided(Expired{}, {server::RunEngine::Assign{.client = ClientId(client), .task = task}},
                      Time());
  }
  const protocol::TaskFailed failure{
      .round = task.round, .code = ErrorCode::kResource, .reason = team.mark + " is full"};
  timeline->decided(server::RunEngine::Failed{online, failure}, {}, Time(seconds(1)));
  timeline->declined(online, team.mark + " has no data", Time(seconds(2)));
  timeline->secure({.task = task, .attempt = 1, .stage = "keys", .awaited = {online}}, Time(seconds(3)));
  timeline->waits(server::RunEngine::Waiting{RoundNumber(2), 1, 5}, Time(seconds(4)));
  return timeline;
}

}  // namespace fedge::fuzz
