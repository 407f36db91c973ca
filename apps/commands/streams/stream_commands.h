// `fedge data screen` screens recorded streams of a sensor as a device does, and says what that keeps and
// costs. `fedge data synthesize` writes synthetic streams. Both add themselves to `fedge data`.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "learn/synthetic/road.h"

namespace fedge::apps {

struct StreamOptions {
  std::vector<std::string> streams;
  std::string screening;  // file; empty: the default rules
  std::string out;
  std::uint64_t megabytes = 1024;
  double test_share = 0.2;
  std::string format = "table";
  learn::RoadSpec road;
  std::uint32_t vehicles = 10;
};

class StreamCommands {
 public:
  explicit StreamCommands(CLI::App& app);
  // The output of the command that was parsed; nothing if it is none of these.
  std::optional<Result<std::string>> run() const;

 private:
  void add_screen(CLI::App& data);
  void add_synthesize(CLI::App& data);

  StreamOptions options_;
  CLI::App* screen_ = nullptr;
  CLI::App* road_ = nullptr;
};

}  // namespace fedge::apps
