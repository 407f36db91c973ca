// The options of a trainer program, of fedge-client run and of fedge-sim run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "client/trainers/conversation.h"
#include "core/result.h"

namespace CLI {
class App;
}

namespace fedge::apps {

struct TrainerArguments {
  std::string command;  // empty: the built-in trainer
  std::uint64_t memory_mb = 0;
  double timeout_seconds = 300;
  int nice = 10;
};

void add_trainer_options(CLI::App& command, TrainerArguments& arguments);
// Nothing for the built-in trainer. kInvalid: the command has no program that can be started.
Result<std::optional<client::TrainerOptions>> trainer_of(const TrainerArguments& arguments);

}  // namespace fedge::apps
