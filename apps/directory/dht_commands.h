// `fedge dht`: runs a node of the directory, and reads and publishes its records.
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace fedge::apps {

class DhtCommands {
 public:
  explicit DhtCommands(CLI::App& app);
  ~DhtCommands();

  // Executes the command that was parsed and returns the program's exit code; nothing if it is none of
  // these.
  std::optional<int> run(const std::string& program) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fedge::apps
