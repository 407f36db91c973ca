#include "run/dissemination.h"

#include <algorithm>
#include <string>
#include <vector>

#include "swarm/warmup/schedulers/schedulers.h"

namespace fedge::run {
namespace {

std::optional<swarm::WarmupConfig> read_warmup(config::Reader& dissemination, bool serverless) {
  swarm::WarmupConfig warmup;
  config::Reader section = dissemination.section("warmup");
  std::vector<std::string> names{"none"};
  for (const swarm::SchedulerEntry& entry : swarm::schedulers()) names.emplace_back(entry.name);
  const std::size_t scheduler = section.choice(
      "scheduler", names, 0,
      "Of runs without a server: who sends which chunk to whom before updates are exchanged freely, so that "
      "nobody can tell whose is whose; none: they are from the start.");
  warmup.scheduler = names[scheduler];
  warmup.degree =
      static_cast<std::size_t>(section.integer("degree", 10, {2, 200},
                                               "Neighbours that each client has at least; half of the others "
                                               "where these are fewer than twice as many."));
  warmup.spray_ratio = section.number("spray_ratio", 0.2, {0, 1},
                                      "Share of its update's chunks that a client sends to clients that are "
                                      "no neighbours, over one that cannot "
                                      "read them, before anything else.");
  warmup.lag = static_cast<std::size_t>(
      section.integer("lag", 3, {1, 1000}, "A client waits for 0 to this less one slots before it sends."));
  warmup.kappa = static_cast<std::size_t>(
      section.integer("kappa", 1, {0, 1000}, "Chunks of its own that a client may send in the warm-up."));
  warmup.threshold = section.number(
      "threshold", 0.1, {0, 1}, "Share of the chunks, as k_mode says, that everybody must hold of others.");
  const std::size_t mode = section.choice(
      "k_mode", {"per_update", "per_universe", "split"}, 1,
      "What threshold is a share of, both for a client's own chunks to be sent and for the warm-up to end: "
      "one "
      "update's chunks, those of all updates, or the former for the first and the latter for the second.");
  warmup.k_mode = static_cast<swarm::KMode>(mode);
  const std::size_t order = section.choice(
      "order", {"random", "rarest_first"}, 0,
      "Which of the chunks that it lacks a client gets first; the rarest are more often the sender's own.");
  warmup.order = order == 0 ? swarm::ChunkOrder::kRandom : swarm::ChunkOrder::kRarestFirst;
  if (scheduler > 0 && !serverless)
    section.fail("scheduler", "has no effect without dissemination.kind = \"serverless\"");
  for (const char* key : {"degree", "spray_ratio", "lag", "kappa", "threshold", "k_mode", "order"})
    if (scheduler == 0 && section.has(key))
      section.fail(key, "has no effect without dissemination.warmup.scheduler");
  dissemination.adopt(section);
  if (scheduler == 0) return std::nullopt;
  return warmup;
}

}  // namespace

DisseminationSpec read_dissemination(config::Reader& root) {
  DisseminationSpec spec;
  config::Reader section = root.section("dissemination");
  const std::size_t kind = section.choice(
      "kind", {"direct", "swarm", "serverless"}, 0,
      "How a model comes to the clients that train it: each fetches it from the coordinator, or they "
      "exchange "
      "its chunks among themselves, or those of their updates as well, and each aggregates them itself.");
  spec.swarm = kind > 0;
  spec.serverless = kind == 2;
  spec.copies = section.number(
      "copies", 2, {1, 1e6},
      "Where clients exchange the model: copies of it that the coordinator sends; more only to "
      "clients that get nothing from others.");
  spec.neighbours = static_cast<std::size_t>(section.integer(
      "neighbours", 20, {1, 200}, "Where they do: clients that one begins to exchange with."));
  for (const char* key : {"copies", "neighbours"})
    if (!spec.swarm && section.has(key))
      section.fail(key, "has no effect without kind = \"swarm\" or \"serverless\"");
  spec.warmup = read_warmup(section, spec.serverless);
  root.adopt(section);
  return spec;
}

Result<swarm::WarmupConfig> warmup_of(const swarm::WarmupConfig& rules, std::size_t members,
                                      std::size_t chunks) {
  swarm::WarmupConfig config = rules;
  config.nodes = members;
  config.chunks = chunks;
  // Half of the others are to be strangers, so that there is somebody to spray to.
  config.degree =
      std::min(config.degree, std::max<std::size_t>(2, (members - std::min<std::size_t>(1, members)) / 2));
  if (const auto fit = swarm::check_warmup(config); !fit)
    return fit.error().with_prefix("dissemination.warmup: ");
  return config;
}

}  // namespace fedge::run
