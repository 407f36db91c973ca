#include "privacy/differential/accounting/guarantee.h"

#include <cmath>

namespace fedge::privacy {

Result<double> update_noise_multiplier(double total, double bit_sigma) {
  if (!(total > 0)) return invalid("noise multiplier: must be above 0");
  if (!(2 * bit_sigma > total))
    return invalid("the noise on the number of unclipped updates must be above half the noise multiplier");
  return 1 / std::sqrt(1 / (total * total) - 1 / (4 * bit_sigma * bit_sigma));
}

}  // namespace fedge::privacy
