// KeptUpdates: the updates of a round as a matrix that a rule reads in blocks of columns. One column is one
// parameter. One row is one update, in the order of client ids, or the mean of one bucket of updates
// (Karimireddy, He, Jaggi, ICLR 2022, algorithm 1: a random permutation, then means of consecutive updates).
// A row holds its update times `factor`, clipped to the norm bound if there is one. Updates in memory that
// need no scaling are not copied; of the others, at most `memory_bytes` are in memory at a time. Externally
// synchronised; borrows Parallel for the call.
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

// How updates become rows; the options that all row rules share.
struct RowOptions {
  std::size_t memory_bytes = std::size_t{256} << 20;
  double clip_norm = 0;         // clips longer updates to this Euclidean norm; 0: no clipping
  bool clip_to_median = false;  // the bound is the median of the round's norms
  std::size_t bucket_size = 1;  // updates averaged into one row; the last row may have fewer
};

// Reads memory_mb, clip_norm, clip_to_median and bucket_size. `clip_to_median` is that key's default if
// clip_norm is absent.
RowOptions read_row_options(config::Reader& section, bool clip_to_median = false);
// Reads memory_mb alone.
std::size_t read_memory_bytes(config::Reader& section);

// A range of columns of several rows.
struct RowBlock {
  std::size_t first = 0;  // parameter of the first column
  std::size_t columns = 0;
  std::span<const float* const> rows;  // each has one value for each column
};

struct BlockRequest {
  std::size_t first = 0;                // parameter of the first column
  std::size_t count = 0;                // columns
  std::span<const std::uint32_t> rows;  // indices of the rows
  std::size_t multiple = 16;            // the width of every block but the last is a multiple of this
};

class KeptUpdates {
 public:
  // `rule` is the rule's name, for error messages.
  KeptUpdates(const AggregatorContext& context, const RowOptions& options, std::string rule);

  // Adds all updates or none; refuses an update that covers only a part of the model.
  Result<void> add(std::span<const Update> updates);
  // Ends the round's input: sorts the updates, sets the norm bound and draws the buckets.
  void arrange();
  // Ends the round and drops its updates.
  void clear();
  // As Aggregator::memory(): the round's number.
  std::span<std::byte> memory() { return std::as_writable_bytes(std::span(&round_, 1)); }

  std::size_t updates() const { return kept_.size(); }
  std::size_t parameters() const { return parameters_; }
  // After arrange():
  std::size_t rows() const { return (kept_.size() + options_.bucket_size - 1) / options_.bucket_size; }
  // 0, 1, ..., rows() - 1.
  std::span<const std::uint32_t> all_rows() const { return all_rows_; }
  // Training samples of each row; a bucket's samples are added up.
  std::vector<double> weights() const;
  // Return Update::loss of each row, and the norm of its values. Only for rules without buckets.
  std::vector<double> losses() const;
  std::vector<double> norms() const;
  // Returns kUnavailable if there are fewer rows than `needed`, with a sentence that begins with `who` ("krum
  // with byzantine = 2").
  Result<void> require_rows(std::size_t needed, const std::string& who) const;
  // Returns kUnavailable if there are more than `most` rows.
  Result<void> limit_rows(std::size_t most) const;

  // Calls visit with blocks of the requested columns, in ascending order. kResource if memory_bytes cannot
  // hold one block; other errors are those of UpdateValues.
  Result<void> for_each_block(const BlockRequest& request, Parallel& parallel,
                              const std::function<void(const RowBlock&)>& visit);

 private:
  struct Kept {
    ClientId client;
    std::uint64_t weight;
    double norm;  // with the factor
    double factor;
    double scale;  // with the norm bound
    double loss;
    std::shared_ptr<const UpdateValues> values;
  };

  double norm_bound() const;
  std::span<const std::uint32_t> members(std::size_t row) const;
  // The row's own memory if it needs no copy, else null.
  const float* in_place(std::size_t row) const;
  Result<void> load(std::size_t row, std::size_t first, std::span<float> out) const;
  Result<std::size_t> block_width(const BlockRequest& request) const;

  std::size_t parameters_;
  std::uint64_t seed_;
  RowOptions options_;
  std::string rule_;
  std::uint64_t round_ = 1;
  std::vector<Kept> kept_;
  std::vector<std::uint32_t> order_;  // update of each row, bucket after bucket
  std::vector<std::uint32_t> all_rows_;
  AlignedBuffer<float> buffer_;
};

// Fewest updates that give this number of rows.
inline std::size_t updates_for_rows(std::size_t rows, const RowOptions& options) {
  return (rows - 1) * options.bucket_size + 1;
}

}  // namespace fedge::aggregation
