// `fedge run`: a coordinator's runs.
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace fedge::apps {

class RunCommands {
 public:
  explicit RunCommands(CLI::App& app);
  ~RunCommands();

  // As AccessCommands::run().
  std::optional<int> run(const std::string& program) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fedge::apps
