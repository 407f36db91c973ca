// Stores in memory that outlive the run's process, as files do. A crash may take back what was written last.
#pragma once

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "protocol/chunks/chunk_store.h"
#include "server/store/run_store.h"

namespace fedge::server::shells {

// Which operations on a store's disk fail.
struct DiskSpace {
  bool build = true;   // room for an object of this machine
  bool create = true;  // room for an object that others send
};

class LentChunks final : public protocol::ChunkStore {
 public:
  LentChunks(std::shared_ptr<protocol::ChunkStore> store, const DiskSpace& space,
             std::set<protocol::ObjectId>& created)
      : store_(std::move(store)), space_(space), created_(created) {}
  Result<std::shared_ptr<protocol::StoredObject>> create(const protocol::Manifest& manifest) override {
    const auto known = store_->find(manifest.id());
    if (known && known->complete()) return known;
    if (!space_.create) return full();
    if (!known) created_.insert(manifest.id());
    return store_->create(manifest);
  }
  Result<std::shared_ptr<protocol::StoredObject>> build(
      protocol::Manifest shape,
      const std::function<Result<void>(std::size_t, std::span<std::byte>)>& fill) override {
    if (!space_.build) return full();
    return store_->build(std::move(shape), fill);
  }
  std::shared_ptr<protocol::StoredObject> find(const protocol::ObjectId& id) override {
    return store_->find(id);
  }
  void remove(const protocol::ObjectId&) override {}  // a crash may come before it
  void settle() override {}
  void trim() override {}

  static Error full() { return {ErrorCode::kResource, "the disk is full"}; }

 private:
  std::shared_ptr<protocol::ChunkStore> store_;
  const DiskSpace& space_;
  std::set<protocol::ObjectId>& created_;
};

// The files of a run.
struct Written {
  struct Kept {
    std::size_t entries = 0;  // of the journal, before the checkpoint
    Checkpoint checkpoint;
    std::set<protocol::ObjectId> models;  // created before it
  };
  RunRecord record;
  std::vector<JournalEntry> journal;
  std::vector<Kept> checkpoints;
  std::set<protocol::ObjectId> models;   // that clients have sent, or began to send
  std::size_t fresh = 0;                 // entries since the owner last looked
  std::atomic<std::size_t> durable = 0;  // entries; any thread may read it
};

class MemoryRuns final : public RunStore {
 public:
  explicit MemoryRuns(std::shared_ptr<Written> written) : written_(std::move(written)) {}

  Result<void> append(std::span<const Batch> batches) override {
    for (const Batch& batch : batches) {
      written_->fresh += batch.entries.size();
      written_->journal.insert(written_->journal.end(), batch.entries.begin(), batch.entries.end());
      written_->durable = written_->journal.size();
      if (!batch.checkpoint) continue;
      written_->checkpoints.push_back({written_->journal.size(), *batch.checkpoint, written_->models});
    }
    return {};
  }
  Result<void> read_journal(RunNumber,
                            const std::function<Result<void>(const JournalEntry&)>& visit) override {
    for (std::size_t i = 0; i < written_->journal.size(); ++i) FEDGE_TRY_VOID(visit(written_->journal[i]));
    return {};
  }
  Result<std::optional<Checkpoint>> checkpoint(RunNumber) override {
    if (written_->checkpoints.empty()) return std::optional<Checkpoint>();
    return std::optional(written_->checkpoints.back().checkpoint);
  }
  Result<std::vector<std::string>> metrics(RunNumber) override {
    std::vector<std::string> lines;
    for (const auto& kept : written_->checkpoints) lines.push_back(kept.checkpoint.metrics);
    return lines;
  }
  Result<RunRecord> run(RunNumber) override { return written_->record; }
  Result<void> set_status(RunNumber, RunStatus status, const std::string& reason, UnixSeconds) override {
    written_->record.status = status;
    written_->record.reason = reason;
    return {};
  }

  // The coordinator, not a run, calls these.
  Result<RunNumber> submit(const RunRecord&) override { return invalid("not used"); }
  Result<std::vector<RunRecord>> runs() override { return invalid("not used"); }
  Result<void> remove(RunNumber) override { return invalid("not used"); }
  Result<std::optional<RunRecord>> find(RunId) override { return invalid("not used"); }
  Result<std::vector<std::string>> metrics(RunNumber, std::uint64_t, std::uint64_t) override {
    return invalid("not used");
  }
  Result<std::uint64_t> rounds(RunNumber) override { return invalid("not used"); }
  Result<std::vector<RunRecord>> open_runs() override { return invalid("not used"); }
  Result<RunNumber> highest() override { return invalid("not used"); }
  Result<void> ask(RunNumber, RunStatus, const std::string&, UnixSeconds) override {
    return invalid("not used");
  }
  Result<bool> claim(RunNumber, UnixSeconds) override { return invalid("not used"); }
  Result<void> explain(RunNumber, const std::string&) override { return invalid("not used"); }
  Result<std::uint64_t> foreign_changes() override { return invalid("not used"); }

 private:
  std::shared_ptr<Written> written_;
};

}  // namespace fedge::server::shells
