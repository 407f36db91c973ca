// Who masks with whom. The complete graph is the protocol of Bonawitz et al. (CCS 2017); a random graph in
// which everybody has `degree` neighbours is that of Bell et al. (CCS 2020), whose costs grow with log n:
// members are put on a ring in a random order, and each masks with the degree / 2 before and after it (a
// Harary graph). Members are numbers from 0 on. Cost: O(members) to make.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/crypto/sha256.h"

namespace fedge::privacy {

class MaskGraph {
 public:
  static MaskGraph complete(std::uint32_t members);
  // `degree` is even, at least 2, below `members`. The order is a function of the seed.
  static MaskGraph neighbours(std::uint32_t members, std::uint32_t degree, const Digest& seed);

  bool is_complete() const { return degree_ == 0; }
  std::uint32_t members() const { return members_; }
  std::uint32_t degree() const { return is_complete() ? members_ - 1 : degree_; }
  // Ascending.
  std::vector<std::uint32_t> neighbours(std::uint32_t member) const;
  bool adjacent(std::uint32_t a, std::uint32_t b) const;
  // Who has shares of this member's secrets, ascending: its neighbours and, in the complete graph, as
  // published, the member itself.
  std::vector<std::uint32_t> holders(std::uint32_t member) const;

 private:
  std::uint32_t members_ = 0;
  std::uint32_t degree_ = 0;             // 0: complete
  std::vector<std::uint32_t> ring_;      // who is at a place
  std::vector<std::uint32_t> place_of_;  // the inverse
};

}  // namespace fedge::privacy
