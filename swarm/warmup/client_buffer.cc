#include "swarm/warmup/client_buffer.h"

#include <algorithm>

namespace fedge::swarm {

ClientBuffer::ClientBuffer(std::size_t universe, std::vector<Chunk> own, Gate gate, Rng rng)
    : own_(own.size()), gate_(gate), released_(std::move(own)), held_(universe), eligible_(universe) {
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
