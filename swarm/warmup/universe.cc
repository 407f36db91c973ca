#include "swarm/warmup/universe.h"

#include <numeric>

namespace fedge::swarm {

Universe::Universe(std::size_t owners, std::size_t chunks_each, Rng rng)
    : owner_(owners * chunks_each), own_(owners) {
  std::vector<Chunk> numbers(owner_.size());
  std::iota(numbers.begin(), numbers.end(), Chunk{0});
  rng.shuffle(std::span(numbers));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto owner = static_cast<Pseudonym>(i / chunks_each);
    owner_[numbers[i]] = owner;
    own_[owner].push_back(numbers[i]);
  }
}

std::vector<Pseudonym> Universe::reconstructable(const ChunkSet& held) const {
  std::vector<std::size_t> count(owners());
  held.for_each([&](std::size_t chunk) { ++count[owner_[chunk]]; });
  std::vector<Pseudonym> whole;
  for (Pseudonym owner = 0; owner < count.size(); ++owner)
    if (count[owner] == chunks_each()) whole.push_back(owner);
  return whole;
}

}  // namespace fedge::swarm
