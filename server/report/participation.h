// Participation: in how many rounds each client has had a part, and how evenly. A count a client.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <vector>

#include "core/ids.h"

namespace fedge::server {

// With c_i the rounds in which client i has had a part, N clients in all:
struct ParticipationFigures {
  // sum_ij |c_i - c_j| / (2 N sum_i c_i): 0 if all have taken part alike; NaN before anybody has.
  double gini = std::numeric_limits<double>::quiet_NaN();
  // (sum_i c_i)^2 / (N sum_i c_i^2) (Jain, Chiu, Hawe 1984): 1 if all have taken part alike.
  double jain = std::numeric_limits<double>::quiet_NaN();
  std::uint64_t gap = 0;  // largest c_i less the smallest
};

class Participation {
 public:
  explicit Participation(std::size_t clients) : Participation(std::vector<std::uint32_t>(clients, 0)) {}
  // Goes on from these.
  explicit Participation(std::vector<std::uint32_t> counts);
  // The client has had a part in one more round.
  void add(ClientId client);
  // O(counts that differ).
  ParticipationFigures figures() const;
  const std::vector<std::uint32_t>& counts() const { return counts_; }  // by client

 private:
  std::vector<std::uint32_t> counts_;            // by client
  std::map<std::uint32_t, std::uint64_t> with_;  // clients by their count
};

}  // namespace fedge::server
