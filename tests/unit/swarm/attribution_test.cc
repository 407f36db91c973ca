// Attacks on logs written by hand, the assignment against every permutation, and bounds computed by hand.
#include "swarm/attribution/attacks.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "swarm/attribution/assignment.h"

namespace fedge::swarm {
namespace {

std::vector<std::pair<Pseudonym, Pseudonym>> pairs(const std::vector<Guess>& guesses) {
  std::vector<std::pair<Pseudonym, Pseudonym>> result;
  for (const Guess& guess : guesses) result.emplace_back(guess.sender, guess.descriptor);
  return result;
}

using Pairs = std::vector<std::pair<Pseudonym, Pseudonym>>;

}  // namespace

TEST_CASE("assignment: no permutation scores more, and no column is taken twice") {
  Rng rng(4);
  for (int trial = 0; trial < 60; ++trial) {
    const std::size_t rows = 1 + rng.below(4);
    const std::size_t columns = rows + rng.below(3);
    std::vector<std::vector<double>> scores(rows, std::vector<double>(columns));
    for (auto& row : scores)
      for (double& score : row) score = trial % 2 == 0 ? rng.normal() : static_cast<double>(rng.below(3));
    const auto got = best_assignment(scores);
    double sum = 0;
    for (std::size_t row = 0; row < rows; ++row) sum += scores[row][got[row]];
    auto taken = got;
    std::ranges::sort(taken);
    CHECK(std::ranges::adjacent_find(taken) == taken.end());
    std::vector<std::size_t> order(columns);
    std::iota(order.begin(), order.end(), std::size_t{0});
    double best = -1e9;
    do {
      double other = 0;
      for (std::size_t row = 0; row < rows; ++row) other += scores[row][order[row]];
      best = std::max(best, other);
    } while (std::ranges::next_permutation(order).found);
    CHECK(sum == doctest::Approx(best));
  }
}

TEST_CASE("attribution: sequence names the first chunk's update, count that of most early chunks") {
  // Client 4 receives chunks of 2, 1, 1 from client 1 and of 0, 3, 3 from client 0.
  const std::vector<Observation> seen = {{1, 2}, {0, 0}, {1, 1}, {0, 3}, {1, 1}, {0, 3}};
  const AttackView view{.observer = 4, .descriptors = 5};
  CHECK(pairs(sequence_attack(seen, view)) == Pairs{{0, 0}, {1, 2}});
  CHECK(pairs(count_attack(seen, view)) == Pairs{{0, 3}, {1, 1}});
  // Among the first two chunks of each sender, no update is more frequent: the first one counts.
  CHECK(pairs(count_attack(seen, {.observer = 4, .descriptors = 5, .early = 2})) == Pairs{{0, 0}, {1, 2}});
  CHECK(success_rate(sequence_attack(seen, view)) == 0.5);
  CHECK(std::isnan(success_rate({})));
}

TEST_CASE("attribution: cluster gives each sender an update of its own") {
  // Both senders begin with a chunk of update 1, but client 1 sends only chunks of it.
  const std::vector<Observation> seen = {{0, 1}, {1, 1}, {0, 0}, {1, 1}, {0, 0}, {0, 0}};
  CHECK(pairs(cluster_attack(seen, {.observer = 2, .descriptors = 4})) == Pairs{{0, 0}, {1, 1}});
}

TEST_CASE("attribution: absence names what all others send and a sender does not") {
  const std::vector<Observation> seen = {{0, 1}, {0, 2}, {1, 0}, {1, 2}, {2, 0}, {2, 1}};
  CHECK(pairs(absence_attack(seen, {.observer = 3, .descriptors = 4})) == Pairs{{0, 0}, {1, 1}, {2, 2}});
}

TEST_CASE(
    "attribution: elimination leaves out what a sender asked for, and what was sprayed to the observer") {
  const std::vector<Observation> seen = {{0, 2}, {1, 2}};
  const std::vector<Observation> asked = {{0, 1}, {2, 0}};  // client 2 has sent nothing
  const std::vector<Pseudonym> sprayed = {2, 4};
  const auto named = [&](const AttackView& view) { return pairs(elimination_attack(seen, view)); };
  CHECK(named({.observer = 3, .descriptors = 5, .asked = asked, .strangers = sprayed}) ==
        Pairs{{0, 0}, {1, 1}});
  // Client 1 requests many chunks of update 0. An update that one client requests and the other never does
  // belongs to the other.
  const std::vector<Observation> by_all = {{0, 1}, {0, 4}, {0, 2}, {1, 0}, {1, 0}, {1, 4}, {1, 2}};
  CHECK(named({.observer = 3, .descriptors = 5, .asked = by_all}) == Pairs{{0, 0}, {1, 1}});
}

TEST_CASE("attribution: a coalition succeeds where one member does, and its members are no targets") {
  // Clients 0 and 1 are members. Client 0 is right about 2 and wrong about 3; client 1 is wrong about 2 and
  // 4, and right about 0.
  const std::vector<std::vector<Guess>> guesses = {{{2, 2}, {3, 4}}, {{2, 3}, {4, 2}, {0, 0}}, {}, {}, {}};
  const std::vector<Pseudonym> members = {0, 1};
  const CoalitionRate rate = coalition_rate(guesses, members);
  CHECK(rate.any == doctest::Approx(1.0 / 3));
  CHECK(rate.mean == doctest::Approx(0.25));
  const std::vector<Pseudonym> blind = {3};
  CHECK(std::isnan(coalition_rate(guesses, blind).any));
}

TEST_CASE("attribution: an attack that there is not is refused by name") {
  CHECK(check_attack("cluster"));
  const auto refused = check_attack("guess");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message ==
        "attack must be one of sequence, count, cluster, absence, elimination, not \"guess\"");
}

}  // namespace fedge::swarm
