#include "lab/swarm/swarm_study.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>

#include "swarm/attribution/attacks.h"
#include "swarm/warmup/obfuscation.h"

namespace fedge::lab {
namespace {

using swarm::Guess;
using swarm::Observation;
using swarm::Pseudonym;

struct StudyValue {
  std::string key;
  std::string label;
  int decimals;
  double value;
};

double percent(double part, double whole) {
  return whole > 0 ? 100 * part / whole : std::numeric_limits<double>::quiet_NaN();
}

// What each client observed in the warm-up, or in the slots after it. Sprayed chunks arrive through tunnels
// without a sender.
struct Seen {
  std::vector<Observation> sent;   // transfers to it
  std::vector<Observation> asked;  // requests to it
  std::vector<Pseudonym> sprayed;  // owners of the chunks sprayed to it
};

std::vector<Seen> observations(const SwarmRoundOptions& options, const SwarmRoundResult& result) {
  const swarm::RoundDraw draw(options.warmup, options.seed);
  std::vector<Seen> seen(options.warmup.nodes);
  Rng relays = Rng(options.seed).fork("relays");
  for (const auto& [from, to, chunk] : result.sprayed_to) {
    const Pseudonym descriptor = draw.universe.owner(chunk);
    if (!options.warmup.blended) seen[to].sprayed.push_back(descriptor);
    if (!options.warmup.relayed) continue;
    // The node that relays a chunk is not its owner.
    const auto common = swarm::common_neighbours(draw.overlay, from, to);
    seen[to].asked.push_back({common[relays.below(common.size())], descriptor});
  }
  const auto& log = result.revealed.log;
  for (std::size_t slot = options.watch > 0 ? result.warmup_slots : 0; slot < log.size(); ++slot)
    for (const swarm::Transfer& transfer : log[slot]) {
      const Pseudonym descriptor = draw.universe.owner(transfer.chunk);
      seen[transfer.to].sent.push_back({transfer.from, descriptor});
      seen[transfer.from].asked.push_back({transfer.to, descriptor});
    }
  return seen;
}

class Attacked {
 public:
  Attacked(const SwarmStudyOptions& options, const SwarmRoundOptions& round, const SwarmRoundResult& result)
      : options_(options), round_(round), seen_(observations(round, result)) {}

  void add_figures(std::vector<StudyValue>& out) const {
    for (const std::string& name : options_.attacks) {
      const auto guesses = guesses_of(swarm::attack_named(name));
      double most = std::numeric_limits<double>::quiet_NaN();
      double sum = 0;
      std::size_t observers = 0;
      for (const auto& of_one : guesses) {
        const double rate = swarm::success_rate(of_one);
        if (std::isnan(rate)) continue;
        most = std::fmax(most, rate);
        sum += rate;
        ++observers;
      }
      out.push_back({"asr_" + name + "_max_percent", name + ": ASR, best observer, %", 2, 100 * most});
      out.push_back({"asr_" + name + "_mean_percent", name + ": ASR, all observers, %", 2,
                     percent(sum, static_cast<double>(observers))});
      for (const std::size_t size : options_.coalitions) add_coalition(name, size, guesses, out);
    }
  }

 private:
  std::vector<std::vector<Guess>> guesses_of(swarm::Attack attack) const {
    std::vector<std::vector<Guess>> guesses;
    for (Pseudonym observer = 0; observer < seen_.size(); ++observer) {
      const Seen& seen = seen_[observer];
      guesses.push_back(
          attack(seen.sent, {observer, round_.warmup.nodes, options_.early, seen.asked, seen.sprayed}));
    }
    return guesses;
  }

  void add_coalition(const std::string& name, std::size_t size,
                     const std::vector<std::vector<Guess>>& guesses, std::vector<StudyValue>& out) const {
    std::vector<double> any;
    std::vector<double> mean;
    for (std::size_t draw = 0; draw < options_.coalition_draws; ++draw) {
      std::vector<Pseudonym> members(guesses.size());
      for (Pseudonym peer = 0; peer < members.size(); ++peer) members[peer] = peer;
      Rng(round_.seed).fork("coalition", size, draw).shuffle(std::span(members));
      members.resize(size);
      const swarm::CoalitionRate rate = swarm::coalition_rate(guesses, members);
      if (std::isnan(rate.any)) continue;
      any.push_back(100 * rate.any);
      mean.push_back(100 * rate.mean);
    }
    const std::string key = "coalition_" + std::to_string(size) + "_" + name;
    const std::string label = name + ": " + std::to_string(size) + " observers, ";
    out.push_back({key + "_any_percent", label + "any, %", 2, summarise(any).mean});
    out.push_back({key + "_mean_percent", label + "each, %", 2, summarise(mean).mean});
  }

  const SwarmStudyOptions& options_;
  const SwarmRoundOptions& round_;
  std::vector<Seen> seen_;
};

void add_time(const SwarmRoundOptions& options, const SwarmRoundResult& result,
              std::vector<StudyValue>& out) {
  const auto warmup = static_cast<double>(result.warmup_slots);
  const auto round = static_cast<double>(result.round_slots);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  out.push_back(
      {"threshold", "k, chunks of other clients", 0, static_cast<double>(swarm::cover_size(options.warmup))});
  out.push_back({"warmup_slots", "warm-up, slots", 1, warmup});
  out.push_back({"round_slots", "round, slots", 1, options.whole_round ? round : nan});
  out.push_back({"warmup_share_percent", "warm-up, share of the round, %", 2,
                 options.whole_round ? percent(warmup, round) : nan});
  out.push_back({"warmup_upload_percent", "upload used in the warm-up, %", 2,
                 percent(static_cast<double>(result.warmup_transfers), result.warmup_capacity)});
  out.push_back(
      {"upload_percent", "upload used in the round, %", 2,
       options.whole_round ? percent(static_cast<double>(result.transfers), result.capacity) : nan});
  out.push_back(
      {"flow_percent", "share of the maximum flow, %", 2, percent(result.flow_transfers, result.flow)});
  out.push_back({"flow_least_percent", "share of the maximum flow, worst slot, %", 2,
                 result.flow_shares.empty() ? nan : 100 * std::ranges::min(result.flow_shares)});
  out.push_back(
      {"spray_slots", "spraying at full upload rate, slots", 1, static_cast<double>(result.spray_slots)});
}

void add_outcome(const SwarmRoundResult& result, std::vector<StudyValue>& out) {
  double sum = 0;
  for (const std::size_t owners : result.reconstructable) sum += static_cast<double>(owners);
  const auto left = static_cast<double>(result.reconstructable.size());
  out.push_back(
      {"owner_percent", "own chunks in the warm-up, %", 3,
       percent(static_cast<double>(result.owner_transfers), static_cast<double>(result.warmup_transfers))});
  out.push_back({"fallbacks", "fallbacks to owners", 1, static_cast<double>(result.fallbacks)});
  out.push_back({"failed_open", "failed open, fraction of rounds", 2, result.failed_open ? 1.0 : 0.0});
  out.push_back({"vanished", "clients that dropped out", 1, static_cast<double>(result.vanished)});
  out.push_back({"reconstructable_mean", "reconstructed updates, mean", 2, percent(sum, left) / 100});
  out.push_back(
      {"reconstructable_least", "reconstructed updates, minimum", 1,
       result.reconstructable.empty() ? 0 : static_cast<double>(std::ranges::min(result.reconstructable))});
}

struct SeedResult {
  std::vector<StudyValue> values;
  std::optional<std::string> failed_open;
  std::uint64_t log_hash = 0;
  double slots = 0;
  double transfers = 0;
  double wall_seconds = 0;
};

Result<SeedResult> run_seed(const SwarmStudyOptions& options, std::uint64_t seed) {
  SwarmRoundOptions round = options.round;
  round.seed = seed;
  const auto begin = std::chrono::steady_clock::now();
  FEDGE_TRY(result, run_swarm_round(round));
  SeedResult seeded{.failed_open = result.failed_open,
                    .log_hash = result.log_hash,
                    .slots = static_cast<double>(result.round_slots),
                    .transfers = static_cast<double>(result.transfers)};
  seeded.wall_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  add_time(round, result, seeded.values);
  add_outcome(result, seeded.values);
  seeded.values.push_back(
      {"guess_percent", "a random guess, 1/m, %", 2, 100 / static_cast<double>(round.warmup.degree)});
  Attacked(options, round, result).add_figures(seeded.values);
  return seeded;
}

}  // namespace

Result<void> check_swarm_study(const SwarmStudyOptions& options) {
  FEDGE_TRY_VOID(check_swarm_round(options.round));
  if (options.seeds < 1 || options.seeds > 1000) return invalid("seeds must be 1 to 1000");
  for (const std::string& name : options.attacks) FEDGE_TRY_VOID(swarm::check_attack(name));
  if (options.early < 1) return invalid("early must be at least 1");
  for (const std::size_t size : options.coalitions)
    if (size < 1 || size >= options.round.warmup.nodes)
      return invalid("coalition must be 1 to " + std::to_string(options.round.warmup.nodes - 1) +
                     " observers (nodes - 1), not " + std::to_string(size));
  return {};
}

Result<SwarmStudyResult> run_swarm_study(const SwarmStudyOptions& options, Parallel& threads) {
  std::vector<std::optional<Result<SeedResult>>> results(options.seeds);
  threads.for_each(options.seeds,
                   [&](std::size_t i) { results[i].emplace(run_seed(options, options.round.seed + i)); });
  SwarmStudyResult study;
  std::vector<SeedResult> seeds;
  for (std::size_t i = 0; i < options.seeds; ++i) {
    FEDGE_TRY(seed, std::move(*results[i]));
    if (seed.failed_open)
      study.failed_open.push_back("seed " + std::to_string(options.round.seed + i) + ": " +
                                  *seed.failed_open);
    study.log_hashes.push_back(seed.log_hash);
    study.slots += seed.slots;
    study.transfers += seed.transfers;
    study.wall_seconds += seed.wall_seconds;
    seeds.push_back(std::move(seed));
  }
  for (std::size_t f = 0; f < seeds.front().values.size(); ++f) {
    std::vector<double> values;
    for (const SeedResult& seed : seeds) values.push_back(seed.values[f].value);
    const StudyValue& first = seeds.front().values[f];
    study.figures.push_back({first.key, first.label, first.decimals, summarise(values)});
  }
  return study;
}

}  // namespace fedge::lab
