// JournalWriter: makes a run's inputs durable, many at a time. add() takes what has happened; flush() has
// everything that was added written and synced by a thread of its own, updates' payloads before the entries
// that speak of them, and on_durable says up to which entry that is so. While one batch is on its way to the
// disk the next one gathers: under load one sync serves them all. A full disk is waited for; any other error
// ends the writing, since nothing more is known of the disk. Lives on the io_context's thread; owned by
// shared_ptr, since the disk's thread calls back.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/event.h"
#include "protocol/chunks/chunk_store.h"
#include "protocol/session/loop.h"
#include "server/store/run_store.h"

namespace fedge::server {

class JournalWriter : public std::enable_shared_from_this<JournalWriter> {
 public:
  struct Callbacks {
    std::function<void(std::uint64_t)> on_durable;  // all entries up to this one
    std::function<void(const Error&)> on_failure;   // nothing more will be written
    std::function<void(const Event&)> on_event;
  };
  // `store` is lent and must outlive it. Entries follow the one numbered `last`.
  JournalWriter(boost::asio::io_context& io, RunStore& store, RunNumber run, std::uint64_t last);

  void set_callbacks(Callbacks callbacks) { callbacks_ = std::move(callbacks); }

  // The entry's number. `payload`, if there is one, is made durable before it.
  std::uint64_t add(Time time, std::string input, std::shared_ptr<protocol::StoredObject> payload);
  // What a round has come to; written at once, and `durable` called then.
  void keep(Checkpoint checkpoint, std::function<void()> durable);
  void flush();
  // The disk is full: what is added stays in memory for now.
  bool waits_for_room() const { return waits_for_room_; }
  // Calls `done` once all that has been added is durable.
  void drain(std::function<void()> done);
  // Writes the rest, if the disk takes it, and returns when all is done; no callback comes after this.
  void shut_down();

 private:
  struct Work {
    std::vector<std::shared_ptr<protocol::StoredObject>> objects;
    std::vector<Batch> batches;
    std::uint64_t last = 0;
    std::vector<std::function<void()>> durable;
  };
  // Where the next entry goes: a batch ends with its checkpoint.
  Batch& batch();
  void write(std::shared_ptr<const Work> work);
  void written(const std::shared_ptr<const Work>& work, const Result<void>& outcome);

  boost::asio::io_context& io_;
  RunStore& store_;
  RunNumber run_;
  Callbacks callbacks_;
  protocol::Worker disk_;
  protocol::Timer retry_;
  protocol::Timer gather_;
  Work pending_;
  bool wanted_ = false;   // what is pending is to be written as soon as the disk is free
  bool writing_ = false;  // a batch is on its way
  bool waits_for_room_ = false;
  bool failed_ = false;
};

}  // namespace fedge::server
