#include "swarm/warmup/config.h"

#include <cmath>

#include "swarm/warmup/schedulers/schedulers.h"

namespace fedge::swarm {
namespace {

constexpr std::size_t kMostNodes = 5000;
constexpr std::size_t kMostChunks = 100'000;
constexpr std::size_t kMostUniverse = 4'000'000;
constexpr std::size_t kMostSlots = 10'000'000;

std::string text(std::size_t value) { return std::to_string(value); }

// Tolerance for the binary rounding of decimal fractions, which must not change a number of chunks.
constexpr double kRounding = 1e-9;

std::size_t share_of(std::size_t chunks, const WarmupConfig& config) {
  return static_cast<std::size_t>(std::ceil(config.threshold * static_cast<double>(chunks) - kRounding));
}

Result<void> check_sizes(const WarmupConfig& config) {
  if (config.nodes < 3 || config.nodes > kMostNodes) return invalid("nodes must be 3 to " + text(kMostNodes));
  if (config.chunks < 1 || config.chunks > kMostChunks)
    return invalid("chunks must be 1 to " + text(kMostChunks));
  if (config.universe() > kMostUniverse)
    return invalid("nodes times chunks must be at most " + text(kMostUniverse) + ", not " +
                   text(config.universe()));
  if (config.degree < 1 || config.degree > config.nodes - 1)
    return invalid("degree must be 1 to " + text(config.nodes - 1) + " (nodes - 1), not " +
                   text(config.degree));
  if (config.lag < 1 || config.lag > 1000) return invalid("lag must be 1 (none) to 1000 slots");
  if (config.kappa > config.chunks) return invalid("kappa must be at most chunks, " + text(config.chunks));
  if (config.parallel < 1 || config.parallel > 1000) return invalid("parallel must be 1 to 1000");
  if (config.deadline < 1 || config.deadline > kMostSlots)
    return invalid("deadline must be 1 to " + text(kMostSlots) + " slots");
  if (config.fallback_after && (*config.fallback_after < 1 || *config.fallback_after > 1000))
    return invalid("owner-fallback must be \"never\" or 1 to 1000 slots");
  return {};
}

}  // namespace

const char* to_string(KMode mode) {
  if (mode == KMode::kSplit) return "split";
  return mode == KMode::kPerUpdate ? "per_update" : "per_universe";
}

Result<KMode> k_mode_named(const std::string& name) {
  for (const KMode mode : {KMode::kPerUpdate, KMode::kPerUniverse, KMode::kSplit})
    if (name == to_string(mode)) return mode;
  return invalid("k-mode must be per_update, per_universe or split, not \"" + name + "\"");
}

std::size_t cover_size(const WarmupConfig& config) {
  return share_of(config.k_mode == KMode::kPerUpdate ? config.chunks : config.universe(), config);
}

std::size_t gate_size(const WarmupConfig& config) {
  return share_of(config.k_mode == KMode::kPerUniverse ? config.universe() : config.chunks, config);
}

std::size_t sprayed_chunks(const WarmupConfig& config) {
  return static_cast<std::size_t>(
      std::floor(config.spray_ratio * static_cast<double>(config.chunks) + kRounding));
}

std::optional<std::string> deadlock_of(const WarmupConfig& config) {
  const std::size_t sigma = sprayed_chunks(config);
  const std::size_t others = config.nodes - 1;
  const std::size_t before = config.kappa + sigma * others;
  const std::size_t after = (sigma + config.kappa) * others;
  if (!config.gating) return std::nullopt;
  if (const std::size_t k = gate_size(config); k > before)
    return "threshold is out of reach: k = " + text(k) +
           " is more than kappa + sigma (n - 1) = " + text(config.kappa) + " + " + text(sigma) + " * " +
           text(others) + " = " + text(before) +
           ", and with gating only sprayed chunks circulate until a client holds k chunks";
  if (const std::size_t k = cover_size(config); k > after)
    return "threshold is out of reach: k = " + text(k) + " is more than (sigma + kappa) (n - 1) = (" +
           text(sigma) + " + " + text(config.kappa) + ") * " + text(others) + " = " + text(after) +
           ", and with gating no other chunks circulate in the warm-up";
  return std::nullopt;
}

Result<void> check_warmup(const WarmupConfig& config, const std::string& remedy) {
  FEDGE_TRY_VOID(check_sizes(config));
  if (!(config.spray_ratio >= 0 && config.spray_ratio <= 1))
    return invalid("spray-ratio must be from 0 to 1");
  if (sprayed_chunks(config) > 0 && config.degree > config.nodes - 2)
    return invalid(
        "degree must be at most " + text(config.nodes - 2) +
        " (nodes - 2) if owners spray, because each owner must have clients that are not neighbours");
  if (!(config.threshold >= 0 && config.threshold <= 1)) return invalid("threshold must be from 0 to 1");
  const std::size_t others = config.universe() - config.chunks;
  if (cover_size(config) > others)
    return invalid("threshold is out of reach: k = " + text(cover_size(config)) +
                   " chunks of other clients are needed, but there are only " + text(others));
  FEDGE_TRY_VOID(check_scheduler(config.scheduler));
  if (const auto deadlock = deadlock_of(config); deadlock && !config.fallback_after)
    return invalid(*deadlock + "; " + remedy);
  return {};
}

}  // namespace fedge::swarm
