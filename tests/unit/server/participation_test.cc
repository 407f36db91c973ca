#include "server/report/participation.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/rng.h"

namespace fedge::server {
namespace {

// The definitions, computed pair by pair.
ParticipationFigures slow(const std::vector<double>& counts) {
  double differences = 0;
  double sum = 0;
  double squares = 0;
  for (const double a : counts) {
    sum += a;
    squares += a * a;
    for (const double b : counts) differences += std::abs(a - b);
  }
  const auto n = static_cast<double>(counts.size());
  return {differences / (2 * n * sum), sum * sum / (n * squares),
          static_cast<std::uint64_t>(*std::max_element(counts.begin(), counts.end()) -
                                     *std::min_element(counts.begin(), counts.end()))};
}

}  // namespace

TEST_CASE("participation: nobody yet is no figure, all alike is Gini 0 and Jain 1") {
  Participation participation(4);
  CHECK(std::isnan(participation.figures().gini));
  CHECK(std::isnan(participation.figures().jain));
  for (int round = 0; round < 3; ++round)
    for (std::uint32_t client = 0; client < 4; ++client) participation.add(ClientId(client));
  CHECK(participation.figures().gini == 0);
  CHECK(participation.figures().jain == 1);
  CHECK(participation.figures().gap == 0);
}

TEST_CASE("participation: one of n takes all: Gini is (n - 1) / n, Jain 1 / n") {
  Participation participation(5);
  for (int round = 0; round < 7; ++round) participation.add(ClientId(3));
  CHECK(participation.figures().gini == doctest::Approx(0.8));
  CHECK(participation.figures().jain == doctest::Approx(0.2));
  CHECK(participation.figures().gap == 7);
}

TEST_CASE("participation: the figures are those of the definitions, pair by pair") {
  Rng rng(5);
  for (int run = 0; run < 50; ++run) {
    const std::size_t clients = 1 + rng.below(30);
    Participation participation(clients);
    std::vector<double> counts(clients, 0);
    for (std::uint64_t i = 0; i <= rng.below(200); ++i) {
      const std::uint64_t client = rng.below(clients);
      participation.add(ClientId(static_cast<std::uint32_t>(client)));
      ++counts[client];
    }
    const ParticipationFigures expected = slow(counts);
    const ParticipationFigures figures = participation.figures();
    CHECK(figures.gini == doctest::Approx(expected.gini));
    CHECK(figures.jain == doctest::Approx(expected.jain));
    CHECK(figures.gap == expected.gap);
  }
}

TEST_CASE("participation: N is the number of expected clients, or of those that took part if they are more") {
  Participation open(4);
  for (const std::uint32_t client : {9U, 9U, 70U}) open.add(ClientId(client));
  const ParticipationFigures expected = slow({2, 1, 0, 0});
  CHECK(open.figures().gini == doctest::Approx(expected.gini));
  CHECK(open.figures().jain == doctest::Approx(expected.jain));
  CHECK(open.figures().gap == 2);
  for (const std::uint32_t client : {1U, 2U, 3U, 4U}) open.add(ClientId(client));
  const ParticipationFigures more = slow({2, 1, 1, 1, 1, 1});
  CHECK(open.figures().gini == doctest::Approx(more.gini));
  CHECK(open.figures().jain == doctest::Approx(more.jain));
  CHECK(open.figures().gap == 1);
  // A later process continues from the counts.
  Participation again(4, open.counts());
  CHECK(again.figures().gini == open.figures().gini);
  again.add(ClientId(0));
  open.add(ClientId(0));
  CHECK(again.counts() == open.counts());
  CHECK(again.figures().jain == open.figures().jain);
}

}  // namespace fedge::server
