#include "swarm/warmup/client_buffer.h"

#include <algorithm>

namespace fedge::swarm {

ClientBuffer::ClientBuffer(const Universe& universe, Pseudonym self, Gate gate, Rng rng)
    : universe_(&universe),
      self_(self),
      gate_(gate),
      released_(universe.chunks_of(self)),
      held_(universe.size()),
      eligible_(universe.size()) {
  for (const Chunk chunk : released_) held_.add(chunk);
  rng.shuffle(std::span(released_));
  if (gate_.gating) released_.resize(std::min(gate_.kappa, released_.size()));
  open_gate();
}

bool ClientBuffer::receive(Chunk chunk) {
  if (!held_.add(chunk)) return false;
  eligible_.add(chunk);
  open_gate();
  return true;
}

void ClientBuffer::open_gate() {
  if (own_eligible_ > 0 || (gate_.gating && foreign() + released_.size() < gate_.k)) return;
  for (const Chunk chunk : released_) eligible_.add(chunk);
  own_eligible_ = released_.size();
}

}  // namespace fedge::swarm
