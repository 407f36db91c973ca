#include "server/traces/otlp.h"

#include <doctest/doctest.h>

#include <map>
#include <set>
#include <string>

#include "core/detail/json.h"
#include "server/traces/run_tracer.h"
#include "server/traces/trace_endpoint.h"

namespace fedge::server {
namespace {

constexpr std::uint64_t kIdOfRun = 0x0123456789abcdef;
const TaskId kTracedTask{RoundNumber(1), {}};

TracedRun traced_run(bool buffered = false) {
  return {.number = RunNumber(12), .id = RunId(kIdOfRun), .name = "lungs \"2\"", .buffered = buffered};
}

WatchedTask traced_task(std::uint32_t client, TaskStage stage) {
  return {.client = ClientId(client),
          .task = kTracedTask,
          .stage = stage,
          .asked = Time(seconds(1)),
          .ended = Time(seconds(4)),
          .code = ErrorCode::kInvalid,
          .reason = "words about a patient"};
}

// A tracer whose calendar says 1000 s when the run's clock says 1 s, and the spans that it makes.
struct Traced {
  std::vector<TracePart> parts;
  double calendar = 1000;
  RunTracer tracer;

  explicit Traced(bool buffered = false)
      : tracer(
            traced_run(buffered), [this](TracePart part) { parts.push_back(std::move(part)); },
            [this] { return Time(seconds(calendar)); }) {}
  nlohmann::json document() const { return parse_json(encode_traces({"1.2", "abc"}, parts)); }
  nlohmann::json spans() const {
    return document().at("resourceSpans").at(0).at("scopeSpans").at(0).at("spans");
  }
  std::size_t counted() const {
    std::size_t count = 0;
    for (const TracePart& part : parts) count += spans_of(part);
    return count;
  }
};

RoundRecord one_round(std::uint32_t number = 1) {
  return {.task = {RoundNumber(number), {}},
          .began = Time(seconds(1)),
          .ended = Time(seconds(9)),
          .phases = {{.task = {RoundNumber(number), {}},
                      .began = Time(seconds(1)),
                      .secure = Time(seconds(2)),
                      .attempt = 1,
                      .closed = Time(seconds(6)),
                      .committed = Time(seconds(8)),
                      .selected = 3,
                      .completed = 1}}};
}

// "stringValue" or "intValue" of each attribute.
std::map<std::string, std::string> attributes(const nlohmann::json& holder) {
  std::map<std::string, std::string> found;
  for (const auto& one : holder.at("attributes")) {
    REQUIRE(one.at("value").size() == 1);
    found[one.at("key").get<std::string>()] = one.at("value").begin().value().get<std::string>();
  }
  return found;
}

nlohmann::json only(const nlohmann::json& spans, const std::string& name) {
  const nlohmann::json* found = nullptr;
  for (const auto& span : spans)
    if (span.at("name") == name) {
      REQUIRE(found == nullptr);
      found = &span;
    }
  REQUIRE_MESSAGE(found != nullptr, name);
  return *found;
}

}  // namespace

// The ids are those of tests/unit/core/trace_id_test.cc.
TEST_CASE("otlp: a round, its tasks and their stages are spans of one trace, nested, in Unix nanoseconds") {
  Traced traced;
  WatchedTask task = traced_task(7, TaskStage::kAccepted);
  task.offered = Time(seconds(3));
  task.bytes = 4096;
  traced.tracer.closed(kTracedTask, {task}, Time(seconds(1)));
  traced.tracer.ended(one_round(), Time(seconds(9)));
  const nlohmann::json spans = traced.spans();
  CHECK(spans.size() == 6);
  CHECK(traced.counted() == 6);
  for (const auto& span : spans) {
    CHECK(span.at("traceId") == "0322ccd992977de1e56049eb24b72bc3");
    CHECK(span.at("kind") == 1);
    CHECK_FALSE(span.contains("status"));
  }
  const nlohmann::json root = only(spans, "round 1");
  CHECK(root.at("spanId") == "0efb01eba3ceb925");
  CHECK_FALSE(root.contains("parentSpanId"));
  CHECK(root.at("startTimeUnixNano") == "1000000000000");
  CHECK(root.at("endTimeUnixNano") == "1008000000000");
  CHECK(attributes(root) == std::map<std::string, std::string>{{"fedge.run.number", "12"},
                                                               {"fedge.run.id", "0123456789abcdef"},
                                                               {"fedge.run.name", "lungs \"2\""},
                                                               {"fedge.round", "1"},
                                                               {"fedge.selected", "3"},
                                                               {"fedge.completed", "1"},
                                                               {"fedge.status", "completed"}});
  for (const char* name : {"task", "secure_sum", "aggregation"})
    CHECK(only(spans, name).at("parentSpanId") == "0efb01eba3ceb925");
  for (const char* name : {"training", "upload"})
    CHECK(only(spans, name).at("parentSpanId") == only(spans, "task").at("spanId"));
  CHECK(only(spans, "task").at("endTimeUnixNano") == "1003000000000");
  CHECK(only(spans, "training").at("endTimeUnixNano") == "1002000000000");
  CHECK(only(spans, "upload").at("startTimeUnixNano") == "1002000000000");
  CHECK(only(spans, "aggregation").at("startTimeUnixNano") == "1005000000000");
  CHECK(only(spans, "aggregation").at("endTimeUnixNano") == "1007000000000");
  CHECK(attributes(only(spans, "task")) == std::map<std::string, std::string>{{"fedge.client", "7"},
                                                                              {"fedge.round", "1"},
                                                                              {"fedge.track", "0"},
                                                                              {"fedge.kind", "training"},
                                                                              {"fedge.outcome", "accepted"},
                                                                              {"fedge.bytes", "4096"}});
  const nlohmann::json resource = traced.document().at("resourceSpans").at(0).at("resource");
  CHECK(attributes(resource) == std::map<std::string, std::string>{{"service.name", "fedge-coordinator"},
                                                                   {"service.version", "1.2"},
                                                                   {"service.instance.id", "abc"}});
}

TEST_CASE("otlp: the times of a trace fit together although the calendar clock was set") {
  Traced traced;
  traced.tracer.closed(kTracedTask, {traced_task(7, TaskStage::kLost)}, Time(seconds(1)));
  traced.calendar = 5;  // set back
  traced.tracer.ended(one_round(), Time(seconds(9)));
  const nlohmann::json spans = traced.spans();
  CHECK(only(spans, "task").at("startTimeUnixNano") == only(spans, "round 1").at("startTimeUnixNano"));
  // The next round has the new time.
  traced.parts.clear();
  traced.tracer.ended(one_round(2), Time(seconds(9)));
  CHECK(only(traced.spans(), "round 2").at("endTimeUnixNano") == "5000000000");
}

TEST_CASE("otlp: no text of a client or an operator is exported") {
  for (const TaskStage stage : {TaskStage::kAccepted, TaskStage::kFailed, TaskStage::kUnneeded}) {
    Traced traced;
    traced.tracer.closed(kTracedTask, {traced_task(7, stage)}, Time(seconds(1)));
    CAPTURE(name_of(stage));
    CHECK(encode_traces({}, traced.parts).find("patient") == std::string::npos);
    const auto facts = attributes(only(traced.spans(), "task"));
    CHECK(facts.at("fedge.outcome") == name_of(stage));
    CHECK(facts.contains("fedge.code") == (stage == TaskStage::kFailed));
    CHECK(only(traced.spans(), "task").contains("status") == (stage == TaskStage::kFailed));
  }
  // The coordinator's own words are, up to a limit.
  for (const TaskStage stage : {TaskStage::kRefused, TaskStage::kLate, TaskStage::kLost}) {
    Traced traced;
    WatchedTask task = traced_task(7, stage);
    task.reason = std::string(5000, 'x') + "\n";
    traced.tracer.closed(kTracedTask, {task}, Time(seconds(1)));
    CHECK(attributes(only(traced.spans(), "task")).at("fedge.reason") == std::string(200, 'x'));
    CHECK(only(traced.spans(), "task").at("status").at("code") == 2);
  }
}

TEST_CASE("otlp: an asynchronous run's tasks have traces of their own, to which the buffer's span links") {
  Traced traced(/*buffered=*/true);
  std::vector<WatchedTask> tasks;
  for (std::uint32_t client = 0; client < 200; ++client)
    tasks.push_back(traced_task(client, client == 5 ? TaskStage::kLost : TaskStage::kAccepted));
  traced.tracer.closed({RoundNumber(3), {}}, tasks, Time(seconds(1)));
  traced.tracer.ended(one_round(3), Time(seconds(9)));
  const nlohmann::json spans = traced.spans();
  CHECK(spans.size() == traced.counted());
  std::set<std::string> accepted;
  for (const auto& span : spans) {
    if (span.at("name") != "task") continue;
    CHECK(span.at("traceId") == "0322ccd992977de1e56049eb24b72bc3");  // that of a client's task 1
    CHECK_FALSE(span.contains("parentSpanId"));
    if (!span.contains("status")) accepted.insert(span.at("spanId").get<std::string>());
  }
  CHECK(accepted.size() == 199);
  const nlohmann::json buffer = only(spans, "buffer 3");
  CHECK(buffer.at("traceId") != "0322ccd992977de1e56049eb24b72bc3");
  CHECK(buffer.at("links").size() == RunTracer::kMostLinks);
  for (const auto& link : buffer.at("links")) CHECK(accepted.contains(link.at("spanId").get<std::string>()));
}

TEST_CASE("otlp: a round that was stopped, or gave no model, says so") {
  Traced traced;
  RoundRecord round = one_round();
  round.phases[0].aggregated = false;
  traced.tracer.ended(round, Time(seconds(9)));
  const nlohmann::json failed = traced.spans();
  CHECK(attributes(only(failed, "round 1")).at("fedge.status") == "not_aggregated");
  CHECK(only(failed, "aggregation").at("status").at("code") == 2);
  traced.parts.clear();
  round = one_round();
  round.stopped = true;
  round.phases[0].closed.reset();
  traced.tracer.ended(round, Time(seconds(9)));
  CHECK(attributes(only(traced.spans(), "round 1")).at("fedge.status") == "stopped");
  CHECK(traced.spans().size() == traced.counted());
}

TEST_CASE("otlp: a span never ends before it begins, and bytes that are not UTF-8 are replaced") {
  Traced traced;
  WatchedTask task = traced_task(7, TaskStage::kRefused);
  task.ended = Time();
  task.reason = "\xff\x01 \"quoted\"";
  traced.tracer.closed(kTracedTask, {task}, Time(seconds(1)));
  const nlohmann::json span = only(traced.spans(), "task");
  CHECK(span.at("startTimeUnixNano") == span.at("endTimeUnixNano"));
  CHECK(attributes(span).at("fedge.reason") == "?? \"quoted\"");
}

TEST_CASE("otlp: the answer of a collector says how many spans it rejected") {
  const auto rejected = [](const std::string& body) { return parse_partial_success(body).rejected; };
  CHECK(rejected(R"({"partialSuccess":{"rejectedSpans":"5","errorMessage":"too old"}})") == 5);
  CHECK(rejected(R"({"partialSuccess":{"rejectedSpans":5}})") == 5);
  CHECK(parse_partial_success(R"({"partialSuccess":{"errorMessage":"too\nold"}})").reason == "too?old");
  for (const char* body :
       {"", "{}", "[]", "{\"partialSuccess\":7}", "{\"partialSuccess\":{}}", "nonsense",
        R"({"partialSuccess":{"rejectedSpans":-3}})", R"({"partialSuccess":{"rejectedSpans":"x"}})"})
    CHECK(rejected(body) == 0);
}

TEST_CASE("trace endpoint: the path of OTLP is appended to the base address") {
  const auto target = [](const char* url) {
    const auto endpoint = parse_trace_endpoint(url);
    REQUIRE_MESSAGE(endpoint, endpoint.error().message);
    return protocol::to_string(endpoint->address) + " " + endpoint->target;
  };
  CHECK(target("http://127.0.0.1:4318") == "127.0.0.1:4318 /v1/traces");
  CHECK(target("http://collector.example.org:4318/") == "collector.example.org:4318 /v1/traces");
  CHECK(target("http://[::1]:80/otlp") == "[::1]:80 /otlp/v1/traces");
  CHECK(target("http://[::1]:80/otlp/") == "[::1]:80 /otlp/v1/traces");
}

TEST_CASE("trace endpoint: other addresses are refused, with what would be right") {
  for (const char* url :
       {"", "127.0.0.1:4318", "ftp://127.0.0.1:4318", "HTTP://127.0.0.1:4318", "http://", "http://host",
        "http://host:0", "http://host:70000", "http://user:secret@host:4318", "http://host:4318/?a=b",
        "http://host:4318/#top", "http://host:4318/a b", "http://host:4318/a\r\nX: y", "http://host:4318\r\n",
        "http://[::1:4318", "http://ho st:4318"}) {
    const auto endpoint = parse_trace_endpoint(url);
    CAPTURE(url);
    REQUIRE_FALSE(endpoint);
    CHECK(endpoint.error().code == ErrorCode::kInvalid);
  }
  const auto encrypted = parse_trace_endpoint("https://collector.example.org:4318");
  REQUIRE_FALSE(encrypted);
  CHECK(encrypted.error().code == ErrorCode::kUnsupported);
  CHECK(encrypted.error().message.find("only over http://") != std::string::npos);
  CHECK_FALSE(parse_trace_endpoint("http://host:1/" + std::string(2000, 'x')));
}

}  // namespace fedge::server
