#include "server/traces/otlp.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string_view>
#include <utility>

#include "core/detail/json.h"
#include "core/text.h"
#include "core/tracing/trace_id.h"

namespace fedge::server {
namespace {

constexpr std::size_t kMostMessage = 200;  // bytes of a text from a collector
constexpr int kInternal = 1;               // SPAN_KIND_INTERNAL
constexpr int kStatusError = 2;            // STATUS_CODE_ERROR

std::string text_attribute(const char* key, const std::string& value) {
  return std::string(R"({"key":")") + key + R"(","value":{"stringValue":)" + json_text(value) + "}}";
}

std::string number_attribute(const char* key, std::uint64_t value) {
  return std::string(R"({"key":")") + key + R"(","value":{"intValue":")" + std::to_string(value) + "\"}}";
}

// A span under construction.
struct Span {
  std::string trace;
  std::string id;
  std::string parent = {};  // empty: a root
  std::string name;
  Time began{};
  Time ended{};
  std::string fault = {};  // empty: none
  std::vector<std::string> attributes = {};
  std::vector<std::string> links = {};
};

class SpanWriter {
 public:
  explicit SpanWriter(std::string& out) : out_(out) {}

  void begin(const TracePart& part) { part_ = &part; }
  void add(const Span& span) {
    if (std::exchange(any_, true)) out_ += ',';
    out_ += R"({"traceId":")" + span.trace + R"(","spanId":")" + span.id + '"';
    if (!span.parent.empty()) out_ += R"(,"parentSpanId":")" + span.parent + '"';
    out_ += R"(,"name":)" + json_text(span.name) + R"(,"kind":)" + std::to_string(kInternal);
    out_ += R"(,"startTimeUnixNano":")" + nanoseconds(span.began) + '"';
    out_ += R"(,"endTimeUnixNano":")" + nanoseconds(std::max(span.began, span.ended)) + '"';
    list("attributes", span.attributes);
    if (!span.links.empty()) list("links", span.links);
    if (!span.fault.empty())
      out_ += R"(,"status":{"code":)" + std::to_string(kStatusError) + R"(,"message":)" +
              json_text(span.fault) + '}';
    out_ += '}';
  }

 private:
  std::string nanoseconds(Time time) const {
    return std::to_string((part_->unix_time + time.time_since_epoch()).count());
  }
  void list(const char* name, const std::vector<std::string>& items) {
    out_ += std::string(",\"") + name + "\":[";
    for (std::size_t i = 0; i < items.size(); ++i) out_ += (i > 0 ? "," : "") + items[i];
    out_ += ']';
  }

  std::string& out_;
  const TracePart* part_ = nullptr;
  bool any_ = false;
};

// The trace of a part's round or buffer, and of a task in it. They differ only in an asynchronous run: its
// tasks outlive buffers, and a client knows only the number of its task.
std::string round_trace(const TracedRun& run, TaskId task) {
  return run.buffered ? trace_of_buffer(run.id, task.round) : trace_of(run.id, task);
}
std::string root_of(const std::string& trace) { return span_of(trace, {.name = "round"}); }
std::string task_span(const std::string& trace, const WatchedTask& task) {
  return span_of(trace, {"task", task.task, task.client, task.attempt});
}

// Whether the coordinator fetches the answer: an update, or sums that are masked.
bool has_upload(const WatchedTask& task) {
  return task.offered && (task.task.kind == TaskKind::kTraining || task.attempt > 0);
}

// Words of the coordinator. A failure's reason is the client's text, and an unneeded task's may be the
// operator's.
bool has_own_reason(TaskStage stage) {
  return stage == TaskStage::kRefused || stage == TaskStage::kLate || stage == TaskStage::kLost;
}
bool is_fault(TaskStage stage) { return stage == TaskStage::kFailed || has_own_reason(stage); }

std::vector<std::string> facts_of(const WatchedTask& task) {
  std::vector<std::string> facts = {number_attribute("fedge.client", task.client.value()),
                                    number_attribute("fedge.round", task.task.round.value()),
                                    number_attribute("fedge.track", task.task.track.value()),
                                    text_attribute("fedge.kind", name_of(task.task.kind)),
                                    text_attribute("fedge.outcome", name_of(task.stage)),
                                    number_attribute("fedge.bytes", task.bytes)};
  if (task.stage == TaskStage::kFailed || task.stage == TaskStage::kRefused)
    facts.push_back(text_attribute("fedge.code", to_string(task.code)));
  if (has_own_reason(task.stage)) facts.push_back(text_attribute("fedge.reason", task.reason));
  if (task.attempt > 0) facts.push_back(number_attribute("fedge.secure_attempt", task.attempt));
  return facts;
}

std::vector<std::string> facts_of(const TracedRun& run) {
  return {number_attribute("fedge.run.number", static_cast<std::uint64_t>(run.number.value())),
          text_attribute("fedge.run.id", text_of(run.id)), text_attribute("fedge.run.name", run.name)};
}

void add_task(SpanWriter& out, const TracePart& part, const WatchedTask& task) {
  const std::string trace = trace_of(part.run->id, task.task);
  Span span{.trace = trace, .id = task_span(trace, task), .name = "task", .began = task.asked};
  span.ended = task.ended.value_or(task.asked);
  if (!part.run->buffered) span.parent = root_of(trace);
  if (is_fault(task.stage)) span.fault = name_of(task.stage);
  span.attributes = facts_of(task);
  if (part.run->buffered)
    for (std::string& fact : facts_of(*part.run)) span.attributes.push_back(std::move(fact));
  out.add(span);
  const auto child = [&](const char* name, Time began, Time ended) {
    out.add({.trace = trace,
             .id = span_of(trace, {name, task.task, task.client, task.attempt}),
             .parent = span.id,
             .name = name,
             .began = began,
             .ended = ended,
             .attributes = {number_attribute("fedge.client", task.client.value())}});
  };
  child(name_of(task.task.kind), task.asked, task.offered.value_or(span.ended));
  if (has_upload(task)) child("upload", *task.offered, span.ended);
}

void add_phase(SpanWriter& out, const std::string& trace, const RoundRecord& round,
               const PhaseRecord& phase) {
  const std::vector<std::string> facts = {number_attribute("fedge.track", phase.task.track.value()),
                                          text_attribute("fedge.kind", name_of(phase.task.kind)),
                                          number_attribute("fedge.selected", phase.selected),
                                          number_attribute("fedge.completed", phase.completed)};
  const auto child = [&](const char* name, Time began, Time ended, const char* fault) {
    out.add({.trace = trace,
             .id = span_of(trace, {name, phase.task, {}, phase.attempt}),
             .parent = root_of(trace),
             .name = name,
             .began = began,
             .ended = ended,
             .fault = fault,
             .attributes = facts});
  };
  if (phase.secure) child("secure_sum", *phase.secure, phase.closed.value_or(round.ended), "");
  if (phase.closed)
    child("aggregation", *phase.closed, phase.committed.value_or(round.ended),
          phase.aggregated ? "" : "not aggregated");
}

void add_round(SpanWriter& out, const TracePart& part) {
  const RoundRecord& round = *part.round;
  const std::string trace = round_trace(*part.run, round.task);
  const bool counts = round.task.kind == TaskKind::kStatistics;
  const char* what = counts ? "statistics " : part.run->buffered ? "buffer " : "round ";
  std::size_t selected = 0;
  std::size_t completed = 0;
  bool aggregated = true;
  for (const PhaseRecord& phase : round.phases) {
    aggregated = aggregated && phase.aggregated;
    if (!counts && phase.task.kind != TaskKind::kTraining) continue;
    selected += phase.selected;
    completed += phase.completed;
  }
  const char* status = round.stopped ? "stopped" : aggregated ? "completed" : "not_aggregated";
  Span root{.trace = trace,
            .id = root_of(trace),
            .name = what + std::to_string(round.task.round.value()),
            .began = round.began,
            .ended = round.ended,
            .fault = aggregated ? "" : "not aggregated",
            .attributes = facts_of(*part.run)};
  for (std::string fact :
       {number_attribute("fedge.round", round.task.round.value()),
        number_attribute("fedge.selected", selected), number_attribute("fedge.completed", completed),
        text_attribute("fedge.status", status)})
    root.attributes.push_back(std::move(fact));
  for (const WatchedTask& task : part.tasks) {
    const std::string other = trace_of(part.run->id, task.task);
    root.links.push_back(R"({"traceId":")" + other + R"(","spanId":")" + task_span(other, task) + "\"}");
  }
  out.add(root);
  for (const PhaseRecord& phase : round.phases) add_phase(out, trace, round, phase);
}

}  // namespace

std::size_t spans_of(const TracePart& part) {
  std::size_t count = 0;
  if (part.round) {
    for (const PhaseRecord& phase : part.round->phases)
      count += (phase.secure ? 1U : 0U) + (phase.closed ? 1U : 0U);
    return count + 1;
  }
  for (const WatchedTask& task : part.tasks) count += has_upload(task) ? 3U : 2U;
  return count;
}

std::size_t bytes_of(const TracePart& part) {
  std::size_t bytes = sizeof part + part.tasks.capacity() * sizeof(WatchedTask);
  for (const WatchedTask& task : part.tasks) bytes += task.reason.capacity();
  if (part.round) bytes += part.round->phases.capacity() * sizeof(PhaseRecord);
  return bytes;
}

std::string encode_traces(const TraceResource& resource, const std::vector<TracePart>& parts) {
  std::string out = R"({"resourceSpans":[{"resource":{"attributes":[)" +
                    text_attribute("service.name", "fedge-coordinator") + ',' +
                    text_attribute("service.version", resource.version) + ',' +
                    text_attribute("service.instance.id", resource.instance) +
                    R"(]},"scopeSpans":[{"scope":{"name":"fedge","version":)" + json_text(resource.version) +
                    R"(},"spans":[)";
  SpanWriter writer(out);
  for (const TracePart& part : parts) {
    writer.begin(part);
    if (part.round) {
      add_round(writer, part);
      continue;
    }
    for (const WatchedTask& task : part.tasks) add_task(writer, part, task);
  }
  return out + "]}]}]}";
}

PartialSuccess parse_partial_success(const std::string& body) {
  const nlohmann::json answer = parse_json(body);
  if (!answer.is_object()) return {};
  const auto partial = answer.find("partialSuccess");
  if (partial == answer.end() || !partial->is_object()) return {};
  PartialSuccess result;
  const auto rejected = partial->find("rejectedSpans");
  if (rejected != partial->end() && rejected->is_number_unsigned())
    result.rejected = rejected->get<std::size_t>();
  if (rejected != partial->end() && rejected->is_string()) {
    const std::string& digits = rejected->get_ref<const std::string&>();
    std::from_chars(digits.data(), digits.data() + digits.size(), result.rejected);
  }
  const auto message = partial->find("errorMessage");
  if (message != partial->end() && message->is_string())
    result.reason = clean_text(message->get_ref<const std::string&>(), kMostMessage);
  return result;
}

}  // namespace fedge::server
