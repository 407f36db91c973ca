// CommandTable: subcommands that work on a coordinator's data directory, each with what carries it out.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/result.h"

namespace fedge::apps {

// `Options` has texts data_directory and format; it is filled by the parser and given to the command.
template <class Options>
class CommandTable {
 public:
  using Action = Result<std::string> (*)(const Options&);

  Options options;

  CLI::App* add(CLI::App* parent, const std::string& name, const char* what, Action action) {
    CLI::App* command = parent->add_subcommand(name, what);
    command->add_option("--data-dir", options.data_directory, "The coordinator's data directory")
        ->required()
        ->envname("FEDGE_DATA_DIR");
    commands_.emplace_back(command, action);
    return command;
  }
  void add_format(CLI::App* command) {
    command->add_option("--format", options.format, "table or json")
        ->capture_default_str()
        ->check(CLI::IsMember({"table", "json"}));
  }
  // What the command that was asked for says; nothing if it is none of these.
  std::optional<Result<std::string>> run() const {
    for (const auto& [command, action] : commands_)
      if (command->parsed()) return action(options);
    return std::nullopt;
  }

 private:
  std::vector<std::pair<CLI::App*, Action>> commands_;
};

}  // namespace fedge::apps
