// CommandTable: the subcommands that work on a coordinator's data directory, each with its function.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/cli/validators.h"
#include "core/result.h"

namespace fedge::apps {

// The subcommand's function gets `Options`, which the parser fills in; it must have the strings
// data_directory and format.
template <class Options>
class CommandTable {
 public:
  using Action = Result<std::string> (*)(const Options&);

  Options options;

  CLI::App* add(CLI::App* parent, const std::string& name, Action action) {
    CLI::App* command = parent->add_subcommand(name);
    add_data_directory(*command, options.data_directory);
    commands_.emplace_back(command, action);
    return command;
  }
  void add_format(CLI::App* command) { apps::add_format(*command, options.format); }
  // The output of the command that was parsed; nothing if it is none of these.
  std::optional<Result<std::string>> run() const {
    for (const auto& [command, action] : commands_)
      if (command->parsed()) return action(options);
    return std::nullopt;
  }

 private:
  std::vector<std::pair<CLI::App*, Action>> commands_;
};

}  // namespace fedge::apps
