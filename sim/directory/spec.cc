#include "sim/directory/spec.h"

namespace fedge::sim {

DirectorySpec read_directory(config::Reader& section) {
  DirectorySpec spec;
  const std::size_t kind =
      section.choice("kind", {"none", "memory", "chord", "pastry", "kademlia"}, 0,
                     "Devices look up the coordinator in this directory before they connect. With "
                     "status.via = \"directory\" they also publish their node records there. memory: one "
                     "table without delays. chord, pastry, kademlia: a simulated overlay of all devices and "
                     "the coordinator, with the delays of docs/experiments/overlays.md. With --mode "
                     "concrete, any kind but none starts a real directory on loopback.");
  if (kind == 1) spec.kind = DirectorySpec::Kind::kMemory;
  if (kind >= 2) {
    spec.kind = DirectorySpec::Kind::kOverlay;
    spec.overlay.kind = static_cast<dht::OverlayKind>(kind - 2);
  }
  spec.overlay.protections.read_all = true;  // dht/remote_directory.h: read from all that answer
  spec.overlay.loss =
      section.number("loss", 0.0, {0.0, 0.9}, "Probability that a message of the overlay is lost.");
  spec.overlay.replication = static_cast<std::size_t>(
      section.integer("replication", 3, {1, 8}, "Number of overlay nodes that store each record."));
  for (const char* key : {"loss", "replication"})
    if (section.has(key) && spec.kind != DirectorySpec::Kind::kOverlay)
      section.refuse(
          key, "has no effect unless simulation.directory.kind is \"chord\", \"pastry\" or \"kademlia\"");
  return spec;
}

}  // namespace fedge::sim
