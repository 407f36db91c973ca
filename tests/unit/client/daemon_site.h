// A client daemon beside a scripted coordinator: a listener that sends what the test tells it to.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "client/daemon.h"
#include "client/pending_update.h"
#include "client/prepared_run.h"
#include "core/config/document.h"
#include "core/platform/files.h"
#include "protocol/limits.h"
#include "tests/support/tiny_dataset.h"

namespace fedge::client::site {

inline const RunId kFirst(7);
inline const RunId kSecond(9);

inline SecretKey coordinator_key() {
  std::array<std::uint8_t, 32> seed{};
  seed[0] = 3;
  return SecretKey::from_seed(seed);
}

// The work of both runs: softmax regression on forty samples, all held by this client.
struct Work {
  explicit Work(const test::TemporaryDirectory& data) {
    test::write_tiny_dataset(data);
    text = "[data]\ndirectory = \"" + data.path().string() + "\"\npartition = { clients = 1 }\n";
    auto document = config::parse_toml(text, "run");
    REQUIRE(document);
    config::Reader root(document->root, "", "run");
    auto task = learn::Task::build_for(read_work(root).task, 5, ClientId(0));
    REQUIRE_MESSAGE(task, task.error().message);
    layout = (*task)->model().layout();
    begin_from(0);
  }
  // Sets every parameter of the model to this value.
  void begin_from(float value) {
    values.assign(layout->size(), value);
    model = protocol::make_manifest(layout->hash(), Coverage::all(values.size()),
                                    std::as_bytes(std::span(values)), protocol::kDefaultChunkSize);
    store = protocol::make_memory_chunk_store(1 << 20);
    auto made = store->create(model);
    REQUIRE(made);
    object = *made;
    for (std::size_t i = 0; i < model.chunk_count(); ++i)
      REQUIRE(object->write(
          i, std::as_bytes(std::span(values)).subspan(i * model.chunk_size, model.chunk_length(i))));
  }
  protocol::RunDescription description(RunId run) const {
    return {.run = run,
            .name = "run " + std::to_string(run.value()),
            .seed = 5,
            .task = text,
            .layout = layout->hash()};
  }
  protocol::TrainRequest request(RunId run, std::uint32_t round) const {
    protocol::TrainRequest request;
    request.run = run;
    request.round = RoundNumber(round);
    request.model = model;
    request.coverage = Coverage::all(values.size());
    request.time_left = seconds(600);
    return request;
  }

  std::string text;
  std::shared_ptr<const ParameterLayout> layout;
  std::vector<float> values;
  protocol::Manifest model;
  std::unique_ptr<protocol::ChunkStore> store;
  std::shared_ptr<protocol::StoredObject> object;
};

// A scripted coordinator and a client daemon connected to it.
struct Site {
  Site() {
    auto identity = protocol::make_tls_identity(coordinator_key());
    REQUIRE(identity);
    auto made =
        protocol::listen(io, *identity, {.address = {"127.0.0.1", 0}, .timeouts = {}, .on_refused = {}},
                         [this](std::shared_ptr<protocol::Link> made_link) { take(std::move(made_link)); });
    REQUIRE(made);
    listener = std::move(*made);
    REQUIRE(write_membership(state.path(), {.coordinators = {listener->local_address()},
                                            .coordinator_key = coordinator_key().public_key(),
                                            .client = ClientId(0)}));
  }
  ~Site() { leave(); }

  void take(std::shared_ptr<protocol::Link> accepted) {
    link = std::move(accepted);
    greeted = false;
    link->set_callbacks(
        {.on_message =
             [this](const protocol::Message& message) {
               if (hears_too) hears_too(message);
               if (!std::holds_alternative<protocol::Hello>(message)) return heard.push_back(message);
               features = std::get<protocol::Hello>(message).features;
               greeted = true;
               link->authorise();
               link->send(protocol::Welcome{.software = "test", .client = ClientId(0), .runs = going});
               link->serve(work.model, work.object);
               for (const RunId run : going) tell(work.description(run));
             },
         .on_closed =
             [this, closed = link.get()](const Error&) {
               if (link.get() == closed) link.reset();  // otherwise the client has already reconnected
             }});
  }
  // Sends the message unless says_instead changes or drops it.
  void tell(protocol::Message message) {
    if (link && (!says_instead || says_instead(message))) link->send(message);
  }
  void begin(bool once = false) {
    auto created =
        Daemon::create(io, {.state_directory = state.path(),
                            .software = "test",
                            .backoff = backoff,
                            .power = power,
                            .meter = meter,
                            .streams = streams,
                            .secure = secure,
                            .max_epsilon = max_epsilon,
                            .require_noise = require_noise,
                            .max_updates_per_day = max_updates_per_day,
                            .stop_after_run = once,
                            .trainer = trainer,
                            .on_event = [this](const Event& event) { said.push_back(to_string(event)); }});
    REQUIRE_MESSAGE(created, created.error().message);
    daemon = std::move(*created);
    daemon->on_finished([this] { finished = true; });
    daemon->start();
  }
  // Stops the daemon as if its process had ended: it does nothing more, and its directory is unlocked.
  void leave() {
    if (daemon) daemon->stop();
    run_until([this] { return !link; });
    daemon.reset();
    run_until([this] { return static_cast<bool>(DirectoryLock::acquire(state.path())); });
    heard.clear();
  }
  // Returns false after 60 s, so that a failing test ends.
  bool run_until(const std::function<bool()>& condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    io.restart();
    while (!condition() && std::chrono::steady_clock::now() < deadline)
      io.run_one_for(std::chrono::milliseconds(5));
    return condition();
  }
  template <class M>
  bool hears(RunId run) {
    return run_until([&] { return count<M>(run) > 0; });
  }
  template <class M>
  std::ptrdiff_t count(RunId run) const {
    return std::ranges::count_if(heard, [&](const protocol::Message& message) {
      const auto* found = std::get_if<M>(&message);
      return found != nullptr && found->run == run;
    });
  }
  bool has_said(const std::string& line) {
    return run_until([&] { return std::ranges::find(said, line) != said.end(); });
  }
  bool has_said_part(const std::string& part) {
    return run_until([&] {
      return std::ranges::any_of(said,
                                 [&](const auto& line) { return line.find(part) != std::string::npos; });
    });
  }
  bool pending(RunId run) const { return std::filesystem::exists(pending_file(state.path(), run)); }

  test::TemporaryDirectory data, state;
  boost::asio::io_context io;
  Work work{data};
  std::vector<RunId> going = {kFirst, kSecond};
  std::shared_ptr<const DevicePower> power;
  std::shared_ptr<const EnergyMeter> meter;
  std::vector<SensorOptions> streams;
  std::optional<TrainerOptions> trainer;
  DaemonOptions::SecureTerms secure;
  std::optional<std::uint32_t> max_updates_per_day;
  BackoffRules backoff = {.first = std::chrono::milliseconds(1)};
  std::optional<double> max_epsilon;
  std::optional<double> require_noise;
  std::function<bool(protocol::Message&)> says_instead;     // changes the message of tell(), or returns false
                                                            // to drop it; may be empty
  std::function<void(const protocol::Message&)> hears_too;  // receives each message of the client; may be
                                                            // empty
  bool greeted = false;                                     // the client has said hello
  std::vector<std::string> features;                        // that its last hello stated
  std::unique_ptr<protocol::Listener> listener;
  std::shared_ptr<protocol::Link> link;  // the latest link
  std::vector<protocol::Message> heard;
  std::vector<std::string> said;
  bool finished = false;
  std::unique_ptr<Daemon> daemon;
};

inline std::string why_not(const Site& site) {
  for (const protocol::Message& message : site.heard)
    if (const auto* failed = std::get_if<protocol::TaskFailed>(&message)) return failed->reason;
  return "";
}

}  // namespace fedge::client::site
