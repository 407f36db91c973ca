// Description of a track, for metrics and reports.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace fedge::server {

// A track: a model for clients that exclude the same others.
struct TrackDescription {
  std::vector<std::string> exclude;  // names of the excluded clients
  std::vector<std::string> owners;   // names of the first kListed clients that use it
  std::size_t owner_count = 0;
  std::size_t members = 0;  // clients that may train it
  static constexpr std::size_t kListed = 100;
  bool operator==(const TrackDescription&) const = default;
};

}  // namespace fedge::server
