// The fleet: a coordinator's knowledge of its clients, in memory and over restarts.
#include "server/live/fleet.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "server/live/fleet_file.h"
#include "server/live/live.h"
#include "tests/support/tiny_dataset.h"

namespace fedge::server {
namespace {

WatchedTask task_of(std::uint32_t client, TaskStage stage, ErrorCode code = {}) {
  return {.client = ClientId(client),
          .task = {RoundNumber(4), {}},
          .stage = stage,
          .asked = Time(seconds(10)),
          .offered = Time(seconds(12)),
          .ended = Time(seconds(13)),
          .bytes = 800,
          .code = code,
          .reason = stage == TaskStage::kAccepted ? "" : "because\nof this"};
}

}  // namespace

TEST_CASE("fleet: counts what became of each client's tasks, by reason") {
  Fleet fleet;
  CHECK_FALSE(fleet.find(ClientId(3), 100));
  fleet.connected(ClientId(3), "192.0.2.7:5000", "fedge-client 1", "Linux aarch64", 100);
  for (const auto& [stage, code] :
       {std::pair{TaskStage::kAccepted, ErrorCode()}, std::pair{TaskStage::kFailed, ErrorCode::kResource},
        std::pair{TaskStage::kFailed, ErrorCode::kResource},
        std::pair{TaskStage::kRefused, ErrorCode::kInvalid}, std::pair{TaskStage::kLate, ErrorCode()},
        std::pair{TaskStage::kLost, ErrorCode::kUnavailable}})
    fleet.ended(RunNumber(2), task_of(3, stage, code), 120);
  fleet.moved(ClientId(3), 1000, 20);
  fleet.moved(ClientId(3), 1, 2);
  const auto client = fleet.find(ClientId(3), 130);
  REQUIRE(client);
  CHECK(client->accepted == 1);
  CHECK(client->failures == std::map<std::string, std::uint64_t>{
                                {"failed.resource", 2}, {"late", 1}, {"lost", 1}, {"refused.invalid", 1}});
  CHECK(client->received == 1001);
  CHECK(client->sent == 22);
  CHECK(client->online_since == 100);
  CHECK(client->last_seen == 130);  // it is online
  REQUIRE(client->last_task);
  CHECK(client->last_task->training_seconds == 2);
  CHECK(client->last_task->upload_seconds == 1);
  REQUIRE(client->last_failure);
  CHECK(client->last_failure->reason == "because?of this");
  CHECK(fleet.online() == 1);
  fleet.disconnected(ClientId(3), 140);
  CHECK(fleet.find(ClientId(3), 150)->last_seen == 140);
  CHECK_FALSE(fleet.is_online(ClientId(3)));
  CHECK(fleet.online() == 0);
}

TEST_CASE("fleet: a client that connects again while its old link is still there is online once") {
  Fleet fleet;
  fleet.connected(ClientId(1), "192.0.2.7:5000", "", "", 100);
  fleet.connected(ClientId(1), "192.0.2.7:5001", "", "", 101);
  CHECK(fleet.online() == 1);
  fleet.disconnected(ClientId(1), 102);
  CHECK(fleet.online() == 0);
}

TEST_CASE("fleet: only what has changed is written, and another process reads it") {
  const test::TemporaryDirectory directory;
  Fleet fleet;
  fleet.connected(ClientId(1), "192.0.2.7:5000", "fedge-client 1", "Linux x86_64", 100);
  fleet.connected(ClientId(2), "[2001:db8::1]:5000", "fedge-client 1", "", 100);
  fleet.ended(RunNumber(2), task_of(2, TaskStage::kRefused, ErrorCode::kInvalid), 110);
  CHECK(fleet.take_changed(120, false).size() == 2);
  CHECK(fleet.take_changed(120, false).empty());
  fleet.disconnected(ClientId(1), 125);
  CHECK(fleet.take_changed(130, false).size() == 1);
  const auto all = fleet.take_changed(140, true);  // client 2 is online
  REQUIRE(all.size() == 1);
  CHECK(all[0].last_seen == 140);
  fleet.disconnected(ClientId(1), 125);
  {
    auto file = FleetFile::open(directory.path());
    REQUIRE(file);
    REQUIRE((*file)->put(all));
    REQUIRE((*file)->put(fleet.take_changed(150, false)));
  }
  const auto kept = FleetFile::read(directory.path());
  REQUIRE(kept);
  REQUIRE(kept->size() == 2);
  Fleet next;
  next.take_up(*kept);
  CHECK(next.online() == 0);
  const auto second = next.find(ClientId(2), 999);
  REQUIRE(second);
  CHECK(second->online_since == 0);
  CHECK(second->last_seen == 140);
  CHECK(second->address == "[2001:db8::1]:5000");
  CHECK(second->failures.at("refused.invalid") == 1);
  REQUIRE(second->last_task);
  CHECK(second->last_task->round == RoundNumber(4));
  CHECK(second->last_failure->kind == "refused.invalid");
}

TEST_CASE("fleet: a client knows a next key from its own word on, until it is told of another or of none") {
  const test::TemporaryDirectory directory;
  PublicKey device{}, next{}, other{};
  device.bytes.fill(1);
  next.bytes.fill(2);
  other.bytes.fill(3);
  Fleet fleet;
  fleet.connected(ClientId(3), "192.0.2.7:5000", "", "", 100);
  const auto kept = [&] { return fleet.find(ClientId(3), 100)->kept_key; };
  fleet.tells_key(ClientId(3), next);
  CHECK(kept().empty());
  fleet.keeps_key(ClientId(3), device, next);
  fleet.tells_key(ClientId(3), next);
  CHECK(kept() == to_hex(next));
  auto file = FleetFile::open(directory.path());
  REQUIRE(file);
  REQUIRE((*file)->put(fleet.take_changed(100, true)));
  const auto read = (*file)->all();
  REQUIRE(read);
  CHECK(read->at(0).kept_key == to_hex(next));
  CHECK(read->at(0).kept_by == to_hex(device));
  SUBCASE("another") { fleet.tells_key(ClientId(3), other); }
  SUBCASE("none") { fleet.tells_key(ClientId(3), std::nullopt); }
  CHECK(kept().empty());
  CHECK(fleet.find(ClientId(3), 100)->kept_by.empty());
}

TEST_CASE("fleet: what a client did for one project is not shown to another") {
  Fleet fleet;
  fleet.connected(ClientId(1), "192.0.2.7:5000", "", "", 100);
  fleet.set_project(ClientId(1), "cardiology");
  fleet.ended(RunNumber(2), task_of(1, TaskStage::kRefused, ErrorCode::kInvalid), 110);
  fleet.set_project(ClientId(1), "cardiology");
  CHECK(fleet.find(ClientId(1), 120)->last_failure);
  fleet.set_project(ClientId(1), "oncology");
  const auto moved = fleet.find(ClientId(1), 120);
  CHECK_FALSE(moved->last_failure);
  CHECK_FALSE(moved->last_task);
  CHECK(moved->failures.empty());
  CHECK(moved->online_since == 100);
  CHECK(parse_activity(ClientId(1), encode_activity(*moved))->project == "oncology");
}

TEST_CASE("fleet: what could not be written is written again, and what is not needed is no failure") {
  Fleet fleet;
  fleet.connected(ClientId(1), "192.0.2.7:5000", "", "", 100);
  CHECK(fleet.take_changed(110, false).size() == 1);
  fleet.mark_changed({ClientId(1), ClientId(9)});
  CHECK(fleet.take_changed(110, false).size() == 1);
  fleet.ended(RunNumber(2), task_of(1, TaskStage::kUnneeded), 120);
  fleet.ended(RunNumber(2), task_of(1, TaskStage::kLate), 120);
  CHECK(fleet.find(ClientId(1), 130)->failures == std::map<std::string, std::uint64_t>{{"late", 1}});
  CHECK(fleet.outcomes() == std::map<std::string, std::uint64_t>{{"late", 1}, {"unneeded", 1}});
}

TEST_CASE("fleet: a damaged file is reported and set aside, and a missing one is no clients") {
  const test::TemporaryDirectory directory;
  const auto none = FleetFile::read(directory.path());
  REQUIRE(none);
  CHECK(none->empty());
  CHECK_FALSE(std::filesystem::exists(directory.path() / "fleet.db"));
  std::ofstream(directory.path() / "fleet.db") << std::string(4096, 'x');
  const auto damaged = FleetFile::open(directory.path());
  REQUIRE_FALSE(damaged);
  CHECK(damaged.error().code == ErrorCode::kCorrupt);
  const auto fresh = FleetFile::replace(directory.path());
  REQUIRE(fresh);
  CHECK((*fresh)->all()->empty());
  CHECK(std::filesystem::exists(directory.path() / "fleet.db.damaged"));
}

TEST_CASE("event feed: a reader gets what came after its last event, and is told of a gap") {
  EventFeed feed;
  std::size_t calls = 0;
  feed.listen([&] { ++calls; });
  for (int i = 0; i < 3; ++i) feed.publish({.name = "e" + std::to_string(i)});
  CHECK(calls == 3);
  CHECK(feed.last() == 3);
  auto part = feed.after(1, 10);
  REQUIRE(part.events.size() == 2);
  CHECK(part.events[0].name == "e1");
  CHECK_FALSE(part.gap);
  CHECK(feed.after(3, 10).events.empty());
  CHECK(feed.after(0, 2).events.size() == 2);
  for (std::size_t i = 0; i < EventFeed::kKept; ++i) feed.publish({.name = "more"});
  CHECK(feed.after(3, 1).gap == false);
  CHECK(feed.after(2, 1).gap);
  feed.listen({});
  feed.publish({.name = "quiet"});
  CHECK(calls == 3 + EventFeed::kKept);
}

TEST_CASE("live: an event belongs to the project of its run, else of its client, else to all") {
  Live live;
  live.open(RunNumber(4), "cardiology", std::make_shared<RunWatch>());
  live.set_project(ClientId(2), "oncology");
  live.publish(Event{Severity::kInfo, "a", {}}.with("run", std::int64_t{4}).with("client", std::int64_t{2}));
  live.publish(Event{Severity::kInfo, "b", {}}.with("client", std::int64_t{2}));
  live.publish(Event{Severity::kInfo, "c", {}}.with("run", std::int64_t{9}).with("client", std::int64_t{2}));
  live.publish(Event{Severity::kDebug, "debug", {}});
  live.publish_progress();
  live.publish_progress();  // nothing has changed
  live.publish_round(RunNumber(4), "{\"round\":1}");
  const auto events = live.feed.after(0, 10).events;
  REQUIRE(events.size() == 5);
  CHECK(events[0].project == "cardiology");
  CHECK(events[1].project == "oncology");
  CHECK(events[2].project.empty());  // of a run that this process does not lead: only for those who see all
  CHECK(events[3].name == "progress");
  CHECK(events[4].data == "{\"run\":4,\"metrics\":{\"round\":1}}");
  CHECK(events[4].project == "cardiology");
}

}  // namespace fedge::server
