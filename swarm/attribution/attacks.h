// Attacks on a warm-up by curious members: whose update are the chunks that a neighbour sends? An attack gets
// what one member saw in the warm-up, and guesses each sender's own descriptor (the paper's section VI).
// Descriptors have the numbers of the clients that own them, which attacks do not use. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "swarm/warmup/universe.h"

namespace fedge::swarm {

// A chunk that arrived from `sender`, or that it requested, and the update that it belongs to. In the order
// of arrival.
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
  Pseudonym observer = 0;       // it knows its own descriptor and that no one else has it
  std::size_t descriptors = 0;  // n
  std::size_t early = 10;       // a sender's first chunks that count as "early transfers" (reconstructed)
  std::span<const Observation> asked = {};    // requests of the observer's neighbours to it
  std::span<const Pseudonym> strangers = {};  // descriptors of which chunks were sprayed to the observer
};

// Returns one guess for each sender that was seen, ascending by sender.
using Attack = std::vector<Guess> (*)(std::span<const Observation> seen, const AttackView& view);

// Guesses that a sender's first chunk is its own.
std::vector<Guess> sequence_attack(std::span<const Observation> seen, const AttackView& view);
// Guesses the most frequent descriptor of a sender's early chunks; of equals the one seen first.
std::vector<Guess> count_attack(std::span<const Observation> seen, const AttackView& view);
// Assigns senders and descriptors one to one with the largest sum of scores. A descriptor's score at a sender
// is its share of the sender's chunks, minus its share of the others' chunks, plus 1 / (1 + number of the
// sender's chunks before the descriptor's first). The features are reconstructed.
std::vector<Guess> cluster_attack(std::span<const Observation> seen, const AttackView& view);
// Ours, not the paper's: a sender never sends its own chunks. A descriptor's score at a sender is its share
// of the others' chunks minus its share of the sender's chunks; assigned as in cluster_attack().
std::vector<Guess> absence_attack(std::span<const Observation> seen, const AttackView& view);

// Ours: no client requests chunks of its own update or sprays to a neighbour. A descriptor's score at a
// sender is that of absence_attack(), plus its share of the other neighbours' requests. Excluded are
// descriptors that the sender requested, and those that were sprayed to the observer.
std::vector<Guess> elimination_attack(std::span<const Observation> seen, const AttackView& view);

struct AttackEntry {
  const char* name;
  Attack attack;
};
std::span<const AttackEntry> attacks();
Result<void> check_attack(std::string_view name);  // kInvalid lists the valid names
Attack attack_named(std::string_view name);        // `name` must have passed check_attack()

// ASR: the fraction of guesses that are right; NaN without guesses.
double success_rate(std::span<const Guess> guesses);

// Success rates of a coalition. Its members are not targets.
struct CoalitionRate {
  double any = 0;   // fraction of the senders seen that at least one member guesses right; NaN without any
  double mean = 0;  // mean of the members' own rates
};
CoalitionRate coalition_rate(const std::vector<std::vector<Guess>>& guesses,
                             std::span<const Pseudonym> members);

}  // namespace fedge::swarm
