// TracePart: a part of a trace on its way to the collector: the tasks of a phase that has closed, or a round
// that has ended. Plain data. Spans name their parents by derived ids, so parts can be sent in any order.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/time.h"
#include "server/live/run_watch.h"
#include "server/store/run_store.h"

namespace fedge::server {

struct TracedRun {
  RunNumber number;
  RunId id;
  std::string name;
  bool buffered = false;  // an asynchronous run
};

struct TracePart {
  std::shared_ptr<const TracedRun> run;
  Duration unix_time{};  // since 1970, at the beginning of the run's clock
  TaskId phase = {};     // of the tasks; in an asynchronous run, its round is the buffer's number
  std::vector<WatchedTask> tasks = {};
  std::optional<RoundRecord> round = {};
};

// Returns the number of spans that the part becomes.
std::size_t spans_of(const TracePart& part);
// Returns about how many bytes the part takes.
std::size_t bytes_of(const TracePart& part);

}  // namespace fedge::server
