// A whole federation inside one test: a real coordinator and real client daemons on loopback, on one
// io_context, with a tiny data set. Nothing sleeps: run_until() runs the io_context until a condition holds,
// and fails the test if it never does.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/daemon.h"
#include "core/config/document.h"
#include "server/coordinator/coordinator.h"
#include "server/data_directory.h"
#include "server/enrolment.h"
#include "server/policy_file.h"
#include "server/store/sqlite_store.h"
#include "tests/integration/member.h"
#include "tests/support/tiny_dataset.h"

namespace fedge::test {

class Federation {
 public:
  // `settings` are --set assignments on top of a softmax run with `clients` clients.
  Federation(std::size_t clients, const std::vector<std::string>& settings,
             const server::ArrivalRules& arrivals = {}, const protocol::ListenOptions& connections = {},
             std::uint64_t swarm_upload_limit = 0, const server::JoinRates& joining = {}) {
    write_tiny_dataset(data);
    const std::string count = std::to_string(clients);
    auto document = config::parse_toml(
        "[run]\nname = \"test\"\nrounds = 2\nseed = 5\n[model]\nkind = \"softmax\"\n"
        "[training]\nbatch_size = 5\n[data]\ndirectory = \"" +
            data.path().string() + "\"\npartition = { clients = " + count +
            " }\n[sampling]\nclients_per_round = " + count + "\n",
        "test.toml");
    REQUIRE(document);
    for (const std::string& setting : settings) REQUIRE(config::set(*document, setting));
    auto config = run::read_run_config(*document);
    REQUIRE(config);
    run = *config;
    auto created = server::Coordinator::create(io,
                                               {.data_directory = directory.path() / "coordinator",
                                                .listen = {"127.0.0.1", 0},
                                                .connections = connections,
                                                .joining = joining,
                                                .arrivals = arrivals,
                                                .upload_limit = swarm_upload_limit,
                                                .software = "test"},
                                               callbacks());
    REQUIRE_MESSAGE(created, created.error().message);
    coordinator = std::move(*created);
    const auto submitted = coordinator->submit(run);
    REQUIRE_MESSAGE(submitted, submitted.error().message);
    number = submitted->number;
    run.id = submitted->id;
    coordinator->start();
    run_until([&] { return led > 0; });
    auto key = server::open_coordinator_key(directory.path() / "coordinator");
    REQUIRE(key);
    coordinator_key = key->public_key();
  }

  server::RunCallbacks callbacks() {
    return {.on_led = [this](const server::RunRecord&, const run::RunConfig&,
                             const std::vector<server::RoundMetrics>&) -> Result<void> {
              ++led;
              return {};
            },
            .on_round =
                [this](server::RunNumber, const server::RoundMetrics& metrics) {
                  rounds.push_back(metrics);
                  if (after_round) after_round();
                },
            .on_models = [this](server::RunNumber, std::vector<server::FinalModel> models,
                                const std::string&) -> Result<void> {
              if (refuses_models) return Error{ErrorCode::kUnavailable, "a test refuses the models"};
              final_models = std::move(models);
              return {};
            },
            .on_left =
                [this](server::RunNumber, server::RunStatus status, const std::string& reason) {
                  left.emplace_back(status, reason);
                  if (server::has_ended(status)) coordinator->stop("the run has ended");
                },
            .on_event = [this](const Event& event) { events.push_back(to_string(event)); },
            .on_stopped = [] {}};
  }
  // Restarts the coordinator in the same directory at the same address, as similar to a new process as
  // possible.
  void restart_coordinator() {
    const protocol::Address address = coordinator->address();
    coordinator->stop("for a test");
    run_until([&] { return coordinator->activity().clients == 0; });
    coordinator.reset();
    const int before = led;
    run_until([&] {
      if (coordinator) return true;
      auto made = server::Coordinator::create(
          io, {.data_directory = directory.path() / "coordinator", .listen = address, .software = "test"},
          callbacks());
      if (made) coordinator = std::move(*made);
      return made.has_value();
    });
    coordinator->start();
    run_until([&] { return led > before; });
  }
  // Changes the run's status as an operator's command does.
  void ask(server::RunStatus wanted, const std::string& reason) const {
    const auto store = server::open_sqlite_store(directory.path() / "coordinator" / "runs.db");
    REQUIRE_MESSAGE(store, store.error().message);
    const auto asked = (*store)->ask(number, wanted, reason, server::calendar_now());
    REQUIRE_MESSAGE(asked, asked.error().message);
  }
  std::filesystem::path run_directory() const {
    return server::run_directory(directory.path() / "coordinator", number);
  }
  server::PolicyFile policy() const { return {directory.path() / "coordinator", number}; }

  server::Enrolment enrolment() const { return server::Enrolment(directory.path() / "coordinator"); }

  // Creates a join secret; client numbers are assigned in order.
  std::string token() const {
    auto created = enrolment().create_token(0, std::chrono::hours(1'000'000));
    REQUIRE(created);
    return created->secret;
  }

  // Enrols the next client, whose state directory gets this name.
  std::filesystem::path enrol(const std::string& name) {
    const auto state = directory.path() / name;
    (void)make_member(directory.path() / "coordinator", coordinator->address(), state);
    return state;
  }
  std::filesystem::path state_of(std::size_t daemon) const {
    return directory.path() / ("client-" + std::to_string(daemon));
  }
  // Starts an honest daemon as the next client number.
  void add_client() {
    enrol("client-" + std::to_string(daemons.size()));
    daemons.emplace_back();
    start_client(daemons.size() - 1);
  }
  void start_client(std::size_t index) {
    // A daemon that was just stopped holds its directory until its last callback has ended.
    run_until([&] {
      if (daemons[index]) return true;
      auto daemon = client::Daemon::create(
          io, {.state_directory = state_of(index),
               .software = "test",
               .backoff = {.first = seconds(0.01), .longest = seconds(0.1)},
               .data_directories = data_directories,
               .swarm = swarm_of ? swarm_of(index) : client::SwarmOptions{},
               .splits = true,
               .shared_bases = shared_bases,
               .stop_after_run = true,
               .on_event = [this](const Event& event) { client_events.push_back(to_string(event)); }});
      if (daemon) daemons[index] = std::move(*daemon);
      return daemon.has_value();
    });
    daemons[index]->start();
  }
  // Closes the client's link; its state directory stays.
  void stop_client(std::size_t index) {
    daemons[index]->stop();
    daemons[index].reset();
  }

  void run_until(const std::function<bool()>& happened) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!happened() && std::chrono::steady_clock::now() < limit)
      io.run_one_for(std::chrono::milliseconds(100));
    std::string log;
    for (const std::string& event : events) log += event + "\n";
    for (const std::string& event : client_events) log += "of a client: " + event + "\n";
    REQUIRE_MESSAGE(happened(), log);
  }
  void run_to_the_end() {
    run_until([&] { return final_models.has_value(); });
    REQUIRE(*final_models);
  }
  bool reported(const std::string& text) const { return count(text) > 0; }
  std::size_t count(const std::string& text) const { return count(events, text); }
  static std::size_t count(const std::vector<std::string>& log, const std::string& text) {
    return static_cast<std::size_t>(std::count_if(log.begin(), log.end(), [&](const std::string& event) {
      return event.find(text) != std::string::npos;
    }));
  }
  std::vector<std::string> hashes() const {
    std::vector<std::string> result;
    for (const server::RoundMetrics& round : rounds) result.push_back(round.model_hash);
    return result;
  }

  TemporaryDirectory data;
  TemporaryDirectory directory;
  boost::asio::io_context io;
  run::RunConfig run;
  server::RunNumber number;
  int led = 0;                  // how often the run was started or resumed
  bool refuses_models = false;  // a disk that fails while the results are written
  std::vector<std::pair<server::RunStatus, std::string>> left;  // how it ended, each time
  std::vector<server::RoundMetrics> rounds;
  std::function<void()> after_round;  // may be empty
  std::vector<std::string> events;
  std::vector<std::string> client_events;
  std::optional<Result<std::vector<server::FinalModel>>> final_models;
  PublicKey coordinator_key;
  learn::DataDirectories data_directories;                    // of the started client
  std::filesystem::path shared_bases;                         // of the started client; may be empty
  std::function<client::SwarmOptions(std::size_t)> swarm_of;  // options of the started client; may be empty
  std::unique_ptr<server::Coordinator> coordinator;
  std::vector<std::unique_ptr<client::Daemon>> daemons;
};

}  // namespace fedge::test
