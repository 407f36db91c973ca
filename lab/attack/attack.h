// Attacks on a Kademlia directory, and defences. In virtual time a coordinator publishes a record under one
// key, and publishes again when it moves. Honest nodes look it up among hostile ones. Hostile nodes
// cooperate: they return only each other as contacts, claim any id that helps, and acknowledge values without
// storing them.
//
// Deterministic in the options; one thread; 1000 nodes and 40 rounds take about a second.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "dht/overlays/options.h"

namespace fedge::lab {

enum class Attack {
  kCrowd,    // Sybils at a key: ids so close to it that they become its holders
  kEclipse,  // victims hear only of hostile nodes, all the time and after each restart
  kPoison,   // holders return forged or outdated records; other nodes are flooded with rubbish
  kReflect,  // requests with a victim's address as sender, so that the answers hit it
};
const char* to_string(Attack attack);
Result<Attack> attack_of(const std::string& name);

// The overlay's defences (Protections) and those of its users.
struct Defence {
  dht::Protections overlay;
  bool signatures = false;     // nodes keep and readers accept only signed records, and of them the latest
  std::size_t bootstraps = 1;  // bootstrap nodes, of which the first is hostile
  bool saved_table = false;    // a restarted node remembers its contacts
};
// Parses a comma-separated list of "ids", "groups", "paths", "stable", "all-holders", "tokens", "signatures",
// "bootstraps" and "saved"; also "none", "all", or "opendht" (what OpenDHT 2.4 does with Fedge's records).
// kInvalid names the unknown word.
Result<Defence> defence_of(const std::string& text);

struct AttackOptions {
  Attack attack = Attack::kCrowd;
  Defence defence;
  std::size_t nodes = 1000;  // including the hostile ones
  double hostile = 0.2;
  std::size_t groups = 16;  // address groups over which the hostile nodes are spread
  unsigned ground_bits =
      0;  // with bound ids: leading bits of an id that the attacker matches, by trying 2^bits keys a node
  std::size_t replication = 8;
  std::size_t rounds = 40;
  std::uint64_t seed = 1;
};
// Errors are kInvalid and name the option as on the command line.
Result<void> check_attack(const AttackOptions& options);

// Results; NaN: not measured in this attack.
struct AttackResult {
  double success = 0;          // share of look-ups that returned the latest record
  double stale = 0;            // share that returned an earlier record as valid
  double forged = 0;           // share that returned a forged record as valid
  double latency_ms = 0;       // mean, over successful look-ups
  double messages = 0;         // per look-up
  double traffic = 0;          // bytes that an honest node sends in a round
  double kept = 0;             // eclipse: share of victims that know an honest node near every key
  double honest_contacts = 0;  // eclipse: share of honest contacts in the victims' tables
  double rubbish = 0;          // attackers' bytes that an honest node stores
  double amplification = 0;    // reflect: bytes that reach the victim for each byte sent
};
struct AttackFigure {
  const char* key;    // in JSON
  const char* label;  // in tables
  double AttackResult::*value;
  double factor;  // display factor
  int decimals;
};
const std::vector<AttackFigure>& attack_figures();

// Runs an attack; the options must have passed check_attack().
AttackResult run_attack(const AttackOptions& options);

}  // namespace fedge::lab
