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
  section.depends_on("dissemination.kind");
  section.depends_on("dissemination.warmup.scheduler");
  std::vector<std::string> names{"none"};
  for (const swarm::SchedulerEntry& entry : swarm::schedulers()) names.emplace_back(entry.name);
  const std::size_t scheduler =
      section.choice("scheduler", names, 0,
                     "serverless: how clients exchange chunks in the warm-up, which hides the client behind "
                     "each update. none: no warm-up.");
  warmup.scheduler = names[scheduler];
  warmup.degree = static_cast<std::size_t>(section.integer(
      "degree", 10, {2, 200},
      "Minimum number of neighbours of a client. In a small round, half of the other clients."));
  warmup.spray_ratio = section.number("spray_ratio", 0.2, {0, 1},
                                      "Fraction of its chunks that a client first sends to clients that are "
                                      "not neighbours, through a relay that cannot read them.");
  warmup.lag = static_cast<std::size_t>(section.integer(
      "lag", 3, {1, 1000},
      "Upper bound on the random delay before a client sends, in slots. The delay is below this number."));
  warmup.kappa = static_cast<std::size_t>(section.integer(
      "kappa", 1, {0, 1000}, "Number of its own chunks that a client may send in the warm-up."));
  warmup.threshold = section.number(
      "threshold", 0.1, {0, 1},
      "Fraction of the chunks, counted as k_mode says, that each client must hold from others.");
  const std::size_t mode =
      section.choice("k_mode", {"per_update", "per_universe", "split"}, 1,
                     "Which chunks threshold is a fraction of. It limits when a client may send its own "
                     "chunks and when the warm-up ends.\nper_update: the chunks of one update, for both "
                     "limits.\nper_universe: the chunks of all updates, for both limits.\nsplit: the chunks "
                     "of one update for the first limit, and of all updates for the second.");
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
  spec.copies = section.number("copies", 2, {1, 1e6},
                               "swarm, serverless: copies of the model that the coordinator sends. It sends "
                               "more only to clients that get nothing from others.");
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
  // Half of the others are to be strangers, so that there is somebody to spray to.
  config.degree =
      std::min(config.degree, std::max<std::size_t>(2, (members - std::min<std::size_t>(1, members)) / 2));
  if (const auto fit = swarm::check_warmup(config); !fit)
    return fit.error().with_prefix("dissemination.warmup: ");
  return config;
}

}  // namespace fedge::run
