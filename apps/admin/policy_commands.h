// `fedge tracks add`, `lift` and `ls`: the disagreements of a running run.
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace fedge::apps {

class PolicyCommands {
 public:
  // `tracks` is the command around them.
  explicit PolicyCommands(CLI::App& tracks);
  ~PolicyCommands();

  // As AccessCommands::run().
  std::optional<int> run(const std::string& program) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fedge::apps
