// ClientLabels: the labels of a simulation's clients (simulation.labels), as operators give them to devices.
// Immutable.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "core/ids.h"
#include "core/result.h"

namespace fedge::sim {

class ClientLabels {
 public:
  ClientLabels() = default;
  // Reads entries such as "ward-3: 0-49, 60": a label and the numbers of the clients that have it. kInvalid
  // names the entry that is wrong.
  static Result<ClientLabels> parse(const std::vector<std::string>& entries);

  bool empty() const { return entries_.empty(); }
  // The highest client number with a label; 0 without any.
  std::size_t highest() const;
  // Ascending.
  std::vector<std::string> of(ClientId client) const;

 private:
  struct Entry {
    std::string label;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> ranges;  // first and last number
  };
  std::vector<Entry> entries_;  // by label
};

}  // namespace fedge::sim
