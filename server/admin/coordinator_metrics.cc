#include "server/admin/coordinator_metrics.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <functional>
#include <utility>

#include "core/platform/files.h"
#include "server/admin/process_figures.h"

namespace fedge::server {
namespace {

// Minimum free disk space: below it the next update, record or policy may not fit.
constexpr std::uint64_t kLeastFreeBytes = 16 << 20;

using enum MetricType;
constexpr MetricFamily kBuild{"fedge_build_info", kGauge,
                              "Always 1. The label is the version of the program.", "version"};
constexpr MetricFamily kRuns{"fedge_runs", kGauge, "Runs that have not ended, by state.", "state"};
constexpr MetricFamily kRounds{"fedge_rounds_total", kCounter,
                               "Rounds that have ended, summed over all runs."};
constexpr MetricFamily kRound{"fedge_last_round", kGauge,
                              "Number of the last round of the run that has ended.", "run"};
constexpr MetricFamily kDuration{
    "fedge_round_duration_seconds", kHistogram,
    "Time from the end of the previous round, or the start of the run, to the end of the round."};
constexpr MetricFamily kError{
    "fedge_test_rmse", kGauge,
    "Root mean square error on the test samples, of the last model of the run that was "
    "evaluated, if it predicts values.",
    "run"};
constexpr MetricFamily kAccuracy{"fedge_test_accuracy_ratio", kGauge,
                                 "Test accuracy, 0 to 1, of the last model of the run that was evaluated.",
                                 "run"};
constexpr MetricFamily kLoss{
    "fedge_test_loss", kGauge,
    "Mean cross-entropy on the test samples of the last model of the run that was evaluated.", "run"};
constexpr MetricFamily kTrainLoss{
    "fedge_train_loss", kGauge,
    "Mean local training loss in the last round of the run in which a client completed.", "run"};
constexpr MetricFamily kEpsilon{"fedge_privacy_epsilon", kGauge,
                                "Epsilon that the models of the run have spent so far, at the delta of its "
                                "run file. Only with differential privacy.",
                                "run"};
constexpr MetricFamily kLeftOut{"fedge_secure_parameters_left_out", kGauge,
                                "Parameters in no secure sum of the last round of the run, because fewer "
                                "than min_clients clients train them.",
                                "run"};
constexpr MetricFamily kConnected{"fedge_clients_connected", kGauge, "Clients that are connected."};
constexpr MetricFamily kEnrolled{"fedge_clients_enrolled", kGauge,
                                 "Clients that have joined and are neither pending nor revoked."};
constexpr MetricFamily kTasks{"fedge_tasks_in_progress", kGauge,
                              "Tasks that are assigned to clients and not answered yet."};
constexpr MetricFamily kAccepted{"fedge_updates_accepted_total", kCounter,
                                 "Updates that were aggregated in rounds that have ended."};
constexpr MetricFamily kRefused{"fedge_updates_refused_total", kCounter,
                                "Updates that were refused, by error code.", "reason"};
constexpr MetricFamily kEnded{
    "fedge_tasks_ended_total", kCounter,
    "Tasks that have ended, by outcome: accepted, unneeded, late, lost, or failed or refused "
    "with a code.",
    "outcome"};
constexpr MetricFamily kFailures{"fedge_client_failures_total", kCounter,
                                 "Tasks of the client that were not accepted, also before a restart.",
                                 "client"};
constexpr MetricFamily kReady{"fedge_run_clients_ready", kGauge, "Connected clients that take part.", "run"};
constexpr MetricFamily kDeclined{"fedge_run_clients_declined", kGauge, "Connected clients that take no part.",
                                 "run"};
constexpr MetricFamily kWaiting{"fedge_run_waiting_seconds", kGauge,
                                "Time for which the run has waited for clients; 0 if it does not.", "run"};
constexpr MetricFamily kQuarantined{
    "fedge_run_clients_quarantined", kGauge,
    "Connected clients that are not asked to train for some rounds, because their last trainings failed.",
    "run"};
constexpr MetricFamily kLastRound{
    "fedge_run_last_round", kGauge,
    "Round after which the run ends at the latest: run.rounds, or earlier by the privacy budget.", "run"};
constexpr MetricFamily kSecure{
    "fedge_run_secure_stage", kGauge,
    "Stage of the secure sum in progress: 1 keys, 2 shares, 3 updates, 4 consents, 5 unmasking; 0: none.",
    "run"};
constexpr MetricFamily kSecureAwaited{"fedge_run_secure_awaited_clients", kGauge,
                                      "Clients whose next message the secure sum in progress awaits.", "run"};
constexpr MetricFamily kFree{"fedge_data_directory_free_bytes", kGauge,
                             "Free space of the data directory's file system."};
constexpr MetricFamily kLag{"fedge_event_loop_lag_seconds", kGauge,
                            "Delay of the last look of the thread that executes the runs."};
constexpr MetricFamily kSpans{"fedge_trace_spans_exported_total", kCounter,
                              "Spans that the collector of traces has accepted."};
constexpr MetricFamily kSpansDropped{"fedge_trace_spans_dropped_total", kCounter,
                                     "Spans that were not exported, and will not be."};
constexpr MetricFamily kSpanRequests{"fedge_trace_requests_failed_total", kCounter,
                                     "Requests to the collector of traces that failed."};
constexpr MetricFamily kBytesUp{"fedge_received_bytes_total", kCounter,
                                "Bytes received from clients, counted when a round ends."};
constexpr MetricFamily kBytesDown{"fedge_sent_bytes_total", kCounter,
                                  "Bytes sent to clients, counted when a round ends."};
constexpr MetricFamily kEvents{"fedge_events_total", kCounter, "Events by name, as in the log.", "event"};
constexpr MetricFamily kResident{"process_resident_memory_bytes", kGauge, "Resident memory size in bytes."};
constexpr MetricFamily kVirtual{"process_virtual_memory_bytes", kGauge, "Virtual memory size in bytes."};
constexpr MetricFamily kCpu{"process_cpu_seconds_total", kCounter,
                            "User and system CPU time spent in seconds."};
constexpr MetricFamily kOpenFiles{"process_open_fds", kGauge, "Number of open file descriptors."};
constexpr MetricFamily kMaxFiles{"process_max_fds", kGauge, "Maximum number of open file descriptors."};
constexpr MetricFamily kStarted{"process_start_time_seconds", kGauge,
                                "Start time of the process since unix epoch in seconds."};

constexpr std::array kFamilies = {kBuild,
                                  kRuns,
                                  kRounds,
                                  kRound,
                                  kDuration,
                                  kAccuracy,
                                  kError,
                                  kLoss,
                                  kTrainLoss,
                                  kEpsilon,
                                  kLeftOut,
                                  kConnected,
                                  kEnrolled,
                                  kTasks,
                                  kAccepted,
                                  kRefused,
                                  kBytesUp,
                                  kBytesDown,
                                  kEnded,
                                  kFailures,
                                  kReady,
                                  kDeclined,
                                  kWaiting,
                                  kQuarantined,
                                  kLastRound,
                                  kSecure,
                                  kSecureAwaited,
                                  kLag,
                                  kDirectoryNodes,
                                  kDirectoryRecords,
                                  kDirectoryBytes,
                                  kDirectoryMessages,
                                  kDirectoryRefused,
                                  kDirectoryIgnored,
                                  kSpans,
                                  kSpansDropped,
                                  kSpanRequests,
                                  kEvents,
                                  kFree,
                                  kResident,
                                  kVirtual,
                                  kCpu,
                                  kOpenFiles,
                                  kMaxFiles,
                                  kStarted};

const std::string* text_field(const Event& event, const std::string& key) {
  for (const auto& [name, value] : event.fields)
    if (name == key) return std::get_if<std::string>(&value);
  return nullptr;
}

void keep_if_measured(double value, std::optional<double>& kept) {
  if (std::isfinite(value)) kept = value;
}

void add_if_known(Exposition& page, const MetricFamily& family, const std::optional<double>& value) {
  if (value) page.add(family, *value);
}

// The number of a stage of a secure sum, as the metric's help says.
double stage_number(const std::string& stage) {
  constexpr std::array<const char*, 5> kStages = {"keys", "shares", "updates", "consents", "unmasking"};
  const auto* found = std::ranges::find(kStages, stage);
  return found == kStages.end() ? 0 : 1 + static_cast<double>(found - kStages.begin());
}

}  // namespace

std::span<const MetricFamily> coordinator_families() { return kFamilies; }

CoordinatorMetrics::CoordinatorMetrics(Sources sources)
    : sources_(std::move(sources)),
      started_(std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count()),
      durations_({0.1, 1, 5, 15, 60, 300, 900, 3600, 14'400}) {}

void CoordinatorMetrics::add(const Event& event) {
  events_.add(event.name);
  if (event.name == "update.refused") {
    const std::string* code = text_field(event, "code");
    refused_.add(code != nullptr ? *code : "unknown");
  }
  if (event.name == "update.store_failed") {
    const std::string* reason = text_field(event, "reason");
    not_stored_ = reason != nullptr ? *reason : "no reason is known";
  }
}

void CoordinatorMetrics::add(RunNumber run, const RoundMetrics& round) {
  Latest& latest = latest_[run];
  ++rounds_;
  durations_.observe(std::max(0.0, round.wall_seconds - latest.seconds));
  accepted_ += trainings_completed(round);
  bytes_up_ += static_cast<double>(round.bytes_up);
  bytes_down_ += static_cast<double>(round.bytes_down);
  if (round.clients_completed > 0) not_stored_.reset();
  update(latest, round);
}

void CoordinatorMetrics::resume(RunNumber run, const std::vector<RoundMetrics>& history) {
  for (const RoundMetrics& round : history) update(latest_[run], round);
}

void CoordinatorMetrics::update(Latest& latest, const RoundMetrics& round) {
  const ShownResults results = shown_results(round);
  keep_if_measured(results.accuracy, latest.accuracy);
  keep_if_measured(results.rmse, latest.rmse);
  keep_if_measured(results.loss, latest.loss);
  if (round.clients_completed > 0) keep_if_measured(round.train_loss, latest.train_loss);
  keep_if_measured(round.epsilon, latest.epsilon);
  keep_if_measured(round.parameters_left_out, latest.left_out);
  latest.round = round.round;
  latest.seconds = round.wall_seconds;
}

Result<void> CoordinatorMetrics::check_ready() const {
  const std::filesystem::path& directory = sources_.data_directory;
  struct statvfs disk {};
  if (::statvfs(directory.c_str(), &disk) != 0)
    return system_error("cannot inspect the data directory", directory, errno);
  if (::access(directory.c_str(), W_OK | X_OK) != 0) return system_error("cannot write to", directory, errno);
  const std::uint64_t free = std::uint64_t{disk.f_bavail} * disk.f_frsize;
  if (free < kLeastFreeBytes)
    return Error{ErrorCode::kResource, directory.string() + " has " + std::to_string(free >> 10) +
                                           " KiB of free disk space; at least " +
                                           std::to_string(kLeastFreeBytes >> 10) + " KiB are needed"};
  if (sources_.check) FEDGE_TRY_VOID(sources_.check());
  if (not_stored_)
    return Error{ErrorCode::kUnavailable, "the last update received could not be stored: " + *not_stored_};
  return {};
}

void CoordinatorMetrics::add_rounds(Exposition& page) const {
  if (sources_.runs) {
    std::map<RunStatus, std::size_t> states;
    for (const RunRecord& run : sources_.runs()) ++states[run.status];
    Exposition::Samples samples;
    for (const RunStatus state : {RunStatus::kPending, RunStatus::kRunning, RunStatus::kPaused})
      samples.emplace_back(name_of(state), static_cast<double>(states[state]));
    page.add(kRuns, samples);
  }
  page.add(kRounds, static_cast<double>(rounds_));
  const auto each = [&](const MetricFamily& family, auto figure) {
    Exposition::Samples samples;
    for (const auto& [run, latest] : latest_)
      if (const std::optional<double> value = figure(latest))
        samples.emplace_back(std::to_string(run.value()), *value);
    if (!samples.empty()) page.add(family, samples);
  };
  each(kRound, [](const Latest& latest) { return std::optional(static_cast<double>(latest.round)); });
  page.add(kDuration, durations_);
  each(kAccuracy, [](const Latest& latest) { return latest.accuracy; });
  each(kError, [](const Latest& latest) { return latest.rmse; });
  each(kLoss, [](const Latest& latest) { return latest.loss; });
  each(kTrainLoss, [](const Latest& latest) { return latest.train_loss; });
  each(kEpsilon, [](const Latest& latest) { return latest.epsilon; });
  each(kLeftOut, [](const Latest& latest) { return latest.left_out; });
}

void CoordinatorMetrics::add_clients(Exposition& page) {
  if (sources_.clients) page.add(kConnected, static_cast<double>(sources_.clients()));
  if (sources_.enrolled)
    if (const auto enrolled = sources_.enrolled()) page.add(kEnrolled, static_cast<double>(*enrolled));
  if (sources_.tasks) page.add(kTasks, static_cast<double>(sources_.tasks()));
  page.add(kAccepted, static_cast<double>(accepted_));
  page.add(kRefused, refused_);
  page.add(kBytesUp, bytes_up_);
  page.add(kBytesDown, bytes_down_);
}

void CoordinatorMetrics::add_live(Exposition& page) const {
  const auto live = sources_.live ? sources_.live() : nullptr;
  if (!live) return;
  Exposition::Samples outcomes;
  for (const auto& [outcome, count] : live->fleet.outcomes())
    outcomes.emplace_back(outcome, static_cast<double>(count));
  page.add(kEnded, outcomes);
  // The clients that fail most, if they are too many.
  auto failures = live->fleet.failures();
  std::ranges::stable_sort(failures, std::greater<>(), [](const auto& one) { return one.second; });
  failures.resize(std::min(failures.size(), kMaxSeries));
  Exposition::Samples of_clients;
  for (const auto& [client, count] : failures)
    of_clients.emplace_back(std::to_string(client.value()), static_cast<double>(count));
  page.add(kFailures, of_clients);
  Exposition::Samples ready;
  Exposition::Samples declined;
  Exposition::Samples waiting;
  Exposition::Samples quarantined;
  Exposition::Samples last_rounds;
  Exposition::Samples stages;
  Exposition::Samples awaited;
  for (const auto& [run, watch] : live->led()) {
    const RunWatch::Counts counts = watch->counts();
    const auto wait = watch->waiting();
    const std::string number = std::to_string(run.value());
    ready.emplace_back(number, static_cast<double>(counts.ready));
    declined.emplace_back(number, static_cast<double>(counts.declined));
    waiting.emplace_back(number, wait ? to_seconds(watch->now() - wait->since) : 0);
    quarantined.emplace_back(number, static_cast<double>(counts.quarantined));
    last_rounds.emplace_back(number, static_cast<double>(watch->facts().last_round));
    stages.emplace_back(number, stage_number(counts.secure));
    awaited.emplace_back(number, static_cast<double>(counts.secure_awaited));
  }
  page.add(kReady, ready);
  page.add(kDeclined, declined);
  page.add(kWaiting, waiting);
  page.add(kQuarantined, quarantined);
  page.add(kLastRound, last_rounds);
  page.add(kSecure, stages);
  page.add(kSecureAwaited, awaited);
  page.add(kLag, live->lag());
}

void CoordinatorMetrics::add_traces(Exposition& page) const {
  const auto counts = sources_.traces ? sources_.traces() : std::nullopt;
  if (!counts) return;
  page.add(kSpans, static_cast<double>(counts->exported));
  page.add(kSpansDropped, static_cast<double>(counts->dropped));
  page.add(kSpanRequests, static_cast<double>(counts->failed));
}

void CoordinatorMetrics::add_process(Exposition& page) const {
  struct statvfs disk {};
  if (::statvfs(sources_.data_directory.c_str(), &disk) == 0)
    page.add(kFree, static_cast<double>(std::uint64_t{disk.f_bavail} * disk.f_frsize));
  const ProcessFigures figures = process_figures();
  add_if_known(page, kResident, figures.resident_bytes);
  add_if_known(page, kVirtual, figures.virtual_bytes);
  page.add(kCpu, figures.cpu_seconds);
  add_if_known(page, kOpenFiles, figures.open_files);
  add_if_known(page, kMaxFiles, figures.max_files);
  page.add(kStarted, started_);
}

std::string CoordinatorMetrics::text() {
  Exposition page;
  page.add(kBuild, sources_.version, 1);
  add_rounds(page);
  add_clients(page);
  add_live(page);
  if (sources_.directory)
    if (const auto figures = sources_.directory()) add_directory(page, *figures);
  add_traces(page);
  page.add(kEvents, events_);
  add_process(page);
  return page.text();
}

}  // namespace fedge::server
