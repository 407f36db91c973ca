// MaskGraph: which members share a mask. The complete graph is the protocol of Bonawitz et al. (CCS 2017). A
// random graph in which each member has `degree` neighbours is that of Bell et al. (CCS 2020); its costs grow
// with log n. Members are placed on a ring in random order, and each shares masks with the degree / 2 before
// and after it (a Harary graph). Members are numbered from 0. Cost: O(members) to build.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/crypto/sha256.h"

namespace fedge::privacy {

class MaskGraph {
 public:
  static MaskGraph complete(std::uint32_t members);
  // `degree` is even, at least 2 and below `members`. The order depends only on the seed.
  static MaskGraph neighbours(std::uint32_t members, std::uint32_t degree, const Digest& seed);

  bool is_complete() const { return degree_ == 0; }
  std::uint32_t members() const { return members_; }
  std::uint32_t degree() const { return is_complete() ? members_ - 1 : degree_; }
  // In ascending order.
  std::vector<std::uint32_t> neighbours(std::uint32_t member) const;
  bool adjacent(std::uint32_t a, std::uint32_t b) const;
  // The members with shares of this member's secrets, ascending: its neighbours and, in the complete graph,
  // also the member itself, as published.
  std::vector<std::uint32_t> holders(std::uint32_t member) const;

 private:
  std::uint32_t members_ = 0;
  std::uint32_t degree_ = 0;             // 0: complete
  std::vector<std::uint32_t> ring_;      // the member at each place
  std::vector<std::uint32_t> place_of_;  // the inverse
};

}  // namespace fedge::privacy
