// Participation counts the rounds in which each client took part, and measures how evenly. Memory: one
// counter for each client number up to the highest that took part.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <vector>

#include "core/ids.h"

namespace fedge::server {

// c_i is the number of rounds in which client i took part (once a round, in however many tracks it trained);
// N is the number of clients: as many as were expected, or as have taken part if these are more.
struct ParticipationFigures {
  // sum_ij |c_i - c_j| / (2 N sum_i c_i): 0 if all c_i are equal; NaN while all are 0.
  double gini = std::numeric_limits<double>::quiet_NaN();
  // (sum_i c_i)^2 / (N sum_i c_i^2) (Jain, Chiu, Hawe 1984): 1 if all c_i are equal; NaN while all are 0.
  double jain = std::numeric_limits<double>::quiet_NaN();
  std::uint64_t gap = 0;  // the largest c_i minus the smallest
};

class Participation {
 public:
  explicit Participation(std::size_t clients) : Participation(clients, {}) {}
  // Continues from these counts, which are by client.
  Participation(std::size_t clients, std::vector<std::uint32_t> counts);
  // Adds one round to the client's count.
  void add(ClientId client);
  // Time: proportional to the number of distinct counts.
  ParticipationFigures figures() const;
  const std::vector<std::uint32_t>& counts() const { return counts_; }  // by client
  std::size_t expected() const { return expected_; }

 private:
  void count_absent();

  std::size_t expected_;
  std::vector<std::uint32_t> counts_;            // by client
  std::map<std::uint32_t, std::uint64_t> with_;  // the number of clients with each count
};

}  // namespace fedge::server
