#include "aggregation/aggregators/robust/kept_updates.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <tuple>

#include "core/check.h"
#include "core/rng.h"

namespace fedge::aggregation {
namespace {

// Gap between the end of a row and the start of the next. Rows a power of two apart would share the same few
// cache sets.
constexpr std::size_t kGap = 16;

// Columns of a bucket averaged at a time.
constexpr std::size_t kReadPiece = 4096;

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t last = values.size() - 1;
  return (values[last / 2] + values[last - last / 2]) / 2;
}

Result<void> read_values(const UpdateValues& values, std::size_t first, std::span<float> out) {
  const std::span<const float> memory = values.in_memory();
  if (memory.empty()) return values.read(first, out);
  std::copy_n(memory.begin() + static_cast<std::ptrdiff_t>(first), out.size(), out.begin());
  return {};
}

}  // namespace

std::size_t read_memory_bytes(config::Reader& section) {
  return static_cast<std::size_t>(section.integer(
             "memory_mb", 256, {1, 1'048'576},
             "Maximum memory for reading stored updates, in MiB. Updates are read in blocks of parameters."))
         << 20;
}

RowOptions read_row_options(config::Reader& section, bool clip_to_median) {
  RowOptions options;
  options.memory_bytes = read_memory_bytes(section);
  options.clip_norm =
      section.number("clip_norm", 0.0, {0.0, 1e30},
                     "Maximum Euclidean norm of an update; longer updates are clipped. 0: no clipping.");
  options.clip_to_median = section.boolean("clip_to_median", clip_to_median && options.clip_norm == 0,
                                           "Whether updates are clipped to the median norm of the round. "
                                           "With clip_norm, it must be false, and false is the default.");
  options.bucket_size = static_cast<std::size_t>(
      section.integer("bucket_size", 1, {1, 1'000'000},
                      "Number of updates in a bucket. Updates are divided into buckets at random, and the "
                      "rule compares the means of the buckets. 1: no buckets."));
  if (options.clip_to_median && options.clip_norm > 0)
    section.fail("clip_norm", "clip_norm and clip_to_median exclude each other; remove one of them",
                 {section.path() + ".clip_to_median"});
  return options;
}

KeptUpdates::KeptUpdates(const AggregatorContext& context, const RowOptions& options, std::string rule)
    : parameters_(context.layout->size()), seed_(context.seed), options_(options), rule_(std::move(rule)) {}

Result<void> KeptUpdates::add(std::span<const Update> updates) {
  for (const Update& update : updates)
    if (update.coverage != Coverage::all(parameters_))
      return invalid("client " + std::to_string(update.client.value()) + "'s update covers " +
                     std::to_string(update.coverage.count()) + " of " + std::to_string(parameters_) +
                     " parameters; the aggregator " + rule_ + " requires updates of the whole model");
  for (const Update& update : updates)
    kept_.push_back({.client = update.client,
                     .weight = update.weight.value(),
                     .norm = std::abs(update.factor) * update.norm,
                     .factor = update.factor,
                     .scale = update.factor,
                     .loss = update.loss,
                     .values = update.values});
  return {};
}

void KeptUpdates::arrange() {
  // Overlapping rounds may hold two updates of one client.
  const auto key = [](const Kept& kept) {
    return std::tie(kept.client, kept.norm, kept.weight, kept.factor, kept.loss);
  };
  std::sort(kept_.begin(), kept_.end(), [&](const Kept& a, const Kept& b) { return key(a) < key(b); });
  const double bound = norm_bound();
  for (Kept& kept : kept_) {
    kept.scale = kept.factor;
    if (kept.norm > bound) kept.scale *= bound / kept.norm;
  }
  order_.resize(kept_.size());
  std::iota(order_.begin(), order_.end(), 0U);
  if (options_.bucket_size > 1) Rng(seed_).fork("aggregate", round_).shuffle(std::span(order_));
  all_rows_.resize(rows());
  std::iota(all_rows_.begin(), all_rows_.end(), 0U);
}

double KeptUpdates::norm_bound() const {
  if (options_.clip_norm > 0) return options_.clip_norm;
  if (!options_.clip_to_median || kept_.empty()) return HUGE_VAL;
  std::vector<double> norms;
  for (const Kept& kept : kept_) norms.push_back(kept.norm);
  return median_of(std::move(norms));
}

void KeptUpdates::clear() {
  kept_.clear();
  order_.clear();
  all_rows_.clear();
  buffer_ = {};
  ++round_;
}

std::span<const std::uint32_t> KeptUpdates::members(std::size_t row) const {
  const std::size_t first = row * options_.bucket_size;
  return std::span(order_).subspan(first, std::min(options_.bucket_size, order_.size() - first));
}

std::vector<double> KeptUpdates::weights() const {
  std::vector<double> weights;
  for (const std::uint32_t row : all_rows_) {
    std::uint64_t samples = 0;
    for (const std::uint32_t member : members(row)) samples += kept_[member].weight;
    weights.push_back(static_cast<double>(samples));
  }
  return weights;
}

std::vector<double> KeptUpdates::losses() const {
  FEDGE_CHECK(options_.bucket_size == 1, "losses of single updates");
  std::vector<double> losses;
  for (const Kept& kept : kept_) losses.push_back(kept.loss);
  return losses;
}

std::vector<double> KeptUpdates::norms() const {
  FEDGE_CHECK(options_.bucket_size == 1, "norms of single updates");
  std::vector<double> norms;
  for (const Kept& kept : kept_) norms.push_back(kept.factor != 0 ? kept.norm * kept.scale / kept.factor : 0);
  return norms;
}

Result<void> KeptUpdates::require_rows(std::size_t needed, const std::string& who) const {
  if (rows() >= needed) return {};
  std::string what = std::to_string(needed) + " updates";
  if (options_.bucket_size > 1)
    what = std::to_string(updates_for_rows(needed, options_)) + " updates, which make " +
           std::to_string(needed) + " buckets of up to " + std::to_string(options_.bucket_size);
  return Error{ErrorCode::kUnavailable,
               who + " requires at least " + what + "; this round has " + std::to_string(updates())};
}

Result<void> KeptUpdates::limit_rows(std::size_t most) const {
  if (rows() <= most) return {};
  const std::string what = options_.bucket_size > 1 ? " buckets of updates" : " updates";
  return Error{ErrorCode::kUnavailable, rule_ + " compares at most " + std::to_string(most) + what +
                                            ", but this round has " + std::to_string(rows()) +
                                            "; raise strategy.aggregator.bucket_size"};
}

const float* KeptUpdates::in_place(std::size_t row) const {
  const std::span<const std::uint32_t> updates = members(row);
  if (updates.size() > 1 || kept_[updates[0]].scale != 1) return nullptr;
  const std::span<const float> memory = kept_[updates[0]].values->in_memory();
  return memory.empty() ? nullptr : memory.data();
}

Result<void> KeptUpdates::load(std::size_t row, std::size_t first, std::span<float> out) const {
  const std::span<const std::uint32_t> updates = members(row);
  if (updates.size() == 1) {
    const Kept& kept = kept_[updates[0]];
    FEDGE_TRY_VOID(read_values(*kept.values, first, out));
    if (kept.scale != 1)
      for (float& value : out) value = static_cast<float>(static_cast<double>(value) * kept.scale);
    return {};
  }
  std::vector<float> values(std::min(kReadPiece, out.size()));
  std::vector<double> sums(values.size());
  for (std::size_t done = 0; done < out.size(); done += kReadPiece) {
    const std::size_t count = std::min(kReadPiece, out.size() - done);
    std::fill(sums.begin(), sums.end(), 0.0);
    for (const std::uint32_t member : updates) {
      FEDGE_TRY_VOID(read_values(*kept_[member].values, first + done, std::span(values).first(count)));
      for (std::size_t i = 0; i < count; ++i) sums[i] += static_cast<double>(values[i]) * kept_[member].scale;
    }
    for (std::size_t i = 0; i < count; ++i)
      out[done + i] = static_cast<float>(sums[i] / static_cast<double>(updates.size()));
  }
  return {};
}

Result<std::size_t> KeptUpdates::block_width(const BlockRequest& request) const {
  const std::size_t row_bytes = request.rows.size() * sizeof(float);
  const std::size_t room = options_.memory_bytes / row_bytes;
  const std::size_t width = room < kGap ? 0 : (room - kGap) / request.multiple * request.multiple;
  if (width > 0) return width;
  const std::size_t needed = (request.multiple + kGap) * row_bytes;
  return Error{ErrorCode::kResource,
               rule_ + " reads " + std::to_string(request.multiple) + " parameters of " +
                   std::to_string(request.rows.size()) +
                   " updates at once; for that, strategy.aggregator.memory_mb must be at least " +
                   std::to_string((needed >> 20) + 1)};
}

Result<void> KeptUpdates::for_each_block(const BlockRequest& request, Parallel& parallel,
                                         const std::function<void(const RowBlock&)>& visit) {
  FEDGE_CHECK(request.first + request.count <= parameters_, "columns beyond the model");
  const std::size_t count = request.rows.size();
  std::vector<const float*> sources;
  for (const std::uint32_t row : request.rows) sources.push_back(in_place(row));
  std::size_t width = request.count;
  std::size_t stride = 0;
  if (std::find(sources.begin(), sources.end(), nullptr) != sources.end()) {
    FEDGE_TRY(room, block_width(request));
    width = std::min(width, room);
    stride = (width + 15) / 16 * 16 + kGap;
    if (buffer_.size() < count * stride) {
      buffer_ = {};  // frees the old buffer first
      buffer_ = AlignedBuffer<float>(count * stride);
    }
  }
  std::vector<const float*> rows(count);
  for (std::size_t done = 0; done < request.count; done += width) {
    const std::size_t first = request.first + done;
    const std::size_t columns = std::min(width, request.count - done);
    std::vector<std::optional<Error>> errors(count);
    const auto present = [&](std::size_t i) {
      if (sources[i] != nullptr) {
        rows[i] = sources[i] + first;
        return;
      }
      const std::span<float> out = buffer_.span().subspan(i * stride, columns);
      errors[i] = error_of(load(request.rows[i], first, out));
      rows[i] = out.data();
    };
    parallel.for_each(count, present);
    for (const std::optional<Error>& error : errors)
      if (error) return *error;
    visit({first, columns, rows});
  }
  return {};
}

}  // namespace fedge::aggregation
