#include "learn/models/adapters.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "core/check.h"

namespace fedge::learn {

std::size_t kept_ranks(std::size_t ranks, double share) {
  return std::max<std::size_t>(1, static_cast<std::size_t>(share * static_cast<double>(ranks)));
}

std::vector<TailNorms> tail_norms(const AdapterLayout& shape, std::span<const float> parameters,
                                  const Range& ranks) {
  std::vector<TailNorms> norms;
  const auto squares = [&](std::size_t rank, std::size_t place, std::size_t count) {
    double sum = 0;
    for (const float value : parameters.subspan(shape.prefix(rank).end + place, count))
      sum += static_cast<double>(value) * static_cast<double>(value);
    return sum;
  };
  for (const AdaptedMatrix& m : shape.matrices) {
    TailNorms one{.matrix = &m};
    for (std::size_t j = ranks.begin; j < ranks.end; ++j) {
      one.a += squares(j, m.a, m.in);
      one.b += squares(j, m.b, m.out);
    }
    norms.push_back({&m, std::sqrt(one.a), std::sqrt(one.b)});
  }
  return norms;
}

double energy(const AdapterLayout& shape, std::span<const float> parameters, const Range& ranks) {
  double sum = 0;
  for (std::size_t j = ranks.begin; j < ranks.end; ++j)
    for (const TailNorms& norms : tail_norms(shape, parameters, {j, j + 1}))
      sum += norms.a * norms.a * norms.b * norms.b;
  return sum;
}

std::size_t Adapters::find(std::size_t weight) const {
  const auto found = std::ranges::find(shape_.matrices, weight, &AdaptedMatrix::weight);
  return static_cast<std::size_t>(found - shape_.matrices.begin());
}

void Adapters::attach(const std::vector<std::string>& tensors, ParameterLayout& layout, std::uint32_t layer) {
  FEDGE_CHECK(shape_.rank > 0, "adapters of a rank");
  for (const std::string& name : tensors) {
    const TensorInfo* tensor = layout.find(name);
    FEDGE_CHECK(tensor != nullptr && tensor->shape.size() == 2, "a matrix of the model");
    shape_.matrices.push_back({.name = name,
                               .weight = tensor->offset,
                               .in = tensor->shape[1],
                               .out = tensor->shape[0],
                               .a = shape_.row,
                               .b = 0});
    shape_.row += tensor->shape[1];
  }
  shape_.b_begin = shape_.row;
  for (AdaptedMatrix& matrix : shape_.matrices) {
    matrix.b = shape_.row;
    shape_.row += matrix.out;
  }
  shape_.offset = layout.size();
  layout.add(AdapterLayout::kTensor, {shape_.rank, shape_.row},
             {.layer = layer, .order = TensorOrder::kRankMajor});
}

void Adapters::initialise(std::span<float> parameters, const Rng& rng) const {
  for (std::size_t j = 0; j < shape_.rank; ++j) {
    const auto row = parameters.subspan(shape_.offset + j * shape_.row, shape_.row);
    std::ranges::fill(row, 0.0F);
    for (std::size_t m = 0; m < shape_.matrices.size(); ++m) {
      Rng stream = rng.fork("adapter", j, m);
      const double bound = 1.0 / std::sqrt(static_cast<double>(shape_.matrices[m].in));
      for (float& value : row.subspan(shape_.matrices[m].a, shape_.matrices[m].in))
        value = static_cast<float>((2.0 * stream.uniform() - 1.0) * bound);
    }
  }
}

AdapterSpace Adapters::make_space(std::size_t most_rows) const {
  AdapterSpace space;
  if (empty()) return space;
  space.hidden = AlignedBuffer<float>(most_rows * shape_.rank);
  space.dhidden = AlignedBuffer<float>(most_rows * shape_.rank);
  return space;
}

void Adapters::add_product(const Kernels& kernels, std::size_t matrix, std::span<const float> parameters,
                           std::size_t ranks, float* weights, float* scratch) const {
  ranks = std::min(ranks, shape_.rank);
  if (ranks == 0) return;
  const AdaptedMatrix& m = shape_.matrices[matrix];
  const float* rows = parameters.data() + shape_.offset;
  kernels.product({m.out, ranks, m.in}, {rows + m.b, 1, shape_.row}, {rows + m.a, shape_.row, 1},
                  {.data = weights, .row = m.in, .add = true, .factor = shape_.scale}, scratch);
}

void Adapters::merge(const Kernels& kernels, std::span<const float> parameters, std::size_t ranks,
                     float* merged, float* scratch) const {
  std::memcpy(merged, parameters.data(), shape_.offset * sizeof(float));
  for (std::size_t i = 0; i < shape_.matrices.size(); ++i)
    add_product(kernels, i, parameters, ranks, merged + shape_.matrices[i].weight, scratch);
}

void Adapters::add_gradient(const Kernels& kernels, std::size_t matrix, std::size_t ranks,
                            const AdapterPass& pass, std::span<const float> parameters, float* gradient,
                            AdapterSpace& space, float* scratch) const {
  ranks = std::min(ranks, shape_.rank);
  if (ranks == 0) return;
  const AdaptedMatrix& m = shape_.matrices[matrix];
  const float* rows = parameters.data() + shape_.offset;
  float* to = gradient + shape_.offset;
  kernels.product({pass.rows, m.in, ranks}, pass.x, {rows + m.a, 1, shape_.row},
                  {.data = space.hidden.data(), .row = ranks}, scratch);
  kernels.product({pass.rows, m.out, ranks}, pass.dy, {rows + m.b, 1, shape_.row},
                  {.data = space.dhidden.data(), .row = ranks}, scratch);
  kernels.product({ranks, pass.rows, m.in}, {space.dhidden.data(), 1, ranks}, pass.x,
                  {.data = to + m.a, .row = shape_.row, .add = true, .factor = shape_.scale}, scratch);
  kernels.product({ranks, pass.rows, m.out}, {space.hidden.data(), 1, ranks}, pass.dy,
                  {.data = to + m.b, .row = shape_.row, .add = true, .factor = shape_.scale}, scratch);
}

Result<void> check_targets(const AdapterSpec& adapter, const std::vector<std::string>& known) {
  std::string list;
  for (const std::string& name : known) list += (list.empty() ? "" : ", ") + name;
  std::set<std::string> seen;
  for (const std::string& target : adapter.targets) {
    if (std::ranges::find(known, target) == known.end())
      return invalid("model.adapter.targets: the model has no layer \"" + target + "\"; its layers are " +
                     list);
    if (!seen.insert(target).second)
      return invalid("model.adapter.targets: \"" + target + "\" is listed twice");
  }
  return {};
}

}  // namespace fedge::learn
