#include "aggregation/aggregators/robust/pair_distances.h"

#include <doctest/doctest.h>

#include "core/platform/thread_pool.h"
#include "tests/support/aggregation.h"
#include "tests/unit/aggregation/robust_reference.h"

namespace fedge::aggregation {

TEST_CASE("pair distances: every pair's, for any number of rows and columns") {
  ThreadPool pool(2);
  for (const std::size_t rows : {1U, 2U, 3U, 4U, 5U, 9U, 16U, 17U, 35U})
    for (const std::size_t columns : {1U, 63U, 64U, 65U, 128U, 130U, 300U}) {
      CAPTURE(rows);
      CAPTURE(columns);
      const auto values = reference::random_rows(rows, columns, static_cast<std::uint32_t>(rows), false);
      KeptUpdates kept(test_context(columns), {}, "krum");
      for (std::uint32_t client = 0; client < rows; ++client) {
        const Update update = test_update(client, values[client], 1, client % 2 == 0);
        REQUIRE(kept.add({&update, 1}));
      }
      kept.arrange();
      const auto distances = PairDistances::measure(kept, pool);
      REQUIRE(distances);
      for (std::size_t a = 0; a < rows; ++a)
        for (std::size_t b = 0; b < rows; ++b)
          CHECK(distances->between(a, b) ==
                doctest::Approx(reference::squared_distance(values[a], values[b])).epsilon(1e-12));
    }
}

TEST_CASE("pair distances: near rows that are far from 0 keep theirs") {
  Sequential sequential;
  KeptUpdates kept(test_context(100), {}, "krum");
  for (std::uint32_t client = 0; client < 2; ++client) {
    std::vector<float> values(100, 200.0F);
    values[42] += static_cast<float>(client) * 0x1p-14F;
    const Update update = test_update(client, values);
    REQUIRE(kept.add({&update, 1}));
  }
  kept.arrange();
  const auto distances = PairDistances::measure(kept, sequential);
  REQUIRE(distances);
  CHECK(distances->between(0, 1) == 0x1p-28);
}

}  // namespace fedge::aggregation
