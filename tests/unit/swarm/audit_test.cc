// A client's audit of a tracker's log: no finding for an honest tracker, otherwise the first fault.
#include "swarm/warmup/audit.h"

#include <doctest/doctest.h>

#include "tests/support/text.h"

namespace fedge::swarm {
namespace {

constexpr std::uint64_t kSeed = 11;

// Twelve clients and one honest transfer in the overlay of kSeed.
struct Round {
  Round()
      : draw(config(), kSeed), budgets{std::vector<std::uint32_t>(12, 2), std::vector<std::uint32_t>(12, 2)} {
    revealed.seed = kSeed;
    for (Pseudonym from = 0; from < 12; ++from)
      for (const Pseudonym to : draw.overlay.neighbours(from))
        if (from == 0) revealed.log.push_back({{from, to, draw.universe.chunks_of(from)[0]}});
  }
  static WarmupConfig config() {
    WarmupConfig result;
    result.nodes = 12;
    result.chunks = 6;
    result.degree = 4;
    return result;
  }
  std::string verdict() const {
    const auto checked = audit(commit_to_seed(kSeed), config(), budgets, revealed);
    return checked ? "" : checked.error().message;
  }
  Transfer& first() { return revealed.log[0][0]; }

  RoundDraw draw;
  Budgets budgets;
  Revealed revealed;
};

using fedge::test::contains;

}  // namespace

TEST_CASE("audit: an honest log passes, and a seed that was not committed to does not") {
  Round round;
  CHECK(round.verdict().empty());
  round.revealed.seed = kSeed + 1;
  CHECK(contains(round.verdict(), "does not match the commitment"));
}

TEST_CASE("audit: a transfer beside the overlay is found") {
  Round round;
  for (Pseudonym other = 1; other < 12; ++other)
    if (!round.draw.overlay.adjacent(0, other)) round.first().to = other;
  CHECK(contains(round.verdict(), "slot 0: chunk"));
  CHECK(contains(round.verdict(), "the two clients are not neighbours"));
}

TEST_CASE("audit: a chunk that comes twice, in another slot too, or to its owner is found") {
  Round twice;
  twice.revealed.log.push_back({twice.first()});
  CHECK(contains(twice.verdict(), "already had this chunk"));
  Round own;
  own.first().chunk = own.draw.universe.chunks_of(own.first().to)[0];
  CHECK(contains(own.verdict(), "the receiver's own"));
}

TEST_CASE("audit: a budget is of each slot, the sender's as well as the receiver's") {
  Round round;
  const Transfer transfer = round.first();
  for (std::size_t i = 1; i <= 2; ++i)
    round.revealed.log[0].push_back({transfer.from, transfer.to, round.draw.universe.chunks_of(0)[i]});
  CHECK(contains(round.verdict(), "the sender's upload budget"));
  round.budgets.up[0] = 3;
  CHECK(contains(round.verdict(), "the receiver's download budget"));
  round.budgets.down[transfer.to] = 3;
  CHECK(round.verdict().empty());
}

TEST_CASE("audit: clients and chunks that do not exist are found") {
  Round client;
  client.first().to = 12;
  CHECK(contains(client.verdict(), "the client or chunk does not exist"));
  Round chunk;
  chunk.first().chunk = 72;
  CHECK(contains(chunk.verdict(), "the client or chunk does not exist"));
}

}  // namespace fedge::swarm
