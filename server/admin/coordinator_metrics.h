// CoordinatorMetrics: a coordinator's figures for /metrics, counted from what it reports anyway: its events
// and the metrics of its rounds. Counters begin at 0 with the process. One thread: the coordinator's
// callbacks' and the admin pages'. docs/reference/metrics.md lists the families.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/event.h"
#include "core/result.h"
#include "server/admin/directory_figures.h"
#include "server/admin/exposition.h"
#include "server/report/metrics.h"
#include "server/store/run_store.h"

namespace fedge::server {

// Every family that /metrics may hold, in its order.
std::span<const MetricFamily> coordinator_families();

class CoordinatorMetrics {
 public:
  struct Sources {
    std::filesystem::path data_directory;
    std::string version;                           // of this program
    std::function<std::size_t()> clients;          // connected now; with the next, null if nobody can say
    std::function<std::size_t()> tasks;            // in clients' hands now
    std::function<std::vector<RunRecord>()> runs;  // those that are not over; may be null, too
    std::function<Result<std::size_t>()> enrolled = {};  // how many clients may connect; may be null
    std::function<Result<void>()> check = {};  // why the coordinator cannot do its work; may be null
    std::function<std::optional<DirectoryFigures>()> directory =
        {};  // nothing if it takes no part in one; or null
  };
  explicit CoordinatorMetrics(Sources sources);

  void add(const Event& event);
  void add(RunNumber run, const RoundMetrics& round);
  // It is led no more.
  void forget(RunNumber run) { latest_.erase(run); }
  // Why no client should come now, or nothing: the data directory is gone or full, the enrolment book or
  // the list of runs cannot be read, or the last update that came could not be stored.
  Result<void> check_ready() const;
  // The whole page.
  std::string text();

 private:
  void add_rounds(Exposition& page) const;
  void add_clients(Exposition& page);
  void add_process(Exposition& page) const;

  Sources sources_;
  double started_;  // seconds since 1970
  std::uint64_t rounds_ = 0;
  Histogram durations_;
  struct Latest {
    std::uint64_t round = 0;
    double seconds = 0;  // since the run began
    // Of the last model that was evaluated, and the last round that somebody trained in.
    std::optional<double> accuracy;
    std::optional<double> loss;
    std::optional<double> train_loss;
    std::optional<double> epsilon;
    std::optional<double> left_out;
  };
  std::map<RunNumber, Latest> latest_;  // of the runs that are led
  std::uint64_t accepted_ = 0;
  LabelledCounts refused_;  // by code
  double bytes_up_ = 0;
  double bytes_down_ = 0;
  LabelledCounts events_;
  std::optional<std::string> not_stored_;
};

}  // namespace fedge::server
