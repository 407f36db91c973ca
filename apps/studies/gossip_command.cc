#include "apps/studies/gossip_command.h"

#include <CLI/CLI.hpp>
#include <functional>

#include "apps/cli/validators.h"
#include "apps/common.h"
#include "apps/studies/figure_text.h"
#include "core/text.h"

namespace fedge::apps {
namespace {

void print_head(const GossipCommand& command, const run::RunConfig& config, const lab::Gossip& gossip,
                std::FILE* out) {
  std::fprintf(out, "%zu clients, %zu neighbours or more, %s\n", config.task.data.partition.clients,
               command.gossip.degree,
               command.topology == "fixed" ? "the same in all rounds" : "drawn anew for each round");
  std::fprintf(out, "accuracy of %zu clients' models %s, and of the average of all models\n\n",
               gossip.tested().size(), command.evaluate == "mixed" ? "after mixing" : "before mixing");
  std::fprintf(out, "%6s %10s %10s %10s %10s %20s\n", "round", "mean", "least", "most", "average",
               "consensus distance");
}

void print_row_of(const lab::GossipFigures& figures, std::FILE* out) {
  std::fprintf(
      out, "%6u %10s %10s %10s %10s %20s\n", figures.round.value(),
      with_decimals(figures.accuracy_mean, 4).c_str(), with_decimals(figures.accuracy_least, 4).c_str(),
      with_decimals(figures.accuracy_most, 4).c_str(), with_decimals(figures.average_accuracy, 4).c_str(),
      number(figures.consensus_distance, "%.6g").c_str());
  std::fflush(out);
}

void print_json(const GossipCommand& command, const run::RunConfig& config, const lab::Gossip& gossip,
                const std::vector<lab::GossipFigures>& rounds, std::FILE* out) {
  std::fprintf(out,
               "{\"name\":%s,\"clients\":%zu,\"degree\":%zu,\"topology\":%s,\"evaluated\":%s,\"tested\":%zu,"
               "\"rounds\":[",
               json_text(config.name).c_str(), config.task.data.partition.clients, command.gossip.degree,
               json_text(command.topology).c_str(), json_text(command.evaluate).c_str(),
               gossip.tested().size());
  for (std::size_t i = 0; i < rounds.size(); ++i)
    std::fprintf(out,
                 "%s\n  {\"round\":%u,\"accuracy_mean\":%s,\"accuracy_least\":%s,\"accuracy_most\":%s,"
                 "\"average_accuracy\":%s,\"consensus_distance\":%s}",
                 i == 0 ? "" : ",", rounds[i].round.value(), json_number(rounds[i].accuracy_mean).c_str(),
                 json_number(rounds[i].accuracy_least).c_str(), json_number(rounds[i].accuracy_most).c_str(),
                 json_number(rounds[i].average_accuracy).c_str(),
                 json_number(rounds[i].consensus_distance).c_str());
  std::fprintf(out, "],\n \"models_hash\":\"%s\"}\n", to_hex(gossip.hash()).c_str());
}

// Runs all rounds; calls `report` for each evaluated round.
Result<void> run_rounds(const run::RunConfig& config, const std::string& evaluate, lab::Gossip& gossip,
                        const std::function<Result<void>()>& report) {
  for (std::uint32_t round = 1; round <= config.rounds; ++round) {
    const bool due = round % config.evaluate_every == 0 || round == config.rounds;
    FEDGE_TRY_VOID(gossip.train());
    if (due && evaluate == "trained") FEDGE_TRY_VOID(report());
    gossip.mix();
    if (due && evaluate == "mixed") FEDGE_TRY_VOID(report());
  }
  return {};
}

}  // namespace

CLI::App* add_gossip(CLI::App& app, GossipCommand& command) {
  auto* sub = app.add_subcommand("gossip");
  add_run_file(*sub, command.run_file);
  sub->add_option("--degree", command.gossip.degree, "Smallest number of neighbours of a client")
      ->capture_default_str();
  sub->add_option("--topology", command.topology,
                  "each_round: draw the neighbours again in each round; fixed: draw them once")
      ->type_name("TOPOLOGY")
      ->capture_default_str()
      ->check(one_of({"each_round", "fixed"}));
  sub->add_option("--evaluate", command.evaluate,
                  "mixed: evaluate models at the end of a round; trained: after training, before mixing")
      ->type_name("MODELS")
      ->capture_default_str()
      ->check(one_of({"mixed", "trained"}));
  sub->add_option("--tested", command.gossip.most_tested,
                  "Evaluate the models of at most this many clients, drawn once")
      ->capture_default_str();
  add_assignments(*sub, command.assignments);
  sub->add_option("--jobs", command.jobs, "Number of threads; does not affect the result")
      ->default_str("number of processors")
      ->check(between(1, 1024));
  return sub;
}

Result<void> run_gossip_command(const GossipCommand& command, std::FILE* out) {
  lab::GossipOptions options = command.gossip;
  options.fixed = command.topology == "fixed";
  FEDGE_TRY(document, load_document(command.run_file, command.assignments));
  FEDGE_TRY(experiment, sim::read_experiment(document));
  const auto& [config, simulation] = experiment;
  print_notes(config);
  if (const auto fits = lab::check_gossip_run(config, simulation); !fits)
    return fits.error().with_prefix(document.name + ": ");
  if (const auto fits = lab::check_gossip_options(options, config.task.data.partition.clients); !fits)
    return fits.error().with_prefix("--");
  const auto task = learn::Task::build(config.task, config.seed);
  if (!task) return config::at_key(document, task.error());
  FEDGE_TRY(test, learn::load_evaluation(config.task.data, Rng(config.seed)));
  ThreadPool threads(command.jobs);
  FEDGE_TRY(gossip, lab::Gossip::create(options, config, **task, threads));
  std::vector<lab::GossipFigures> rounds;
  if (!command.json) print_head(command, config, gossip, out);
  FEDGE_TRY_VOID(run_rounds(config, command.evaluate, gossip, [&]() -> Result<void> {
    FEDGE_TRY(figures, gossip.figures(*test));
    rounds.push_back(figures);
    if (!command.json) print_row_of(rounds.back(), out);
    return {};
  }));
  if (command.json)
    print_json(command, config, gossip, rounds, out);
  else
    std::fprintf(out, "\nmodels    %s\n", to_hex(gossip.hash()).c_str());
  return {};
}

}  // namespace fedge::apps
