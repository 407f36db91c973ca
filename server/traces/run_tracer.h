// RunTracer: turns what a run's watch records into parts of traces, with times of the calendar. Used on the
// run's thread. Memory: at most kMostLinks tasks of each
// buffer that has not ended.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "server/live/run_watch.h"
#include "server/traces/trace_part.h"

namespace fedge::server {

class RunTracer {
 public:
  // The most tasks to which the span of a buffer links.
  static constexpr std::size_t kMostLinks = 128;

  // `out` receives each part. `calendar` returns the time since 1970.
  RunTracer(TracedRun run, std::function<void(TracePart)> out, std::function<Time()> calendar);

  void closed(TaskId phase, std::vector<WatchedTask> tasks, Time now);
  void ended(RoundRecord round, Time now);

 private:
  // The calendar's time at the beginning of the run's clock. It is taken once for each round, so that the
  // times of a trace fit together also if the calendar clock is set.
  Duration anchor(TaskId task, Time now);

  std::shared_ptr<const TracedRun> run_;
  std::function<void(TracePart)> out_;
  std::function<Time()> calendar_;
  std::optional<std::pair<TaskId, Duration>> anchor_;
  // Accepted tasks of the buffers that have not ended; only in an asynchronous run.
  std::map<RoundNumber, std::vector<WatchedTask>> linked_;
};

// Returns what gives the records to a tracer, which it keeps.
WatchRecords records_for(std::shared_ptr<RunTracer> tracer);

}  // namespace fedge::server
