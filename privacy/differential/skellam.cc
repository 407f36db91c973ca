#include "privacy/differential/skellam.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace fedge::privacy {
namespace {

// A floating-point type with a significand of 113 bits.
#if defined(__SIZEOF_FLOAT128__)
__extension__ using Quad = __float128;
#else
using Quad = long double;
static_assert(sizeof(Quad) == 16, "this machine has no numbers that are precise enough");
#endif

// Size of the table: all larger values together have a probability below 2^-128.
std::size_t numbers_of(double variance) {
  return static_cast<std::size_t>(std::ceil(14 * std::sqrt(variance))) + 60;
}

}  // namespace

// P[k] = e^-m I_k(m). Computes the ratios I_k / I_k-1 = 1 / (2k / m + I_k+1 / I_k) downwards from far out,
// where the initial value does not matter (Gautschi, SIAM Review 9, 1967). Normalises them to a sum of 1.
Skellam::Skellam(std::uint64_t variance) {
  FEDGE_CHECK(variance >= 1 && variance <= kMaxVariance, "a variance that the table is made for");
  const Quad mean = static_cast<Quad>(variance);
  const std::size_t count = numbers_of(static_cast<double>(variance));
  std::vector<Quad> ratios(count);  // I_k / I_k-1 at k
  Quad ratio = 0;
  for (std::size_t k = count - 1; k > 0; --k)
    ratios[k] = ratio = 1 / (2 * static_cast<Quad>(k) / mean + ratio);
  Quad weight = 1;
  Quad sum = 1;
  for (std::size_t k = 1; k < count; ++k) {
    weight *= ratios[k];
    sum += 2 * weight;
    ratios[k] = sum;  // sum of the weights of all sizes up to k
  }
  ratios[0] = 1;
  below_.reserve(count);
  constexpr Wide kHalf = Wide{1} << 127;
  for (const Quad up_to : ratios)
    below_.push_back(std::min(static_cast<Wide>(up_to / sum * static_cast<Quad>(kHalf)), kHalf - 1) * 2);
}

std::int64_t Skellam::draw(NoiseStream& stream) const {
  const Wide high = stream.next();
  const Wide uniform = (high << 64) | stream.next();
  const auto found = std::upper_bound(below_.begin(), below_.end() - 1, uniform);
  const auto size = static_cast<std::int64_t>(found - below_.begin());
  return stream.next_bit() ? size : -size;
}

}  // namespace fedge::privacy
