// JournalWriter makes a run's inputs durable in batches. add() queues an entry. flush() writes and syncs
// the queue on a separate thread, payloads before the entries that refer to them; on_durable then reports
// the last durable entry. While one batch is written the next one gathers, so under load one sync serves
// many entries. A full disk is retried; any other error stops the writing, because the state of the disk is
// then unknown. Use it on the io_context's thread. Owned by shared_ptr, because the disk thread calls back.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/event.h"
#include "protocol/chunks/chunk_store.h"
#include "protocol/session/loop.h"
#include "server/coordinator/detail/disk_retry.h"
#include "server/store/run_store.h"

namespace fedge::server {

class JournalWriter : public std::enable_shared_from_this<JournalWriter> {
 public:
  struct Callbacks {
    std::function<void(std::uint64_t)> on_durable;  // all entries up to this one are durable
    std::function<void(const Error&)> on_failure;   // no more entries will be written
    std::function<void(const Event&)> on_event;
  };
  // `store` must outlive the writer. Entries are numbered from `last` + 1.
  JournalWriter(boost::asio::io_context& io, RunStore& store, RunNumber run, std::uint64_t last);

  void set_callbacks(Callbacks callbacks) { callbacks_ = std::move(callbacks); }

  // Queues an entry and returns its number. `payload`, if any, is made durable before it.
  std::uint64_t add(Time time, std::string input, std::shared_ptr<protocol::StoredObject> payload);
  // Queues a round's checkpoint, writes at once, and calls `durable` when the checkpoint is durable.
  void keep(Checkpoint checkpoint, std::function<void()> durable);
  void flush();
  // Returns whether the disk is full; new entries then stay in memory until there is space.
  bool waits_for_room() const { return retry_.is_full(); }
  // Calls `done` once all entries added before are durable.
  void drain(std::function<void()> done);
  // Writes the remaining entries if the disk accepts them. No callback comes after this returns.
  void shut_down();

 private:
  struct Work {
    std::vector<std::shared_ptr<protocol::StoredObject>> objects;
    std::vector<Batch> batches;
    std::uint64_t last = 0;
    std::vector<std::function<void()>> durable;
  };
  // Returns the batch for the next entry; a checkpoint ends its batch.
  Batch& batch();
  void write();
  void written(const Result<void>& outcome);

  boost::asio::io_context& io_;
  RunStore& store_;
  RunNumber run_;
  Callbacks callbacks_;
  protocol::Worker disk_;
  DiskRetry retry_;
  protocol::Timer gather_;
  Work pending_;
  std::shared_ptr<const Work> writing_;  // the write in progress
  bool wanted_ = false;                  // flush() was called meanwhile
  bool failed_ = false;
};

}  // namespace fedge::server
