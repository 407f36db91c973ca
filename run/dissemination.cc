#include "run/dissemination.h"

#include <algorithm>
#include <string>
#include <vector>

#include "swarm/warmup/schedulers/schedulers.h"

namespace fedge::run {
namespace {

constexpr const char* kWarmupRemedy =
    "lower run.chunk_size so that an update has more chunks, or raise spray_ratio or lower threshold";

std::optional<swarm::WarmupConfig> read_warmup(config::Reader& dissemination, bool serverless) {
  swarm::WarmupConfig warmup;
  config::Reader section = dissemination.section("warmup");
  section.depends_on("dissemination.kind");
  section.depends_on("dissemination.warmup.scheduler");
  std::vector<std::string> names{"none"};
  for (const swarm::SchedulerEntry& entry : swarm::schedulers()) names.emplace_back(entry.name);
  const std::size_t scheduler =
      section.choice("scheduler", names, 0,
                     "serverless: how clients exchange chunks in the warm-up of a round. The warm-up hides "
                     "which client made an update. none: no warm-up.");
  warmup.scheduler = names[scheduler];
  warmup.degree =
      static_cast<std::size_t>(section.integer("degree", 10, {2, 200},
                                               "Minimum number of neighbours of a client. In a small round, "
                                               "the minimum is half of the other clients, but at least 2."));
  warmup.spray_ratio =
      section.number("spray_ratio", 0.2, {0, 1},
                     "Fraction of its chunks that a client first sends to clients other than its neighbours. "
                     "A relay forwards these chunks and cannot read them.");
  warmup.lag = static_cast<std::size_t>(section.integer(
      "lag", 3, {1, 1000},
      "A client waits a random number of slots before it sends. The number is below this value."));
  warmup.kappa = static_cast<std::size_t>(section.integer(
      "kappa", 1, {0, 1000}, "Number of its own chunks that a client may send in the warm-up."));
  warmup.threshold = section.number("threshold", 0.1, {0, 1},
                                    "Number of chunks of other clients that each client must hold, as a "
                                    "fraction of the chunks that k_mode names.");
  const std::size_t mode = section.choice(
      "k_mode", {"per_update", "per_universe", "split"}, 1,
      "The key threshold decides when a client may start to send its own chunks, and when the warm-up ends. "
      "k_mode sets which chunks threshold is a fraction of.\nper_update: in both decisions, the "
      "chunks of one update.\nper_universe: in both decisions, the chunks of all updates.\nsplit: for the "
      "start of sending, the chunks of one update; for the end of the warm-up, the chunks of all updates.");
  warmup.k_mode = static_cast<swarm::KMode>(mode);
  const std::size_t order = section.choice("order", {"random", "rarest_first"}, 0,
                                           "Which missing chunk a client gets first. rarest_first sends the "
                                           "sender's own chunks more often, which hides the sender less.");
  warmup.order = order == 0 ? swarm::ChunkOrder::kRandom : swarm::ChunkOrder::kRarestFirst;
  if (scheduler > 0 && !serverless)
    section.refuse("scheduler", "has no effect without dissemination.kind = \"serverless\"");
  for (const char* key : {"degree", "spray_ratio", "lag", "kappa", "threshold", "k_mode", "order"})
    if (scheduler == 0 && section.has(key))
      section.refuse(key, "has no effect without dissemination.warmup.scheduler");
  dissemination.adopt(section);
  if (scheduler == 0) return std::nullopt;
  return warmup;
}

}  // namespace

DisseminationSpec read_dissemination(config::Reader& root) {
  DisseminationSpec spec;
  config::Reader section = root.section("dissemination");
  const std::size_t kind =
      section.choice("kind", {"direct", "swarm", "serverless"}, 0,
                     "How models and updates are transferred.\ndirect: each client downloads the model from "
                     "the coordinator and uploads its update.\nswarm: clients also exchange the chunks of "
                     "the model among themselves.\nserverless: clients exchange the chunks of the updates "
                     "too, and each client aggregates them itself.");
  spec.swarm = kind > 0;
  spec.serverless = kind == 2;
  spec.copies =
      section.number("copies", 2, {1, 1e6},
                     "swarm, serverless: number of copies of the model that the coordinator sends. It sends "
                     "further copies only to clients that receive nothing from other clients.");
  spec.neighbours = static_cast<std::size_t>(
      section.integer("neighbours", 20, {1, 200},
                      "swarm, serverless: number of clients with which a client starts to exchange chunks."));
  for (const char* key : {"copies", "neighbours"})
    if (!spec.swarm && section.has(key))
      section.refuse(key, "has no effect without kind = \"swarm\" or \"serverless\"");
  spec.warmup = read_warmup(section, spec.serverless);
  root.adopt(section);
  return spec;
}

Result<swarm::WarmupConfig> warmup_of(const swarm::WarmupConfig& rules, std::size_t members,
                                      std::size_t chunks) {
  swarm::WarmupConfig config = rules;
  config.nodes = members;
  config.chunks = chunks;
  // At most half of the others are neighbours, so that there are strangers to spray chunks to.
  config.degree =
      std::min(config.degree, std::max<std::size_t>(2, (members - std::min<std::size_t>(1, members)) / 2));
  if (const auto fit = swarm::check_warmup(config, kWarmupRemedy); !fit)
    return fit.error().with_prefix("dissemination.warmup: ");
  return config;
}

}  // namespace fedge::run
