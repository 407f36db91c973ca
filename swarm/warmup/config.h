// WarmupConfig: parameters of a serverless round's warm-up that all clients share: the number of clients, the
// chunks of an update, and how chunks are spread until their owners are hidden (FLTorrent: Li, Dogani, Wang,
// Liang and Laoutaris, arXiv:2605.10499, sections II and III). Values and pure functions; thread-safe.
//
// Units: chunks, slots (one second each) and fractions. The symbols in comments are the paper's.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "core/result.h"

namespace fedge::swarm {

// The meaning of k. The paper uses two: a fraction of one update's chunks (sections II and III), or of all
// updates' chunks (section V, to which its times belong). kSplit is ours: the gate uses the first, the end of
// the warm-up the second.
enum class KMode { kPerUpdate, kPerUniverse, kSplit };
const char* to_string(KMode mode);                    // "per_update" and so on
Result<KMode> k_mode_named(const std::string& name);  // kInvalid lists the valid names

// The order in which a receiver gets its missing chunks. The paper allows both and says that neither depends
// on a chunk's owner. Our finding: rarest first does, because chunks that only their owner has are the
// rarest.
enum class ChunkOrder { kRarestFirst, kRandom };

struct WarmupConfig {
  std::size_t nodes = 100;   // n: clients, each with one update
  std::size_t chunks = 206;  // K: chunks of one update, the same for all
  std::size_t degree = 10;   // m: minimum number of neighbours
  double spray_ratio = 0.2;  // R: fraction of its update that an owner sprays; 0: none
  bool relayed = false;      // sprayed chunks are sealed and pass through a common neighbour
  // Ours: a client also gets its own chunks scheduled like others', and sprays to neighbours as to any
  // client. Otherwise it would be recognised as the one that lacks nothing of an update.
  bool blended = false;
  std::size_t lag = 3;                             // T_lag: each client waits for 0 to lag - 1 slots
  bool gating = true;                              // own chunks wait for a cover set of foreign chunks
  bool non_owner_first = true;                     // prefers holders other than the owner
  std::size_t kappa = 1;                           // maximum number of own chunks sent during the warm-up
  double threshold = 0.1;                          // alpha; 0: no warm-up
  KMode k_mode = KMode::kPerUniverse;              // the chunks that alpha is a fraction of
  std::optional<std::size_t> fallback_after;       // s0: slots without a transfer after which owners may send
  std::size_t deadline = 100'000;                  // s_max: maximum number of slots of the round
  std::string scheduler = "greedy_fastest_first";  // schedulers.h
  std::size_t parallel = 4;                        // tau: maximum number of receivers of a sender in a slot
  ChunkOrder order = ChunkOrder::kRarestFirst;     // in the warm-up; a plain swarm uses rarest first

  std::size_t universe() const { return nodes * chunks; }
};

// k: foreign chunks that every client must hold before the swarm becomes a plain one: ceil(alpha K) or
// ceil(alpha n K).
std::size_t cover_size(const WarmupConfig& config);
// k of the gate: chunks that must be eligible before an owner's own are. Differs from cover_size() only with
// kSplit.
std::size_t gate_size(const WarmupConfig& config);
// sigma = floor(R K): number of chunks that each owner sprays.
std::size_t sprayed_chunks(const WarmupConfig& config);

// The reason a warm-up with gating cannot end without an owner's help: the violated inequality with its
// numbers. Nothing if these necessary conditions (reconstructed) hold. Before any own chunk is eligible, only
// sprayed chunks circulate, so gate_size <= kappa + sigma (n - 1). After that, each owner adds kappa chunks,
// so k <= (sigma + kappa) (n - 1).
std::optional<std::string> deadlock_of(const WarmupConfig& config);

// kInvalid begins with the command line's name of the value at fault ("spray-ratio ..."). A configuration
// that would deadlock is invalid unless owners may help (fallback_after); that error ends with `remedy`.
Result<void> check_warmup(const WarmupConfig& config, const std::string& remedy);

}  // namespace fedge::swarm
