#include "swarm/warmup/audit.h"

namespace fedge::swarm {

Rng overlay_rng(std::uint64_t seed) { return Rng(seed).fork("overlay"); }

RoundDraw::RoundDraw(const WarmupConfig& config, std::uint64_t seed)
    : overlay(Overlay::random(config.nodes, config.degree, overlay_rng(seed))),
      universe(config.nodes, config.chunks, Rng(seed).fork("universe")) {}

Digest commit_to_seed(std::uint64_t seed) { return sha256("fedge warm-up seed " + std::to_string(seed)); }

Result<void> audit(const Digest& commitment, const WarmupConfig& config, const Budgets& budgets,
                   const Revealed& revealed) {
  if (commit_to_seed(revealed.seed) != commitment)
    return Error{ErrorCode::kCorrupt, "the seed does not match the commitment of the coordinator"};
  const RoundDraw round(config, revealed.seed);
  std::vector<ChunkSet> got(config.nodes, ChunkSet(config.universe()));
  for (std::size_t slot = 0; slot < revealed.log.size(); ++slot) {
    std::vector<std::uint32_t> up = budgets.up;
    std::vector<std::uint32_t> down = budgets.down;
    const auto refuse = [&](const Transfer& transfer, const char* why) {
      return Error{ErrorCode::kRefused, "slot " + std::to_string(slot) + ": chunk " +
                                            std::to_string(transfer.chunk) + " from client " +
                                            std::to_string(transfer.from) + " to client " +
                                            std::to_string(transfer.to) + ": " + why};
    };
    for (const Transfer& transfer : revealed.log[slot]) {
      if (transfer.from >= config.nodes || transfer.to >= config.nodes || transfer.chunk >= config.universe())
        return refuse(transfer, "the client or chunk does not exist");
      if (!round.overlay.adjacent(transfer.from, transfer.to))
        return refuse(transfer, "the two clients are not neighbours");
      if (round.universe.owner(transfer.chunk) == transfer.to && !config.blended)
        return refuse(transfer, "the chunk belongs to the receiver's own update");
      if (!got[transfer.to].add(transfer.chunk))
        return refuse(transfer, "the receiver already had this chunk");
      if (up[transfer.from]-- == 0) return refuse(transfer, "the sender's upload budget is exceeded");
      if (down[transfer.to]-- == 0) return refuse(transfer, "the receiver's download budget is exceeded");
    }
  }
  return {};
}

}  // namespace fedge::swarm
