// Attacks on a directory that lies on Kademlia, and what stands against them: hostile nodes among honest
// ones in virtual time, a coordinator that publishes a record under one key and again when it moves, and
// honest nodes that look for it. Hostile nodes work together: they name nobody but each other, claim
// whatever id suits, and keep nothing, though they say so.
//
// A function of its options; one thread; 1000 nodes and 40 rounds take about a second.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "sim/overlays/options.h"

namespace fedge::sim {

enum class Attack {
  kCrowd,    // Sybils at a key: as near to it as they can get, so that it is theirs to keep
  kEclipse,  // victims hear of hostile nodes only, all the time, and again when they start anew
  kPoison,   // holders give out forged records, or the first one that they ever had; others are filled with
             // rubbish
  kReflect,  // requests in a victim's name, so that the answers hit it
};
const char* to_string(Attack attack);
Result<Attack> attack_of(const std::string& name);

// What is not the overlay's own affair (Protections) but its users'.
struct Defence {
  Protections overlay;
  bool signatures = false;     // nodes keep and readers believe signed records alone, the latest of them
  std::size_t bootstraps = 1;  // of which the first is hostile
  bool saved_table = false;    // who starts anew remembers whom it knew
};
// Of "ids", "groups", "paths", "stable", "all-holders", "tokens", "signatures", "bootstraps" and "saved",
// joined by commas; and "none", "all", or "opendht", what OpenDHT 2.4 with Fedge's records does. kInvalid
// names the word that is none of them.
Result<Defence> defence_of(const std::string& text);

struct AttackOptions {
  Attack attack = Attack::kCrowd;
  Defence defence;
  std::size_t nodes = 1000;  // the hostile ones among them
  double hostile = 0.2;
  std::size_t groups = 16;  // of addresses, that the hostile nodes are spread over
  unsigned ground_bits =
      0;  // with bound ids: leading bits of an id that the attacker gets right, 2^bits keys made a node
  std::size_t replication = 8;
  std::size_t rounds = 40;
  std::uint64_t seed = 1;
};
// kInvalid names the option as the command line has it.
Result<void> check_attack(const AttackOptions& options);

// NaN: nothing to measure in this attack.
struct AttackResult {
  double success = 0;          // share of look-ups that gave the latest record
  double stale = 0;            // share that gave an earlier one, and it was believed
  double forged = 0;           // share that gave what nobody had published, and it was believed
  double latency_ms = 0;       // mean, of those that succeeded
  double messages = 0;         // a look-up
  double traffic = 0;          // bytes an honest node sends in a round
  double kept = 0;             // eclipse: share of victims that know an honest node near every key
  double honest_contacts = 0;  // eclipse: share of honest contacts in the victims' tables
  double rubbish = 0;          // bytes of the attackers' that an honest node keeps
  double amplification = 0;    // reflect: bytes that reach the victim for each that was sent
};
struct AttackFigure {
  const char* key;    // in JSON
  const char* label;  // in tables
  double AttackResult::*value;
  double factor;  // as it is shown
  int decimals;
};
const std::vector<AttackFigure>& attack_figures();

// Options must have passed check_attack.
AttackResult run_attack(const AttackOptions& options);

}  // namespace fedge::sim
