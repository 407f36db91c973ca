// KeptUpdates: the updates of a round as a matrix that a rule reads block of columns by block of
// columns: one column for each parameter, one row for each update in the order of client ids, or for
// each bucket of updates (Karimireddy, He, Jaggi, ICLR 2022, algorithm 1: a random permutation, then
// the means of so many consecutive updates). A row counts its update `factor` times, shortened to the
// norm bound if there is one.
// Updates that lie in memory and are taken as they are are not copied; of the others at most
// `memory_bytes` are in memory at a time. Externally synchronised; borrows Parallel for the call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "aggregation/aggregators/aggregator.h"
#include "core/aligned_buffer.h"
#include "core/config/reader.h"

namespace fedge::aggregation {

// How rows are made of updates; the options that all rules on rows share.
struct RowOptions {
  std::size_t memory_bytes = std::size_t{256} << 20;
  double clip_norm = 0;         // longer updates are shortened to this Euclidean norm; 0: none is
  bool clip_to_median = false;  // the bound is the median of the round's norms
  std::size_t bucket_size = 1;  // updates averaged into one row; the last row may have fewer
};

// Reads memory_mb, clip_norm, clip_to_median and bucket_size. `clip_to_median` is its default where
// clip_norm is absent.
RowOptions read_row_options(config::Reader& section, bool clip_to_median = false);

// Some columns of some rows.
struct RowBlock {
  std::size_t first = 0;  // parameter of the first column
  std::size_t columns = 0;
  std::span<const float* const> rows;  // each has a value for each of the columns
};

struct BlockRequest {
  std::size_t first = 0;                // parameter of the first column
  std::size_t count = 0;                // columns
  std::span<const std::uint32_t> rows;  // which
  std::size_t multiple = 16;            // every block but the last has a multiple of so many columns
};

class KeptUpdates {
 public:
  // `rule` is the rule's name, for messages.
  KeptUpdates(const AggregatorContext& context, const RowOptions& options, std::string rule);

  // All or none; an update that covers a part of the model only is refused.
  Result<void> add(std::span<const Update> updates);
  // Every update is in: puts them in order, sets the norm bound and draws the buckets.
  void arrange();
  // The round is over.
  void clear();
  // As Aggregator::memory(): which round it is.
  std::span<std::byte> memory() { return std::as_writable_bytes(std::span(&round_, 1)); }

  std::size_t updates() const { return kept_.size(); }
  std::size_t parameters() const { return parameters_; }
  // After arrange():
  std::size_t rows() const { return (kept_.size() + options_.bucket_size - 1) / options_.bucket_size; }
  // 0, 1, ..., rows() - 1.
  std::span<const std::uint32_t> all_rows() const { return all_rows_; }
  // Each row's training samples, those of a bucket added up.
  std::vector<double> weights() const;
  // kUnavailable if there are fewer rows than `needed`, with a sentence that begins with `who`
  // ("krum with byzantine = 2").
  Result<void> require_rows(std::size_t needed, const std::string& who) const;
  // kUnavailable if there are more rows than the rule can bear.
  Result<void> limit_rows(std::size_t most) const;

  // Calls visit with one block of the requested columns after the other, from the first to the last.
  // kResource if memory_bytes do not hold one block; other errors are those of UpdateValues.
  Result<void> for_each_block(const BlockRequest& request, Parallel& parallel,
                              const std::function<void(const RowBlock&)>& visit);

 private:
  struct Kept {
    ClientId client;
    std::uint64_t weight;
    double norm;  // with the factor
    double factor;
    double scale;  // with the norm bound
    std::shared_ptr<const UpdateValues> values;
  };

  double norm_bound() const;
  std::span<const std::uint32_t> members(std::size_t row) const;
  // The row where its values lie, if they can be taken as they are.
  const float* in_place(std::size_t row) const;
  Result<void> load(std::size_t row, std::size_t first, std::span<float> out) const;
  Result<std::size_t> block_width(const BlockRequest& request) const;

  std::size_t parameters_;
  std::uint64_t seed_;
  RowOptions options_;
  std::string rule_;
  std::uint64_t round_ = 1;
  std::vector<Kept> kept_;
  std::vector<std::uint32_t> order_;  // of the updates, by row
  std::vector<std::uint32_t> all_rows_;
  AlignedBuffer<float> buffer_;
};

// Fewest updates that make so many rows.
inline std::size_t updates_for_rows(std::size_t rows, const RowOptions& options) {
  return (rows - 1) * options.bucket_size + 1;
}

}  // namespace fedge::aggregation
