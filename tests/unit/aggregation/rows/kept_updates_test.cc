#include "aggregation/aggregators/robust/kept_updates.h"

#include <doctest/doctest.h>

#include <map>
#include <mutex>
#include <numeric>

#include "core/platform/thread_pool.h"
#include "core/rng.h"
#include "tests/support/aggregation.h"
#include "tests/unit/aggregation/robust_reference.h"

namespace fedge::aggregation {
namespace {

// Counts the bytes read by first parameter, that is, for the rows of one block.
struct Ledger {
  std::mutex mutex;
  std::map<std::size_t, std::size_t> bytes;  // by first parameter
  std::size_t largest() const {
    std::size_t most = 0;
    for (const auto& [first, count] : bytes) most = std::max(most, count);
    return most;
  }
};

class CountedValues final : public UpdateValues {
 public:
  CountedValues(Ledger& ledger, std::uint32_t client) : ledger_(&ledger), client_(client) {}
  Result<void> read(std::size_t first, std::span<float> out) const override {
    const std::lock_guard lock(ledger_->mutex);
    ledger_->bytes[first] += out.size_bytes();
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = static_cast<float>((first + i) % 7 + client_ % 13) * 0.125F;
    return {};
  }

 private:
  Ledger* ledger_;
  std::uint32_t client_;
};

class BrokenValues final : public UpdateValues {
 public:
  Result<void> read(std::size_t, std::span<float>) const override {
    return Error{ErrorCode::kCorrupt, "update-3.bin: chunk 2 does not match its hash"};
  }
};

// Returns the round's matrix in the form that rules see.
reference::Matrix matrix_of(KeptUpdates& kept, Parallel& parallel) {
  reference::Matrix rows(kept.rows());
  const auto visit = [&](const RowBlock& block) {
    for (std::size_t row = 0; row < block.rows.size(); ++row)
      rows[row].insert(rows[row].end(), block.rows[row], block.rows[row] + block.columns);
  };
  REQUIRE(kept.for_each_block({.count = kept.parameters(), .rows = kept.all_rows()}, parallel, visit));
  return rows;
}

reference::Matrix matrix_of(const RowOptions& options, const std::vector<Update>& updates,
                            std::size_t parameters) {
  Sequential sequential;
  KeptUpdates kept(test_context(parameters), options, "rule");
  REQUIRE(kept.add(updates));
  kept.arrange();
  return matrix_of(kept, sequential);
}

}  // namespace

TEST_CASE("kept updates: rows are in the order of client ids, whatever the order of arrival") {
  const auto rows =
      matrix_of({}, {test_update(7, {1, 2}), test_update(2, {3, 4}, 1, true), test_update(5, {5, 6})}, 2);
  CHECK(rows == reference::Matrix{{3, 4}, {5, 6}, {1, 2}});
}

TEST_CASE("kept updates: two of one client are told apart by their norms, not by their arrival") {
  const Update small = test_update(1, {1, 0});
  const Update large = test_update(1, {0, 2});
  CHECK(matrix_of({}, {small, large}, 2) == matrix_of({}, {large, small}, 2));
}

TEST_CASE("kept updates: factors multiply, and a norm bound shortens what is longer then") {
  std::vector<Update> updates = {test_update(0, {3, 4}), test_update(1, {0.3F, 0.4F}),
                                 test_update(2, {6, 8})};
  updates[2].factor = 0.25;  // norm 2.5
  CHECK(matrix_of({}, updates, 2) == reference::Matrix{{3, 4}, {0.3F, 0.4F}, {1.5F, 2}});
  CHECK(matrix_of({.clip_norm = 2.5}, updates, 2) == reference::Matrix{{1.5F, 2}, {0.3F, 0.4F}, {1.5F, 2}});
  CHECK(matrix_of({.clip_norm = 5}, updates, 2) == matrix_of({}, updates, 2));
  // The norms are 0.5, 2.5 and 5.
  CHECK(matrix_of({.clip_to_median = true}, updates, 2) == matrix_of({.clip_norm = 2.5}, updates, 2));
  // The median of two norms is their mean: (0.5 + 2.5) / 2.
  updates.erase(updates.begin());
  CHECK(matrix_of({.clip_to_median = true}, updates, 2)[1] == std::vector<float>{0.9F, 1.2F});
}

TEST_CASE("kept updates: where the median norm is 0 nothing is left, and zeros are not divided by") {
  const std::vector<Update> updates = {test_update(0, {0, 0}), test_update(1, {0, 0}),
                                       test_update(2, {6, 8})};
  CHECK(matrix_of({.clip_to_median = true}, updates, 2) == reference::Matrix(3, {0, 0}));
}

TEST_CASE("kept updates: buckets are means of a permutation drawn from seed and round, clipped first") {
  Sequential sequential;
  AggregatorContext context = test_context(1);
  context.seed = 42;
  KeptUpdates kept(context, {.clip_norm = 16, .bucket_size = 3}, "rule");
  for (const std::uint64_t round : {1U, 2U, 3U}) {
    std::vector<Update> updates;
    for (std::uint32_t client = 0; client < 8; ++client)
      updates.push_back(test_update(client, {static_cast<float>(1U << client)}, client + 1));
    REQUIRE(kept.add(updates));
    kept.arrange();
    std::vector<std::uint32_t> order(8);
    std::iota(order.begin(), order.end(), 0U);
    Rng(42).fork("aggregate", round).shuffle(std::span(order));
    REQUIRE(kept.rows() == 3);
    const auto rows = matrix_of(kept, sequential);
    const auto weights = kept.weights();
    for (std::size_t row = 0; row < 3; ++row) {
      double sum = 0;
      double samples = 0;
      const std::size_t size = row < 2 ? 3 : 2;
      for (std::size_t i = 3 * row; i < 3 * row + size; ++i) {
        sum += std::min(16.0, std::ldexp(1.0, static_cast<int>(order[i])));
        samples += order[i] + 1;
      }
      CHECK(rows[row][0] == static_cast<float>(sum / static_cast<double>(size)));
      CHECK(weights[row] == samples);
    }
    kept.clear();
  }
}

TEST_CASE("kept updates: a partial update is refused by name, and nothing of the call is kept") {
  KeptUpdates kept(test_context(4), {}, "median");
  Update partial = test_update(9, {1, 2});
  const std::vector<Update> updates = {test_update(1, {1, 2, 3, 4}), partial};
  const auto added = kept.add(updates);
  REQUIRE_FALSE(added);
  CHECK(added.error().message ==
        "client 9's update covers 2 of 4 parameters; the aggregator median requires updates of the whole "
        "model");
  CHECK(kept.updates() == 0);
}

TEST_CASE("kept updates: no block holds more than the memory allows, whatever the threads") {
  for (const std::size_t threads : {1U, 2U})
    for (const std::uint32_t clients : {1U, 3U, 50U, 4000U}) {
      CAPTURE(threads);
      CAPTURE(clients);
      constexpr std::size_t kMemory = std::size_t{1} << 20;
      const std::size_t parameters = clients == 4000 ? 500 : 300'000;
      ThreadPool pool(threads);
      Ledger ledger;
      KeptUpdates kept(test_context(parameters), {.memory_bytes = kMemory}, "rule");
      for (std::uint32_t client = 0; client < clients; ++client) {
        const Update update{.client = ClientId(client),
                            .weight = SampleCount(1),
                            .coverage = Coverage::all(parameters),
                            .values = std::make_shared<CountedValues>(ledger, client)};
        REQUIRE(kept.add({&update, 1}));
      }
      kept.arrange();
      std::size_t next = 0;
      bool right = true;
      const auto visit = [&](const RowBlock& block) {
        right &= block.first == next && block.rows.size() == clients;
        right &= block.columns % 16 == 0 || block.first + block.columns == parameters;
        for (std::size_t row = 0; row < clients; ++row)
          for (const std::size_t c : {std::size_t{0}, block.columns - 1})
            right &= block.rows[row][c] == static_cast<float>((block.first + c) % 7 + row % 13) * 0.125F;
        next += block.columns;
      };
      REQUIRE(kept.for_each_block({.count = parameters, .rows = kept.all_rows()}, pool, visit));
      CHECK(right);
      CHECK(next == parameters);
      CHECK(ledger.largest() <= kMemory);
      CHECK(ledger.largest() >= kMemory / 2);  // the permitted memory is used
    }
}

TEST_CASE("kept updates: memory for less than one block is an error that says how much is needed") {
  Sequential sequential;
  Ledger ledger;
  KeptUpdates kept(test_context(10), {.memory_bytes = std::size_t{1} << 20}, "krum");
  std::vector<Update> updates;
  for (std::uint32_t client = 0; client < 10'000; ++client)
    updates.push_back({.client = ClientId(client),
                       .weight = SampleCount(1),
                       .coverage = Coverage::all(10),
                       .values = std::make_shared<CountedValues>(ledger, client)});
  REQUIRE(kept.add(updates));
  kept.arrange();
  const auto visited = kept.for_each_block({.count = 10, .rows = kept.all_rows(), .multiple = 64}, sequential,
                                           [](const RowBlock&) { FAIL("too large"); });
  REQUIRE_FALSE(visited);
  CHECK(visited.error().code == ErrorCode::kResource);
  // (64 + 16) * 4 * 10,000 = 3.05 MiB.
  CHECK(visited.error().message ==
        "krum reads 64 parameters of 10000 updates at once; for that, strategy.aggregator.memory_mb must be "
        "at least "
        "4");
  CHECK(ledger.bytes.empty());
}

TEST_CASE("kept updates: an update that cannot be read is reported in its own words") {
  ThreadPool pool(2);
  for (const std::size_t bucket : {1U, 2U}) {
    KeptUpdates kept(test_context(2), {.bucket_size = bucket}, "median");
    std::vector<Update> updates = {test_update(1, {1, 2}), test_update(2, {1, 2}), test_update(3, {1, 2})};
    updates[1].values = std::make_shared<BrokenValues>();
    REQUIRE(kept.add(updates));
    kept.arrange();
    const auto visited = kept.for_each_block({.count = 2, .rows = kept.all_rows()}, pool,
                                             [](const RowBlock&) { FAIL("broken"); });
    REQUIRE_FALSE(visited);
    CHECK(visited.error().message == "update-3.bin: chunk 2 does not match its hash");
  }
}

}  // namespace fedge::aggregation
