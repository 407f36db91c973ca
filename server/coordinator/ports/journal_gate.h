// JournalGate carries out a run's decisions when the journal holds their inputs. An input about an update has
// the update as payload: its effects, such as the client's verdict, wait until both are durable. In a
// serverless run, so do the effects of an input that closes a phase: the clients are then told which updates
// they aggregate, and after a crash they must not be told otherwise. Effects of later inputs wait behind
// them. All other effects need no wait: a restart repeats or outlives them. Use it on the io_context's
// thread. Private to coordinator/.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

#include "server/conductor/conductor.h"
#include "server/coordinator/detail/journal_writer.h"

namespace fedge::server {

class JournalGate final : public Gate {
 public:
  struct Surroundings {
    JournalWriter& journal;
    std::function<Time()> now;
    // Returns the stored update that this input is about, or null.
    std::function<std::shared_ptr<protocol::StoredObject>(const RunEngine::Input&)> payload_of;
    std::function<void(const Decision&)> carry_out;
    bool clients_aggregate = false;  // the run is serverless
  };
  explicit JournalGate(Surroundings surroundings) : surroundings_(std::move(surroundings)) {}

  void record(const RunEngine::Input& input) override;
  void enter(Decision decision) override;
  // All entries up to this one are durable.
  void became_durable(std::uint64_t entry);
  // Drops the decisions that wait.
  void stop() { waiting_.clear(); }

 private:
  struct Waiting {
    std::uint64_t entry;  // 0: waits only for the decisions before it
    Decision decision;
  };
  Surroundings surroundings_;
  std::uint64_t entry_ = 0;      // of the last recorded input
  bool has_payload_ = false;     // it has one
  std::deque<Waiting> waiting_;  // in order
};

}  // namespace fedge::server
