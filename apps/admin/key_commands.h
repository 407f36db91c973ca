// `fedge key show`, `announce`, `withdraw` and `rotate`: the rotation of a coordinator's key.
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace fedge::apps {

class KeyCommands {
 public:
  explicit KeyCommands(CLI::App& app);
  ~KeyCommands();

  // As AccessCommands::run().
  std::optional<int> run(const std::string& program) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fedge::apps
