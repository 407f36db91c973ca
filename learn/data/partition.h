// Partitioners: who holds which samples. A partition is a pure function of the labels, the
// specification and the seed; no sample is held twice. What is left over when something does not
// divide evenly goes to the first ones, one each, but for linear, square and exponential sizes,
// where it goes to the last and largest client.
//
//   iid          samples shuffled, then cut into equal parts
//   dirichlet    each label's samples shared out by proportions drawn from Dirichlet(alpha) over the
//                clients, all drawn again until each client has min_size (Li et al., ICDE 2022)
//     with samples_per_client: each client in turn draws its label mix from Dirichlet(alpha) over the
//                labels and takes that many samples by it; a label that has run out drops out of the
//                mix (Hsu, Qi, Brown 2019, with a flat prior)
//   pathological each client has classes_per_client labels, dealt so that all labels have equally
//                many holders, give or take one, among whom its samples are divided evenly
//   shards       sorted by label and cut into clients * shards_per_client runs, dealt at random
//                (McMahan et al., AISTATS 2017)
//   natural      client i has all samples of label i, and of i + clients, ...: of a text, what one author
//                wrote or one topic is about
//   linear, square, exponential   like iid, client i of 1, 2, ... having a share in proportion to
//                i, i^2 or e^i
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/result.h"
#include "core/rng.h"
#include "learn/spec.h"

namespace fedge::learn {

// For each client its sample numbers, ascending. Compact: one array for all clients.
class Partition {
 public:
  Partition(std::vector<std::uint32_t> samples, std::vector<std::size_t> starts)
      : samples_(std::move(samples)), starts_(std::move(starts)) {}
  std::size_t clients() const { return starts_.size() - 1; }
  std::span<const std::uint32_t> of(std::size_t client) const {
    return std::span(samples_).subspan(starts_[client], starts_[client + 1] - starts_[client]);
  }

 private:
  std::vector<std::uint32_t> samples_;
  std::vector<std::size_t> starts_;  // clients + 1
};

// `labels` are below `classes`, which is at most 256; `rng` is the run's root stream. An impossible
// specification (more clients than samples, a minimum size that cannot be met) is kInvalid and says
// which key to change. All kinds but samples_per_client and a pathological one with fewer holdings
// than labels hand out every sample, and none but dirichlet with min_size = 0 leaves a client empty.
Result<Partition> partition(const PartitionSpec& spec, std::span<const std::uint8_t> labels,
                            std::size_t classes, const Rng& rng);

}  // namespace fedge::learn
