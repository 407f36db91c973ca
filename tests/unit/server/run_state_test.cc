// The models of a run's tracks, from their start to their end.
#include "server/run_state.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "core/config/document.h"
#include "core/platform/thread_pool.h"
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

// A softmax run in which nothing has happened yet.
struct Run {
  test::TemporaryDirectory data;
  RunConfig config;
  std::shared_ptr<const learn::Dataset> test;
  std::unique_ptr<learn::Model> model;
  ThreadPool pool{1};
  std::unique_ptr<protocol::ChunkStore> store;
  std::optional<RunState> state;

  // Room for so many models.
  explicit Run(std::size_t models) {
    test::write_tiny_dataset(data);
    const auto document = config::parse_toml(
        "[data]\ndirectory = \"" + data.path().string() + "\"\n[model]\nkind = \"softmax\"\n", "run.toml");
    REQUIRE(document);
    config = *read_run_config(*document);
    test = *learn::load_test(config.task.data);
    model = *learn::make_model(config.task.model, test->shape, test->classes);
    store = protocol::make_memory_chunk_store(models * model->layout()->size_bytes());
    state.emplace(*RunState::create(config, *model, *test, *store, pool));
  }
  void start(std::uint32_t track, std::optional<TrackId> source) {
    REQUIRE(state->start({TrackId(track), source, nullptr}));
  }
  // The track's model becomes another.
  void train(std::uint32_t track) {
    const std::size_t size = model->layout()->size();
    const aggregation::Update update{.client = ClientId(0),
                                     .weight = SampleCount(1),
                                     .coverage = Coverage::all(size),
                                     .values = std::make_shared<InMemory>(std::vector<float>(size, 0.5F))};
    REQUIRE(state->fold(TrackId(track), {&update, 1}));
    const auto closed = state->close({.round = RoundNumber(1),
                                      .selected = 1,
                                      .completed = 1,
                                      .train_loss = 0,
                                      .track = TrackId(track),
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
  CHECK(run.state->track(TrackId(30)).object() == shared.lock());  // not made again
  run.start(31, TrackId(3));
  CHECK(run.hash(31) == run.hash(3));
  run.train(31);
  CHECK(run.hash(31) != run.hash(3));
}

TEST_CASE("run state: a run without tracks that begin anew keeps no model but its own") {
  Run run(2);  // the one that there is, and the one that takes its place
  for (int round = 0; round < 5; ++round) run.train(0);
  CHECK(run.state->load_models()->size() == 1);
}

TEST_CASE(
    "run state: without momentum there is nothing to remember, and what was saved is taken up all the same") {
  Run run(4);
  run.train(0);
  const Digest trained = run.hash(0);
  const auto saved = run.state->save();
  REQUIRE(saved);
  run.state.emplace(*RunState::create(run.config, *run.model, *run.test, *run.store, run.pool));
  CHECK(run.hash(0) != trained);
  const auto restored = run.state->restore(*saved, {});
  REQUIRE_MESSAGE(restored, restored.error().message);
  CHECK(run.hash(0) == trained);
}

}  // namespace fedge::server
