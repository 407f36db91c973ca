// Compares what a client trains from, in a run whose rounds overlap, with a slow reference that keeps every
// copy of the model.
#include <doctest/doctest.h>

#include <map>
#include <memory>
#include <vector>

#include "aggregation/accumulator.h"
#include "client/local/local_work.h"
#include "core/config/document.h"
#include "core/platform/thread_pool.h"
#include "tests/support/text.h"
#include "tests/support/tiny_dataset.h"

namespace fedge::client {
namespace {

using Values = std::vector<float>;

// Two clients, and a model of three blocks.
struct Blocks {
  explicit Blocks(const std::string& overlap, bool alike = false, std::size_t batch = 5) : alike_(alike) {
    test::write_tiny_dataset(data);
    const auto document =
        config::parse_toml("[data]\ndirectory = \"" + data.path().string() +
                               "\"\npartition = { clients = 2 }\n[model]\nkind = \"mlp\"\nhidden = [6, 5]\n"
                               "[training]\nbatch_size = " +
                               std::to_string(batch) + "\nlocal_model = \"block\"\noverlap = \"" + overlap +
                               "\"\noptimizer = { learning_rate = 0.2 }\n",
                           "test.toml");
    REQUIRE(document);
    config::Reader root(document->root, "", "test.toml");
    spec = read_work(root);
    const auto finished = root.finish();
    REQUIRE_MESSAGE(finished, finished.error().message);
    const auto built = learn::Task::build(spec.task, 3);
    REQUIRE_MESSAGE(built, built.error().message);
    task = *built;
    std::map<std::uint32_t, std::vector<Range>> layers;
    for (const TensorInfo& tensor : task->model().layout()->tensors())
      layers[tensor.layer].push_back({tensor.offset, tensor.offset + tensor.size});
    for (const auto& [layer, ranges] : layers) blocks.push_back(Coverage::of(ranges));
    model.resize(task->model().layout()->size());
    task->model().initialise(model, Rng(3).fork("model"));
  }

  // The update of the client that trains this block from `begin`, without any memory.
  Values train(std::uint32_t round, const Coverage& block, std::uint32_t client, const Values& begin) const {
    learn::Trainer trainer = task->make_trainer();
    Values update(block.count());
    const auto trained = task->train({.client = ClientId(alike_ ? 0 : client),
                                      .round = RoundNumber(round),
                                      .coverage = &block,
                                      .local = LocalModel::kBlock},
                                     begin, update, trainer);
    REQUIRE_MESSAGE(trained, trained.error().message);
    return update;
  }
  // The update by LocalWork, which may begin with what the client has kept.
  Values work(std::uint32_t round, const Coverage& block, std::uint32_t client, ClientMemory& memory) const {
    LocalWork worker(*task, spec.compression, 3);
    const auto result = worker.run(
        {.client = ClientId(alike_ ? 0 : client), .round = RoundNumber(round), .coverage = block, .stop = {}},
        model, memory);
    REQUIRE_MESSAGE(result, result.error().message);
    return {result->values.span().begin(), result->values.span().end()};
  }
  void move(const Coverage& block, const std::vector<Values>& updates) {
    model = moved(model, block, updates);
  }
  // The model after a round with these updates, as the coordinator computes it: weights are equal.
  Values moved(const Values& from, const Coverage& block, const std::vector<Values>& updates) const {
    aggregation::Accumulator sums(task->model().layout(), {});
    for (const Values& update : updates) {
      const aggregation::UpdateView view{.weight = SampleCount(20), .coverage = &block, .values = update};
      Sequential here;
      REQUIRE(sums.fold({&view, 1}, here));
    }
    std::vector<double> means(model.size());
    sums.mean(0, means);
    Values result = from;
    for (const Range& range : block.ranges())
      for (std::size_t i = range.begin; i < range.end; ++i)
        result[i] = static_cast<float>(static_cast<double>(result[i]) + means[i]);
    return result;
  }

  test::TemporaryDirectory data;
  WorkSpec spec;
  std::shared_ptr<const learn::Task> task;
  std::vector<Coverage> blocks;
  Values model;  // of the coordinator

 private:
  bool alike_;  // both clients have the samples of the first
};

Values packed(const Values& model, const Coverage& block) {
  Values result;
  for (const Range& range : block.ranges())
    result.insert(result.end(), model.begin() + static_cast<std::ptrdiff_t>(range.begin),
                  model.begin() + static_cast<std::ptrdiff_t>(range.end));
  return result;
}

void put(Values& model, const Coverage& block, const Values& values) {
  std::size_t at = 0;
  for (const Range& range : block.ranges())
    for (std::size_t i = range.begin; i < range.end; ++i) model[i] = values[at++];
}

}  // namespace

// The specification's algorithm, literally: client i keeps a whole model z_i. While it trains block b_t, the
// aggregate of block b_(t-1) is under way, and then replaces its own (local), or the old (stale), values.
TEST_CASE("overlap: clients train from a model that differs from the coordinator's in one block alone") {
  for (const std::string overlap : {"local", "stale"}) {
    CAPTURE(overlap);
    Blocks run(overlap);
    std::vector<Values> z(2, run.model);
    std::vector<ClientMemory> memory(2);
    for (std::uint32_t round = 1; round <= 7; ++round) {
      const Coverage& block = run.blocks[(round - 1) % 3];
      std::vector<Values> updates;
      for (std::uint32_t client = 0; client < 2; ++client) {
        // z_i differs from x in block b_(t-1) alone, and there only after the first round.
        std::size_t differing = 0;
        for (std::size_t i = 0; i < run.model.size(); ++i)
          if (z[client][i] != run.model[i]) {
            ++differing;
            CHECK(run.blocks[(round + 1) % 3].contains(i));
          }
        CHECK((differing > 0) == (round > 1));
        const Values expected = run.train(round, block, client, z[client]);
        updates.push_back(run.work(round, block, client, memory[client]));
        CHECK(updates.back() == expected);
      }
      const Values before = run.model;
      run.move(block, updates);
      for (std::uint32_t client = 0; client < 2; ++client) {
        z[client] = run.model;  // every block but the last one is the coordinator's
        put(z[client], block,
            overlap == "stale" ? packed(before, block)
                               : packed(run.moved(before, block, {updates[client]}), block));
      }
    }
  }
}

TEST_CASE(
    "overlap: with one client, or clients that are alike, local rounds give the bits of waiting rounds") {
  for (const std::size_t clients : {std::size_t{1}, std::size_t{2}}) {
    Blocks waits("none", true);
    Blocks overlaps("local", true);
    Blocks stale("stale", true);
    std::vector<ClientMemory> none(clients), own(clients), old(clients);
    for (std::uint32_t round = 1; round <= 9; ++round) {
      const Coverage block = waits.blocks[(2 * round) % 3];
      const auto play = [&](Blocks& run, std::vector<ClientMemory>& memory) {
        std::vector<Values> updates;
        for (std::uint32_t client = 0; client < clients; ++client)
          updates.push_back(run.work(round, block, client, memory[client]));
        run.move(block, updates);
      };
      play(waits, none);
      play(overlaps, own);
      play(stale, old);
      CHECK(overlaps.model == waits.model);
      CHECK((stale.model == waits.model) == (round == 1));
    }
  }
}

TEST_CASE("overlap: with one client, stale rounds are block descent whose gradient is one round late") {
  Blocks run("stale");
  ClientMemory memory;
  Values x = run.model;       // the delayed reference
  Values before = run.model;  // x of the round before
  for (std::uint32_t round = 1; round <= 7; ++round) {
    const Coverage& block = run.blocks[(round - 1) % 3];
    const Values update = run.train(round, block, 0, before);
    const Values next = run.moved(x, block, {update});
    before = x;
    x = next;
    run.move(block, {run.work(round, block, 0, memory)});
    CHECK(run.model == x);
  }
}

TEST_CASE("overlap: with one block, a client goes on from its own update, or from the last but one model") {
  for (const std::string overlap : {"local", "stale"}) {
    CAPTURE(overlap);
    Blocks run(overlap);
    const Coverage all = Coverage::all(run.model.size());
    std::vector<ClientMemory> memory(2);
    std::vector<Values> z(2, run.model);
    for (std::uint32_t round = 1; round <= 4; ++round) {
      std::vector<Values> updates;
      for (std::uint32_t client = 0; client < 2; ++client) {
        updates.push_back(run.work(round, all, client, memory[client]));
        CHECK(updates.back() == run.train(round, all, client, z[client]));
      }
      for (std::uint32_t client = 0; client < 2; ++client)
        z[client] = overlap == "stale" ? run.model : run.moved(run.model, all, {updates[client]});
      run.move(all, updates);
    }
  }
}

TEST_CASE("overlap: a client that missed a round begins with the coordinator's model") {
  Blocks run("local");
  ClientMemory memory;
  const Values other = run.train(1, run.blocks[0], 1, run.model);
  run.move(run.blocks[0], {run.work(1, run.blocks[0], 0, memory), other});
  run.move(run.blocks[1], {run.train(2, run.blocks[1], 1, run.model)});
  ClientMemory late = memory;
  CHECK(run.work(3, run.blocks[2], 0, late) == run.train(3, run.blocks[2], 0, run.model));
  CHECK(late.round == RoundNumber(3));
}

TEST_CASE("overlap: a block's gradient is that of the whole model, and other blocks keep their bits") {
  const Blocks run("none", false, 20);  // one step
  const Values whole = run.train(1, Coverage::all(run.model.size()), 0, run.model);
  for (const Coverage& block : run.blocks) {
    const Values part = run.train(1, block, 0, run.model);
    CHECK(part == packed(whole, block));
    const Values moved = run.moved(run.model, block, {part});
    for (std::size_t i = 0; i < moved.size(); ++i)
      if (!block.contains(i)) CHECK(moved[i] == run.model[i]);
  }
}

TEST_CASE("overlap: a memory that is no part of the model is an error, not a crash") {
  Blocks run("local");
  ClientMemory good;
  (void)run.work(1, run.blocks[0], 0, good);
  std::vector<ClientMemory> bad(5, good);
  bad[0].control = {0};
  bad[1].control = {-1, 5};
  bad[2].control = {5, 3};
  bad[3].control = {0, 1 << 30};
  bad[4].personal.pop_back();
  for (ClientMemory& memory : bad) {
    LocalWork worker(*run.task, run.spec.compression, 3);
    const auto result =
        worker.run({.client = ClientId(0), .round = RoundNumber(2), .coverage = run.blocks[1], .stop = {}},
                   run.model, memory);
    REQUIRE(!result);
    CHECK(result.error().code == ErrorCode::kCorrupt);
    CHECK(test::contains(result.error().message, "round 1 is not a part of the model"));
  }
}

}  // namespace fedge::client
