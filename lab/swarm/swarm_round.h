// SwarmRound: one round of serverless federated learning in slots (FLTorrent, arXiv:2605.10499, sections II
// to IV). Every client sprays part of its update and waits for its lag. A tracker schedules the warm-up until
// all clients hold k chunks of others. Then plain swarming runs until all clients have everything available,
// or the deadline. The simulation tracks only which client has which chunk: no bytes, no training. All
// decisions are those of `swarm/warmup`.
//
// Deterministic in its options; one thread. Two bits a chunk and client: 13 MB at 500 clients with 206 chunks
// each.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "swarm/warmup/audit.h"
#include "swarm/warmup/config.h"

namespace fedge::lab {

struct Between {
  std::uint32_t least = 0;
  std::uint32_t most = 0;
};

struct SwarmRoundOptions {
  swarm::WarmupConfig warmup;
  bool plain = false;            // plain swarming from slot 0; k still limits the observation
  Between up{7, 12};             // chunks that a client can send in a slot, drawn uniformly
  Between down{18, 60};          // chunks that it can receive
  double drop = 0;               // share of clients that drop out
  std::size_t drop_slots = 100;  // dropouts fall into this number of first slots
  std::size_t max_flow = 0;      // interval of warm-up slots at which the maximum flow is computed; 0: never
  std::size_t watch = 0;         // slots logged after the warm-up
  bool whole_round = true;       // false: ends after the warm-up and `watch`
  std::uint64_t seed = 1;
};

// Errors are kInvalid; the message begins with the option's name.
Result<void> check_swarm_round(const SwarmRoundOptions& options);

struct SwarmRoundResult {
  // The slot in which all clients held k chunks of others, or in which the warm-up failed.
  std::size_t warmup_slots = 0;
  std::size_t round_slots = 0;
  std::optional<std::string> failed_open;  // why the guarantees do not hold
  std::uint64_t sprayed = 0;               // chunks sent before slot 0
  std::size_t spray_slots = 0;             // slots that spraying takes at full upload; not counted elsewhere
  std::uint64_t warmup_transfers = 0;
  std::uint64_t transfers = 0;
  std::uint64_t fallbacks = 0;        // warm-up transfers of own chunks against the gate
  std::uint64_t owner_transfers = 0;  // all warm-up transfers of own chunks, including fallbacks
  double warmup_capacity = 0;         // chunks that all active clients could have sent in the warm-up
  double capacity = 0;                // the same for the round
  double flow_transfers = 0;          // transfers in slots with a computed maximum flow
  double flow = 0;
  std::vector<double> flow_shares;  // transfers over flow, for each such slot
  std::size_t vanished = 0;
  // For each client that stayed: owners whose update it can reconstruct (A_v).
  std::vector<std::size_t> reconstructable;
  std::uint64_t log_hash = 0;  // of all transfers in order
  // What observers saw: transfers by slot until all clients held k, plus `watch` slots.
  swarm::Revealed revealed;
  swarm::Budgets budgets;
  std::vector<std::size_t> lags;  // by client
  std::vector<swarm::Transfer> sprayed_to;
};

// The options must have passed check_swarm_round(). kInvalid if a client is a neighbour of all others and
// thus cannot spray.
Result<SwarmRoundResult> run_swarm_round(const SwarmRoundOptions& options);

}  // namespace fedge::lab
