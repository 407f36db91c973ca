// `fedge privacy epsilon`, `noise`, `rounds`: computes differential privacy guarantees before a run. Each
// returns the text to print.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/result.h"

namespace fedge::apps {

struct PrivacyOptions {
  std::string mechanism = "subsampled-gaussian";
  std::map<std::string, std::optional<double>> numbers;  // by option, "noise-multiplier"
  std::uint64_t steps = 1;
  double delta = 0;
  double epsilon = 0;  // noise, rounds: the epsilon to keep
  std::string accountant = "pld";
  std::string format = "table";
};

class PrivacyCommands {
 public:
  explicit PrivacyCommands(CLI::App& app);
  // The output of the command that was parsed; nothing if it is none of these.
  std::optional<Result<std::string>> run() const;

 private:
  PrivacyOptions options_;
  CLI::App* epsilon_;
  CLI::App* noise_;
  CLI::App* rounds_;
};

}  // namespace fedge::apps
