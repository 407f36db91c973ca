// Devices whose data is the stream of a sensor: it grows while they train, and what was kept outlives them.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/rng.h"
#include "learn/arrays/array_file.h"
#include "server/report/metrics.h"
#include "tests/integration/coordinator_process.h"
#include "tests/integration/run_program.h"
#include "tests/support/text.h"
#include "tests/support/tiny_dataset.h"

using namespace fedge;
using learn::test::TemporaryDirectory;
using test::LoggedProcess;

namespace {

const std::string kRun = R"([run]
name = "shocks"
rounds = 10
[data]
dataset = "arrays"
name = "road"
shape = [64, 1]
standardise = true
task = "segmentation"
points = 64
point_seconds = 0.01
classes = ["background", "shock"]
partition = { kind = "own", clients = 5 }
split = { kind = "file" }
[model]
kind = "layers"
layer = [
  {kind = "conv1d", units = 4, kernel = 7, activation = "relu"},
  {kind = "conv1d", kernel = 1},
]
[training]
optimizer = {kind = "adamw", learning_rate = 0.01}
local_steps = 2000
[training.loss]
kind = "dice"
[sampling]
clients_per_round = 5
)";

// Plays a stream to a FIFO, as fast as its reader takes it, and is silent after kSeconds of it: otherwise a
// slow machine would get more data to train on, and become slower. If the reader goes, it waits for the next
// one, to which it plays as much again.
class Player {
 public:
  Player(std::filesystem::path fifo, std::uint64_t seed) : fifo_(std::move(fifo)), seed_(seed) {
    REQUIRE(::mkfifo(fifo_.c_str(), 0600) == 0);
    thread_ = std::thread([this] { play(); });
  }
  ~Player() {
    ends_ = true;
    // A reader, so that an open without one returns.
    const int reader = ::open(fifo_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    while (!ended_) {
      char bytes[65536];
      (void)!::read(reader, bytes, sizeof bytes);
    }
    thread_.join();
    ::close(reader);
  }
  Player(const Player&) = delete;
  Player& operator=(const Player&) = delete;

 private:
  // A second of the stream; a shock begins in every fourth one.
  std::string second(Rng& rng, std::uint64_t number) const {
    std::string text;
    for (std::uint64_t i = 0; i < 100; ++i) {
      const bool shock = number % 4 == 3 && i < 20;
      text += std::to_string(static_cast<double>(100 * number + i) / 100) + "," +
              std::to_string((shock ? 2.0 : 0.05) * rng.normal()) + (shock ? ",1\n" : ",0\n");
    }
    return text;
  }
  void play() {
    Rng rng(seed_);
    std::uint64_t number = 0;
    while (!ends_) {
      const std::uint64_t last = number + kSeconds;
      const int fd = ::open(fifo_.c_str(), O_WRONLY | O_CLOEXEC);
      std::string text = "seconds,z,label\n";
      bool heard = fd >= 0;
      while (heard && !ends_) {
        if (number == last) {
          ::pollfd gone{fd, 0, 0};
          heard = ::poll(&gone, 1, 100) == 0;
          continue;
        }
        text += second(rng, number++);
        heard = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
        text.clear();
      }
      ::close(fd);
    }
    ended_ = true;
  }

  static constexpr std::uint64_t kSeconds = 1000;  // 250 shocks

  std::filesystem::path fifo_;
  std::uint64_t seed_;
  std::atomic<bool> ends_ = false;
  std::atomic<bool> ended_ = false;
  std::thread thread_;
};

std::set<std::string> segments_in(const std::filesystem::path& directory) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    if (const auto name = entry.path().filename().string(); name.ends_with(".safetensors"))
      names.insert(name);
  return names;
}

// The bytes of eight samples in the middle of a segment's first window.
std::string samples_of(const std::filesystem::path& file) {
  auto stream = learn::ArrayStream::open(file, "x");
  REQUIRE(stream);
  std::vector<std::byte> bytes(64 * sizeof(float));
  REQUIRE(stream->read(bytes));
  return {reinterpret_cast<const char*>(bytes.data()) + 28 * sizeof(float), 8 * sizeof(float)};
}

struct Fleet {
  explicit Fleet(int clients = 5, const std::vector<std::string>& settings = {}) {
    ::signal(SIGPIPE, SIG_IGN);
    std::ofstream(path("run.toml")) << kRun;
    std::ofstream(path("screening.toml")) << "window = 64\nwarmup_seconds = 5\ncontext_seconds = 0.1\n"
                                             "most_seconds = 1\n";
    coordinator = std::make_unique<test::CoordinatorProcess>(
        test::CoordinatorProcess::Options{.directory = path("coordinator"),
                                          .results = path("results"),
                                          .run_file = path("run.toml"),
                                          .settings = settings});
    for (int i = 0; i < clients; ++i) {
      auto token = test::run("fedge token create --data-dir " + path("coordinator").string()).output;
      token.pop_back();
      tokens.push_back(token);
      players.push_back(std::make_unique<Player>(path("sensor" + std::to_string(i)), 100 + i));
      daemons.push_back(start(i));
    }
  }
  std::filesystem::path path(const std::string& name) const { return directory.path() / name; }
  std::filesystem::path kept(int client) const {
    return path("client" + std::to_string(client)) / "streams" / "road";
  }
  std::vector<std::string> coordinator_files() const {
    std::vector<std::string> contents;
    for (const char* place : {"coordinator", "results"})
      for (const auto& entry : std::filesystem::recursive_directory_iterator(path(place)))
        if (entry.is_regular_file()) {
          auto content = read_file(entry.path(), std::size_t{1} << 30);
          REQUIRE(content);
          contents.push_back(std::move(*content));
        }
    return contents;
  }
  // The last one's stream is its standard input.
  std::unique_ptr<LoggedProcess> start(int client) const {
    const std::string number = std::to_string(client);
    const std::string fifo = path("sensor" + number).string();
    std::vector<std::string> command;
    if (client == 4) command = {"/bin/sh", "-c", "exec \"$@\" < " + fifo, "sh"};
    const std::string source = client == 4 ? "-" : fifo;
    command.insert(command.end(), {FEDGE_BINARY_DIR "/fedge-client", "--log-level", "debug", "--state-dir",
                                   path("client" + number).string(), "run", "--once", "--token",
                                   tokens[static_cast<std::size_t>(client)], "--stream", "road=" + source,
                                   "--screening", path("screening.toml").string()});
    return std::make_unique<LoggedProcess>(command, path("client" + number + ".log"));
  }

  TemporaryDirectory directory;
  std::unique_ptr<test::CoordinatorProcess> coordinator;
  std::vector<std::string> tokens;
  std::vector<std::unique_ptr<Player>> players;
  std::vector<std::unique_ptr<LoggedProcess>> daemons;
};

}  // namespace

TEST_CASE("streams: five daemons screen live streams, train as their data grows, and survive a power cut") {
  Fleet fleet(5, {"sampling.min_available=5"});  // a round begins only with all of them
  REQUIRE_MESSAGE(fleet.coordinator->wait_for("round.closed round=1 "), fleet.coordinator->log());
  fleet.daemons[2]->kill();
  const auto kept = segments_in(fleet.kept(2));
  CHECK_FALSE(kept.empty());
  // The run now waits for the client that was cut; the others go on listening to their sensors.
  REQUIRE(fleet.daemons[0]->wait_until([&] { return segments_in(fleet.kept(0)).size() >= 200; }));
  const std::string program = "fedge-client --state-dir " + fleet.path("client0").string() + " status";
  CHECK(fleet.daemons[0]->wait_until([&] {
    const std::string text = test::run(program).output;
    return test::contains(text, "road: reading " + fleet.path("sensor0").string() + "; ") &&
           !test::contains(text, "; 0 segments since");
  }));
  const auto shown = nlohmann::json::parse(test::run(program + " --format json").output)["daemon"]["streams"];
  REQUIRE(shown.size() == 1);
  CHECK(shown[0]["segments_kept"] > 0);
  CHECK(shown[0]["segment_bytes"] > 0);
  fleet.daemons[2] = fleet.start(2);
  CHECK_MESSAGE(fleet.coordinator->wait() == 0, fleet.coordinator->log());
  for (const auto& daemon : fleet.daemons) CHECK_MESSAGE(daemon->wait() == 0, daemon->log());
  // Nothing is lost that was kept.
  const auto after = segments_in(fleet.kept(2));
  for (const std::string& name : kept) CHECK(after.contains(name));
  CHECK(after.size() > kept.size());
  // The coordinator has no sample of a segment.
  const auto known = fleet.coordinator_files();
  for (int client = 0; client < 5; ++client)
    for (const std::string& name : segments_in(fleet.kept(client))) {
      const std::string samples = samples_of(fleet.kept(client) / name);
      for (const std::string& file : known) CHECK(file.find(samples) == std::string::npos);
    }
  const auto rounds = server::read_metrics(fleet.path("results") / "metrics.jsonl");
  REQUIRE_MESSAGE(rounds, rounds.error().message);
  REQUIRE(rounds->size() == 10);
  for (const auto& round : *rounds) CHECK(round.clients_completed == 5);
  REQUIRE(rounds->front().evaluation);
  REQUIRE(rounds->back().evaluation);
  CHECK(rounds->back().evaluation->samples > rounds->front().evaluation->samples);
  CHECK(std::isfinite(rounds->back().evaluation->event_f1));
  CHECK(rounds->back().evaluation->loss < rounds->front().evaluation->loss);
  // In seconds: a window has 0.64.
  CHECK(rounds->back().evaluation->boundary_error < 0.32);
}

TEST_CASE("streams: in masked runs and with own noise, devices whose data grows take part in all rounds") {
  std::string settings = "secure_aggregation={kind=\"exact\"}";
  SUBCASE("masks") {}
  SUBCASE("noise") {
    settings =
        "differential_privacy={kind=\"local\",clipping_norm=1,noise_multiplier=1,max_participations=4}";
  }
  Fleet fleet(3, {"data.partition.clients=3", "sampling.clients_per_round=3", "run.rounds=4", settings});
  CHECK_MESSAGE(fleet.coordinator->wait() == 0, fleet.coordinator->log());
  for (const auto& daemon : fleet.daemons) CHECK_MESSAGE(daemon->wait() == 0, daemon->log());
  const std::string log = fleet.coordinator->log();
  CHECK(log.find("update.refused") == std::string::npos);
  const auto rounds = server::read_metrics(fleet.path("results") / "metrics.jsonl");
  REQUIRE_MESSAGE(rounds, rounds.error().message);
  REQUIRE(rounds->size() == 4);
  for (const auto& round : *rounds) CHECK(round.clients_completed == 3);
  for (int client = 0; client < 3; ++client) CHECK(segments_in(fleet.kept(client)).size() > 1);
}

TEST_CASE("streams: options that name no stream, no rules or taken data are refused") {
  const TemporaryDirectory directory;
  const auto path = [&](const std::string& name) { return (directory.path() / name).string(); };
  std::ofstream(path("drive.csv")) << "seconds,z\n0,1\n";
  std::ofstream(path("rules.toml")) << "opens = 3\n";
  for (const auto& [options, message] : std::vector<std::pair<std::string, std::string>>{
           {"--stream road", "\"road\" is not NAME=PATH"},
           {"--stream road=" + path("none"), path("none") + " does not exist"},
           {"--stream road=" + path("drive.csv") + " --stream road=-", "road is given twice"},
           {"--stream road=" + path("drive.csv") + " --data road=" + path("drive.csv"),
            "--data also gives the data road"},
           {"--stream road=" + path("drive.csv") + " --screening " + path("rules.toml"), "opens"},
           {"--stream road=" + path("drive.csv") + " --screening rail=" + path("rules.toml"),
            "there is no stream rail"},
           {"--screening " + path("rules.toml"), "--stream"}}) {
    CAPTURE(options);
    const auto refused = test::run("fedge-client --state-dir " + path("device") + " run " + options);
    CHECK(refused.code != 0);
    CHECK_MESSAGE(refused.output.find(message) != std::string::npos, refused.output);
  }
}

TEST_CASE("streams: recorded streams are screened, synthetic, and confirmed by several devices") {
  const TemporaryDirectory directory;
  const auto path = [&](const std::string& name) { return (directory.path() / name).string(); };
  const auto made = test::run(
      "fedge data synthesize road --vehicles 3 --seconds 300 --same-road --seed 3 --out " + path("drives"));
  REQUIRE_MESSAGE(made.code == 0, made.output);
  CHECK(made.output.find("synthetic-vehicle-00.csv  synthetic, 300 s") != std::string::npos);
  const std::string streams = path("drives/synthetic-vehicle-00.csv") + " " +
                              path("drives/synthetic-vehicle-01.csv") + " " +
                              path("drives/synthetic-vehicle-02.csv");
  const auto screened = test::run("fedge data screen " + streams + " --out " + path("segments"));
  REQUIRE_MESSAGE(screened.code == 0, screened.output);
  CHECK(screened.output.find("30000") != std::string::npos);
  CHECK(test::run("fedge data screen " + streams + " --out " + path("segments")).code != 0);
  const auto trained = test::run(
      "fedge-sim run " FEDGE_SOURCE_DIR "/examples/models/event_unet.toml --data road=" + path("segments") +
      " --out " + path("out") +
      " --set run.rounds=2 --set data.partition.clients=3 --set sampling.clients_per_round=3");
  REQUIRE_MESSAGE(trained.code == 0, trained.output);
  CHECK(trained.output.find("events: F1") != std::string::npos);
  const std::string events = "fedge model events " + path("out/model.safetensors") + " " +
                             path("segments/synthetic-vehicle-00") + " " +
                             path("segments/synthetic-vehicle-01");
  const auto listed = test::run(events);
  REQUIRE_MESSAGE(listed.code == 0, listed.output);
  CHECK(listed.output.starts_with("device,begin_seconds,end_seconds,metres,class\n"));
  const auto confirmed = test::run(events + " --confirm 2");
  REQUIRE_MESSAGE(confirmed.code == 0, confirmed.output);
  CHECK(confirmed.output.starts_with("metres,class,devices\n"));
  const auto refused = test::run("fedge data screen " + path("out/model.safetensors"));
  CHECK(refused.code != 0);
  CHECK(refused.output.find("not a stream") != std::string::npos);
}
