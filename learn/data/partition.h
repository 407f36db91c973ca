// Partitioners: which client holds which samples. A partition is a pure function of the labels, the
// specification and the seed; no sample is held twice, except with `replicate`. If numbers do not divide
// evenly, the first clients get one more each. With linear, square and exponential sizes, the last and
// largest client gets the remainder.
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
// With `replicate`, several clients may hold the same samples, so that there may be more clients than
// samples:
//   iid, dirichlet (with samples_per_client)   each client draws its samples from all samples, as if it were
//   the
//                first to draw; nothing is stored for a client (replicated_samples.h)
//   natural      the labels that have samples are dealt round: client i has all samples of label i mod labels
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/result.h"
#include "core/rng.h"
#include "learn/data/label.h"
#include "learn/data/replicated_samples.h"
#include "learn/spec.h"

namespace fedge::learn {

// The numbers of one client's samples, ascending, as a range that a std::span can view: part of a partition,
// which must outlive it, or numbers of its own.
class ClientSamples {
 public:
  explicit ClientSamples(std::span<const std::uint32_t> view) : view_(view) {}
  explicit ClientSamples(std::vector<std::uint32_t> own) : own_(std::move(own)), view_(own_) {}
  ClientSamples(ClientSamples&&) noexcept = default;
  ClientSamples& operator=(ClientSamples&&) noexcept = default;

  const std::uint32_t* data() const { return view_.data(); }
  std::size_t size() const { return view_.size(); }
  bool empty() const { return view_.empty(); }
  auto begin() const { return view_.begin(); }
  auto end() const { return view_.end(); }
  std::uint32_t front() const { return view_.front(); }
  std::uint32_t operator[](std::size_t i) const { return view_[i]; }

 private:
  std::vector<std::uint32_t> own_;
  std::span<const std::uint32_t> view_;
};

// Sample numbers of each client: in one array for all clients, or drawn when they are asked for.
class Partition {
 public:
  // Client i has part i mod the number of parts; `clients` 0: one client for each part.
  Partition(std::vector<std::uint32_t> samples, std::vector<std::size_t> starts, std::size_t clients = 0)
      : samples_(std::move(samples)),
        starts_(std::move(starts)),
        clients_(clients > 0 ? clients : starts_.size() - 1) {}
  Partition(ReplicatedSamples drawn, std::size_t clients) : clients_(clients), drawn_(std::move(drawn)) {}

  std::size_t clients() const { return clients_; }
  // O(1), or one client's draw with replicate.
  ClientSamples of(std::size_t client) const {
    if (drawn_) return ClientSamples(drawn_->of(client));
    const std::size_t part = client % (starts_.size() - 1);
    return ClientSamples(std::span(samples_).subspan(starts_[part], starts_[part + 1] - starts_[part]));
  }
  // The number of the client's samples; O(1).
  std::size_t size_of(std::size_t client) const {
    return drawn_ ? drawn_->samples_per_client() : of(client).size();
  }
  // The samples of all parts, part after part; not for drawn samples.
  std::span<const std::uint32_t> all() const { return samples_; }
  // The same partition of the samples names[0], names[1], ... instead of 0, 1, ...; `names` must ascend.
  Partition renamed(std::span<const std::uint32_t> names) const;

 private:
  std::vector<std::uint32_t> samples_;
  std::vector<std::size_t> starts_;  // parts + 1
  std::size_t clients_;
  std::optional<ReplicatedSamples> drawn_;
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
