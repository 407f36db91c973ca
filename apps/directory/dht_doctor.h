// `fedge dht doctor`: checks whether the directory can be used from this machine.
#pragma once

#include <string>
#include <vector>

#include "dht/node/directory_node.h"

namespace fedge::apps {

struct DirectoryCheck {
  std::string name;  // "bootstrap 192.0.2.7:4222"
  bool good = false;
  std::string detail;  // the finding, and how to correct it
};

// The checks in the order of execution. Blocks, with a time limit for each step.
std::vector<DirectoryCheck> examine_directory(const dht::NodeSettings& settings);

}  // namespace fedge::apps
