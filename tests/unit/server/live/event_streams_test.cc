// Streams of events: a watcher gets those of its projects, and none after its token was revoked.
#include "server/api/event_streams.h"

#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace fedge::server {
namespace {

struct WrittenStream final : EventStream {
  bool send(std::string events) override {
    text += events;
    ++writes;
    return open;
  }
  bool is_open() const override { return open; }
  void end() override { open = false; }
  std::string text;
  int writes = 0;
  bool open = true;
};

struct Station {
  explicit Station(Duration between = {}) : pause(between) {
    streams->start();
    live->open(RunNumber(1), "card", std::make_shared<RunWatch>());
    live->open(RunNumber(2), "onco", std::make_shared<RunWatch>());
  }

  Duration pause;
  boost::asio::io_context io;
  std::shared_ptr<Live> live = std::make_shared<Live>();
  bool revoked = false;
  std::shared_ptr<EventStreams> streams = std::make_shared<EventStreams>(
      io, live,
      [this](const HttpRequest& request) -> std::variant<Principal, HttpResponse> {
        if (revoked) return HttpResponse{.status = 401};
        return watcher(*request.field("authorization"));
      },
      pause);

  ~Station() { streams->stop(); }
  static Principal watcher(const std::string& grants) {
    return {{"user ann", "192.0.2.1"}, *parse_grants(grants)};
  }
  std::shared_ptr<WrittenStream> watch(const std::string& grants, const std::string& query = "",
                                       const std::string& last = "") {
    HttpRequest request{.method = "GET", .target = "/api/v1/events" + query};
    request.fields.emplace_back("authorization", grants);
    if (!last.empty()) request.fields.emplace_back("last-event-id", last);
    const auto answer = streams->open(request, watcher(grants));
    REQUIRE(answer);
    auto stream = std::make_shared<WrittenStream>();
    answer->stream(stream);
    return stream;
  }
  void happen(const char* name, std::int64_t run) {
    live->publish(Event{Severity::kInfo, name, {}}.with("run", run));
    io.restart();
    io.poll();
  }
};

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("event streams: events that follow each other quickly are sent together") {
  Station station(std::chrono::seconds(2));
  const auto stream = station.watch("*=viewer");
  for (int i = 0; i < 50; ++i) station.happen("round.closed", 1);
  CHECK(count_of(stream->text, "event: round.closed") >= 1);  // the first one need not wait
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (count_of(stream->text, "event: round.closed") < 50 && std::chrono::steady_clock::now() < until)
    station.io.run_one_for(std::chrono::milliseconds(10));
  CHECK(count_of(stream->text, "event: round.closed") == 50);
  CHECK(stream->writes < 10);
}

TEST_CASE("event streams: a watcher gets the events of its projects, and of all only with a role in all") {
  Station station;
  const auto card = station.watch("card=viewer");
  const auto all = station.watch("*=viewer");
  station.happen("run.started", 1);
  station.happen("run.paused", 2);
  station.happen("run.ended", 9);  // not led here: for those who see all
  CHECK(card->text.find("event: run.started") != std::string::npos);
  CHECK(count_of(card->text, "event: ") == 1);
  CHECK(count_of(all->text, "event: ") == 3);
}

TEST_CASE("event streams: only a run's events, or only those with given names") {
  Station station;
  const auto run = station.watch("*=viewer", "?run=2");
  const auto names = station.watch("*=viewer", "?names=run.ended,run.paused");
  station.happen("run.started", 1);
  station.happen("run.started", 2);
  station.happen("run.ended", 1);
  CHECK(count_of(run->text, "event: ") == 1);
  CHECK(count_of(names->text, "event: ") == 1);
  const auto wrong = [&](const std::string& query) {
    return station.streams
        ->open({.method = "GET", .target = "/api/v1/events" + query}, Station::watcher("*=viewer"))
        .error()
        .message;
  };
  CHECK(wrong("?run=two") == "the parameter run must be a number, not 'two'");
  CHECK(wrong("?since=1") == "the request has an unknown parameter 'since'; known parameters: run names");
  CHECK(wrong("?run=%1") == "the query of the request has an incomplete escape");
}

TEST_CASE("event streams: a reader goes on after its last event, or learns that it cannot") {
  Station station;
  const auto first = station.watch("*=viewer");
  station.happen("run.started", 1);
  station.happen("run.paused", 1);
  const std::size_t at = first->text.find("id: ") + 4;
  const std::string id = first->text.substr(at, first->text.find('\n', at) - at);
  const auto again = station.watch("*=viewer", "", id);
  CHECK(count_of(again->text, "event: ") == 1);
  CHECK(again->text.find("event: run.paused") != std::string::npos);
  for (const std::string& unknown : {std::string("00000000-1"), id.substr(0, 9) + "99", std::string("x")}) {
    CAPTURE(unknown);
    CHECK(station.watch("*=viewer", "", unknown)->text.find("event: gap") != std::string::npos);
  }
}

TEST_CASE("event streams: one user cannot take all streams") {
  Station station;
  std::vector<std::shared_ptr<WrittenStream>> open;
  for (std::size_t i = 0; i < EventStreams::kMostOfUser; ++i) open.push_back(station.watch("*=viewer"));
  const auto more = [&](const std::string& name) {
    Principal sender = Station::watcher("*=viewer");
    sender.actor.name = name;
    return station.streams->open({.method = "GET", .target = "/api/v1/events"}, sender);
  };
  REQUIRE_FALSE(more("user ann"));
  CHECK(more("user ann").error().code == ErrorCode::kResource);
  CHECK(more("user bob"));
}

TEST_CASE("event streams: a revocation ends the stream within the next look, also when nothing happens") {
  Station station;
  const auto stream = station.watch("card=viewer");
  station.happen("run.started", 1);
  CHECK(stream->open);
  station.revoked = true;
  station.io.restart();
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (stream->open && std::chrono::steady_clock::now() < limit)
    station.io.run_one_for(std::chrono::milliseconds(100));
  CHECK_FALSE(stream->open);
}

}  // namespace fedge::server
