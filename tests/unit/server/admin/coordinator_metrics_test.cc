#include "server/admin/coordinator_metrics.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <set>

#include "core/platform/files.h"
#include "server/admin/pages.h"
#include "server/enrolment.h"
#include "tests/support/exposition_parser.h"
#include "tests/unit/learn/idx_fixture.h"

namespace fedge::server {
namespace {

using learn::test::TemporaryDirectory;
using test::parse_exposition;
using test::Scrape;

struct Watched {
  TemporaryDirectory directory;
  Enrolment enrolment{directory.path()};
  CoordinatorMetrics metrics{{.data_directory = directory.path(),
                              .version = "1.2.3",
                              .clients = [] { return std::size_t{7}; },
                              .tasks = [] { return std::size_t{3}; },
                              .runs =
                                  [] {
                                    std::vector<RunRecord> runs(3);
                                    runs[0].status = runs[1].status = RunStatus::kRunning;
                                    return runs;
                                  },
                              .enrolled = [this] { return enrolment.count(); },
                              .check = [this]() -> Result<void> {
                                const auto book = enrolment.count();
                                return book ? Result<void>() : book.error();
                              },
                              .directory = [this] { return part; },
                              .live = [this] { return live; },
                              .traces = [this] { return traces; }}};
  std::shared_ptr<Live> live = std::make_shared<Live>();
  std::optional<DirectoryFigures> part = DirectoryFigures{};
  std::optional<TraceCounts> traces = TraceCounts{};
  Scrape scrape() {
    Scrape scrape = parse_exposition(metrics.text());
    CAPTURE(scrape.problems.size());
    for (const std::string& problem : scrape.problems) FAIL_CHECK(problem);
    return scrape;
  }
  HttpResponse get(const std::string& path, const std::string& method = "GET") {
    HttpResponse response;
    PageService(coordinator_pages(metrics))
        .serve({.method = method, .target = path},
               [&](HttpResponse answer) { response = std::move(answer); });
    return response;
  }
};

Event refused(const std::string& code) {
  return Event{Severity::kWarning, "update.refused", {}}.with("client", std::int64_t{1}).with("code", code);
}

RoundMetrics round(std::uint64_t number, double seconds) {
  return {.round = number,
          .test_accuracy = 0.25 * static_cast<double>(number),
          .test_loss = 2.0 / static_cast<double>(number),
          .test = {.rmse = 3},
          .train_loss = 1.5,
          .epsilon = 0.75,
          .parameters_left_out = 20'016,
          .clients_selected = 5,
          .clients_completed = 4,
          .bytes_up = 1000,
          .bytes_down = 3000,
          .wall_seconds = seconds};
}

}  // namespace

TEST_CASE("coordinator metrics: before the first round nothing is made up") {
  Watched watched;
  const Scrape scrape = watched.scrape();
  CHECK(scrape.value("fedge_build_info", {{"version", "1.2.3"}}) == 1);
  CHECK(scrape.value("fedge_rounds_total") == 0);
  CHECK(scrape.value("fedge_round_duration_seconds_count") == 0);
  CHECK_FALSE(scrape.value("fedge_test_accuracy_ratio", {{"run", "1"}}));
  CHECK(scrape.value("fedge_clients_connected") == 7);
  CHECK(scrape.value("fedge_tasks_in_progress") == 3);
  CHECK(scrape.value("fedge_clients_enrolled") == 0);
}

TEST_CASE("coordinator metrics: with tracks, every accepted update counts") {
  Watched watched;
  RoundMetrics metrics = round(1, 4);  // 4 clients completed
  metrics.tracks = {{.clients_selected = 5, .clients_completed = 4},
                    {.clients_selected = 4, .clients_completed = 3}};
  watched.metrics.add(RunNumber(1), metrics);
  CHECK(watched.scrape().value("fedge_updates_accepted_total") == 7);
}

TEST_CASE("coordinator metrics: rounds are added up, and the last evaluation stays") {
  Watched watched;
  watched.metrics.add(RunNumber(1), round(1, 4));
  watched.metrics.add(RunNumber(1), round(2, 24));
  RoundMetrics third = round(3, 30);
  third.test_accuracy = kNotMeasured;
  third.test_loss = kNotMeasured;
  watched.metrics.add(RunNumber(1), third);
  const Scrape scrape = watched.scrape();
  CHECK(scrape.value("fedge_rounds_total") == 3);
  CHECK(scrape.value("fedge_last_round", {{"run", "1"}}) == 3);
  CHECK(scrape.value("fedge_test_accuracy_ratio", {{"run", "1"}}) == 0.5);
  CHECK(scrape.value("fedge_test_loss", {{"run", "1"}}) == 1);
  CHECK(scrape.value("fedge_train_loss", {{"run", "1"}}) == 1.5);
  CHECK(scrape.value("fedge_privacy_epsilon", {{"run", "1"}}) == 0.75);
  CHECK(scrape.value("fedge_secure_parameters_left_out", {{"run", "1"}}) == 20'016);
  CHECK(scrape.value("fedge_updates_accepted_total") == 12);
  CHECK(scrape.value("fedge_received_bytes_total") == 3000);
  CHECK(scrape.value("fedge_sent_bytes_total") == 9000);
  // The rounds took 4, 20 and 6 seconds.
  CHECK(scrape.value("fedge_round_duration_seconds_sum") == 30);
  CHECK(scrape.value("fedge_round_duration_seconds_bucket", {{"le", "5"}}) == 1);
  CHECK(scrape.value("fedge_round_duration_seconds_bucket", {{"le", "15"}}) == 2);
  CHECK(scrape.value("fedge_round_duration_seconds_bucket", {{"le", "60"}}) == 3);
}

TEST_CASE("coordinator metrics: after a restart, the first round counts from the end of the round before") {
  Watched watched;
  RoundMetrics second = round(2, 1000);
  second.test_accuracy = kNotMeasured;
  watched.metrics.resume(RunNumber(1), {round(1, 400), second});
  watched.metrics.resume(RunNumber(2), {});
  Scrape scrape = watched.scrape();
  CHECK(scrape.value("fedge_last_round", {{"run", "1"}}) == 2);
  CHECK_FALSE(scrape.value("fedge_last_round", {{"run", "2"}}));
  CHECK(scrape.value("fedge_test_accuracy_ratio", {{"run", "1"}}) == 0.25);
  CHECK(scrape.value("fedge_rounds_total") == 0);
  CHECK(scrape.value("fedge_updates_accepted_total") == 0);
  CHECK(scrape.value("fedge_round_duration_seconds_count") == 0);
  watched.metrics.add(RunNumber(1), round(3, 1030));
  scrape = watched.scrape();
  CHECK(scrape.value("fedge_rounds_total") == 1);
  CHECK(scrape.value("fedge_round_duration_seconds_sum") == 30);
}

TEST_CASE("coordinator metrics: each run that is led has its own figures, counters are of all") {
  Watched watched;
  watched.metrics.add(RunNumber(1), round(2, 24));
  watched.metrics.add(RunNumber(7), round(1, 3));
  Scrape scrape = watched.scrape();
  CHECK(scrape.value("fedge_last_round", {{"run", "1"}}) == 2);
  CHECK(scrape.value("fedge_last_round", {{"run", "7"}}) == 1);
  CHECK(scrape.value("fedge_test_accuracy_ratio", {{"run", "7"}}) == 0.25);
  CHECK(scrape.value("fedge_rounds_total") == 2);
  CHECK(scrape.value("fedge_round_duration_seconds_sum") == 27);
  CHECK(scrape.value("fedge_runs", {{"state", "running"}}) == 2);
  CHECK(scrape.value("fedge_runs", {{"state", "pending"}}) == 1);
  CHECK(scrape.value("fedge_runs", {{"state", "paused"}}) == 0);
  watched.metrics.forget(RunNumber(1));
  scrape = watched.scrape();
  CHECK_FALSE(scrape.value("fedge_last_round", {{"run", "1"}}));
  CHECK(scrape.value("fedge_last_round", {{"run", "7"}}) == 1);
  CHECK(scrape.value("fedge_rounds_total") == 2);
}

TEST_CASE("coordinator metrics: refused updates are told apart by class, events by name") {
  Watched watched;
  for (const std::string code : {"invalid", "stale", "invalid"}) watched.metrics.add(refused(code));
  watched.metrics.add(Event{Severity::kWarning, "update.refused", {}});
  watched.metrics.add(Event{Severity::kInfo, "client.connected", {}});
  const Scrape scrape = watched.scrape();
  CHECK(scrape.value("fedge_updates_refused_total", {{"reason", "invalid"}}) == 2);
  CHECK(scrape.value("fedge_updates_refused_total", {{"reason", "stale"}}) == 1);
  CHECK(scrape.value("fedge_updates_refused_total", {{"reason", "unknown"}}) == 1);
  CHECK(scrape.value("fedge_events_total", {{"event", "update.refused"}}) == 4);
  CHECK(scrape.value("fedge_events_total", {{"event", "client.connected"}}) == 1);
}

TEST_CASE("row 56: events of a million names do not make the page longer than a thousand lines of them") {
  Watched watched;
  for (int i = 0; i < 1'000'000; ++i)
    watched.metrics.add(Event{Severity::kInfo, "event." + std::to_string(i), {}});
  CHECK(watched.scrape().samples.size() < 1100);
}

TEST_CASE("coordinator metrics: clients that join are enrolled, those revoked are not any more") {
  Watched watched;
  Enrolment book(watched.directory.path());
  for (std::uint8_t i = 0; i < 3; ++i) {
    const auto token = book.create_token(0, std::chrono::hours(1));
    REQUIRE(token);
    PublicKey key{};
    key.bytes[0] = i;
    REQUIRE(book.redeem({token->secret, key, 0, "127.0.0.1:1"}));
  }
  CHECK(watched.scrape().value("fedge_clients_enrolled") == 3);
  REQUIRE(book.revoke(ClientId(1)));
  CHECK(watched.scrape().value("fedge_clients_enrolled") == 2);
  const auto file = watched.directory.path() / "enrolment.db";
  std::filesystem::rename(file, file.string() + ".away");
  CHECK_FALSE(watched.scrape().value("fedge_clients_enrolled"));
}

TEST_CASE("a coordinator whose enrolment book cannot be read is not ready, and says why") {
  Watched watched;
  REQUIRE(watched.enrolment.create_token(0, std::chrono::hours(1)));
  CHECK(watched.get("/readyz").status == 200);
  const auto file = watched.directory.path() / "enrolment.db";
  std::filesystem::rename(file, file.string() + ".away");
  const HttpResponse away = watched.get("/readyz");
  CHECK(away.status == 503);
  CHECK_MESSAGE(away.body.find(file.string()) != std::string::npos, away.body);
  std::filesystem::rename(file.string() + ".away", file);
  CHECK(watched.get("/readyz").status == 200);
}

TEST_CASE("coordinator metrics: the process is as the system shows it") {
  Watched watched;
  const double before = *watched.scrape().value("process_open_fds");
  const int file = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  CHECK(watched.scrape().value("process_open_fds") == before + 1);
  ::close(file);
  std::string memory(64 << 20, 'x');
  const Scrape scrape = watched.scrape();
  CHECK(*scrape.value("process_resident_memory_bytes") >= static_cast<double>(memory.size()));
  CHECK(*scrape.value("process_virtual_memory_bytes") >= *scrape.value("process_resident_memory_bytes"));
  CHECK(*scrape.value("process_cpu_seconds_total") > 0);
  CHECK(*scrape.value("process_max_fds") >= before);
  CHECK(*scrape.value("process_start_time_seconds") > 1.7e9);
}

TEST_CASE("coordinator metrics: the part in the directory, where there is one") {
  Watched watched;
  watched.part->status.good_nodes = 12;
  watched.part->status.stored_bytes = 3400;
  watched.part->ignored[dht::Flaw::kRolledBack] = 5;
  const Scrape scrape = watched.scrape();
  CHECK(scrape.value("fedge_directory_nodes", {{"state", "good"}}) == 12);
  CHECK(scrape.value("fedge_directory_nodes", {{"state", "dubious"}}) == 0);
  CHECK(scrape.value("fedge_directory_stored_bytes") == 3400);
  CHECK(scrape.value("fedge_directory_ignored_records_total", {{"flaw", "rolled back"}}) == 5);
  CHECK(scrape.value("fedge_directory_ignored_records_total", {{"flaw", "forged"}}) == 0);
  watched.part.reset();
  CHECK_FALSE(watched.scrape().value("fedge_directory_stored_bytes"));
}

TEST_CASE("coordinator metrics: the export of traces, where there is one") {
  Watched watched;
  watched.traces = TraceCounts{.exported = 70, .dropped = 5, .failed = 3};
  const Scrape scrape = watched.scrape();
  CHECK(scrape.value("fedge_trace_spans_exported_total") == 70);
  CHECK(scrape.value("fedge_trace_spans_dropped_total") == 5);
  CHECK(scrape.value("fedge_trace_requests_failed_total") == 3);
  watched.traces.reset();
  CHECK_FALSE(watched.scrape().value("fedge_trace_spans_exported_total"));
}

TEST_CASE("coordinator metrics: every family of the table is on the page, and the page has no other") {
  Watched watched;
  watched.metrics.add(RunNumber(1), round(1, 4));
  watched.metrics.add(refused("invalid"));
  const Scrape scrape = watched.scrape();
  std::set<std::string> expected;
  for (const MetricFamily& family : coordinator_families()) expected.emplace(family.name);
  std::set<std::string> found;
  for (const auto& [name, type] : scrape.type) found.insert(name);
  CHECK(found == expected);
  CHECK(expected.size() == coordinator_families().size());
}

TEST_CASE("coordinator metrics: what became of tasks, who fails, and what the runs wait for") {
  Watched watched;
  watched.live->fleet.connected(ClientId(4), "192.0.2.7:1", "", "", 100);
  for (const TaskStage stage : {TaskStage::kAccepted, TaskStage::kLate, TaskStage::kUnneeded})
    watched.live->fleet.ended(RunNumber(2),
                              {.client = ClientId(4), .task = {RoundNumber(1), {}}, .stage = stage}, 110);
  const auto watch = std::make_shared<RunWatch>(RunFacts{.last_round = 12});
  watched.live->open(RunNumber(2), "default", watch);
  watch->secure({{RoundNumber(1), {}}, 1, "shares", {ClientId(4), ClientId(5)}}, Time());
  const Event quarantined = Event{Severity::kWarning, "client.quarantined", {}}
                                .with("round", std::int64_t{3})
                                .with("client", std::int64_t{5})
                                .with("failures", std::int64_t{2})
                                .with("rounds", std::int64_t{10});
  watch->decided(RunEngine::Stop{}, {quarantined}, Time());
  watch->declined(ClientId(4), "no data", Time());
  watch->decided(RunEngine::ClientArrived{ClientId(5), SampleCount(1)}, {}, Time());
  watch->waits(RunEngine::Waiting{RoundNumber(1), 1, 2}, Time());
  watch->waits(RunEngine::Waiting{RoundNumber(1), 1, 2}, Time(seconds(100)));
  const Scrape scrape = watched.scrape();
  CHECK(scrape.value("fedge_tasks_ended_total", {{"outcome", "late"}}) == 1);
  CHECK(scrape.value("fedge_tasks_ended_total", {{"outcome", "unneeded"}}) == 1);
  CHECK(scrape.value("fedge_client_failures_total", {{"client", "4"}}) == 1);
  CHECK(scrape.value("fedge_run_clients_ready", {{"run", "2"}}) == 1);
  CHECK(scrape.value("fedge_run_clients_declined", {{"run", "2"}}) == 1);
  CHECK(scrape.value("fedge_run_waiting_seconds", {{"run", "2"}}) >= 100);
  CHECK(scrape.value("fedge_run_clients_quarantined", {{"run", "2"}}) == 1);
  CHECK(scrape.value("fedge_run_last_round", {{"run", "2"}}) == 12);
  CHECK(scrape.value("fedge_run_secure_stage", {{"run", "2"}}) == 2);
  CHECK(scrape.value("fedge_run_secure_awaited_clients", {{"run", "2"}}) == 2);
}

TEST_CASE("coordinator metrics: the reference lists every family with its type, and no other") {
  const auto text = read_file(std::string(FEDGE_SOURCE_DIR) + "/docs/reference/metrics.md", 1 << 20);
  REQUIRE(text);
  std::set<std::string> rows;
  const std::string row = "\n| `";
  for (std::size_t at = text->find(row); at != std::string::npos; at = text->find(row, at + 1)) {
    const std::string name =
        text->substr(at + row.size(), text->find('`', at + row.size()) - at - row.size());
    if (name.starts_with("fedge_") || name.starts_with("process_")) rows.insert(name);
  }
  for (const MetricFamily& family : coordinator_families()) {
    const std::string name(family.name);
    const char* type = family.type == MetricType::kCounter ? "counter"
                       : family.type == MetricType::kGauge ? "gauge"
                                                           : "histogram";
    const std::string label = family.label.empty() ? "" : " by `" + std::string(family.label) + "`";
    CAPTURE(name);
    CHECK(rows.erase(name) == 1);
    CHECK(text->find("\n| `" + name + "` | " + type + label + " | ") != std::string::npos);
  }
  for (const std::string& row_left : rows) FAIL_CHECK(row_left << " is no metric");
}

TEST_CASE("readyz: a coordinator is ready while it can store, and says why it is not") {
  Watched watched;
  CHECK(watched.get("/healthz").body == "alive\n");
  CHECK(watched.get("/readyz").status == 200);
  watched.metrics.add(Event{Severity::kError, "update.store_failed", {}}.with("reason", "no space left"));
  CHECK(watched.get("/readyz").status == 503);
  CHECK(watched.get("/readyz").body == "the last update received could not be stored: no space left\n");
  watched.metrics.add(RunNumber(1), round(1, 1));  // this round had an update
  CHECK(watched.get("/readyz").status == 200);
  const auto away = watched.directory.path().string() + ".away";
  std::filesystem::rename(watched.directory.path(), away);
  CHECK(watched.get("/readyz").status == 503);
  CHECK(watched.get("/readyz").body.find(watched.directory.path().string()) != std::string::npos);
  CHECK(watched.get("/healthz").status == 200);
  std::filesystem::rename(away, watched.directory.path());
  CHECK(watched.get("/readyz").status == 200);
}

TEST_CASE("admin pages: only GET and HEAD of known paths are answered") {
  Watched fixture;
  CHECK(fixture.get("/healthz").body == "alive\n");
  CHECK(fixture.get("/healthz?x=1", "HEAD").status == 200);
  CHECK(fixture.get("/other").status == 404);
  for (const std::string method : {"POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "get", "BREW"}) {
    const HttpResponse response = fixture.get("/healthz", method);
    CHECK(response.status == 405);
    CHECK(response.fields == HttpResponse::Fields{{"Allow", "GET, HEAD"}});
  }
}

}  // namespace fedge::server
