// `fedge token`, `fedge client` and `fedge audit`: admission of clients, and the audit log.
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace fedge::apps {

class AccessCommands {
 public:
  explicit AccessCommands(CLI::App& app);
  ~AccessCommands();

  // Executes the command that was parsed and returns the exit code; nothing if it is none of these.
  std::optional<int> run(const std::string& program) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fedge::apps
