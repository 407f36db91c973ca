// The client daemon in two runs at once.
#include "client/daemon.h"

#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/support/flipping_proxy.h"
#include "tests/unit/client/daemon_site.h"

namespace fedge::client {
namespace {

using site::kFirst;
using site::kSecond;
using site::Site;

// Trains and offers both runs' first tasks.
void offer_both(Site& site) {
  site.begin();
  for (const RunId run : {kFirst, kSecond}) REQUIRE(site.hears<protocol::RunAnswer>(run));
  for (const RunId run : {kFirst, kSecond}) site.link->send(site.work.request(run, 1));
  for (const RunId run : {kFirst, kSecond}) REQUIRE(site.hears<protocol::UpdateOffer>(run));
  REQUIRE(site.pending(kFirst));
  REQUIRE(site.pending(kSecond));
}

// A site's trainer program that records each of its starts in a file.
TrainerOptions noted_program(const Site& site, const std::string& mode) {
  return {.command = {"/bin/sh", "-c",
                      "echo $$ >> '" + (site.data.path() / "starts").string() +
                          "'; exec /usr/bin/python3 '" FEDGE_SOURCE_DIR
                          "/tests/support/trainers/trainer_program.py' " +
                          mode + " '" + site.data.path().string() + "'"},
          .on_event = {}};
}

std::vector<pid_t> starts(const Site& site) {
  std::ifstream in(site.data.path() / "starts");
  return {std::istream_iterator<pid_t>(in), {}};
}

bool runs(pid_t process) { return ::kill(process, 0) == 0; }

}  // namespace

TEST_CASE(
    "daemon: each run has a program of its own, kept while the runs take turns and ended with its run") {
  Site site;
  site.trainer = noted_program(site, "honest");
  offer_both(site);
  for (std::uint32_t round = 2; round <= 3; ++round)
    for (const RunId run : {kSecond, kFirst}) {
      site.link->send(protocol::UpdateVerdict{run, RoundNumber(round - 1), true, {}, {}});
      site.link->send(site.work.request(run, round));
      CHECK(site.run_until([&] { return site.count<protocol::UpdateOffer>(run) == round; }));
    }
  const std::vector<pid_t> programs = starts(site);
  REQUIRE(programs.size() == 2);
  CHECK(runs(programs[0]));
  site.link->send(protocol::RunEnded{kFirst, "done"});
  CHECK(site.run_until([&] { return !runs(programs[0]); }));
  CHECK(runs(programs[1]));
  site.leave();
  CHECK(!runs(programs[1]));
}

TEST_CASE("daemon: a program that hangs is no hindrance to ending all of them") {
  Site site;
  site.trainer = noted_program(site, "hangs");
  site.begin();
  for (const RunId run : {kFirst, kSecond}) REQUIRE(site.hears<protocol::RunAnswer>(run));
  for (const RunId run : {kFirst, kSecond}) site.link->send(site.work.request(run, 1));
  REQUIRE(site.run_until([&] { return std::filesystem::exists(site.data.path() / "done-hangs"); }));
  const std::vector<pid_t> programs = starts(site);
  REQUIRE(programs.size() == 2);
  site.leave();
  for (const pid_t program : programs) CHECK(!runs(program));
}

TEST_CASE("daemon: a program that says it has 2^53 samples is declined with the reason, and the link stays") {
  Site site;
  site.trainer = noted_program(site, "ready_many");
  site.begin();
  REQUIRE(site.run_until([&] {
    return site.count<protocol::RunAnswer>(kFirst) > 0 ||
           std::ranges::any_of(site.said,
                               [](const auto& line) { return line.starts_with("client.disconnected"); });
  }));
  REQUIRE(site.count<protocol::RunAnswer>(kFirst) == 1);
  const auto& answer = std::get<protocol::RunAnswer>(site.heard.front());
  CHECK_FALSE(answer.ready);
  CHECK(answer.reason == "the trainer program's message \"ready\" needs samples of at most 2^40");
}

TEST_CASE("daemon: one bit changed on its way to the coordinator costs a client its link, not its life") {
  for (const std::uint64_t bit : {160U, 195U, 247U}) {
    CAPTURE(bit);
    Site site;
    const protocol::Address direct = site.listener->local_address();
    const auto proxy = std::make_shared<test::FlippingProxy>(site.io, direct);
    proxy->start();
    REQUIRE(write_membership(site.state.path(), {.coordinators = {proxy->address(), direct},
                                                 .coordinator_key = site::coordinator_key().public_key(),
                                                 .client = ClientId(0)}));
    site.begin();
    for (const RunId run : {kFirst, kSecond}) REQUIRE(site.hears<protocol::RunAnswer>(run));
    proxy->flip(test::FlippingProxy::kToServer, bit);
    site.link->send(site.work.request(kFirst, 1));
    REQUIRE(site.run_until([&] {
      return site.finished || std::ranges::any_of(site.said, [](const std::string& line) {
               return line.starts_with("client.disconnected");
             });
    }));
    CHECK(proxy->flipped(test::FlippingProxy::kToServer));
    site.heard.clear();
    CHECK_FALSE(site.finished);
    CHECK(site.run_until([&] { return site.finished || site.count<protocol::RunAnswer>(kFirst) > 0; }));
    CHECK_FALSE(site.finished);
    proxy->close();
  }
}

TEST_CASE("daemon: two runs hold an update each at the same time, and a verdict is one run's alone") {
  Site site;
  offer_both(site);
  const auto samples = [&](std::size_t i) { return std::get<protocol::RunAnswer>(site.heard[i]).samples; };
  CHECK(samples(0) == SampleCount(40));
  CHECK(samples(1) == SampleCount(40));
  site.link->send(protocol::UpdateVerdict{kFirst, RoundNumber(1), true, {}, {}});
  CHECK(site.has_said("update.accepted round=1 run=\"run 7\" trace=\"da57610638628e20a9c6e0578af86906\""));
  // The worker has forgotten the first update by the time it offers that of the next task.
  site.link->send(site.work.request(kFirst, 2));
  CHECK(site.run_until([&] { return site.count<protocol::UpdateOffer>(kFirst) == 2; }));
  CHECK(site.pending(kSecond));
  CHECK(site.count<protocol::TaskFailed>(kFirst) + site.count<protocol::TaskFailed>(kSecond) == 0);
}

TEST_CASE("daemon: the next process offers both runs' updates when they are asked for, and trains neither") {
  Site site;
  offer_both(site);
  site.leave();
  CHECK(site.pending(kFirst));
  CHECK(site.pending(kSecond));
  site.begin();
  const auto is_resumed = [](const std::string& line) { return line.starts_with("update.resumed round=1 "); };
  CHECK(std::ranges::count_if(site.said, is_resumed) == 2);
  for (const RunId run : {kFirst, kSecond}) REQUIRE(site.hears<protocol::RunAnswer>(run));
  site.link->stop_serving(site.work.model.id());  // so that no training can start
  for (const RunId run : {kSecond, kFirst}) site.link->send(site.work.request(run, 1));
  for (const RunId run : {kFirst, kSecond}) CHECK(site.hears<protocol::UpdateOffer>(run));
}

TEST_CASE("daemon: what is kept of a run that the coordinator no longer names is removed, the rest stays") {
  Site site;
  offer_both(site);
  const auto memory = [&](RunId run) { return site.state.path() / "runs" / std::to_string(run.value()); };
  for (const RunId run : {kFirst, kSecond}) REQUIRE(make_directory(memory(run) / "track-3", 0700));
  SUBCASE("after the link was lost") { site.link->close("cut"); }
  SUBCASE("in the next process") {
    site.leave();
    site.begin();
  }
  site.heard.clear();
  site.going = {kSecond};
  REQUIRE(site.hears<protocol::RunAnswer>(kSecond));
  CHECK(std::ranges::any_of(site.said, [](const std::string& line) {
    return line.starts_with("update.dropped round=1 reason=\"the run has ended\"");
  }));
  // The worker removes the update before it does anything for the other run.
  site.link->send(site.work.request(kSecond, 2));
  CHECK(site.hears<protocol::UpdateOffer>(kSecond));
  CHECK(!site.pending(kFirst));
  CHECK(!std::filesystem::exists(memory(kFirst)));
  CHECK(std::filesystem::exists(memory(kSecond)));
  CHECK(site.pending(kSecond));
}

TEST_CASE("daemon: told to stop after a run, it stays for the other one and ends with that") {
  Site site;
  site.begin(true);
  for (const RunId run : {kFirst, kSecond}) REQUIRE(site.hears<protocol::RunAnswer>(run));
  site.link->send(protocol::RunEnded{kFirst, "done"});
  REQUIRE(site.has_said("run.ended reason=\"done\" run=\"run 7\""));
  site.link->send(site.work.request(kSecond, 1));
  CHECK(site.hears<protocol::UpdateOffer>(kSecond));
  CHECK_FALSE(site.finished);
  site.link->send(protocol::RunEnded{kSecond, "done"});
  CHECK(site.run_until([&] { return site.finished; }));
  CHECK(!site.daemon->failure());
}

}  // namespace fedge::client
