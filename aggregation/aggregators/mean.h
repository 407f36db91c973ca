// The mean: every parameter averaged over the updates that cover it, as exact sums (accumulator.h).
//   mean          weighted by training samples: FedAvg (McMahan et al., AISTATS 2017)
//   uniform_mean  every update counts the same: SCAFFOLD, FedBuff
//   fednova       weighted by samples, each update divided by the effective length a_k of its local
//                 optimizer, the sum multiplied by the mean a_k (Wang et al., NeurIPS 2020, eq. 6-7)
// The option `damping` = g of mean and uniform_mean is ours: the mean of parameter i is multiplied by
// (W_i / W)^g, where W_i is the weight of the updates that cover i, and W the weight of all updates of the
// round. Memory: 8 bytes a parameter during a round.
#pragma once

#include "aggregation/aggregators/registry.h"

namespace fedge::aggregation {

AggregatorPart read_mean(config::Reader& section);
AggregatorPart read_uniform_mean(config::Reader& section);
AggregatorPart read_fednova(config::Reader& section);
// Weights each update by a power of the client's loss (qfedavg.cc).
AggregatorPart read_qfedavg(config::Reader& section);

// Weight of each update if all count the same and at most `updates` arrive.
std::uint64_t uniform_weight(const FixedPoint& format, std::size_t updates);

// FedNova's ||a||_1 after `steps` local steps. Plain SGD: the number of steps. Momentum rho: each step counts
// for its effect until the end, [steps - rho (1 - rho^steps) / (1 - rho)] / (1 - rho). Proximal term (alpha =
// learning rate * mu): earlier steps decay, (1 - (1 - alpha)^steps) / alpha. At most one of momentum and
// alpha is not 0.
double effective_steps(std::uint64_t steps, double momentum, double alpha);

}  // namespace fedge::aggregation
