// The disk of the coordinator's shell: the run's files and chunk stores, which outlive its processes. A crash
// takes back what was written last.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "server/coordinator/recovery.h"
#include "server/coordinator/run_parts.h"
#include "server/data_directory.h"
#include "server/engine/make_engine.h"
#include "server/store/input_codec.h"
#include "tests/property/sim/shells/memory_stores.h"
#include "tests/property/sim/shells/scene.h"

namespace fedge::server::shells {

struct Crash {
  std::size_t entries = 0;       // of the journal that were durable
  bool lost_checkpoint = false;  // one that came right after them was not
  bool full = false;             // the next process finds the disk full at its first attempt
};

class DaemonDisk {
 public:
  DaemonDisk(const Scene& scene, std::filesystem::path directory)
      : scene_(scene),
        directory_(std::move(directory)),
        models_(protocol::make_memory_chunk_store(std::size_t{1} << 28)),
        updates_(protocol::make_memory_chunk_store(std::size_t{1} << 28)) {
    written_->record = {.number = RunNumber(1), .id = scene.config.id, .status = RunStatus::kRunning};
    std::filesystem::create_directories(run_directory(directory_, written_->record.number));
  }

  // Opens the run as a new process does. With `full`, there is no room for a model while the journal is told
  // again; nothing is returned if one was needed.
  std::optional<RunParts> open(bool full) {
    RunParts parts{
        .record = written_->record,
        .model = *learn::make_model(scene_.config.task.model, scene_.test->shape, scene_.test->classes),
        .test = scene_.test};
    parts.store = std::make_unique<MemoryRuns>(written_);
    parts.models =
        std::make_unique<DeferredRemovals>(std::make_unique<LentChunks>(models_, space_, written_->models));
    parts.updates = std::make_unique<LentChunks>(updates_, plenty_, stored_);
    parts.threads = std::make_unique<ThreadPool>(1);
    auto state =
        RunState::create(scene_.config, *parts.model, parts.test.get(), *parts.models, *parts.threads);
    REQUIRE(state);
    parts.state = std::make_unique<RunState>(std::move(*state));
    auto engine = make_engine(*parts.state);
    REQUIRE_MESSAGE(engine, engine.error().message);
    Recovery recovery(
        {*parts.store, parts.record.number, *parts.state, *parts.updates, HalfFiles("nowhere")});
    parts.conductor = std::make_unique<Conductor>(
        Conductor::Setup{.config = parts.state->config(),
                         .layout = parts.state->rules().layout,
                         .samples_of = [](ClientId) { return std::optional<std::uint64_t>(7); }},
        std::move(*engine), recovery.ports());
    space_.build = !full;
    auto recovered = recovery.run(*parts.conductor);
    space_.build = true;
    if (full && !recovered && recovered.error().code == ErrorCode::kResource) return std::nullopt;
    REQUIRE_MESSAGE(recovered, recovered.error().message);
    parts.recovered = std::move(*recovered);
    return parts;
  }
  // Models that clients sent are on the disk for certain only once a checkpoint was written after them.
  void lose(const Crash& crash) {
    written_->journal.resize(std::min(crash.entries, written_->journal.size()));
    written_->durable = written_->journal.size();
    std::erase_if(written_->checkpoints, [&](const Written::Kept& kept) {
      return kept.entries > crash.entries || (kept.entries == crash.entries && crash.lost_checkpoint);
    });
    const auto& checkpoints = written_->checkpoints;
    const std::set<protocol::ObjectId> kept =
        checkpoints.empty() ? std::set<protocol::ObjectId>() : checkpoints.back().models;
    for (const protocol::ObjectId& model : written_->models)
      if (!kept.contains(model)) models_->remove(model);
    written_->models = kept;
  }
  std::uint64_t rounds() const {
    return written_->checkpoints.empty() ? 0 : written_->checkpoints.back().checkpoint.rounds;
  }
  // Returns the entries that are durable whatever happens: a stored update was promised. In a serverless run
  // clients store the updates; then a checkpoint is durable, and what was so when clients were told which
  // updates they aggregate.
  std::size_t promised() const {
    const auto& checkpoints = written_->checkpoints;
    if (scene_.config.dissemination.serverless)
      return std::max(ordered_, checkpoints.empty() ? 0 : checkpoints.back().entries);
    std::size_t promised = 0;
    for (std::size_t i = 0; i < written_->journal.size(); ++i) {
      const auto record = decode_record(written_->journal[i].input);
      const auto* input = record ? std::get_if<RunEngine::Input>(&*record) : nullptr;
      if (input != nullptr && std::holds_alternative<RunEngine::Stored>(*input)) promised = i + 1;
    }
    return promised;
  }
  // Clients are told which updates they aggregate.
  void note_order() { ordered_ = written_->durable; }
  // Whether there is room for a model that clients send.
  void set_room(bool room) { space_.create = room; }
  std::shared_ptr<protocol::StoredObject> model(const protocol::ObjectId& id) { return models_->find(id); }
  const std::filesystem::path& directory() const { return directory_; }
  Written& written() { return *written_; }
  const Written& written() const { return *written_; }

 private:
  const Scene& scene_;
  std::filesystem::path directory_;
  std::shared_ptr<protocol::ChunkStore> models_;
  std::shared_ptr<protocol::ChunkStore> updates_;
  std::shared_ptr<Written> written_ = std::make_shared<Written>();
  std::size_t ordered_ = 0;  // entries that were durable when an order was sent last
  DiskSpace space_;
  DiskSpace plenty_;
  std::set<protocol::ObjectId> stored_;  // updates; a crash loses none of them
};

}  // namespace fedge::server::shells
