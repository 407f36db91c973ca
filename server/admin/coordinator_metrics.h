// CoordinatorMetrics computes the coordinator's metrics for /metrics from its events and round metrics.
// Counters start at 0 with the process. Use it on one thread, that of the coordinator's callbacks and the
// admin pages. docs/reference/metrics.md lists the families.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/event.h"
#include "core/result.h"
#include "server/admin/directory_figures.h"
#include "server/admin/exposition.h"
#include "server/live/live.h"
#include "server/report/metrics.h"
#include "server/store/run_store.h"
#include "server/traces/trace_exporter.h"

namespace fedge::server {

// All families that /metrics may contain, in order of output.
std::span<const MetricFamily> coordinator_families();

class CoordinatorMetrics {
 public:
  struct Sources {
    std::filesystem::path data_directory;
    std::string version;                                 // of this program
    std::function<std::size_t()> clients;                // connected; may be null
    std::function<std::size_t()> tasks;                  // assigned and not answered; may be null
    std::function<std::vector<RunRecord>()> runs;        // not ended; may be null
    std::function<Result<std::size_t>()> enrolled = {};  // clients that may connect; may be null
    std::function<Result<void>()> check = {};            // error if the coordinator cannot work; may be null
    std::function<std::optional<DirectoryFigures>()> directory =
        {};                                                   // nullopt without a directory; may be null
    std::function<std::shared_ptr<const Live>()> live = {};   // may be null, and return null
    std::function<std::optional<TraceCounts>()> traces = {};  // nullopt without traces; may be null
  };
  explicit CoordinatorMetrics(Sources sources);

  void add(const Event& event);
  void add(RunNumber run, const RoundMetrics& round);
  // Continues a run: its metrics are those of the last round of `history`. Counters do not change.
  void resume(RunNumber run, const std::vector<RoundMetrics>& history);
  // Removes the metrics of a run that is no longer executed.
  void forget(RunNumber run) { latest_.erase(run); }
  // Returns why clients should not connect: the data directory is missing or full, the enrolment book or
  // run list is unreadable, or the last update received could not be stored.
  Result<void> check_ready() const;
  // Returns the whole page.
  std::string text();

 private:
  void add_rounds(Exposition& page) const;
  void add_clients(Exposition& page);
  void add_live(Exposition& page) const;
  void add_traces(Exposition& page) const;
  void add_process(Exposition& page) const;

  Sources sources_;
  double started_;  // seconds since 1970
  std::uint64_t rounds_ = 0;
  Histogram durations_;
  struct Latest {
    std::uint64_t round = 0;
    double seconds = 0;  // from the start of the run to this round's end
    // Values of the last evaluated model and of the last round in which a client completed training.
    std::optional<double> accuracy;
    std::optional<double> rmse;
    std::optional<double> loss;
    std::optional<double> train_loss;
    std::optional<double> epsilon;
    std::optional<double> left_out;
  };
  static void update(Latest& latest, const RoundMetrics& round);
  std::map<RunNumber, Latest> latest_;  // of the runs being executed
  std::uint64_t accepted_ = 0;
  LabelledCounts refused_;  // by code
  double bytes_up_ = 0;
  double bytes_down_ = 0;
  LabelledCounts events_;
  std::optional<std::string> not_stored_;
};

}  // namespace fedge::server
