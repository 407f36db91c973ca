// Partitioners: which client holds which samples. A partition is a pure function of the labels, the
// specification and the seed; no sample is held twice. If numbers do not divide evenly, the first clients get
// one more each. With linear, square and exponential sizes, the last and largest client gets the remainder.
//
//   iid          samples are shuffled and cut into equal parts
//   dirichlet    each label's samples are divided over the clients by proportions drawn from
//                Dirichlet(alpha); drawn again until each client has min_size (Li et al., ICDE 2022)
//     with samples_per_client: each client in turn draws its label mix from Dirichlet(alpha) over the
//                labels and takes that many samples by it; a label without samples left drops out of
//                the mix (Hsu, Qi, Brown 2019, with a flat prior)
//   pathological each client has classes_per_client labels; the labels have equally many holders, give or
//                take one, who divide the label's samples evenly
//   shards       samples are sorted by label and cut into clients * shards_per_client runs, which are dealt
//                at random (McMahan et al., AISTATS 2017)
//   natural      client i has all samples of the labels i, i + clients, ...; a text's labels are its
//                authors or topics
//   linear, square, exponential   like iid, but client i of 1, 2, ... gets a part in proportion to
//                i, i^2 or e^i
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/result.h"
#include "core/rng.h"
#include "learn/data/label.h"
#include "learn/spec.h"

namespace fedge::learn {

// Sample numbers of each client, ascending, in one array for all clients.
class Partition {
 public:
  Partition(std::vector<std::uint32_t> samples, std::vector<std::size_t> starts)
      : samples_(std::move(samples)), starts_(std::move(starts)) {}
  std::size_t clients() const { return starts_.size() - 1; }
  std::size_t samples() const { return samples_.size(); }  // of all clients
  std::span<const std::uint32_t> all() const { return samples_; }
  std::span<const std::uint32_t> of(std::size_t client) const {
    return std::span(samples_).subspan(starts_[client], starts_[client + 1] - starts_[client]);
  }

 private:
  std::vector<std::uint32_t> samples_;
  std::vector<std::size_t> starts_;  // clients + 1
};

// The stream of all draws about who has which samples: the run's root stream `rng`, or that of
// data.partition.seed.
Rng partition_stream(const PartitionSpec& spec, const Rng& rng);

// `labels` must be below `classes`, which is at most kMaxClasses; `rng` is the run's root stream. kInvalid,
// naming the key to change, for an impossible specification: more clients than samples, or a minimum size
// that cannot be reached. Every sample is assigned, except with samples_per_client, or with pathological if
// some label gets no holder. No client is empty, except with dirichlet and min_size = 0.
Result<Partition> partition(const PartitionSpec& spec, std::span<const Label> labels, std::size_t classes,
                            const Rng& rng);

}  // namespace fedge::learn
