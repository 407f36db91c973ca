// fedge model generate, info, merge, adapters: what can be done with a model's file. Each returns what the
// tool prints.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "core/result.h"

namespace fedge::apps {

struct ModelOptions {
  std::string file;
  std::string prompt = "\n";
  std::string out;
  std::size_t tokens = 200;
  double temperature = 0.8;
  std::size_t top = 40;
  std::size_t ranks = SIZE_MAX;
  std::uint64_t seed = 1;
};

class ModelCommands {
 public:
  explicit ModelCommands(CLI::App& app);
  // What the command that was asked for says; nothing if it is none of these.
  std::optional<Result<std::string>> run() const;

 private:
  ModelOptions options_;
  CLI::App* generate_;
  CLI::App* info_;
  CLI::App* merge_;
  CLI::App* adapters_;
};

}  // namespace fedge::apps
