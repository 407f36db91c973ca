#include "sim/dissemination/swarm_network.h"

#include <algorithm>

#include "swarm/tracker.h"

namespace fedge::sim {

Duration SwarmNetwork::to_centre(ClientId client) const {
  return client == swarm::kCoordinator ? Duration::zero() : devices_.latency(client);
}

void SwarmNetwork::chunk(ClientId from, ClientId to, std::size_t bytes, Happening sent, Happening arrived) {
  const Bytes size(bytes);
  if (from == swarm::kCoordinator) {
    at(now(), std::move(sent));
    return at(links_.down_arrival(to, size), std::move(arrived));
  }
  if (to == swarm::kCoordinator) {
    const Time arrival = links_.up_arrival(from, size);
    at(links_.up(from).free(), std::move(sent));
    return at(arrival, std::move(arrived));
  }
  links_.meter_exchange(from, to, size);
  const Line::Transfer through = links_.up(from).begin(now(), size, devices_.of(from).upload_time(size));
  const Time last_byte = through.end + latency(from, to);
  at(through.end, std::move(sent));
  // The chunk uses the receiver's line from the arrival of its first byte.
  at(through.begin + latency(from, to), [this, to, size, last_byte, arrived = std::move(arrived)] {
    const Time last = links_.down(to).send(now(), devices_.of(to).download_time(size));
    at(std::max(last, last_byte), arrived);
  });
}

}  // namespace fedge::sim
