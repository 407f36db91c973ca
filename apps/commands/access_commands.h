// `fedge token`, `fedge client` and `fedge audit`: who may connect to a coordinator, and the trail of it.
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

  // Carries out the command that was asked for, once the command line has been parsed: what is to be
  // printed; nothing if it is none of these. `audit ls` prints its list itself.
  std::optional<Result<std::string>> run() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fedge::apps
