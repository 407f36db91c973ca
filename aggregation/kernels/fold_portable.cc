#include "aggregation/kernels/fold_body.h"
#include "aggregation/kernels/fold_variants.h"

namespace fedge::aggregation {

FoldKernel portable_fold_kernel() { return {"portable", fold, fold_wide, max_magnitude}; }

}  // namespace fedge::aggregation
