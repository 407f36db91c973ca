// `fedge token`, `fedge client` and `fedge audit`: admission of clients, and the audit log.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/result.h"

namespace CLI {
class App;
}

namespace fedge::apps {

class AccessCommands {
 public:
  explicit AccessCommands(CLI::App& app);
  ~AccessCommands();

  // Executes the command that was parsed and returns the text to print; nothing if it is none of these.
  // `audit ls` prints its list itself.
  std::optional<Result<std::string>> run() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fedge::apps
