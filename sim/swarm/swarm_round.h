// SwarmRound: one round of serverless federated learning in slots: everybody has an update, sprays part of
// it, waits for its lag; a tracker schedules the warm-up until everybody holds k chunks of others; then the
// swarm is a plain one until everybody has what there is, or the deadline (FLTorrent, arXiv:2605.10499,
// sections II to IV). Only who has which chunk is simulated: no bytes, no training. All decisions are those
// of `swarm/warmup`.
//
// A function of its options; one thread. Two bits a chunk and client: 13 MB at 500 clients with 206 chunks
// each.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "swarm/warmup/audit.h"
#include "swarm/warmup/config.h"

namespace fedge::sim {

struct Between {
  std::uint32_t least = 0;
  std::uint32_t most = 0;
};

struct SwarmRoundOptions {
  swarm::WarmupConfig warmup;
  bool plain = false;            // plain swarming from slot 0; k still says how long observers look
  Between up{7, 12};             // chunks a slot that a client can send, drawn uniformly
  Between down{18, 60};          // and receive
  double drop = 0;               // share of clients that vanish
  std::size_t drop_slots = 100;  // each in one of so many first slots
  std::size_t max_flow = 0;      // each how many slots of the warm-up the maximum flow is found; 0: never
  std::size_t watch = 0;         // slots after the warm-up that are logged too
  bool whole_round = true;       // false: ends with the warm-up, and `watch`
  std::uint64_t seed = 1;
};

// kInvalid begins with the option's name.
Result<void> check_swarm_round(const SwarmRoundOptions& options);

struct SwarmRoundResult {
  // The slot in which everybody held k chunks of others, or in which the warm-up was given up.
  std::size_t warmup_slots = 0;
  std::size_t round_slots = 0;
  std::optional<std::string> failed_open;  // why the guarantees are void
  std::uint64_t sprayed = 0;               // chunks, before slot 0
  std::size_t spray_slots = 0;             // that spraying takes at full upload; in no other figure
  std::uint64_t warmup_transfers = 0;
  std::uint64_t transfers = 0;
  std::uint64_t fallbacks = 0;        // warm-up transfers of own chunks that the gate would not have let out
  std::uint64_t owner_transfers = 0;  // of own chunks in the warm-up, those included
  double warmup_capacity = 0;         // chunks that all who were up could have sent in the warm-up
  double capacity = 0;                // and in the round
  double flow_transfers = 0;          // in slots in which the maximum flow was found
  double flow = 0;
  std::vector<double> flow_shares;  // by such slot, transfers over flow
  std::size_t vanished = 0;
  // By client that stayed: owners whose update it can put together (A_v).
  std::vector<std::size_t> reconstructable;
  std::uint64_t log_hash = 0;  // of all transfers in order
  // What observers saw: transfers by slot until everybody held k, and `watch` slots more.
  swarm::Revealed revealed;
  swarm::Budgets budgets;
  std::vector<std::size_t> lags;  // by client
  std::vector<swarm::Transfer> sprayed_to;
};

// Options must have passed check_swarm_round. kInvalid if a client turns out to be everybody's neighbour and
// can spray to nobody.
Result<SwarmRoundResult> run_swarm_round(const SwarmRoundOptions& options);

}  // namespace fedge::sim
