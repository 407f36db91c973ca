// `fedge model import`, `generate`, `evaluate`, `info`, `merge`, `adapters`, `export`: commands on a model
// file. Each returns the text to print; evaluate prints while it works.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "apps/commands/model_evaluation.h"
#include "core/result.h"

namespace fedge::apps {

struct ModelOptions {
  std::string file;
  std::optional<std::string> prompt;
  std::string tokenizer;    // of a published model
  std::string adapter;      // folder of adapters for it
  std::string base;         // name of the base model in exported adapters
  std::size_t context = 0;  // 0: chosen by the import
  std::string out;
  bool force = false;  // overwrite it
  std::size_t tokens = 200;
  double temperature = 0.8;
  std::size_t top = 40;
  std::size_t ranks = SIZE_MAX;
  std::uint64_t seed = 1;
};

class ModelCommands {
 public:
  explicit ModelCommands(CLI::App& app);
  // The output of the command that was parsed; nothing if it is none of these.
  std::optional<Result<std::string>> run() const;

 private:
  void add_evaluation();

  ModelOptions options_;
  EvaluationOptions evaluation_;
  std::string format_ = "table";
  CLI::App* import_;
  CLI::App* generate_;
  CLI::App* evaluate_;
  CLI::App* info_;
  CLI::App* merge_;
  CLI::App* adapters_;
  CLI::App* export_;
};

}  // namespace fedge::apps
