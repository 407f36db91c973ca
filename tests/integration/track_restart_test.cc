// A coordinator that is killed in the middle of a run with several models and restarted.
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <memory>

#include "client/daemon.h"
#include "tests/integration/coordinator_process.h"
#include "tests/integration/member.h"
#include "tests/integration/track_programs.h"

using namespace fedge;
using test::CoordinatorProcess;
using test::TrackModels;
using test::TrackPrograms;

namespace {

// A coordinator's data directory, and four daemons that keep running while coordinators restart.
struct TrackSite {
  TrackPrograms programs;
  std::filesystem::path coordinator = programs.out.path() / "coordinator";
  boost::asio::io_context io;
  std::vector<std::unique_ptr<client::Daemon>> daemons;

  CoordinatorProcess::Options options(const std::string& listen,
                                      const std::vector<std::string>& settings) const {
    return {.directory = coordinator,
            .results = programs.results("out"),
            .run_file = programs.run_file(),
            .settings = settings,
            .listen = listen};
  }
  void change(const std::string& what) const {
    const auto done = test::run("fedge tracks " + what + " --data-dir " + coordinator.string());
    REQUIRE_MESSAGE(done.code == 0, done.output);
  }
  void start_daemon(const std::string& address) {
    const auto state = programs.out.path() / ("client-" + std::to_string(daemons.size()));
    (void)test::make_member(coordinator, address, state);
    auto daemon = client::Daemon::create(io, {.state_directory = state,
                                              .software = "test",
                                              .backoff = {.first = seconds(0.01), .longest = seconds(0.05)}});
    REQUIRE(daemon);
    daemons.push_back(std::move(*daemon));
    daemons.back()->start();
  }
  void run_until(const std::function<bool()>& happened) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!happened() && std::chrono::steady_clock::now() < limit)
      io.run_one_for(std::chrono::milliseconds(20));
    REQUIRE(happened());
  }
};

std::vector<std::vector<std::string>> excluded_in(const TrackModels& models, std::uint64_t round) {
  std::vector<std::vector<std::string>> excluded;
  for (const auto& [key, hash] : models)
    if (key.first == round) excluded.push_back(key.second);
  return excluded;
}

}  // namespace

TEST_CASE(
    "restart: a coordinator that was killed goes on with its run, takes up the policy as it stands then, and "
    "comes to the models of a run in which the policy changed in that round") {
  TrackSite site;
  std::vector<std::string> settings =
      site.programs.settings(R"({ kind = "inbound", clients = ["0"], against = ["3"] })");
  settings.insert(settings.end(), {"run.rounds=12", "strategy.kind=scaffold"});
  CoordinatorProcess first(site.options("127.0.0.1:0", settings));
  site.change("add --kind inbound --clients 1 --against 2");
  for (int i = 0; i < 4; ++i) site.start_daemon(first.address());
  const auto models = [&] { return test::read_models(site.programs.results("out")); };
  site.run_until([&] { return !excluded_in(models(), 2).empty(); });
  const std::vector<std::vector<std::string>> three_tracks = {{}, {"2"}, {"3"}};
  CHECK(excluded_in(models(), 2) == three_tracks);
  first.kill();
  const TrackModels before = models();

  site.change("lift 1");
  site.change("add --kind inbound --clients 0 --against 1 --from 3");
  site.change("add --kind partial_data --clients 2 --withheld 0.5");
  CoordinatorProcess second(site.options(first.address(), settings));
  site.run_until([&] { return second.has_ended(); });
  CHECK(second.wait() == 0);
  for (const auto& daemon : site.daemons) daemon->stop();

  const TrackModels after = models();
  for (const auto& [key, hash] : before) CHECK(after.at(key) == hash);
  std::uint64_t last = 2;  // last round of the old policy
  while (last < 12 && excluded_in(after, last + 1) == three_tracks) ++last;
  REQUIRE(last < 12);
  const std::string until = std::to_string(last);
  const std::string from = std::to_string(last + 1);
  CHECK(excluded_in(after, 12) == std::vector<std::vector<std::string>>{{}, {"1"}, {"2"}});
  CHECK(after ==
        site.programs.models(
            "simulated",
            R"({ kind = "inbound", clients = ["0"], against = ["3"], until_round = )" + until +
                R"( }, { kind = "inbound", clients = ["1"], against = ["2"] },)"
                R"( { kind = "inbound", clients = ["0"], against = ["1"], from_round = )" +
                from + R"( }, { kind = "partial_data", clients = ["2"], withheld = 0.5, from_round = )" +
                from + " }",
            "--set run.rounds=12 --set strategy.kind=scaffold"));
}
