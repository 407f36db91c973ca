// Participation counts the rounds in which each client took part, and measures how evenly. Memory: one
// counter per client.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <vector>

#include "core/ids.h"

namespace fedge::server {

// c_i is the number of rounds in which client i took part (once a round, in however many tracks it trained);
// N is the number of clients.
struct ParticipationFigures {
  // sum_ij |c_i - c_j| / (2 N sum_i c_i): 0 if all c_i are equal; NaN while all are 0.
  double gini = std::numeric_limits<double>::quiet_NaN();
  // (sum_i c_i)^2 / (N sum_i c_i^2) (Jain, Chiu, Hawe 1984): 1 if all c_i are equal; NaN while all are 0.
  double jain = std::numeric_limits<double>::quiet_NaN();
  std::uint64_t gap = 0;  // the largest c_i minus the smallest
};

class Participation {
 public:
  explicit Participation(std::size_t clients) : Participation(std::vector<std::uint32_t>(clients, 0)) {}
  // Continues from these counts, which are by client.
  explicit Participation(std::vector<std::uint32_t> counts);
  // Adds one round to the client's count.
  void add(ClientId client);
  // Time: proportional to the number of distinct counts.
  ParticipationFigures figures() const;
  const std::vector<std::uint32_t>& counts() const { return counts_; }  // by client

 private:
  std::vector<std::uint32_t> counts_;            // by client
  std::map<std::uint32_t, std::uint64_t> with_;  // the number of clients with each count
};

}  // namespace fedge::server
