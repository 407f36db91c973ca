// UpdateMaker: makes a task's update on the daemon's worker thread: loads the model, trains, adds noise or
// masks, counts what leaves the device, and keeps the update until the coordinator's verdict. On the worker
// thread only.
#pragma once

#include <stop_token>

#include "client/device/context.h"

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
  UpdateMaker(const DaemonContext& context, ReportFault report_fault)
      : context_(context), report_fault_(std::move(report_fault)) {}

  // Trains. The model is in memory only while training lasts.
  Result<WorkResult> train(PreparedRun& run, TaskFiles::Download download, const Order& order) const;
  // Keeps the result for sending as it is. Refused in a run with masked updates.
  Result<TaskFiles::Update> keep_unmasked(const PreparedRun& run, const protocol::TrainRequest& request,
                                          Result<WorkResult> result) const;
  Result<TaskFiles::Update> keep_masked(const PreparedRun& run, const protocol::TrainRequest& request,
                                        const privacy::Masking& masking, WorkResult result) const;

 private:
  Result<OutgoingUpdate> mask(const PreparedRun& run, const protocol::TrainRequest& request,
                              const privacy::Masking& masking, WorkResult result) const;
  Result<Secret> noise_root(RunId run) const;
  Result<void> admit(const PreparedRun& run, const protocol::TrainRequest& request) const;
  Result<void> count_release(const PreparedRun& run, const protocol::TrainRequest& request,
                             const OutgoingUpdate& update) const;

  const DaemonContext& context_;
  ReportFault report_fault_;
};

}  // namespace fedge::client
