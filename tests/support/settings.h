// Concatenates settings of a run in the form that `--set` takes.
#pragma once

#include <string>
#include <vector>

namespace fedge::test {

using Settings = std::vector<std::string>;

inline Settings operator+(Settings first, const Settings& more) {
  first.insert(first.end(), more.begin(), more.end());
  return first;
}

}  // namespace fedge::test
