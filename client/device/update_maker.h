// UpdateMaker: makes a task's update: trains, adds noise or masks, counts what leaves the device, and keeps
// the update until the coordinator's verdict. train() is for the daemon's trainer thread, the rest for its
// worker thread.
#pragma once

#include <memory>
#include <stop_token>

#include "client/device/context.h"
#include "client/device/split_link.h"

namespace fedge::client {

class UpdateMaker {
 public:
  struct Order {
    protocol::TrainRequest request;
    std::stop_token stop;    // the task is abandoned
    std::stop_token enough;  // partial work: end training now
  };
  // Reports why training failed, in this client's log only, because the reason may reveal data.
  using ReportFault =
      std::function<void(const PreparedRun&, const protocol::TrainRequest&, const Error& fault)>;
  // `split`: for split training.
  UpdateMaker(const DaemonContext& context, std::shared_ptr<SplitLink> split, ReportFault report_fault)
      : context_(context), split_(std::move(split)), report_fault_(std::move(report_fault)) {}

  // `ahead`: the task has not been assigned yet.
  Result<WorkResult> train(PreparedRun& run, const LoadedModel& loaded, const Order& order,
                           bool ahead = false) const;
  // Keeps the result for sending as it is. Refused in a run with masked updates.
  Result<TaskFiles::Update> keep_unmasked(const PreparedRun& run, const protocol::TrainRequest& request,
                                          Result<WorkResult> result) const;
  Result<TaskFiles::Update> keep_masked(const PreparedRun& run, const protocol::TrainRequest& request,
                                        const privacy::Masking& masking, WorkResult result) const;

 private:
  Result<OutgoingUpdate> mask(const PreparedRun& run, const protocol::TrainRequest& request,
                              const privacy::Masking& masking, WorkResult result) const;
  bool measures(const PreparedRun& run) const;
  static Digest work_of(const PreparedRun& run, const protocol::TrainRequest& request);
  std::optional<double> measured_since(const EnergyMeter::Reading& begun) const;
  Result<Secret> noise_root(RunId run) const;
  Result<WorkResult> train_split(PreparedRun& run, TaskInHand task) const;
  Result<void> admit(const PreparedRun& run, const protocol::TrainRequest& request) const;
  Result<void> count_release(const PreparedRun& run, const protocol::TrainRequest& request,
                             const OutgoingUpdate& update) const;

  const DaemonContext& context_;
  std::shared_ptr<SplitLink> split_;
  ReportFault report_fault_;
};

}  // namespace fedge::client
