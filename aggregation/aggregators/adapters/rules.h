// Rules that combine low-rank adapters of different ranks (core/adapter_layout.h). They respect that the
// factors' product is what a client learned. Notation: A_i, B_i are the factors of client i after training
// (its first r_i ranks), n_i its samples, p_i = n_i / sum n.
//   zero_pad   A = sum p_i pad(A_i), B likewise: ranks that a client lacks count as zeros (the dilution that
//              PreLort's segments avoid)
//   hetlora    the same with p_i in proportion to ||B_i A_i||_F over all matrices together (HetLoRA: Cho et
//              al., EMNLP 2024, section 3.3)
//   flexlora   D = sum p_i B_i A_i by its singular values: B = U S, A = V^T, highest first (FlexLoRA: Bai et
//              al., NeurIPS 2024, section 3.2)
//   flora      adds scale * sum p_i B_i A_i, the product of the stacked factors, to the frozen matrices and
//              reinitialises the adapters (FLoRA: Wang et al., NeurIPS 2024, section 3)
// The mean over the clients that have a rank (PreLort's segment-wise rule) is the aggregator `mean`. Updates
// are read in the order of client ids and added in double, so arrival order and threads do not change the
// result.
// Memory: a client's factors, and 8 bytes a parameter of adapters or, for the last two, of adapted matrices.
#pragma once

#include "aggregation/aggregators/registry.h"

namespace fedge::aggregation {

AggregatorPart read_zero_pad(config::Reader& section);
AggregatorPart read_hetlora(config::Reader& section);
AggregatorPart read_flexlora(config::Reader& section);
AggregatorPart read_flora(config::Reader& section);

}  // namespace fedge::aggregation
