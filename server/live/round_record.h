// RoundRecorder: when a run's rounds and their phases began and ended, for traces. Pure; it decides nothing.
// Memory: a few hundred bytes for each phase of a round that has not ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/ids.h"
#include "core/time.h"
#include "server/engine/run_engine.h"

namespace fedge::server {

// A phase of a round: the training, evaluation or statistics of a track, or a buffer.
struct PhaseRecord {
  TaskId task;  // in an asynchronous run, its round is the buffer's number
  Time began{};
  std::optional<Time> secure = {};  // when its last secure sum began
  std::uint32_t attempt = 0;        // of that sum
  std::optional<Time> closed = {};
  std::optional<Time> committed = {};  // its model is durable
  std::size_t selected = 0;
  std::size_t completed = 0;
  bool aggregated = true;
  bool ends_round = false;
};

// A round that has ended, an attempt at the statistics, or a buffer.
struct RoundRecord {
  TaskId task;  // of its first phase
  Time began{};
  Time ended{};
  bool stopped = false;  // the run ended in it
  std::vector<PhaseRecord> phases = {};
};

class RoundRecorder {
 public:
  // `buffered`: an asynchronous run.
  explicit RoundRecorder(bool buffered) : buffered_(buffered) {}

  void decided(const RunEngine::Input& input, const std::vector<RunEngine::Effect>& effects, Time now);
  // The phase closed without a new model.
  void not_aggregated(TaskId task);
  // Returns the rounds that have ended since the last call.
  std::vector<RoundRecord> take() { return std::exchange(ended_, {}); }

 private:
  PhaseRecord& phase(TaskId task, Time now);
  void close(const RunEngine::CloseRound& turn, Time now);
  void commit(TaskId task, Time now);
  void end(TaskId task, bool stopped, Time now);

  bool buffered_;
  std::vector<PhaseRecord> phases_;  // of rounds that have not ended, in order of their beginning
  std::optional<Time> filling_;      // when the present buffer began
  std::vector<RoundRecord> ended_;
};

}  // namespace fedge::server
