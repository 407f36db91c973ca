#include "swarm/peer/peer.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/unit/swarm/virtual_swarm.h"

namespace fedge::swarm {

static_assert(fedge::Node<Peer>);

namespace {

constexpr std::uint64_t kLine = 2'500'000;  // 20 Mbit/s

PeerRules limited(std::uint64_t bytes_per_second = kLine) {
  PeerRules rules;
  rules.upload_limit = bytes_per_second;
  return rules;
}

double last(const VirtualSwarm& swarm, const protocol::ObjectId& object) {
  double latest = 0;
  for (const auto& [id, node] : swarm.nodes) latest = std::max(latest, to_seconds(node.completed.at(object)));
  return latest;
}

}  // namespace

TEST_CASE(
    "peer: one seeder and fifteen others with equal lines need little longer than the seeder's own line") {
  VirtualSwarm swarm;
  const auto manifest = manifest_of(256);
  const auto object = manifest.id();
  swarm.add(kCoordinator, limited());
  for (std::uint32_t i = 0; i < 15; ++i) swarm.add(ClientId(i), limited());
  swarm.share(manifest, {.copies = 2});
  swarm.link_all();
  REQUIRE(swarm.run([&] { return swarm.everybody_has(object); }, Time(seconds(300))));
  const double bound = static_cast<double>(manifest.payload_size) / kLine;
  const double time = last(swarm, object);
  INFO("seconds ", time, ", bound ", bound);
  CHECK(time >= bound);
  CHECK(time <= 1.1 * bound);
  const double copies = static_cast<double>(swarm.nodes.at(kCoordinator).sent) / 256;
  MESSAGE("time/bound ", time / bound, " copies ", copies);
  std::uint64_t twice = 0;
  for (const auto& [id, node] : swarm.nodes) twice += node.peer.figures().twice;
  MESSAGE("twice ", static_cast<double>(twice) / static_cast<double>(manifest.payload_size));
  CHECK(copies <= 1.2);
}

}  // namespace fedge::swarm
