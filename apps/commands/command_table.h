// CommandTable: the subcommands that work on a coordinator's data directory, each with its function.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "apps/cli/validators.h"
#include "core/result.h"
#include "server/data_directory.h"

namespace fedge::apps {

// The subcommand's function gets `Options`, which the parser fills in; it must have the strings
// data_directory and format.
template <class Options>
class CommandTable {
 public:
  using Action = Result<std::string> (*)(const Options&);

  Options options;

  CLI::App* add(CLI::App* parent, const std::string& name, Action action) {
    CLI::App* command = add_anywhere(parent, name, action);
    commands_.back().needs_coordinator = true;
    return command;
  }
  // A command that checks the data directory itself, or may be the first to write to it.
  CLI::App* add_anywhere(CLI::App* parent, const std::string& name, Action action) {
    CLI::App* command = parent->add_subcommand(name);
    add_data_directory(*command, options.data_directory);
    commands_.push_back({command, action});
    return command;
  }
  void add_format(CLI::App* command) { apps::add_format(*command, options.format); }
  // The output of the command that was parsed; nothing if it is none of these.
  std::optional<Result<std::string>> run() const {
    for (const Command& command : commands_) {
      if (!command.app->parsed()) continue;
      if (command.needs_coordinator)
        if (const auto checked = server::check_coordinator_data(options.data_directory); !checked)
          return checked.error();
      return command.action(options);
    }
    return std::nullopt;
  }

 private:
  struct Command {
    CLI::App* app;
    Action action;
    bool needs_coordinator = false;
  };
  std::vector<Command> commands_;
};

}  // namespace fedge::apps
