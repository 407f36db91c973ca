// The exporter against collectors that are slow, refuse, hang, lie or are not there.
#include "server/traces/trace_exporter.h"

#include <doctest/doctest.h>

#include <future>
#include <memory>
#include <set>

#include "core/detail/json.h"
#include "tests/support/free_port.h"
#include "tests/support/http/http_collector.h"

namespace fedge::server {
namespace {

using test::HttpCollector;
using Millis = std::chrono::milliseconds;
constexpr Millis kForever{std::chrono::hours(2)};  // longer than any test may take

std::shared_ptr<const TracedRun> exported_run() {
  static const auto run = std::make_shared<const TracedRun>(TracedRun{RunNumber(1), RunId(5), "run"});
  return run;
}

// Two spans for each task.
TracePart part_of(std::size_t tasks, std::uint32_t round = 1) {
  TracePart part{.run = exported_run(), .phase = {RoundNumber(round), {}}};
  for (std::size_t i = 0; i < tasks; ++i)
    part.tasks.push_back({.client = ClientId(static_cast<std::uint32_t>(i)),
                          .task = part.phase,
                          .stage = TaskStage::kAccepted});
  return part;
}

// An exporter with pauses of a millisecond, and what it reports.
struct Exporting {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Event> events;
  std::unique_ptr<TraceExporter> exporter;

  explicit Exporting(std::uint16_t port, TraceLimits limits = quick(), HttpPostOptions post = {kForever},
                     const std::string& host = "127.0.0.1") {
    exporter =
        std::make_unique<TraceExporter>(TraceExporter::Options{.endpoint = {{host, port}, "/v1/traces"},
                                                               .resource = {"1", "x"},
                                                               .post = std::move(post),
                                                               .limits = limits,
                                                               .report = [this](const Event& event) {
                                                                 const std::lock_guard lock(mutex);
                                                                 events.push_back(event);
                                                                 changed.notify_all();
                                                               }});
  }
  static TraceLimits quick() {
    return {.pause = Millis(1), .longest_pause = Millis(2), .farewell = Millis(50)};
  }
  // Waits for an event of this name.
  Event wait_for(const std::string& name) {
    std::unique_lock lock(mutex);
    const auto found = [&] { return std::ranges::find(events, name, &Event::name); };
    changed.wait(lock, [&] { return found() != events.end(); });
    return *found();
  }
  std::size_t count(const std::string& name) {
    const std::lock_guard lock(mutex);
    return static_cast<std::size_t>(std::ranges::count(events, name, &Event::name));
  }
  // Waits until this many spans are exported or dropped.
  TraceCounts settled(std::uint64_t spans) {
    for (;;) {
      const TraceCounts counts = exporter->counts();
      if (counts.exported + counts.dropped >= spans) return counts;
      std::this_thread::yield();
    }
  }
};

std::uint16_t port_of(const test::FreePort& free) { return protocol::parse_address(free.address())->port; }

// An answer that waits until the promise is fulfilled.
HttpCollector::Reply held_until(std::promise<void>& release) {
  HttpCollector::Reply reply = HttpCollector::status("200 OK");
  reply.after = release.get_future().share();
  return reply;
}

std::size_t spans_in(const std::string& body) {
  const nlohmann::json document = parse_json(body);
  REQUIRE(document.is_object());
  return document.at("resourceSpans").at(0).at("scopeSpans").at(0).at("spans").size();
}

}  // namespace

TEST_CASE("trace exporter: spans arrive as one POST of JSON, and are counted") {
  HttpCollector collector;
  Exporting one(collector.port());
  one.exporter->add(part_of(3));
  const auto requests = collector.requests(1);
  CHECK(requests[0].first.starts_with("POST /v1/traces HTTP/1.1\r\n"));
  CHECK(requests[0].first.find("Content-Type: application/json\r\n") != std::string::npos);
  CHECK(spans_in(requests[0].second) == 6);
  const TraceCounts counts = one.settled(6);
  CHECK(counts.exported == 6);
  CHECK(counts.failed == 0);
  CHECK(one.events.empty());
}

TEST_CASE("trace exporter: a collector that asks for it, or closes without an answer, gets the same again") {
  const HttpCollector::Reply closes{};
  const HttpCollector::Reply endless_head{"HTTP/1.1 200 OK\r\nX: ", true};
  for (const HttpCollector::Reply& first :
       {HttpCollector::status("429 Too Many Requests"), HttpCollector::status("502 Bad Gateway"),
        HttpCollector::status("503 Service Unavailable"), HttpCollector::status("504 Gateway Timeout"),
        HttpCollector::Reply{"this is not HTTP\r\n\r\n"}, endless_head, closes}) {
    CAPTURE(first.text.substr(0, 40));
    HttpCollector collector({first, first});
    Exporting one(collector.port());
    one.exporter->add(part_of(1));
    const auto requests = collector.requests(3);
    CHECK(requests[1].second == requests[0].second);
    CHECK(requests[2].second == requests[0].second);
    const TraceCounts counts = one.settled(2);
    CHECK(counts.exported == 2);
    CHECK(counts.failed == 2);
    one.wait_for("traces.available");
    CHECK(one.count("traces.unavailable") == 1);
    CHECK(one.count("traces.dropped") == 0);
  }
}

TEST_CASE(
    "trace exporter: after another answer the spans are dropped with one event, and the next are sent") {
  for (const char* status : {"301 Moved Permanently", "400 Bad Request", "401 Unauthorized", "404 Not Found",
                             "413 Content Too Large", "500 Internal Server Error", "501 Not Implemented"}) {
    CAPTURE(status);
    HttpCollector collector({HttpCollector::status(status, "Location: http://127.0.0.1:1/\r\n")});
    Exporting one(collector.port());
    one.exporter->add(part_of(1, 1));
    const Event dropped = one.wait_for("traces.dropped");
    CHECK(to_string(dropped) ==
          "traces.dropped spans=2 reason=\"the collector answered " + std::string(status) + "\"");
    one.exporter->add(part_of(2, 2));
    const TraceCounts counts = one.settled(6);
    CHECK(counts.exported == 4);
    CHECK(counts.dropped == 2);
    CHECK(collector.requests(2).size() == 2);
    CHECK(one.count("traces.dropped") == 1);
  }
}

TEST_CASE("trace exporter: a collector may reject some of the spans") {
  HttpCollector collector(
      {HttpCollector::status("200 OK", "",
                             R"({"partialSuccess":{"rejectedSpans":"3","errorMessage":"old"}})"),
       HttpCollector::status("200 OK", "", R"({"partialSuccess":{"rejectedSpans":"999"}})")});
  Exporting one(collector.port());
  one.exporter->add(part_of(2));
  const TraceCounts first = one.settled(4);
  CHECK(first.exported == 1);
  CHECK(first.dropped == 3);
  CHECK(to_string(one.wait_for("traces.dropped")) ==
        "traces.dropped spans=3 reason=\"the collector rejected spans: old\"");
  one.exporter->add(part_of(1));
  CHECK(one.settled(6).dropped == 5);  // no more than were sent
}

TEST_CASE("trace exporter: an answer may be long or cut off, its status is enough") {
  HttpCollector collector({{"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"},
                           {"HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\n\r\n", true}});
  Exporting one(collector.port());
  one.exporter->add(part_of(1));
  CHECK(one.settled(2).exported == 2);
  one.exporter->add(part_of(1));
  const TraceCounts counts = one.settled(4);
  CHECK(counts.exported == 4);
  CHECK(counts.failed == 0);
}

TEST_CASE("trace exporter: the pause that a collector asks for is kept") {
  // The pause exceeds the patience, so that the spans are dropped: without the pause they would arrive.
  HttpCollector collector({HttpCollector::status("503 Service Unavailable", "Retry-After: 120\r\n")});
  TraceLimits limits = Exporting::quick();
  limits.patience = Millis(60'000);
  Exporting one(collector.port(), limits);
  one.exporter->add(part_of(1));
  CHECK(one.settled(2).dropped == 2);
  CHECK(collector.requests(1).size() == 1);
  // But not for ever.
  HttpCollector greedy({HttpCollector::status("503 Service Unavailable", "Retry-After: 4000000000\r\n")});
  limits.longest_asked = Millis(1);
  Exporting other(greedy.port(), limits);
  other.exporter->add(part_of(1));
  CHECK(other.settled(2).exported == 2);
}

TEST_CASE("trace exporter: Retry-After is a number of seconds or a date") {
  using std::chrono::seconds;
  const seconds now(1'445'412'000);  // 2015-10-21 07:20:00
  CHECK(parse_retry_after("7", now) == seconds(7));
  CHECK(parse_retry_after("0", now) == seconds(0));
  CHECK(parse_retry_after("Wed, 21 Oct 2015 07:28:00 GMT", now) == seconds(480));
  CHECK(parse_retry_after("Wed, 21 Oct 2015 07:10:00 GMT", now) == seconds(0));
  for (const char* value :
       {"", "-1", "1.5", "soon", "99999999999999", "7 ", "Wed, 21 Oct 2015 07:28:00 GMT+1"})
    CHECK_FALSE(parse_retry_after(value, now));
}

TEST_CASE("trace exporter: a collector that hangs or is not there keeps nobody waiting") {
  SUBCASE("it never answers") {
    HttpCollector collector(std::deque<HttpCollector::Reply>{{.hangs = true}});
    Exporting one(collector.port());
    one.exporter->add(part_of(1));
    CHECK(collector.requests(1).size() == 1);
    one.exporter->add(part_of(4));
    one.exporter->stop();  // the request would take two hours
    CHECK(one.exporter->counts().dropped == 10);
  }
  SUBCASE("nobody listens, and the exporter pauses") {
    TraceLimits limits = Exporting::quick();
    limits.pause = limits.longest_pause = limits.patience = kForever;
    limits.patience *= 2;
    const test::FreePort nobody;
    Exporting one(port_of(nobody), limits);
    one.exporter->add(part_of(1));
    one.wait_for("traces.unavailable");
    one.exporter->add(part_of(4));
    one.exporter->stop();
    CHECK(one.exporter->counts().dropped == 10);
    CHECK(one.exporter->queued_bytes() == 0);
    one.exporter->add(part_of(3));
    CHECK(one.exporter->counts().dropped == 16);
    CHECK(one.exporter->queued_bytes() == 0);
  }
  SUBCASE("its name is looked up for ever") {
    const auto release = std::make_shared<std::promise<void>>();
    const auto asked = std::make_shared<std::promise<void>>();
    HttpPostOptions post{kForever};
    post.look_up = [release, asked](const std::string&) {
      asked->set_value();
      release->get_future().wait();
      return std::vector<std::string>{"127.0.0.1"};
    };
    Exporting one(1, Exporting::quick(), post, "collector.example.org");
    one.exporter->add(part_of(1));
    asked->get_future().wait();
    one.exporter->stop();
    CHECK(one.exporter->counts().dropped == 2);
    one.exporter.reset();
    release->set_value();
  }
}

TEST_CASE("trace exporter: the spans that wait are sent when it stops") {
  HttpCollector collector;
  TraceLimits limits = Exporting::quick();
  limits.farewell = kForever;
  Exporting one(collector.port(), limits);
  for (std::uint32_t round = 1; round <= 100; ++round) one.exporter->add(part_of(1, round));
  one.exporter->stop();
  CHECK(one.exporter->counts().exported == 200);
  CHECK(one.exporter->counts().dropped == 0);
}

TEST_CASE("trace exporter: a host name is looked up, and one that is unknown is no end") {
  HttpCollector collector;
  int asked = 0;
  HttpPostOptions post{kForever};
  post.look_up = [&asked](const std::string& host) {
    CHECK(host == "collector.example.org");
    return ++asked == 1 ? std::vector<std::string>() : std::vector<std::string>{"not a number", "127.0.0.1"};
  };
  Exporting one(collector.port(), Exporting::quick(), post, "collector.example.org");
  one.exporter->add(part_of(1));
  CHECK(one.settled(2).exported == 2);
  CHECK(collector.requests(1)[0].first.find("Host: collector.example.org:") != std::string::npos);
  CHECK(asked == 2);
}

TEST_CASE("trace exporter: a full queue drops the oldest, counts them and says so once") {
  TraceLimits limits = Exporting::quick();
  limits.pause = limits.longest_pause = kForever;
  limits.patience = 2 * kForever;
  limits.queue_bytes = 100'000;
  const test::FreePort nobody;
  Exporting one(port_of(nobody), limits);
  one.exporter->add(part_of(1));
  one.wait_for("traces.unavailable");  // the exporter has this part in hand, and pauses
  for (std::uint32_t round = 1; round <= 2000; ++round) {
    one.exporter->add(part_of(10, round));
    REQUIRE(one.exporter->queued_bytes() <= limits.queue_bytes);
  }
  const std::uint64_t dropped = one.exporter->counts().dropped;
  CHECK(dropped > 2000U * 20 - 100'000 / sizeof(WatchedTask) * 2);
  CHECK(one.exporter->queued_bytes() > limits.queue_bytes / 2);
  CHECK(one.count("traces.dropped") == 1);
  // A number of parts is a limit, too.
  limits.queue_bytes = SIZE_MAX;
  limits.queue_parts = 7;
  Exporting many(port_of(nobody), limits);
  many.exporter->add(part_of(1));
  many.wait_for("traces.unavailable");
  for (std::uint32_t round = 1; round <= 107; ++round) many.exporter->add(part_of(1, round));
  CHECK(many.exporter->counts().dropped == 200);
}

TEST_CASE("trace exporter: the newest of a full queue arrive") {
  std::promise<void> release;
  HttpCollector collector({held_until(release)});
  TraceLimits limits = Exporting::quick();
  limits.queue_parts = 1;
  Exporting one(collector.port(), limits);
  one.exporter->add(part_of(1));
  collector.requests(1);
  for (std::uint32_t round = 2; round <= 9; ++round) one.exporter->add(part_of(round, round));
  CHECK(one.exporter->counts().dropped == 2 * (2 + 3 + 4 + 5 + 6 + 7 + 8));
  release.set_value();
  CHECK(one.settled(2 + 2 * 44).exported == 2 + 2 * 9);
  CHECK(spans_in(collector.requests(2)[1].second) == 2 * 9);
}

TEST_CASE("trace exporter: a phase with many tasks becomes several requests, small ones become one") {
  std::promise<void> release;
  HttpCollector collector({held_until(release)});
  TraceLimits limits = Exporting::quick();
  limits.request_tasks = 100;
  Exporting one(collector.port(), limits);
  one.exporter->add(part_of(1));
  collector.requests(1);
  for (std::uint32_t round = 1; round <= 50; ++round) one.exporter->add(part_of(1, round));
  release.set_value();
  CHECK(one.settled(2 + 100).exported == 102);
  CHECK(collector.requests(2).size() == 2);
  one.exporter->add(part_of(1050));
  CHECK(one.settled(102 + 2100).exported == 102 + 2100);
  std::set<std::string> spans;
  for (const auto& [head, body] : collector.requests(2)) {
    CHECK(spans_in(body) <= 200);
    const nlohmann::json document = parse_json(body);
    for (const auto& span : document.at("resourceSpans").at(0).at("scopeSpans").at(0).at("spans"))
      if (span.at("name") == "task") spans.insert(span.at("traceId").dump() + span.at("spanId").dump());
  }
  CHECK(spans.size() == 50 + 1049);  // each once, and client 0 in round 1 three times
}

}  // namespace fedge::server
