#include "client/device/update_maker.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "client/secure/daily_updates.h"
#include "client/secure/private_releases.h"
#include "core/platform/calendar.h"
#include "protocol/limits.h"

namespace fedge::client {
namespace {

// Attempts at one split training before its task counts as failed.
constexpr int kMostAttempts = 20;

// The current day, in days since 1970, UTC.
std::uint64_t today() {
  return static_cast<std::uint64_t>(
      std::chrono::floor<std::chrono::days>(calendar_time()).time_since_epoch().count());
}

}  // namespace

// With other data, the same task is other work.
Digest UpdateMaker::work_of(const PreparedRun& run, const protocol::TrainRequest& request) {
  if (!run.stream) return DailyUpdates::work_of(run.terms, request);
  const std::string data = to_hex(run.terms) + " " + std::to_string(run.stream_generation);
  return DailyUpdates::work_of(sha256(data), request);
}

// Checks the owner's limits before work that they would make useless.
Result<void> UpdateMaker::admit(const PreparedRun& run, const protocol::TrainRequest& request) const {
  const auto& directory = context_.options.state_directory;
  if (const auto most = context_.options.max_updates_per_day) {
    FEDGE_TRY(daily, DailyUpdates::read(directory, today()));
    FEDGE_TRY_VOID(daily.admit(work_of(run, request), *most));
  }
  if (const auto most = run.most_updates(); most && request.kind == TaskKind::kTraining) {
    FEDGE_TRY(releases, PrivateReleases::read(directory));
    FEDGE_TRY_VOID(releases.admit(request.run, request.task(), *most));
  }
  return {};
}

Result<WorkResult> UpdateMaker::train(PreparedRun& run, const LoadedModel& loaded, const Order& order,
                                      bool ahead) const {
  const protocol::TrainRequest& request = order.request;
  TaskInHand task{context_.membership.client, request, loaded, order.stop, order.enough};
  task.ahead = ahead;
  FEDGE_TRY_VOID(admit(run, request));
  Secret root;
  if (run.local_privacy) {
    FEDGE_TRY(of_run, noise_root(request.run));
    root = std::move(of_run);
    task.noise.emplace(fedge::run::PrivateSum::Noise{&root, request.task()});
  }
  const bool split =
      run.task->spec().training.local_model == LocalModel::kSplit && request.kind == TaskKind::kTraining;
  const auto begun = measures(run) ? std::optional(context_.options.meter->read()) : std::nullopt;
  auto result = split ? train_split(run, task) : work_on(run, task);
  if (result && begun) result->joules = measured_since(*begun);
  if (order.stop.stop_requested()) return Error{ErrorCode::kStale, "the task was cancelled"};
  if (!run.masking && !run.local_privacy) return result;
  if (result && result->fault) report_fault_(run, request, *result->fault);
  if (result) return result;
  report_fault_(run, request, result.error());
  return Error{result.error().code, "training failed; see this client's log"};
}

// Energy tells how many samples were trained on, so it is measured only where that number is not hidden.
bool UpdateMaker::measures(const PreparedRun& run) const {
  return context_.options.meter != nullptr && !run.masking && !run.local_privacy;
}

std::optional<double> UpdateMaker::measured_since(const EnergyMeter::Reading& begun) const {
  const EnergyMeter& meter = *context_.options.meter;
  const auto joules = meter.between(begun, meter.read());
  return joules ? std::optional(std::min(*joules, protocol::kMaxJoules)) : std::nullopt;
}

// The coordinator may lose what it has trained of a task, when it restarts. Both halves then begin again, and
// come to the same values.
Result<WorkResult> UpdateMaker::train_split(PreparedRun& run, TaskInHand task) const {
  Result<WorkResult> result = Error{ErrorCode::kStale, ""};
  for (int attempt = 0; attempt < kMostAttempts && !result && result.error().code == ErrorCode::kStale;
       ++attempt) {
    if (task.stop.stop_requested()) break;
    RemotePeer peer(split_, task.request, task.stop);
    task.upper = &peer;
    result = work_on(run, task);
  }
  return result;
}

// Each run has its own noise. A run that is started again gets new noise: with equal noise, the difference of
// two updates would be without noise.
Result<Secret> UpdateMaker::noise_root(RunId run) const {
  FEDGE_TRY(root, open_noise_key(context_.options.state_directory));
  FEDGE_TRY(releases, PrivateReleases::read(context_.options.state_directory));
  return privacy::run_noise_root(root, releases.place(run));
}

// Comes before the update is kept for the coordinator. A counted update may fail to be sent, but an update is
// never sent without being counted.
Result<void> UpdateMaker::count_release(const PreparedRun& run, const protocol::TrainRequest& request,
                                        const OutgoingUpdate& update) const {
  const DaemonOptions& options = context_.options;
  if (const auto most = options.max_updates_per_day) {
    FEDGE_TRY(daily, DailyUpdates::read(options.state_directory, today()));
    FEDGE_TRY_VOID(daily.count(work_of(run, request), *most));
  }
  if (!update.release()) return {};
  FEDGE_TRY(releases, PrivateReleases::read(options.state_directory));
  return releases.count({request.run, request.task(), *update.release(), run.noise},
                        {.most = run.most_updates().value_or(0),
                         .max_epsilon = run.local_privacy ? options.max_epsilon : std::nullopt,
                         .require_noise = options.require_noise,
                         .delta = options.max_delta});
}

Result<TaskFiles::Update> UpdateMaker::keep_unmasked(const PreparedRun& run,
                                                     const protocol::TrainRequest& request,
                                                     Result<WorkResult> result) const {
  if (!result) return result.error();
  FEDGE_TRY(update, OutgoingUpdate::in_the_clear(std::move(*result), run.masking));
  FEDGE_TRY_VOID(count_release(run, request, update));
  return context_.files->keep(request, update);
}

Result<OutgoingUpdate> UpdateMaker::mask(const PreparedRun& run, const protocol::TrainRequest& request,
                                         const privacy::Masking& masking, WorkResult result) const {
  WorkOrder order{.client = context_.membership.client,
                  .round = request.round,
                  .coverage = request.coverage,
                  .track = request.track,
                  .kind = request.kind};
  Secret root;
  if (run.masking->noise_multiplier > 0) {
    FEDGE_TRY(of_run, noise_root(request.run));
    root = std::move(of_run);
    order.noise.emplace(fedge::run::PrivateSum::Noise{&root, request.task()});
  }
  FEDGE_TRY(update, run.work.mask(order, *run.masking, masking, std::move(result)));
  FEDGE_TRY_VOID(count_release(run, request, update));
  return update;
}

Result<TaskFiles::Update> UpdateMaker::keep_masked(const PreparedRun& run,
                                                   const protocol::TrainRequest& request,
                                                   const privacy::Masking& masking, WorkResult result) const {
  const bool reported = result.fault.has_value();
  FEDGE_TRY(masked, mask(run, request, masking, std::move(result)));
  if (masked.fault() && !reported) report_fault_(run, request, *masked.fault());
  return context_.files->keep(request, masked);
}

}  // namespace fedge::client
