// What a track of a run is, for people: in metrics and reports.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace fedge::server {

// A model of its own for those whom the same clients must not influence.
struct TrackDescription {
  std::vector<std::string> exclude;  // names, of those who must not
  std::vector<std::string> owners;   // whose own model it is; the first kListed of them
  std::size_t owner_count = 0;
  std::size_t members = 0;  // who may train it
  static constexpr std::size_t kListed = 100;
  bool operator==(const TrackDescription&) const = default;
};

}  // namespace fedge::server
