#include "aggregation/kernels/robust_body.h"
#include "aggregation/kernels/robust_variants.h"

namespace fedge::aggregation {

RobustKernel portable_robust_kernel() { return {"portable", middle_mean, closest_mean, pair_distances}; }

}  // namespace fedge::aggregation
