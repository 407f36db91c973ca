// `fedge user` and `fedge project`: who may use the admin API; `fedge login`, `logout` and `whoami`: this
// user's access to remote coordinators.
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace fedge::apps {

class UserCommands {
 public:
  explicit UserCommands(CLI::App& app);
  ~UserCommands();

  // As AccessCommands::run().
  std::optional<int> run(const std::string& program) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fedge::apps
