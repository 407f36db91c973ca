#include "server/traces/trace_exporter.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/platform/calendar.h"
#include "core/rng.h"

namespace fedge::server {
namespace {

constexpr const char* kStopped = "the coordinator has stopped";

bool is_to_be_repeated(int status) {
  return status == 429 || status == 502 || status == 503 || status == 504;
}

std::string status_text(const HttpPost::Answer& answer) {
  return std::to_string(answer.status) + (answer.reason.empty() ? "" : " " + answer.reason);
}

}  // namespace

TraceExporter::TraceExporter(Options options)
    : options_(std::move(options)), post_(options_.endpoint, options_.post), thread_([this] { work(); }) {}

TraceExporter::~TraceExporter() { stop(); }

// A phase with many tasks becomes several requests.
void TraceExporter::add(TracePart part) {
  const std::size_t most = options_.limits.request_tasks;
  while (!part.round && part.tasks.size() > most) {
    TracePart piece{.run = part.run, .unix_time = part.unix_time, .phase = part.phase};
    const auto first = part.tasks.end() - static_cast<std::ptrdiff_t>(most);
    piece.tasks.assign(std::make_move_iterator(first), std::make_move_iterator(part.tasks.end()));
    part.tasks.erase(first, part.tasks.end());
    push(std::move(piece));
  }
  push(std::move(part));
}

void TraceExporter::push(TracePart part) {
  std::size_t dropped = 0;
  bool tell = false;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) {
      counts_.dropped += spans_of(part);
      return;
    }
    bytes_ += bytes_of(part);
    queue_.push_back(std::move(part));
    while (bytes_ > options_.limits.queue_bytes || queue_.size() > options_.limits.queue_parts) {
      dropped += spans_of(queue_.front());
      bytes_ -= bytes_of(queue_.front());
      queue_.pop_front();
    }
    if (dropped > 0) tell = !std::exchange(overflowing_, true);
  }
  changed_.notify_one();
  if (dropped > 0)
    drop(dropped, "the queue is full, because the collector accepts traces too slowly or not at all", tell);
}

void TraceExporter::stop() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(stopping_, true)) return;
    post_.end_by(std::chrono::steady_clock::now() + options_.limits.farewell);
  }
  changed_.notify_all();
  thread_.join();
}

TraceCounts TraceExporter::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

std::size_t TraceExporter::queued_bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

void TraceExporter::work() {
  for (Parts parts = take(); !parts.empty() && deliver(std::move(parts)); parts = take()) continue;
  drop_rest();
}

TraceExporter::Parts TraceExporter::take() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
  Parts parts;
  std::size_t tasks = 0;
  while (!queue_.empty()) {
    tasks += queue_.front().tasks.size();
    if (!parts.empty() && tasks > options_.limits.request_tasks) break;
    bytes_ -= bytes_of(queue_.front());
    parts.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  return parts;
}

bool TraceExporter::deliver(Parts parts) {
  const TraceLimits& limits = options_.limits;
  std::size_t spans = 0;
  for (const TracePart& part : parts) spans += spans_of(part);
  const std::string body = encode_traces(options_.resource, parts);
  parts.clear();
  const auto give_up = std::chrono::steady_clock::now() + limits.patience;
  // Several coordinators that lost one collector must not return to it at the same moment.
  Rng jitter(static_cast<std::uint64_t>(calendar_time().time_since_epoch().count()));
  for (auto next = limits.pause;; next = std::min(2 * next, limits.longest_pause)) {
    std::optional<std::chrono::milliseconds> asked;
    if (send_once(body, spans, asked) == Outcome::kDone) return true;
    const auto drawn = std::chrono::milliseconds(
        static_cast<std::int64_t>(static_cast<double>(next.count()) * (0.5 + 0.5 * jitter.uniform())));
    const auto pause = std::min(std::max(drawn, asked.value_or(drawn)), limits.longest_asked);
    if (std::chrono::steady_clock::now() + pause > give_up) return drop(spans, last_fault_), true;
    if (!wait(pause)) return drop(spans, kStopped, /*tell=*/false), false;
  }
}

TraceExporter::Outcome TraceExporter::send_once(const std::string& body, std::size_t spans,
                                                std::optional<std::chrono::milliseconds>& pause) {
  const auto answer = post_.send(body);
  if (answer && answer->status >= 200 && answer->status < 300) {
    succeed(*answer, spans);
    return Outcome::kDone;
  }
  const bool again = !answer || is_to_be_repeated(answer->status);
  last_fault_ = answer ? "the collector answered " + status_text(*answer) : answer.error().message;
  if (answer && answer->wait) pause = *answer->wait;
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    ++counts_.failed;
    first = again && !stopping_ && !std::exchange(failing_, true);
  }
  if (first) report(Event{Severity::kWarning, "traces.unavailable", {}}.with("reason", last_fault_));
  if (again) return Outcome::kAgain;
  drop(spans, last_fault_);
  return Outcome::kDone;
}

void TraceExporter::succeed(const HttpPost::Answer& answer, std::size_t spans) {
  const PartialSuccess partial = parse_partial_success(answer.body);
  const std::size_t rejected = std::min(partial.rejected, spans);
  bool back = false;
  {
    const std::lock_guard lock(mutex_);
    counts_.exported += spans - rejected;
    overflowing_ = false;
    back = std::exchange(failing_, false);
  }
  if (back) report(Event{Severity::kInfo, "traces.available", {}});
  if (rejected > 0)
    drop(rejected, "the collector rejected spans" + (partial.reason.empty() ? "" : ": " + partial.reason));
}

bool TraceExporter::wait(std::chrono::milliseconds pause) {
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, pause, [&] { return stopping_; });
}

void TraceExporter::drop_rest() {
  std::size_t spans = 0;
  {
    const std::lock_guard lock(mutex_);
    for (const TracePart& part : queue_) spans += spans_of(part);
    queue_.clear();
    bytes_ = 0;
  }
  if (spans > 0) drop(spans, kStopped, /*tell=*/false);
}

void TraceExporter::drop(std::size_t spans, const std::string& reason, bool tell) {
  {
    const std::lock_guard lock(mutex_);
    counts_.dropped += spans;
  }
  if (tell)
    report(Event{Severity::kWarning, "traces.dropped", {}}
               .with("spans", static_cast<std::int64_t>(spans))
               .with("reason", reason));
}

void TraceExporter::report(const Event& event) const {
  if (options_.report) options_.report(event);
}

}  // namespace fedge::server
