// WarmupConfig: what the clients of a serverless round agree on before it: how many they are, how many chunks
// an update has, and how its chunks are spread until nobody can tell who made them (FLTorrent: Li, Dogani,
// Wang, Liang and Laoutaris, arXiv:2605.10499, sections II and III). Values only; pure functions, any thread.
//
// Units: chunks, slots (one second each) and shares of one. Letters in brackets are the paper's.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "core/result.h"

namespace fedge::swarm {

// The paper means two things by k: a share of one update's chunks (sections II and III), or of the chunks of
// everybody's updates (section V, to which its times belong). kSplit is ours: the gate has the first, the end
// of the warm-up the second.
enum class KMode { kPerUpdate, kPerUniverse, kSplit };
const char* to_string(KMode mode);                    // "per_update" and so on
Result<KMode> k_mode_named(const std::string& name);  // kInvalid names those that there are

// Which of its missing chunks a receiver gets first. The paper allows both and calls both oblivious of who
// made a chunk; our finding is that rarest first is not: what an owner has and nobody else is the rarest of
// all.
enum class ChunkOrder { kRarestFirst, kRandom };

struct WarmupConfig {
  std::size_t nodes = 100;   // n: clients, each with one update
  std::size_t chunks = 206;  // K: chunks of one update, the same for all
  std::size_t degree = 10;   // m: neighbours that each has at least
  double spray_ratio = 0.2;  // R: share of its update that an owner sprays; 0: none
  bool relayed = false;      // sprayed chunks pass a neighbour of both ends, sealed
  // Ours: a client is scheduled to get its own chunks as if they were another's, and sprays to neighbours
  // like to anybody, so that nobody stands out as the one who lacks nothing of an update.
  bool blended = false;
  std::size_t lag = 3;                             // T_lag: each waits for 0 to so many less one slots
  bool gating = true;                              // own chunks wait for a cover set of others'
  bool non_owner_first = true;                     // a holder that is not the owner is preferred
  std::size_t kappa = 1;                           // own chunks that may be sent during the warm-up
  double threshold = 0.1;                          // alpha; 0: no warm-up
  KMode k_mode = KMode::kPerUniverse;              // whose chunks alpha is a share of
  std::optional<std::size_t> fallback_after;       // s0: slots without a transfer until owners may send
  std::size_t deadline = 100'000;                  // s_max, of the round
  std::string scheduler = "greedy_fastest_first";  // schedulers.h
  std::size_t parallel = 4;                        // tau: receivers that a sender serves in a slot
  ChunkOrder order = ChunkOrder::kRarestFirst;     // of the warm-up; a plain swarm is rarest first

  std::size_t universe() const { return nodes * chunks; }
};

// k: chunks of others that everybody must hold before the swarm becomes a plain one; ceil(alpha K) or
// ceil(alpha n K).
std::size_t cover_size(const WarmupConfig& config);
// k of the gate: chunks that must be eligible before an owner's own are; the same but with KMode::kSplit.
std::size_t gate_size(const WarmupConfig& config);
// sigma = floor(R K): chunks that each owner sprays.
std::size_t sprayed_chunks(const WarmupConfig& config);

// What keeps a warm-up with gating from ending without an owner's help: the inequality that does not hold,
// with its numbers. Necessary conditions (reconstructed): before anybody's own chunks become eligible, only
// sprayed ones are in circulation, so that gate_size <= kappa + sigma (n - 1) must hold; and afterwards kappa
// more of each owner, so that k <= (sigma + kappa) (n - 1) must. Nothing if they hold.
std::optional<std::string> deadlock_of(const WarmupConfig& config);

// kInvalid begins with the name of the value at fault, in the words of the command line ("spray-ratio ...").
// A configuration that would deadlock is refused unless owners may help (fallback_after).
Result<void> check_warmup(const WarmupConfig& config);

}  // namespace fedge::swarm
