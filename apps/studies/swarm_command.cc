#include "apps/studies/swarm_command.h"

#include <CLI/CLI.hpp>
#include <charconv>

#include "apps/studies/figure_text.h"
#include "core/platform/thread_pool.h"
#include "core/text.h"
#include "swarm/attribution/attacks.h"
#include "swarm/warmup/schedulers/schedulers.h"

namespace fedge::apps {
namespace {

constexpr const char* kSwarmExamples = R"(
Mechanisms of --warmup, with commas between them: pre-round (owners spray chunks to clients that are no
neighbours), lags (nobody sends at once), gating (own chunks wait until k of others are held, and then --kappa of
them may go), non-owner-first (the tracker prefers a holder that is not the owner); all; or none, which is plain
swarming from the first slot on.

Examples:
  fedge-sim swarm --nodes 25 --chunks 40 --seeds 2             a first look, in a second
  fedge-sim swarm --warmup none --attack sequence              what a plain swarm gives away
  fedge-sim swarm --warmup pre-round,lags --warmup-only        without gating, and without the rest of the round
  fedge-sim swarm --scheduler random_fifo --max-flow 1         against the most that each slot could carry
  fedge-sim swarm --spray-ratio 0 --owner-fallback 3           gating that only owners' help gets going
  fedge-sim swarm --relayed-spray --blended --warmup-only      what daemons do, and what it hides
  fedge-sim swarm --coalition 5,25 --jobs 2 --format json
)";

// Options' errors begin with an option's name.
Error of_option(const Error& error) { return error.with_prefix("--"); }

Result<void> set_mechanisms(const SwarmCommand& command, sim::SwarmRoundOptions& round) {
  const double spray_ratio = round.warmup.spray_ratio;
  const std::size_t lag = round.warmup.lag;
  const bool alone = command.mechanisms.size() == 1;
  round.warmup.spray_ratio = 0;
  round.warmup.lag = 1;
  round.warmup.gating = false;
  round.warmup.non_owner_first = false;
  for (const std::string& name : command.mechanisms) {
    const bool all = alone && name == "all";
    if (all || name == "pre-round") round.warmup.spray_ratio = spray_ratio;
    if (all || name == "lags") round.warmup.lag = lag;
    if (all || name == "gating") round.warmup.gating = true;
    if (all || name == "non-owner-first") round.warmup.non_owner_first = true;
    if (alone && name == "none") round.plain = true;
    if (!all && !round.plain && name != "pre-round" && name != "lags" && name != "gating" &&
        name != "non-owner-first")
      return invalid(
          "warmup must be none, all, or some of pre-round, lags, gating and non-owner-first with commas "
          "between them; \"" +
          name + "\" is none of these");
  }
  return {};
}

Result<void> set_fallback(const std::string& text, swarm::WarmupConfig& warmup) {
  if (text == "never") return {};
  std::size_t slots = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), slots);
  if (error != std::errc() || end != text.data() + text.size())
    return invalid("owner-fallback must be never, or after how many slots without a transfer; \"" + text +
                   "\" is neither");
  warmup.fallback_after = slots;
  return {};
}

Result<sim::SwarmStudyOptions> study_options(const SwarmCommand& command) {
  sim::SwarmStudyOptions study = command.study;
  FEDGE_TRY_VOID(set_mechanisms(command, study.round));
  FEDGE_TRY_VOID(set_fallback(command.owner_fallback, study.round.warmup));
  FEDGE_TRY(k_mode, swarm::k_mode_named(command.k_mode));
  study.round.warmup.k_mode = k_mode;
  if (command.chunk_order != "rarest" && command.chunk_order != "random")
    return invalid("chunk-order must be rarest or random; \"" + command.chunk_order + "\" is neither");
  if (command.chunk_order == "random") study.round.warmup.order = swarm::ChunkOrder::kRandom;
  study.round.up = {command.up.at(0), command.up.at(1)};
  study.round.down = {command.down.at(0), command.down.at(1)};
  study.round.whole_round = !command.warmup_only;
  study.attacks.clear();
  if (command.attacks == std::vector<std::string>{"all"})
    for (const auto& entry : swarm::attacks()) study.attacks.emplace_back(entry.name);
  else if (command.attacks != std::vector<std::string>{"none"})
    study.attacks = command.attacks;
  FEDGE_TRY_VOID(sim::check_swarm_study(study));
  return study;
}

std::string mechanisms_of(const SwarmCommand& command) {
  std::string text;
  for (const std::string& name : command.mechanisms) text += (text.empty() ? "" : ",") + name;
  return text;
}

double slots_per_second(const sim::SwarmStudyResult& result) {
  return result.wall_seconds > 0 ? result.slots / result.wall_seconds : 0;
}

void print_table(const SwarmCommand& command, const sim::SwarmStudyOptions& study,
                 const sim::SwarmStudyResult& result, std::FILE* out) {
  const swarm::WarmupConfig& warmup = study.round.warmup;
  std::fprintf(out, "%zu clients, %zu chunks each, %zu neighbours, warm-up %s, %s\n", warmup.nodes,
               warmup.chunks, warmup.degree, mechanisms_of(command).c_str(),
               study.round.plain ? "plain swarming" : warmup.scheduler.c_str());
  std::fprintf(out, "mean ± half of the 95 %% confidence interval over seeds %llu to %llu\n\n",
               static_cast<unsigned long long>(study.round.seed),
               static_cast<unsigned long long>(study.round.seed + study.seeds - 1));
  for (const sim::SwarmFigure& figure : result.figures)
    if (const std::string text = shown(figure.over_seeds, figure.decimals); text != "-")
      print_row(out, figure.label, {text});
  print_row(out, "slots simulated a second and thread", {with_decimals(slots_per_second(result), 0)});
  if (const auto deadlock = swarm::deadlock_of(warmup); deadlock && !study.round.plain)
    std::fprintf(out, "\nOwners had to help, and each time gave away what the gate protects: the %s\n",
                 deadlock->c_str());
  for (const std::string& why : result.failed_open) std::fprintf(out, "\nFailed open, %s\n", why.c_str());
}

void print_json(const SwarmCommand& command, const sim::SwarmStudyOptions& study,
                const sim::SwarmStudyResult& result, std::FILE* out) {
  const swarm::WarmupConfig& warmup = study.round.warmup;
  const auto deadlock = study.round.plain ? std::nullopt : swarm::deadlock_of(warmup);
  std::fprintf(out,
               "{\"nodes\":%zu,\"chunks\":%zu,\"degree\":%zu,\"scheduler\":%s,\"warmup\":%s,"
               "\"relayed_spray\":%s,\"blended\":%s,\"k_mode\":%s,"
               "\"seeds\":%zu,\n \"deadlock\":%s,\"failed_open\":[",
               warmup.nodes, warmup.chunks, warmup.degree, json_text(warmup.scheduler).c_str(),
               json_text(mechanisms_of(command)).c_str(), warmup.relayed ? "true" : "false",
               warmup.blended ? "true" : "false", json_text(command.k_mode).c_str(), study.seeds,
               deadlock ? json_text(*deadlock).c_str() : "null");
  for (std::size_t i = 0; i < result.failed_open.size(); ++i)
    std::fprintf(out, "%s%s", i == 0 ? "" : ",", json_text(result.failed_open[i]).c_str());
  std::fprintf(out, "],\"figures\":{");
  for (std::size_t i = 0; i < result.figures.size(); ++i)
    std::fprintf(out, "%s\n  %s:{\"mean\":%s,\"half_width\":%s}", i == 0 ? "" : ",",
                 json_text(result.figures[i].key).c_str(),
                 json_number(result.figures[i].over_seeds.mean).c_str(),
                 json_number(result.figures[i].over_seeds.half_width).c_str());
  std::fprintf(
      out, "},\n \"slots\":%s,\"transfers\":%s,\"wall_seconds\":%s,\"slots_per_second\":%s,\"log_hashes\":[",
      json_number(result.slots).c_str(), json_number(result.transfers).c_str(),
      json_number(result.wall_seconds).c_str(), json_number(slots_per_second(result)).c_str());
  for (std::size_t i = 0; i < result.log_hashes.size(); ++i)
    std::fprintf(out, "%s\"%016llx\"", i == 0 ? "" : ",",
                 static_cast<unsigned long long>(result.log_hashes[i]));
  std::fprintf(out, "]}\n");
}

void add_world(CLI::App& app, SwarmCommand& command) {
  sim::SwarmRoundOptions& round = command.study.round;
  const auto add = [&](const char* name, auto& value, const char* help) {
    return app.add_option(name, value, help)->capture_default_str()->group("World");
  };
  add("--nodes", round.warmup.nodes, "n: clients");
  add("--chunks", round.warmup.chunks, "K: chunks of each client's update");
  add("--degree", round.warmup.degree, "m: neighbours that each has at least");
  add("--up", command.up, "Chunks a slot (a second) that a client can send, drawn between these two")
      ->expected(2);
  add("--down", command.down, "And receive")->expected(2);
  add("--deadline", round.warmup.deadline, "s_max: slots after which the round ends");
  add("--drop", round.drop, "Share of the clients that vanish");
  add("--drop-slots", round.drop_slots, "Each in one of so many first slots");
  add("--seeds", command.study.seeds, "Rounds, each with a seed of its own");
  add("--seed", round.seed, "The first seed");
}

void add_warmup(CLI::App& app, SwarmCommand& command) {
  swarm::WarmupConfig& warmup = command.study.round.warmup;
  const auto add = [&](const char* name, auto& value, const char* help) {
    return app.add_option(name, value, help)->capture_default_str()->group("Warm-up");
  };
  std::string names;
  for (const auto& entry : swarm::schedulers())
    names += (names.empty() ? "" : ", ") + std::string(entry.name);
  add("--scheduler", warmup.scheduler, names.c_str());
  add("--warmup", command.mechanisms, "none, all, or mechanisms; see below")->delimiter(',');
  add("--threshold", warmup.threshold,
      "alpha: share of chunks that everybody needs of others; 0: no warm-up");
  add("--k-mode", command.k_mode,
      "per_update: of one update's chunks; per_universe: of everybody's; split: the gate's k is of one "
      "update, the "
      "warm-up's of everybody's");
  add("--chunk-order", command.chunk_order,
      "rarest or random: which chunk a receiver gets first in the warm-up");
  add("--spray-ratio", warmup.spray_ratio, "R: share of its update that an owner sprays");
  app.add_flag("--relayed-spray", warmup.relayed,
               "sprayed chunks pass a common neighbour, as daemons send them, not a tunnel of their own")
      ->group("Warm-up");
  app.add_flag(
         "--blended", warmup.blended,
         "Ours: a client gets its own chunks as if they were another's, and sprays to neighbours as well")
      ->group("Warm-up");
  add("--lag", warmup.lag, "T_lag: each waits for 0 to so many less one slots");
  add("--kappa", warmup.kappa, "Own chunks that a client may send in the warm-up");
  add("--parallel", warmup.parallel, "tau: receivers that a sender serves in a slot (random_*, plain)");
  add("--owner-fallback", command.owner_fallback,
      "never, or after how many slots without a transfer owners may send regardless");
}

void add_measures(CLI::App& app, SwarmCommand& command) {
  const auto add = [&](const char* name, auto& value, const char* help) {
    return app.add_option(name, value, help)->capture_default_str()->group("What is measured");
  };
  add("--attack", command.attacks,
      "sequence, count, cluster, absence, elimination, with commas between; all; none")
      ->delimiter(',');
  add("--early", command.study.early, "Chunks of each sender that count looks at");
  add("--coalition", command.study.coalitions, "Observers that pool what they see; several with commas")
      ->delimiter(',');
  add("--watch", command.study.round.watch,
      "Attacks look at so many slots after the warm-up, and not at it; 0: at the warm-up");
  add("--max-flow", command.study.round.max_flow,
      "Compare each how many slots of the warm-up with its maximum flow; 0: never");
  app.add_flag("--warmup-only", command.warmup_only, "End with the warm-up (and --watch)")
      ->group("What is measured");
}

}  // namespace

CLI::App* add_swarm(CLI::App& app, SwarmCommand& command) {
  auto* sub = app.add_subcommand(
      "swarm",
      "Simulate rounds of serverless federated learning (FLTorrent): clients exchange their updates' chunks "
      "among themselves, after a warm-up that hides whose they are; what it costs, and what it hides");
  sub->add_option("--jobs", command.jobs, "Rounds at a time; the result does not depend on it")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  add_world(*sub, command);
  add_warmup(*sub, command);
  add_measures(*sub, command);
  sub->footer(kSwarmExamples);
  return sub;
}

Result<void> run_swarm_command(const SwarmCommand& command, std::FILE* out) {
  const auto study = study_options(command);
  if (!study) return of_option(study.error());
  ThreadPool threads(command.jobs);
  FEDGE_TRY(result, sim::run_swarm_study(*study, threads));
  if (command.json)
    print_json(command, *study, result, out);
  else
    print_table(command, *study, result, out);
  return {};
}

}  // namespace fedge::apps
