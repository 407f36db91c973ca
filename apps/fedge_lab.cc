// fedge-lab: studies for researchers, apart from federated runs: overlay networks, hostile nodes in a
// directory, serverless rounds, and gossip.
#include <CLI/CLI.hpp>

#include "apps/cli/command_line.h"
#include "apps/cli/validators.h"
#include "apps/common.h"
#include "apps/studies/attack_command.h"
#include "apps/studies/gossip_command.h"
#include "apps/studies/overlay_command.h"
#include "apps/studies/swarm_command.h"

namespace {

constexpr const char* kProgram = "fedge-lab";

struct Options {
  fedge::apps::OverlayCommand overlay;
  fedge::apps::AttackCommand attack;
  fedge::apps::SwarmCommand swarm;
  fedge::apps::GossipCommand gossip;
  std::string format = "table";
};

fedge::Result<void> run_study(Options& options, const std::string& command) {
  const bool json = options.format == "json";
  options.overlay.json = options.attack.json = options.swarm.json = options.gossip.json = json;
  if (command == "overlay") return fedge::apps::run_overlay_command(options.overlay, stdout);
  if (command == "attack") return fedge::apps::run_attack_command(options.attack, stdout);
  if (command == "swarm") return fedge::apps::run_swarm_command(options.swarm, stdout);
  return fedge::apps::run_gossip_command(options.gossip, stdout);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("", kProgram);
  app.set_version_flag("--version", fedge::apps::software(kProgram));
  app.require_subcommand(1);
  for (CLI::App* command :
       {fedge::apps::add_overlay(app, options.overlay), fedge::apps::add_attack(app, options.attack),
        fedge::apps::add_swarm(app, options.swarm), fedge::apps::add_gossip(app, options.gossip)})
    fedge::apps::add_format(*command, options.format);
  if (const auto code = fedge::apps::parse_command_line(app, fedge::apps::lab_doc(), argc, argv))
    return *code;
  return fedge::apps::run_safely(kProgram, [&] {
    const auto done = run_study(options, app.get_subcommands().front()->get_name());
    return done ? fedge::apps::kOk : fedge::apps::report_failure(kProgram, done.error());
  });
}
