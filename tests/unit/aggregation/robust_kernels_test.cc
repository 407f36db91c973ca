#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>

#include "aggregation/aggregators/robust/sorting_network.h"
#include "aggregation/kernels/robust.h"
#include "core/aligned_buffer.h"
#include "tests/unit/aggregation/robust_reference.h"

namespace fedge::aggregation {
namespace {

// Applies the comparators to a vector of zeros and ones.
std::uint32_t run_network(const std::vector<Comparator>& network, std::uint32_t bits) {
  for (const Comparator& comparator : network) {
    const std::uint32_t low = bits >> comparator.low & 1U;
    const std::uint32_t high = bits >> comparator.high & 1U;
    if (low > high) bits ^= 1U << comparator.low | 1U << comparator.high;
  }
  return bits;
}

struct Columns {
  std::vector<std::vector<float>> rows;
  std::vector<const float*> pointers;
  std::vector<Comparator> network;
  AlignedBuffer<float> tile;
  ColumnsInput input;

  Columns(reference::Matrix values, std::size_t shift, std::size_t keep, bool sort_all)
      : rows(std::move(values)), tile(rows.size() * kTileColumns) {
    for (const auto& row : rows) pointers.push_back(row.data());
    const std::size_t begin = sort_all ? 0 : (rows.size() - keep) / 2;
    network = sorting_network(rows.size(), begin, sort_all ? rows.size() : begin + keep);
    input = {.rows = pointers.data(),
             .row_count = rows.size(),
             .begin = shift,
             .end = rows[0].size(),
             .network = network.data(),
             .comparators = network.size(),
             .keep = keep,
             .tile = tile.data()};
  }
};

}  // namespace

TEST_CASE("sorting network: sorts every sequence of up to 16 zeros and ones, and so everything") {
  for (std::size_t size = 0; size <= 16; ++size) {
    const auto network = sorting_network(size, 0, size);
    bool sorted = true;
    for (std::uint32_t bits = 0; bits < 1U << size; ++bits) {
      // The output has the same number of ones, all at the upper end.
      const auto ones = static_cast<std::size_t>(__builtin_popcount(bits));
      const std::uint32_t expected = ((1U << ones) - 1) << (size - ones);
      sorted &= run_network(network, bits) == expected;
    }
    CAPTURE(size);
    CHECK(sorted);
  }
}

TEST_CASE("sorting network: the places asked for are right, with fewer comparators") {
  for (const std::size_t size : {2U, 3U, 5U, 8U, 11U, 12U})
    for (std::size_t begin = 0; begin < size; ++begin)
      for (std::size_t end = begin + 1; end <= size; ++end) {
        const auto network = sorting_network(size, begin, end);
        CHECK(network.size() <= sorting_network(size, 0, size).size());
        const std::uint32_t places = ((1U << (end - begin)) - 1) << begin;
        bool right = true;
        for (std::uint32_t bits = 0; bits < 1U << size; ++bits) {
          const auto ones = static_cast<std::size_t>(__builtin_popcount(bits));
          const std::uint32_t expected = ((1U << ones) - 1) << (size - ones);
          right &= (run_network(network, bits) & places) == (expected & places);
        }
        CAPTURE(size);
        CAPTURE(begin);
        CAPTURE(end);
        CHECK(right);
      }
  CHECK(sorting_network(100, 49, 51).size() < sorting_network(100, 0, 100).size());
}

TEST_CASE("robust kernels: the portable one is always there, and last") {
  REQUIRE(!robust_kernels().empty());
  CHECK(std::string(robust_kernels().back().name) == "portable");
}

TEST_CASE("robust kernels: middle means are those of sorted columns, on any range of columns") {
  for (const std::size_t rows : {1U, 2U, 3U, 4U, 7U, 10U, 33U, 100U, 300U})
    for (const std::size_t columns : {1U, 15U, 16U, 17U, 70U})
      for (const bool few : {false, true}) {
        CAPTURE(rows);
        CAPTURE(columns);
        const std::size_t trim = (rows - 1) / 4;
        const std::size_t shift = columns / 3;
        const auto values =
            reference::random_rows(rows, columns, static_cast<std::uint32_t>(rows * columns), few);
        const auto expected = reference::trimmed_mean(values, trim);
        Columns data(values, shift, rows - 2 * trim, false);
        std::vector<double> first;
        for (const RobustKernel& kernel : robust_kernels()) {
          CAPTURE(kernel.name);
          std::vector<double> out(columns + 1, 99.0);
          kernel.middle_mean(data.input, out.data());
          for (std::size_t c = 0; c <= columns; ++c)
            REQUIRE(out[c] == (c < shift || c == columns ? 99.0 : expected[c]));
          if (first.empty()) first = out;
          CHECK(std::memcmp(first.data(), out.data(), out.size() * sizeof(double)) == 0);
        }
      }
}

TEST_CASE("robust kernels: the values closest to the median, by sorting by distance") {
  for (const std::size_t rows : {3U, 4U, 9U, 20U, 61U})
    for (const std::size_t keep : {1U, 2U, 3U})
      for (const bool few : {false, true}) {
        CAPTURE(rows);
        CAPTURE(keep);
        constexpr std::size_t kColumns = 37;
        const auto values = reference::random_rows(rows, kColumns, static_cast<std::uint32_t>(rows), few);
        Columns data(values, 0, keep, true);
        std::vector<double> first;
        for (const RobustKernel& kernel : robust_kernels()) {
          CAPTURE(kernel.name);
          std::vector<double> out(kColumns);
          kernel.closest_mean(data.input, out.data());
          for (std::size_t c = 0; c < kColumns; ++c)
            REQUIRE(out[c] == doctest::Approx(reference::mean_of_closest(reference::column(values, c), keep))
                                  .epsilon(1e-12));
          if (first.empty()) first = out;
          CHECK(std::memcmp(first.data(), out.data(), out.size() * sizeof(double)) == 0);
        }
      }
}

TEST_CASE("robust kernels: the values closest to the median, by hand") {
  // The median is 3. 2 and 4 are equally close: the smaller one comes first. The closest three values are 2,
  // 3, 4.
  const reference::Matrix values = {{10}, {3}, {4}, {2}, {-7}};
  for (const auto& [keep, expected] : {std::pair{1U, 3.0}, {2U, 2.5}, {3U, 3.0}, {4U, 19.0 / 4}}) {
    Columns data(values, 0, keep, true);
    for (const RobustKernel& kernel : robust_kernels()) {
      double out = 0;
      kernel.closest_mean(data.input, &out);
      CHECK(out == expected);
    }
  }
}

TEST_CASE("robust kernels: squared distances, added to what is there, the same bits everywhere") {
  for (const std::size_t quanta : {1U, 2U, 5U}) {
    const std::size_t columns = quanta * kQuantum;
    const auto values = reference::random_rows(kPairRows + kPairColumns, columns, 7, false);
    const std::vector<reference::Vector> doubles = [&] {
      std::vector<reference::Vector> out;
      for (const auto& row : values) out.emplace_back(row.begin(), row.end());
      return out;
    }();
    std::vector<const double*> rows;
    for (const auto& row : doubles) rows.push_back(row.data());
    std::vector<double> first;
    for (const RobustKernel& kernel : robust_kernels()) {
      CAPTURE(kernel.name);
      std::vector<double> sums(kPairRows * kPairColumns, 5.0);
      kernel.pair_distances(rows.data(), rows.data() + kPairRows, columns, sums.data());
      for (std::size_t i = 0; i < kPairRows; ++i)
        for (std::size_t j = 0; j < kPairColumns; ++j)
          CHECK(sums[i * kPairColumns + j] ==
                doctest::Approx(5.0 + reference::squared_distance(values[i], values[kPairRows + j]))
                    .epsilon(1e-13));
      if (first.empty()) first = sums;
      CHECK(std::memcmp(first.data(), sums.data(), sums.size() * sizeof(double)) == 0);
    }
  }
}

}  // namespace fedge::aggregation
