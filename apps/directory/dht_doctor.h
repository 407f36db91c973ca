// `fedge dht doctor`: whether the directory can be used from here, checked one by one.
#pragma once

#include <string>
#include <vector>

#include "dht/node/directory_node.h"

namespace fedge::apps {

struct DirectoryCheck {
  std::string name;  // "bootstrap 192.0.2.7:4222"
  bool good = false;
  std::string detail;  // what was found, and what to do about it
};

// In the order in which they were made; blocks, with a time limit for each step.
std::vector<DirectoryCheck> examine_directory(const dht::NodeSettings& settings);

}  // namespace fedge::apps
