#include "apps/studies/swarm_command.h"

#include <CLI/CLI.hpp>
#include <charconv>

#include "apps/cli/validators.h"
#include "apps/studies/figure_text.h"
#include "core/platform/thread_pool.h"
#include "core/text.h"
#include "swarm/attribution/attacks.h"
#include "swarm/warmup/schedulers/schedulers.h"

namespace fedge::apps {
namespace {

// Errors of the study begin with an option's name without dashes.
Error of_option(const Error& error) { return error.with_prefix("--"); }

Result<void> set_mechanisms(const SwarmCommand& command, lab::SwarmRoundOptions& round) {
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
          "warmup must be none, all, or some of pre-round, lags, gating and non-owner-first, joined by "
          "commas; "
          "not '" +
          name + "'");
  }
  return {};
}

Result<void> set_fallback(const std::string& text, swarm::WarmupConfig& warmup) {
  if (text == "never") return {};
  std::size_t slots = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), slots);
  if (error != std::errc() || end != text.data() + text.size())
    return invalid("owner-fallback must be never or a number of slots, not '" + text + "'");
  warmup.fallback_after = slots;
  return {};
}

Result<lab::SwarmStudyOptions> study_options(const SwarmCommand& command) {
  lab::SwarmStudyOptions study = command.study;
  FEDGE_TRY_VOID(set_mechanisms(command, study.round));
  FEDGE_TRY_VOID(set_fallback(command.owner_fallback, study.round.warmup));
  FEDGE_TRY(k_mode, swarm::k_mode_named(command.k_mode));
  study.round.warmup.k_mode = k_mode;
  if (command.chunk_order == "random") study.round.warmup.order = swarm::ChunkOrder::kRandom;
  study.round.up = {command.up.at(0), command.up.at(1)};
  study.round.down = {command.down.at(0), command.down.at(1)};
  study.round.whole_round = !command.warmup_only;
  study.attacks.clear();
  if (command.attacks == std::vector<std::string>{"all"})
    for (const auto& entry : swarm::attacks()) study.attacks.emplace_back(entry.name);
  else if (command.attacks != std::vector<std::string>{"none"})
    study.attacks = command.attacks;
  FEDGE_TRY_VOID(lab::check_swarm_study(study));
  return study;
}

std::string mechanisms_of(const SwarmCommand& command) {
  std::string text;
  for (const std::string& name : command.mechanisms) text += (text.empty() ? "" : ",") + name;
  return text;
}

double slots_per_second(const lab::SwarmStudyResult& result) {
  return result.wall_seconds > 0 ? result.slots / result.wall_seconds : 0;
}

void print_table(const SwarmCommand& command, const lab::SwarmStudyOptions& study,
                 const lab::SwarmStudyResult& result, std::FILE* out) {
  const swarm::WarmupConfig& warmup = study.round.warmup;
  std::fprintf(out, "%zu clients, %zu chunks each, %zu neighbours, warm-up %s, %s\n", warmup.nodes,
               warmup.chunks, warmup.degree, mechanisms_of(command).c_str(),
               study.round.plain ? "plain swarming" : warmup.scheduler.c_str());
  std::fprintf(out, "mean ± half of the 95 %% confidence interval over seeds %llu to %llu\n\n",
               static_cast<unsigned long long>(study.round.seed),
               static_cast<unsigned long long>(study.round.seed + study.seeds - 1));
  for (const lab::SwarmFigure& figure : result.figures)
    if (const std::string text = shown(figure.over_seeds, figure.decimals); text != "-")
      print_row(out, figure.label, {text});
  print_row(out, "simulated slots per second and thread", {with_decimals(slots_per_second(result), 0)});
  if (const auto deadlock = swarm::deadlock_of(warmup); deadlock && !study.round.plain)
    std::fprintf(out,
                 "\nOwners had to send in spite of the gate, which revealed their chunks, because the %s\n",
                 deadlock->c_str());
  for (const std::string& why : result.failed_open) std::fprintf(out, "\nFailed open, %s\n", why.c_str());
}

void print_json(const SwarmCommand& command, const lab::SwarmStudyOptions& study,
                const lab::SwarmStudyResult& result, std::FILE* out) {
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

std::vector<std::string> scheduler_names() {
  std::vector<std::string> names;
  for (const auto& entry : swarm::schedulers()) names.emplace_back(entry.name);
  return names;
}

void add_clients(CLI::App& app, SwarmCommand& command) {
  lab::SwarmRoundOptions& round = command.study.round;
  const auto add = [&](const char* name, auto& value, const char* help) {
    return app.add_option(name, value, help)->capture_default_str()->group("Clients and network");
  };
  add("--nodes", round.warmup.nodes, "n: number of clients");
  add("--chunks", round.warmup.chunks, "K: chunks of each client's update");
  add("--degree", round.warmup.degree, "m: smallest number of neighbours of a client");
  add("--up", command.up, "Least and most chunks that a client can send in a slot of one second")
      ->expected(2);
  add("--down", command.down, "Least and most chunks that a client can receive in a slot")->expected(2);
  add("--deadline", round.warmup.deadline, "s_max: slots after which the round ends")->type_name("SLOTS");
  add("--drop", round.drop, "Fraction of clients that drop out")->type_name("FRACTION");
  add("--drop-slots", round.drop_slots, "Dropouts happen within this many slots from the start of the round")
      ->type_name("SLOTS");
  add("--seeds", command.study.seeds, "Number of rounds, each with its own seed");
  add("--seed", round.seed, "First seed");
}

void add_warmup(CLI::App& app, SwarmCommand& command) {
  swarm::WarmupConfig& warmup = command.study.round.warmup;
  const auto add = [&](const char* name, auto& value, const char* help) {
    return app.add_option(name, value, help)->capture_default_str()->group("Warm-up");
  };
  add("--scheduler", warmup.scheduler, "Scheduler of the warm-up")
      ->type_name("NAME")
      ->check(one_of(scheduler_names()));
  add("--warmup", command.mechanisms, "Comma-separated list of mechanisms; see below")
      ->type_name("NAME,...")
      ->delimiter(',');
  add("--threshold", warmup.threshold,
      "alpha: fraction of the chunks (see --k-mode) that each client must get from others before the warm-up "
      "ends; 0: no warm-up")
      ->type_name("FRACTION");
  add("--k-mode", command.k_mode,
      "What --threshold is a fraction of; per_update: the chunks of one update; per_universe: the chunks of "
      "all updates; split: for the gate those of one update, for the end of the warm-up those of all updates")
      ->type_name("MODE")
      ->check(one_of({"per_update", "per_universe", "split"}));
  add("--chunk-order", command.chunk_order, "Chunk that a receiver gets first in the warm-up")
      ->type_name("ORDER")
      ->check(one_of({"rarest", "random"}));
  add("--spray-ratio", warmup.spray_ratio, "R: fraction of its update that an owner sprays")
      ->type_name("FRACTION");
  app.add_flag("--relayed-spray", warmup.relayed,
               "Send sprayed chunks through a common neighbour, as client daemons do, instead of a tunnel")
      ->group("Warm-up");
  app.add_flag(
         "--blended", warmup.blended,
         "Clients also request chunks of their own updates from others, and spray to neighbours, so that "
         "no client stands out (not in the paper)")
      ->group("Warm-up");
  add("--lag", warmup.lag, "T_lag: each client waits for 0 to T_lag - 1 slots")->type_name("SLOTS");
  add("--kappa", warmup.kappa, "Own chunks that a client may send in the warm-up");
  add("--parallel", warmup.parallel,
      "tau: receivers that a sender serves in a slot (schedulers random_*, and plain swarming)");
  add("--owner-fallback", command.owner_fallback,
      "Slots without a transfer after which owners may send in spite of the gate, or never")
      ->type_name("SLOTS");
}

void add_measures(CLI::App& app, SwarmCommand& command) {
  const auto add = [&](const char* name, auto& value, const char* help) {
    return app.add_option(name, value, help)->capture_default_str()->group("Measurements");
  };
  std::vector<std::string> attacks = {"all", "none"};
  for (const auto& entry : swarm::attacks()) attacks.emplace_back(entry.name);
  add("--attack", command.attacks, "Comma-separated list of attacks that try to find the owners")
      ->type_name("NAME,...")
      ->delimiter(',')
      ->check(one_of(attacks));
  add("--early", command.study.early,
      "Number of first chunks of each sender that the attack \"count\" looks at");
  add("--coalition", command.study.coalitions,
      "Coalition sizes to measure, as a comma-separated list; the observers of a coalition pool what they "
      "see")
      ->type_name("NUMBER,...")
      ->delimiter(',');
  add("--watch", command.study.round.watch,
      "Attacks observe this many slots after the warm-up; 0: they observe the warm-up itself")
      ->type_name("SLOTS");
  add("--max-flow", command.study.round.max_flow,
      "Compare every Nth slot of the warm-up with its maximum flow; 0: none")
      ->type_name("N");
  app.add_flag("--warmup-only", command.warmup_only,
               "End the round after the warm-up (and the slots of --watch)")
      ->group("Measurements");
}

}  // namespace

CLI::App* add_swarm(CLI::App& app, SwarmCommand& command) {
  auto* sub = app.add_subcommand("swarm");
  sub->add_option("--jobs", command.jobs, "Number of concurrent rounds; does not affect the result")
      ->capture_default_str()
      ->check(between(1, 1024));
  add_clients(*sub, command);
  add_warmup(*sub, command);
  add_measures(*sub, command);
  return sub;
}

Result<void> run_swarm_command(const SwarmCommand& command, std::FILE* out) {
  const auto study = study_options(command);
  if (!study) return of_option(study.error());
  ThreadPool threads(command.jobs);
  FEDGE_TRY(result, lab::run_swarm_study(*study, threads));
  if (command.json)
    print_json(command, *study, result, out);
  else
    print_table(command, *study, result, out);
  return {};
}

}  // namespace fedge::apps
