#include "learn/models/adapters.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/check.h"

namespace fedge::learn {

std::size_t Adapters::find(std::size_t weight) const {
  const auto found = std::ranges::find(matrices_, weight, &AdaptedMatrix::weight);
  return static_cast<std::size_t>(found - matrices_.begin());
}

void Adapters::attach(const std::vector<std::string>& tensors, ParameterLayout& layout, std::uint32_t layer) {
  FEDGE_CHECK(rank_ > 0, "adapters of a rank");
  for (const std::string& name : tensors) {
    const TensorInfo* tensor = layout.find(name);
    FEDGE_CHECK(tensor != nullptr && tensor->shape.size() == 2, "a matrix of the model");
    matrices_.push_back({.name = name,
                         .weight = tensor->offset,
                         .in = tensor->shape[1],
                         .out = tensor->shape[0],
                         .a = row_,
                         .b = 0});
    row_ += tensor->shape[1];
  }
  for (AdaptedMatrix& matrix : matrices_) {
    matrix.b = row_;
    row_ += matrix.out;
  }
  offset_ = layout.size();
  layout.add(kTensor, {rank_, row_}, {.layer = layer, .order = TensorOrder::kRankMajor});
}

void Adapters::initialise(std::span<float> parameters, const Rng& rng) const {
  for (std::size_t j = 0; j < rank_; ++j) {
    const auto row = parameters.subspan(offset_ + j * row_, row_);
    std::ranges::fill(row, 0.0F);
    for (std::size_t m = 0; m < matrices_.size(); ++m) {
      Rng stream = rng.fork("adapter", j, m);
      const double bound = 1.0 / std::sqrt(static_cast<double>(matrices_[m].in));
      for (float& value : row.subspan(matrices_[m].a, matrices_[m].in))
        value = static_cast<float>((2.0 * stream.uniform() - 1.0) * bound);
    }
  }
}

AdapterSpace Adapters::make_space(std::size_t most_rows) const {
  AdapterSpace space;
  if (empty()) return space;
  space.merged = AlignedBuffer<float>(offset_);
  space.hidden = AlignedBuffer<float>(most_rows * rank_);
  space.dhidden = AlignedBuffer<float>(most_rows * rank_);
  return space;
}

const float* Adapters::merge(const Kernels& kernels, std::span<const float> parameters, std::size_t ranks,
                             AdapterSpace& space, float* scratch) const {
  ranks = std::min(ranks, rank_);
  float* merged = space.merged.data();
  std::memcpy(merged, parameters.data(), offset_ * sizeof(float));
  if (ranks == 0) return merged;
  const float* rows = parameters.data() + offset_;
  for (const AdaptedMatrix& m : matrices_)
    kernels.product({m.out, ranks, m.in}, {rows + m.b, 1, row_}, {rows + m.a, row_, 1},
                    {.data = merged + m.weight, .row = m.in, .add = true, .factor = scale_}, scratch);
  return merged;
}

void Adapters::add_gradient(const Kernels& kernels, std::size_t matrix, std::size_t ranks,
                            const AdapterPass& pass, std::span<const float> parameters, float* gradient,
                            AdapterSpace& space, float* scratch) const {
  ranks = std::min(ranks, rank_);
  if (ranks == 0) return;
  const AdaptedMatrix& m = matrices_[matrix];
  const float* rows = parameters.data() + offset_;
  float* to = gradient + offset_;
  kernels.product({pass.rows, m.in, ranks}, pass.x, {rows + m.a, 1, row_},
                  {.data = space.hidden.data(), .row = ranks}, scratch);
  kernels.product({pass.rows, m.out, ranks}, pass.dy, {rows + m.b, 1, row_},
                  {.data = space.dhidden.data(), .row = ranks}, scratch);
  kernels.product({ranks, pass.rows, m.in}, {space.dhidden.data(), 1, ranks}, pass.x,
                  {.data = to + m.a, .row = row_, .add = true, .factor = scale_}, scratch);
  kernels.product({ranks, pass.rows, m.out}, {space.hidden.data(), 1, ranks}, pass.dy,
                  {.data = to + m.b, .row = row_, .add = true, .factor = scale_}, scratch);
}

}  // namespace fedge::learn
