#include "swarm/attribution/attacks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "core/check.h"
#include "swarm/attribution/assignment.h"

namespace fedge::swarm {
namespace {

std::map<Pseudonym, std::vector<Pseudonym>> by_sender(std::span<const Observation> seen) {
  std::map<Pseudonym, std::vector<Pseudonym>> descriptors;
  for (const Observation& one : seen) descriptors[one.sender].push_back(one.descriptor);
  return descriptors;
}

// For each sender and descriptor: its share of the sender's chunks, and the position of its first chunk.
struct Features {
  Features(std::span<const Observation> seen, std::size_t descriptors) : all(descriptors) {
    for (const auto& [sender, sent] : by_sender(seen)) {
      senders.push_back(sender);
      total.push_back(static_cast<double>(sent.size()));
      auto& mine = count.emplace_back(descriptors);
      auto& place = first.emplace_back(descriptors, std::numeric_limits<double>::infinity());
      for (std::size_t i = 0; i < sent.size(); ++i) {
        if (mine[sent[i]]++ == 0) place[sent[i]] = static_cast<double>(i);
        ++all[sent[i]];
      }
      sum += total.back();
    }
  }
  double share(std::size_t sender, Pseudonym descriptor) const {
    return count[sender][descriptor] / total[sender];
  }
  double share_elsewhere(std::size_t sender, Pseudonym descriptor) const {
    const double others = sum - total[sender];
    return others == 0 ? 0 : (all[descriptor] - count[sender][descriptor]) / others;
  }

  std::vector<Pseudonym> senders;
  std::vector<double> total;               // number of chunks by sender
  std::vector<std::vector<double>> count;  // by sender and descriptor
  std::vector<std::vector<double>> first;  // number of the sender's chunks before the descriptor's first
  std::vector<double> all;                 // by descriptor
  double sum = 0;
};

template <class Score>
std::vector<Guess> assign(const Features& features, const AttackView& view, Score&& score) {
  std::vector<Pseudonym> candidates;
  for (Pseudonym descriptor = 0; descriptor < view.descriptors; ++descriptor)
    if (descriptor != view.observer) candidates.push_back(descriptor);
  std::vector<std::vector<double>> scores(features.senders.size());
  for (std::size_t i = 0; i < scores.size(); ++i)
    for (const Pseudonym descriptor : candidates) scores[i].push_back(score(i, descriptor));
  const auto columns = best_assignment(scores);
  std::vector<Guess> guesses;
  for (std::size_t i = 0; i < columns.size(); ++i)
    guesses.push_back({features.senders[i], candidates[columns[i]]});
  return guesses;
}

constexpr std::array<AttackEntry, 5> kAttacks = {{
    {"sequence", sequence_attack},
    {"count", count_attack},
    {"cluster", cluster_attack},
    {"absence", absence_attack},
    {"elimination", elimination_attack},
}};

}  // namespace

std::vector<Guess> sequence_attack(std::span<const Observation> seen, const AttackView& /*view*/) {
  std::vector<Guess> guesses;
  for (const auto& [sender, sent] : by_sender(seen)) guesses.push_back({sender, sent.front()});
  return guesses;
}

std::vector<Guess> count_attack(std::span<const Observation> seen, const AttackView& view) {
  std::vector<Guess> guesses;
  for (const auto& [sender, sent] : by_sender(seen)) {
    std::map<Pseudonym, std::size_t> count;
    const std::size_t early = std::min(std::max<std::size_t>(view.early, 1), sent.size());
    for (std::size_t i = 0; i < early; ++i) ++count[sent[i]];
    Pseudonym best = sent.front();
    for (std::size_t i = 0; i < early; ++i)
      if (count[sent[i]] > count[best]) best = sent[i];
    guesses.push_back({sender, best});
  }
  return guesses;
}

std::vector<Guess> cluster_attack(std::span<const Observation> seen, const AttackView& view) {
  const Features features(seen, view.descriptors);
  return assign(features, view, [&](std::size_t sender, Pseudonym descriptor) {
    return features.share(sender, descriptor) - features.share_elsewhere(sender, descriptor) +
           1 / (1 + features.first[sender][descriptor]);
  });
}

std::vector<Guess> absence_attack(std::span<const Observation> seen, const AttackView& view) {
  const Features features(seen, view.descriptors);
  return assign(features, view, [&](std::size_t sender, Pseudonym descriptor) {
    return features.share_elsewhere(sender, descriptor) - features.share(sender, descriptor);
  });
}

std::vector<Guess> elimination_attack(std::span<const Observation> seen, const AttackView& view) {
  constexpr double kNever = -1000;  // less than any score
  const Features sent(seen, view.descriptors);
  const Features asked(view.asked, view.descriptors);
  std::vector<bool> sprayed(view.descriptors);
  for (const Pseudonym descriptor : view.strangers) sprayed[descriptor] = true;
  return assign(sent, view, [&](std::size_t sender, Pseudonym descriptor) {
    double score = sent.share_elsewhere(sender, descriptor) - sent.share(sender, descriptor);
    const auto found = std::ranges::lower_bound(asked.senders, sent.senders[sender]);
    if (found != asked.senders.end() && *found == sent.senders[sender]) {
      const auto asker = static_cast<std::size_t>(found - asked.senders.begin());
      if (asked.share(asker, descriptor) > 0) return kNever;
      score += asked.share_elsewhere(asker, descriptor);
    }
    return sprayed[descriptor] ? kNever : score;
  });
}

std::span<const AttackEntry> attacks() { return kAttacks; }

Result<void> check_attack(std::string_view name) {
  std::string names;
  for (const AttackEntry& entry : kAttacks) {
    if (name == entry.name) return {};
    names += (names.empty() ? "" : ", ") + std::string(entry.name);
  }
  return invalid("attack must be one of " + names + ", not \"" + std::string(name) + "\"");
}

Attack attack_named(std::string_view name) {
  const auto* found = std::ranges::find(kAttacks, name, &AttackEntry::name);
  FEDGE_CHECK(found != kAttacks.end(), "an attack's name that was checked");
  return found->attack;
}

double success_rate(std::span<const Guess> guesses) {
  if (guesses.empty()) return std::numeric_limits<double>::quiet_NaN();
  return static_cast<double>(std::ranges::count_if(guesses, &Guess::right)) /
         static_cast<double>(guesses.size());
}

CoalitionRate coalition_rate(const std::vector<std::vector<Guess>>& guesses,
                             std::span<const Pseudonym> members) {
  std::map<Pseudonym, bool> targets;  // whether some member guesses right
  double sum = 0;
  std::size_t with_targets = 0;
  for (const Pseudonym member : members) {
    std::vector<Guess> of_others;
    for (const Guess& guess : guesses[member])
      if (std::ranges::find(members, guess.sender) == members.end()) of_others.push_back(guess);
    if (of_others.empty()) continue;
    for (const Guess& guess : of_others) targets[guess.sender] = targets[guess.sender] || guess.right();
    sum += success_rate(of_others);
    ++with_targets;
  }
  const double nan = std::numeric_limits<double>::quiet_NaN();
  if (with_targets == 0) return {nan, nan};
  const auto caught = std::ranges::count_if(targets, [](const auto& target) { return target.second; });
  return {static_cast<double>(caught) / static_cast<double>(targets.size()),
          sum / static_cast<double>(with_targets)};
}

}  // namespace fedge::swarm
