// `fedge run`: the runs in a coordinator's data directory, whether or not the coordinator is running.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/result.h"

namespace CLI {
class App;
}

namespace fedge::apps {

class RunCommands {
 public:
  explicit RunCommands(CLI::App& app);
  ~RunCommands();

  // As AccessCommands::run().
  std::optional<Result<std::string>> run() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fedge::apps
