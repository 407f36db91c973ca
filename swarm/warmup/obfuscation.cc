#include "swarm/warmup/obfuscation.h"

#include <algorithm>
#include <iterator>

namespace fedge::swarm {

SprayTo spray_to(const WarmupConfig& config) {
  return {.neighbours = config.blended, .relayed = config.relayed};
}

Result<std::vector<Transfer>> spray(const Overlay& overlay, const Universe& universe, std::size_t sigma,
                                    SprayTo to, Rng rng) {
  if (sigma > universe.chunks_each()) return invalid("spray: an owner has fewer chunks than it must spray");
  std::vector<Transfer> sent;
  if (sigma == 0) return sent;
  for (Pseudonym owner = 0; owner < universe.owners(); ++owner) {
    std::vector<Pseudonym> receivers;
    for (Pseudonym other = 0; other < overlay.size(); ++other)
      if (other != owner && (to.neighbours || !overlay.adjacent(owner, other)) &&
          (!to.relayed || !common_neighbours(overlay, owner, other).empty()))
        receivers.push_back(other);
    if (receivers.empty())
      return invalid("spray: client " + std::to_string(owner) +
                     " is a neighbour of every other client, so it has nobody to spray to");
    std::vector<Chunk> chunks = universe.chunks_of(owner);
    Rng draw = rng.fork("owner", owner);
    draw.shuffle(std::span(chunks));
    for (std::size_t i = 0; i < sigma; ++i)
      sent.push_back({owner, receivers[draw.below(receivers.size())], chunks[i]});
  }
  return sent;
}

std::vector<Pseudonym> common_neighbours(const Overlay& overlay, Pseudonym a, Pseudonym b) {
  std::vector<Pseudonym> common;
  std::ranges::set_intersection(overlay.neighbours(a), overlay.neighbours(b), std::back_inserter(common));
  return common;
}

std::vector<std::size_t> draw_lags(std::size_t nodes, std::size_t bound, Rng rng) {
  std::vector<std::size_t> lags(nodes);
  for (std::size_t& lag : lags) lag = rng.below(bound);
  return lags;
}

}  // namespace fedge::swarm
