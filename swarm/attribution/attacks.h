// Attacks on a warm-up by curious members: whose update are the chunks that a neighbour sends? An attack
// sees what one member saw in the warm-up, and guesses for each sender which descriptor is its own (the
// paper's section VI). Descriptors are numbered as the clients that own them, which the attack does not use.
// Pure.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "swarm/warmup/universe.h"

namespace fedge::swarm {

// A chunk that came: from whom, and of which update. In the order of arrival. Or one that was asked for.
struct Observation {
  Pseudonym sender = 0;
  Pseudonym descriptor = 0;
};

struct Guess {
  Pseudonym sender = 0;
  Pseudonym descriptor = 0;
  bool right() const { return sender == descriptor; }
};

struct AttackView {
  Pseudonym observer = 0;       // knows its own descriptor, and that nobody else has it
  std::size_t descriptors = 0;  // n
  std::size_t early = 10;       // "early transfers" of a sender: its first so many (reconstructed)
  std::span<const Observation> asked = {};    // of the observer, by its neighbours
  std::span<const Pseudonym> strangers = {};  // descriptors of which chunks were sprayed to it
};

// One guess a sender that was seen, by sender, ascending.
using Attack = std::vector<Guess> (*)(std::span<const Observation> seen, const AttackView& view);

// A sender's first chunk is its own.
std::vector<Guess> sequence_attack(std::span<const Observation> seen, const AttackView& view);
// Its own is the descriptor of most of its early chunks; of several the one seen first.
std::vector<Guess> count_attack(std::span<const Observation> seen, const AttackView& view);
// Senders and descriptors are assigned to each other, one to one, such that the scores add up to the most. A
// descriptor's score at a sender is its share of what the sender sent, less its share of what others sent,
// plus 1 / (1 + chunks that came from the sender before its first) (the features are reconstructed).
std::vector<Guess> cluster_attack(std::span<const Observation> seen, const AttackView& view);
// Ours, not the paper's: its own is what a sender never sends. A descriptor's score at a sender is its share
// of what others sent, less its share of what the sender sent; assigned as above.
std::vector<Guess> absence_attack(std::span<const Observation> seen, const AttackView& view);

// Ours: nobody asks for its own update, and none is sprayed to a neighbour. A descriptor's score at a sender
// is that of absence, and the same of what was asked for; what a sender has asked for, and what was sprayed
// to the observer, is not its own.
std::vector<Guess> elimination_attack(std::span<const Observation> seen, const AttackView& view);

struct AttackEntry {
  const char* name;
  Attack attack;
};
std::span<const AttackEntry> attacks();
Result<void> check_attack(std::string_view name);  // kInvalid names those that there are
Attack attack_named(std::string_view name);        // must have passed check_attack

// ASR: the share of guesses that are right; NaN of none.
double success_rate(std::span<const Guess> guesses);

// A coalition: by client its guesses, and who the members are. Members are no targets.
struct CoalitionRate {
  double any = 0;   // share of the senders seen by a member that a member guesses right; NaN of none
  double mean = 0;  // of the members' own rates
};
CoalitionRate coalition_rate(const std::vector<std::vector<Guess>>& guesses,
                             std::span<const Pseudonym> members);

}  // namespace fedge::swarm
