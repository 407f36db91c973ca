// The models of a run's tracks over the whole run.
#include "server/run_state.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "core/config/document.h"
#include "core/platform/thread_pool.h"
#include "run/stored_update.h"
#include "tests/support/tiny_dataset.h"

namespace fedge::server {
namespace {

class InMemory final : public aggregation::UpdateValues {
 public:
  explicit InMemory(std::vector<float> values) : values_(std::move(values)) {}
  std::span<const float> in_memory() const override { return values_; }
  Result<void> read(std::size_t first, std::span<float> out) const override {
    std::copy_n(values_.begin() + static_cast<std::ptrdiff_t>(first), out.size(), out.begin());
    return {};
  }

 private:
  std::vector<float> values_;
};

// A new softmax run.
struct Run {
  test::TemporaryDirectory data;
  run::RunConfig config;
  std::shared_ptr<const learn::Dataset> test;
  std::unique_ptr<learn::Model> model;
  ThreadPool pool{1};
  std::unique_ptr<protocol::ChunkStore> store;
  std::optional<RunState> state;

  // The store has space for this many models.
  explicit Run(std::size_t models, const std::vector<std::string>& settings = {}) {
    test::write_tiny_dataset(data);
    auto document = config::parse_toml(
        "[data]\ndirectory = \"" + data.path().string() + "\"\n[model]\nkind = \"softmax\"\n", "run.toml");
    REQUIRE(document);
    for (const std::string& setting : settings) REQUIRE(config::set(*document, setting));
    const auto read = run::read_run_config(*document);
    REQUIRE_MESSAGE(read, read.error().message);
    config = *read;
    test = *learn::load_test(config.task.data);
    model = *learn::make_model(config.task.model, test->shape, test->classes);
    store = protocol::make_memory_chunk_store(models * model->layout()->size_bytes());
    state.emplace(*RunState::create(config, *model, test.get(), *store, pool));
  }
  void start(std::uint32_t track, std::optional<TrackId> source) {
    REQUIRE(state->start({TrackId(track), source, nullptr}));
  }
  // Changes the track's model by five clients' updates.
  void train(std::uint32_t track, std::uint32_t round = 1, bool ends_round = true) {
    const std::size_t size = model->layout()->size();
    for (std::uint32_t client = 0; client < 5; ++client) {
      std::vector<float> values(size);
      Rng rng = Rng(round).fork("update", client);
      for (float& value : values) value = static_cast<float>(rng.uniform() - 0.4) / 10;
      const aggregation::Update update{.client = ClientId(client),
                                       .weight = SampleCount(client + 1),
                                       .steps = 2,
                                       .norm = 1,
                                       .coverage = Coverage::all(size),
                                       .values = std::make_shared<InMemory>(std::move(values))};
      REQUIRE(state->fold(TrackId(track), {&update, 1}));
    }
    const auto closed = state->close({.round = RoundNumber(round),
                                      .selected = 5,
                                      .completed = 5,
                                      .train_loss = 0,
                                      .track = TrackId(track),
                                      .ends_round = ends_round,
                                      .description = nullptr});
    REQUIRE_MESSAGE(closed, closed.error().message);
  }
  Digest hash(std::uint32_t track) const {
    const auto values = state->track(TrackId(track)).load();
    REQUIRE(values);
    CHECK(model_hash(values->values()) == state->track(TrackId(track)).hash());
    return state->track(TrackId(track)).hash();
  }
};

}  // namespace

TEST_CASE("run state: tracks that begin anew share one initial model, which outlives each of them") {
  Run run(6);
  const Digest initial = run.hash(0);
  run.train(0);
  CHECK(run.hash(0) != initial);
  for (std::uint32_t track = 1; track <= 20; ++track) run.start(track, std::nullopt);
  for (std::uint32_t track = 1; track <= 20; ++track) CHECK(run.hash(track) == initial);
  const std::weak_ptr<protocol::StoredObject> shared = run.state->track(TrackId(1)).object();
  run.train(3);
  CHECK(run.hash(3) != initial);
  CHECK(run.hash(4) == initial);
  run.state->retire(TrackId(0));
  for (std::uint32_t track = 1; track <= 20; ++track)
    if (track != 3) run.state->retire(TrackId(track));
  run.start(30, std::nullopt);
  CHECK(run.hash(30) == initial);
  CHECK(run.state->track(TrackId(30)).object() == shared.lock());  // reused, not computed again
  run.start(31, TrackId(3));
  CHECK(run.hash(31) == run.hash(3));
  run.train(31);
  CHECK(run.hash(31) != run.hash(3));
}

TEST_CASE("run state: a run without tracks that begin anew keeps no model but its own") {
  Run run(2);  // the current model and its successor
  for (int round = 0; round < 5; ++round) run.train(0);
  CHECK(run.state->load_models()->size() == 1);
}

TEST_CASE("run state: the models of a run are those of its last complete round") {
  Run run(8);
  run.start(1, std::nullopt);
  const auto hashes = [&] {
    std::vector<Digest> all;
    const auto models = run.state->load_models();
    REQUIRE(models);
    for (const FinalModel& model : *models) all.push_back(model_hash(model.values.values()));
    return all;
  };
  const Digest initial = run.hash(0);
  run.train(0, 1, false);
  REQUIRE(run.hash(0) != initial);
  CHECK(hashes() == std::vector{initial, initial});  // no round is complete
  run.train(1, 1, true);
  const std::vector after_one = {run.hash(0), run.hash(1)};
  CHECK(hashes() == after_one);
  (void)run.state->end_round({});
  run.train(0, 2, false);
  CHECK(hashes() == after_one);
}

TEST_CASE("run state: the models of a run that keeps its best are those of that round, of every track") {
  Run run(30, {"run.keep_best=loss", "run.rounds=9"});
  run.start(1, std::nullopt);
  double least = 1e300;
  std::vector<Digest> best;
  std::uint32_t best_round = 0;
  for (std::uint32_t round = 1; round <= 9; ++round) {
    run.train(0, round, false);
    run.train(1, round + 100, true);
    const double loss = run.state->end_round({}).test_loss;
    if (loss >= least) continue;
    least = loss;
    best = {run.hash(0), run.hash(1)};
    best_round = round;
  }
  REQUIRE(best_round < 9);  // or the last models would be right, too
  std::vector<Digest> kept;
  const auto models = run.state->load_models();
  REQUIRE(models);
  for (const FinalModel& model : *models) kept.push_back(model_hash(model.values.values()));
  CHECK(kept == best);
}

TEST_CASE("run state: a checkpoint without the best results or their model is refused by name") {
  const std::vector<std::string> keeps = {"run.keep_best=loss", "run.rounds=9"};
  Run run(30, keeps);
  const auto refusal = [&](const std::string& saved) {
    auto again = RunState::create(run.config, *run.model, run.test.get(), *run.store, run.pool);
    REQUIRE(again);
    const auto restored = again->restore(saved, {});
    REQUIRE_FALSE(restored);
    CHECK(restored.error().code == ErrorCode::kCorrupt);
    return restored.error().message;
  };
  double loss = 0, least = 1e300;
  std::uint32_t round = 0;
  do {
    REQUIRE(++round < 9);
    run.train(0, round);
    loss = run.state->end_round({}).test_loss;
    least = std::min(least, loss);
  } while (loss == least);
  // The best model is not the last one, and the store in memory has dropped it.
  const auto saved = run.state->save();
  REQUIRE(saved);
  CHECK(refusal(*saved).find("is missing or damaged") != std::string::npos);
  auto state = decode_state(*saved);
  REQUIRE(state);
  state->progress.reset();
  CHECK(refusal(encode_state(*state)).find("lacks the best results") != std::string::npos);
}

TEST_CASE("saved state: what the budget has paid for is kept") {
  SavedState state;
  state.charges = {{{0.25, 7}, {1, 2}}, 3};
  const auto back = decode_state(encode_state(state));
  REQUIRE(back);
  CHECK(back->charges == state.charges);
}

TEST_CASE("N1 R3, run state: an update that cannot be read again is an error, not one too few for the rule") {
  Run run(40, {"strategy.kind=krum"});
  test::TemporaryDirectory place;
  const auto updates = *protocol::open_file_chunk_store(place.path() / "updates", {.max_bytes = 64 << 20});
  const std::size_t size = run.model->layout()->size();
  for (std::uint32_t client = 0; client < 5; ++client) {
    const std::vector<float> values(size, static_cast<float>(client));
    protocol::Manifest shape;
    shape.coverage = Coverage::all(size);
    shape.payload_size = size * sizeof(float);
    shape.chunk_size = 64 << 10;
    const auto object = *run::store_values(values, shape, *updates);
    object->rest();
    const aggregation::Update update{.client = ClientId(client),
                                     .weight = SampleCount(1),
                                     .norm = 1,
                                     .coverage = shape.coverage,
                                     .values = std::make_shared<run::StoredValues>(object)};
    REQUIRE(run.state->fold(TrackId(), {&update, 1}));
  }
  std::filesystem::path lost;
  for (const auto& entry : std::filesystem::directory_iterator(place.path() / "updates")) lost = entry.path();
  std::filesystem::remove(lost);
  std::filesystem::create_directory(lost);  // opening it fails with an error other than "not found"
  const auto closed = run.state->close({.round = RoundNumber(1),
                                        .selected = 5,
                                        .completed = 5,
                                        .train_loss = 0,
                                        .track = TrackId(),
                                        .description = nullptr});
  REQUIRE_FALSE(closed);
  CHECK(closed.error().message.find(lost.string()) != std::string::npos);
}

TEST_CASE("N2, run state: whatever the strategy remembers, a saved run goes on bit for bit") {
  const std::vector<std::vector<std::string>> runs = {
      {},
      {"strategy.kind=fedavgm"},
      {"strategy.kind=fedadam"},
      {"strategy.kind=scaffold"},
      {"strategy.kind=centered_clip"},
      {"strategy.aggregator={kind=\"median\", bucket_size=2}"},
      {"strategy.kind=centered_clip", "strategy.server_optimizer={kind=\"momentum\", nesterov=true}"}};
  for (std::vector<std::string> settings : runs) {
    CAPTURE(settings.empty() ? std::string("fedavg") : settings.front());
    settings.insert(settings.end(), {"data.partition.clients=20", "sampling.clients_per_round=5"});
    Run run(40, settings);
    run.train(0, 1);
    run.train(0, 2);
    run.state->end_round({});
    const auto saved = run.state->save();
    REQUIRE_MESSAGE(saved, saved.error().message);
    // Another process computes the initial model, then restores the checkpoint.
    auto again = RunState::create(run.config, *run.model, run.test.get(), *run.store, run.pool);
    REQUIRE(again);
    const auto restored = again->restore(*saved, {});
    REQUIRE_MESSAGE(restored, restored.error().message);
    CHECK(again->track(TrackId(0)).hash() == run.hash(0));
    const auto participation = [](RunState& state) { return state.end_round({}).participation.jain; };
    run.train(0, 3);
    const Digest expected = run.hash(0);
    const double jain = participation(*run.state);
    std::swap(*run.state, *again);
    run.train(0, 3);
    CHECK(run.hash(0) == expected);
    CHECK(participation(*run.state) == jain);
  }
}

TEST_CASE(
    "N2 row 9, run state: a checkpoint whose objects are gone, or of another strategy, is refused by name") {
  Run run(40, {"strategy.kind=fedadam"});
  run.train(0, 1);
  run.state->end_round({});
  const auto saved = run.state->save();
  REQUIRE(saved);
  auto again = RunState::create(run.config, *run.model, run.test.get(), *run.store, run.pool);
  REQUIRE(again);
  run.store->remove(run.state->track(TrackId(0)).object()->manifest().id());
  const auto missing = again->restore(*saved, {});
  CHECK(missing.error().code == ErrorCode::kCorrupt);
  CHECK(missing.error().message.find("missing or damaged; it was in a file of chunks/models") !=
        std::string::npos);

  Run other(40);
  other.train(0, 1);
  other.state->end_round({});
  const auto theirs = other.state->save();
  REQUIRE(theirs);
  Run fresh(40, {"strategy.kind=fedadam"});
  fresh.store = std::move(other.store);
  auto mixed = RunState::create(fresh.config, *fresh.model, fresh.test.get(), *fresh.store, fresh.pool);
  REQUIRE(mixed);
  CHECK(mixed->restore(*theirs, {}).error().message.find("belongs to another strategy") != std::string::npos);
  CHECK(mixed->restore("", {}).error().code == ErrorCode::kCorrupt);
}

}  // namespace fedge::server
