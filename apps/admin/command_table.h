// CommandTable: the subcommands that manage a coordinator, each with its function.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "apps/admin/admin_client.h"
#include "apps/cli/help.h"
#include "apps/cli/validators.h"
#include "apps/common.h"
#include "core/result.h"

namespace fedge::apps {

// The subcommand's function gets `Options`, which the parser fills in, and the coordinator. `Options` must
// have the members target (AdminTarget) and format (std::string).
template <class Options>
class CommandTable {
 public:
  using Action = Result<std::string> (*)(const Options&, const AdminClient&);

  Options options;

  CLI::App* add(CLI::App* parent, const std::string& name, Action action) {
    CLI::App* command = parent->add_subcommand(name);
    command
        ->add_option("--data-dir", options.target.data_directory,
                     "The coordinator's data directory, on its machine; default: $FEDGE_DATA_DIR")
        ->type_name("DIR");
    command
        ->add_option("--coordinator", options.target.coordinator,
                     "A coordinator at which 'fedge login' has logged in; default without --data-dir: "
                     "$FEDGE_COORDINATOR, or the last login")
        ->type_name("URL");
    commands_.push_back({command, action});
    return command;
  }
  // A command that may be the first to write to the data directory.
  CLI::App* add_anywhere(CLI::App* parent, const std::string& name, Action action) {
    CLI::App* command = add(parent, name, action);
    commands_.back().anywhere = true;
    return command;
  }
  void add_format(CLI::App* command) { apps::add_format(*command, options.format); }
  // Executes the command that was parsed, prints its output and returns the exit code; nothing if it is none
  // of these.
  std::optional<int> run(const std::string& program) const {
    for (const Command& command : commands_)
      if (command.app->parsed()) return execute(program, command);
    return std::nullopt;
  }

 private:
  struct Command {
    CLI::App* app;
    Action action;
    bool anywhere = false;
  };

  int execute(const std::string& program, const Command& command) const {
    const auto target = chosen_target(options.target);
    if (!target && target.error().code != ErrorCode::kInvalid) return report_failure(program, target.error());
    if (!target) return report_wrong_usage(full_name(*command.app), target.error().message);
    const auto client = AdminClient::open(*target, command.anywhere);
    if (!client) return report_failure(program, client.error());
    const auto done = command.action(options, *client);
    if (!done) return report_failure(program, done.error());
    std::printf("%s", done->c_str());
    return kOk;
  }

  std::vector<Command> commands_;
};

}  // namespace fedge::apps
