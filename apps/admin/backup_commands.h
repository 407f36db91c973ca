// `fedge backup` and `fedge restore`: copies of a coordinator's data directory. They read and write files of
// this machine, also while a coordinator uses the directory.
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace fedge::apps {

class BackupCommands {
 public:
  explicit BackupCommands(CLI::App& app);
  ~BackupCommands();

  // Executes the command that was parsed and returns the exit code; nothing if it is none of these.
  std::optional<int> run(const std::string& program) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fedge::apps
