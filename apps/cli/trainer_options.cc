#include "apps/cli/trainer_options.h"

#include <CLI/CLI.hpp>
#include <utility>

#include "apps/cli/validators.h"
#include "client/trainers/process.h"

namespace fedge::apps {

void add_trainer_options(CLI::App& command, TrainerArguments& arguments) {
  command
      .add_option("--trainer", arguments.command,
                  "Program with arguments that trains instead of the built-in trainer; quotes work as in a "
                  "shell, variables and patterns do not")
      ->type_name("COMMAND");
  command
      .add_option("--trainer-memory-mb", arguments.memory_mb,
                  "Limit of the trainer's private memory, in MiB; 0: no limit")
      ->type_name("MIB")
      ->capture_default_str()
      ->check(between(0, 1 << 30));
  command
      .add_option("--trainer-timeout", arguments.timeout_seconds,
                  "Kill the trainer when an expected message does not arrive within this time")
      ->type_name("SECONDS")
      ->capture_default_str()
      ->check(between(0.1, 1e6));
  command.add_option("--trainer-nice", arguments.nice, "Nice value (CPU priority) of the trainer")
      ->capture_default_str()
      ->check(between(0, 19));
}

Result<std::optional<client::TrainerOptions>> trainer_of(const TrainerArguments& arguments) {
  using Options = std::optional<client::TrainerOptions>;
  if (arguments.command.empty()) return Options();
  auto command = client::split_command(arguments.command);
  if (!command) return command.error().with_prefix("--trainer: ");
  if (const auto found = client::check_program(command->front()); !found)
    return found.error().with_prefix("--trainer: ");
  return Options({.command = std::move(*command),
                  .memory_bytes = arguments.memory_mb << 20,
                  .nice = arguments.nice,
                  .silence = seconds(arguments.timeout_seconds)});
}

}  // namespace fedge::apps
