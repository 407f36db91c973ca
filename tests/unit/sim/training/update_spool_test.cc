#include "sim/training/update_spool.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/sim/simulated_run.h"

using namespace fedge;
using sim::Outcome;
using sim::simulate;
using sim::UpdateSpool;
using test::TemporaryDirectory;

namespace {

std::size_t files_in(const std::filesystem::path& directory) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    if (entry.path().extension() == ".chunks") ++count;
  return count;
}

UpdateSpool open_in(const TemporaryDirectory& directory) {
  auto spool = UpdateSpool::open(directory.path() / "updates");
  REQUIRE_MESSAGE(spool, spool.error().message);
  return std::move(*spool);
}

run::RunConfig config_of(const std::vector<std::string>& settings) {
  auto document = config::parse_toml(
      "[data]\npartition = { clients = 50 }\n[sampling]\nclients_per_round = 10\n", "test.toml");
  REQUIRE(document);
  for (const std::string& setting : settings) REQUIRE(config::set(*document, setting));
  auto config = run::read_run_config(*document);
  REQUIRE_MESSAGE(config, config.error().message);
  return *config;
}

}  // namespace

TEST_CASE("spool: models are the same to the bit whether updates lie in files or in memory") {
  // 51 thousand parameters of ten clients are two mebibytes: several blocks of columns.
  std::vector<std::string> settings = {"model.kind=mlp", "model.hidden=[64]", "sampling.clients_per_round=10",
                                       "run.rounds=2", "run.chunk_size=8192"};
  bool blocks = true;
  SUBCASE("median") { settings.push_back("strategy.kind=median"); }
  SUBCASE("trimmed mean") { settings.push_back("strategy.kind=trimmed_mean"); }
  SUBCASE("Krum") { settings.push_back("strategy.kind=krum"); }
  SUBCASE("multi-Krum") { settings.push_back("strategy.kind=multi_krum"); }
  SUBCASE("Bulyan") { settings.push_back("strategy.kind=bulyan"); }
  SUBCASE("geometric median") { settings.push_back("strategy.kind=geometric_median"); }
  SUBCASE("centred clipping") { settings.push_back("strategy.kind=centered_clip"); }
  SUBCASE("clipped mean") { settings.push_back("strategy.kind=clipped_mean"); }
  SUBCASE("updates that hostile clients replace") {
    settings.insert(settings.end(), {"strategy.kind=median", "simulation.attack.kind=sign_flip"});
  }
  SUBCASE("attacks made of the mean and the spread of the honest updates") {
    settings.insert(settings.end(), {"strategy.kind=median", "simulation.attack.kind=alie"});
  }
  SUBCASE("attacks made of the distances between honest updates") {
    settings.insert(settings.end(), {"strategy.kind=krum", "simulation.attack.kind=min_max"});
  }
  SUBCASE("compressed updates") {
    settings.insert(settings.end(), {"strategy.kind=median", "compression.kind=int8"});
  }
  SUBCASE("clients that drop out") {
    settings.insert(settings.end(), {"strategy.kind=median", "simulation.dropout.probability=0.3"});
  }
  SUBCASE("an asynchronous run") {
    settings.insert(settings.end(), {"strategy.kind=median", "strategy.schedule.kind=buffered",
                                     "strategy.schedule.buffer_size=4", "simulation.device.sigma=1"});
  }
  SUBCASE("parts of the model, which only a mean takes") {
    settings.push_back("strategy.kind=heterofl");
    blocks = false;
  }
  if (blocks) settings.push_back("strategy.aggregator.memory_mb=1");
  const TemporaryDirectory directory;
  UpdateSpool spool = open_in(directory);
  const Outcome memory = simulate(settings);
  const Outcome files = simulate(settings, {.threads = 2, .spool = &spool.store()});
  REQUIRE(memory.rounds.size() == 2);
  CHECK(memory.rounds[0].model_hash != memory.rounds[1].model_hash);
  CHECK(files.hashes() == memory.hashes());
  CHECK(files.events == memory.events);
  CHECK(files.seconds == memory.seconds);
}

TEST_CASE("spool: every update of a round is a file, and the next round's are written over them") {
  const TemporaryDirectory directory;
  const auto path = directory.path() / "updates";
  std::vector<std::size_t> open;
  std::vector<std::size_t> closed;
  {
    UpdateSpool spool = open_in(directory);
    simulate({"strategy.kind=median", "sampling.clients_per_round=10"},
             {.spool = &spool.store(),
              .on_event =
                  [&](const Event& event) {
                    if (event.name == "round.closed") open.push_back(files_in(path));
                  },
              .on_round = [&] { closed.push_back(files_in(path)); }});
    CHECK(std::filesystem::exists(path));
  }
  CHECK(open == std::vector<std::size_t>{10, 10, 10});
  CHECK(closed == open);
  CHECK(!std::filesystem::exists(path));
}

TEST_CASE("spool: a disk that fails ends the run with the file's name, and leaves nothing behind") {
  const TemporaryDirectory directory;
  const auto path = directory.path() / "updates";
  std::string reason;
  {
    UpdateSpool spool = open_in(directory);
    std::function<void(const Event&)> on_event;
    SUBCASE("an update cannot be stored") {
      std::filesystem::remove_all(path);
      reason = "cannot create " + (path / "1.chunks").string() + ": No such file or directory";
    }
    SUBCASE("an update cannot be read back") {
      on_event = [&](const Event& event) {
        if (event.name == "round.closed") std::filesystem::resize_file(path / "1.chunks", 0);
      };
      reason = (path / "1.chunks").string() + " is truncated: it is shorter than the data stored in it";
    }
    const Outcome outcome = sim::try_simulate(
        {"strategy.kind=median"}, {.spool = &spool.store(), .on_event = on_event, .on_round = {}});
    REQUIRE(outcome.failure);
    CHECK(outcome.failure->message == reason);
    CHECK(outcome.rounds.empty());
    CHECK(outcome.count("client.dropped") == 0);  // no client is at fault
  }
  CHECK(!std::filesystem::exists(path));
}

TEST_CASE("spool: what a killed simulation left is removed, other people's files are not") {
  const TemporaryDirectory directory;
  const auto path = directory.path() / "updates";
  std::filesystem::create_directory(path);
  std::ofstream(path / "7.chunks") << "left";
  std::ofstream(path / "notes.txt") << "mine";
  {
    const UpdateSpool spool = open_in(directory);
    CHECK(!std::filesystem::exists(path / "7.chunks"));
  }
  CHECK(std::filesystem::exists(path / "notes.txt"));
  CHECK(!std::filesystem::exists(path / "lock"));
}

TEST_CASE("spool: a directory that another simulation works in is refused by name") {
  const TemporaryDirectory directory;
  const UpdateSpool first = open_in(directory);
  const auto second = UpdateSpool::open(directory.path() / "updates");
  REQUIRE(!second);
  CHECK(second.error().message == (directory.path() / "updates").string() + " is in use by another process");
}

TEST_CASE(
    "spool: needed for more than 64 MiB of updates that wait: in rules that keep them, or computed when "
    "trained") {
  // 10 updates of 1,677,721 floats are 24 bytes short of 64 MiB.
  const std::size_t fits = 1'677'721;
  const run::RunConfig median = config_of({"strategy.kind=median"});
  CHECK(!UpdateSpool::needed(median, fits, true));
  CHECK(UpdateSpool::needed(median, fits + 1, true));
  CHECK(!UpdateSpool::needed(config_of({"strategy.kind=fedavg"}), 1'000'000'000, true));
  CHECK(UpdateSpool::needed(config_of({"strategy.kind=fedavg"}), fits + 1, false));
  CHECK(!UpdateSpool::needed(config_of({"strategy.kind=fedavg"}), fits, false));
  CHECK(UpdateSpool::needed(config_of({"strategy.kind=krum", "sampling.over_selection=1.05"}), fits, true));
  // Ten updates in training and four in the buffer.
  const run::RunConfig buffered = config_of(
      {"strategy.kind=median", "strategy.schedule.kind=buffered", "strategy.schedule.buffer_size=4"});
  CHECK(!UpdateSpool::needed(buffered, 1'198'372, true));
  CHECK(UpdateSpool::needed(buffered, 1'198'373, true));
}
