#include "core/rng.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

using fedge::Rng;

TEST_CASE("philox4x32: equals the known answers published with Random123") {
  using Block = std::array<std::uint32_t, 4>;
  CHECK(fedge::philox4x32({0, 0, 0, 0}, {0, 0}) == Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(fedge::philox4x32({~0U, ~0U, ~0U, ~0U}, {~0U, ~0U}) ==
        Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(fedge::philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("rng: the first words of a seed are the cipher's output for counter 0") {
  Rng rng(0);
  CHECK(rng.next_u32() == 0x6627e8d5);
  CHECK(rng.next_u32() == 0xe169c58d);
}

TEST_CASE("rng: a fork depends on its name and not on what was drawn before") {
  Rng fresh(7);
  Rng used(7);
  for (int i = 0; i < 13; ++i) used.next_u64();
  CHECK(fresh.fork("a", 1, 2).next_u64() == used.fork("a", 1, 2).next_u64());
}

TEST_CASE("rng: forks of different purpose, round, client or parent differ") {
  const Rng root(7);
  std::vector<std::uint64_t> draws;
  for (const char* purpose : {"sample", "train"})
    for (std::uint64_t round = 0; round < 10; ++round)
      for (std::uint64_t client = 0; client < 10; ++client)
        draws.push_back(root.fork(purpose, round, client).next_u64());
  draws.push_back(Rng(8).fork("sample", 0, 0).next_u64());
  draws.push_back(root.fork("sample", 0, 0).fork("sample", 0, 0).next_u64());
  std::sort(draws.begin(), draws.end());
  CHECK(std::adjacent_find(draws.begin(), draws.end()) == draws.end());
}

TEST_CASE("rng: below(n) is in range and uniform") {
  Rng rng(11);
  std::vector<int> counts(7);
  constexpr int kDraws = 70'000;
  for (int i = 0; i < kDraws; ++i) ++counts.at(rng.below(7));
  double chi_square = 0;
  for (const int count : counts) chi_square += std::pow(count - kDraws / 7.0, 2) / (kDraws / 7.0);
  CHECK(chi_square < 22.46);  // 99.9 % point of chi-square with 6 degrees of freedom
}

TEST_CASE("rng: uniform, normal and gamma have their moments") {
  Rng rng(5);
  constexpr int kDraws = 200'000;
  const auto moments = [&](auto draw) {
    double sum = 0;
    double squares = 0;
    for (int i = 0; i < kDraws; ++i) {
      const double x = draw();
      sum += x;
      squares += x * x;
    }
    const double mean = sum / kDraws;
    return std::pair(mean, squares / kDraws - mean * mean);
  };
  const auto [uniform_mean, uniform_variance] = moments([&] { return rng.uniform(); });
  CHECK(uniform_mean == doctest::Approx(0.5).epsilon(0.01));
  CHECK(uniform_variance == doctest::Approx(1.0 / 12).epsilon(0.02));
  const auto [normal_mean, normal_variance] = moments([&] { return rng.normal(); });
  CHECK(std::abs(normal_mean) < 0.01);
  CHECK(normal_variance == doctest::Approx(1.0).epsilon(0.02));
  for (const double shape : {0.1, 0.5, 1.0, 4.0}) {
    CAPTURE(shape);
    const auto [gamma_mean, gamma_variance] = moments([&] { return rng.gamma(shape); });
    CHECK(gamma_mean == doctest::Approx(shape).epsilon(0.03));
    CHECK(gamma_variance == doctest::Approx(shape).epsilon(0.06));
  }
}

TEST_CASE("rng: shuffle is a permutation and moves every place") {
  Rng rng(3);
  std::vector<int> items(100);
  std::iota(items.begin(), items.end(), 0);
  rng.shuffle(std::span(items));
  std::vector<int> sorted = items;
  std::sort(sorted.begin(), sorted.end());
  for (int i = 0; i < 100; ++i) CHECK(sorted[static_cast<std::size_t>(i)] == i);
  CHECK(items != sorted);
}
