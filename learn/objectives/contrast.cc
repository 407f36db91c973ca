#include "learn/objectives/contrast.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace fedge::learn {
namespace {

double dot(const float* a, const float* b, std::size_t size) {
  double sum = 0;
  for (std::size_t i = 0; i < size; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

// Adds factor * row / |row| to `out`; a row of zeros has no direction and adds nothing.
void add_direction(std::span<const float> row, double factor, float* out) {
  const double norm = std::sqrt(dot(row.data(), row.data(), row.size()));
  if (!(norm > 0)) return;
  for (std::size_t i = 0; i < row.size(); ++i)
    out[i] += static_cast<float>(factor * static_cast<double>(row[i]) / norm);
}

}  // namespace

void add_contrast_gradient(const ContrastTerm& term, const float* representation, std::size_t size,
                           float scale, float* gradient) {
  const auto temperature = static_cast<double>(term.temperature);
  const double share =
      static_cast<double>(scale) * static_cast<double>(term.mu) / static_cast<double>(term.directions.size());
  for (std::size_t row = 0; row < term.directions.size(); ++row) {
    const float* z = representation + row * size;
    const float* d = term.directions[row];
    float* out = gradient + row * size;
    const double norm = std::sqrt(dot(z, z, size));
    if (!(norm > 0)) continue;
    const double s = dot(z, d, size) / norm;
    const double factor = share / temperature / (1 + std::exp(-s / temperature)) / norm;
    for (std::size_t i = 0; i < size; ++i)
      out[i] +=
          static_cast<float>(factor * (static_cast<double>(d[i]) - s * static_cast<double>(z[i]) / norm));
  }
}

void Contrast::prepare(const Model& model, std::span<const float> round, std::span<const float> previous,
                       const Dataset& data, std::span<const std::uint32_t> samples,
                       const Normalisation* normalisation, BatchBuffer& buffer, std::size_t batch_size,
                       Workspace& workspace) {
  size_ = model.representation();
  samples_.assign(samples.begin(), samples.end());
  std::ranges::sort(samples_);
  directions_.assign(samples_.size() * size_, 0.0F);
  std::vector<float> rows(std::min(batch_size, samples_.size()) * size_);
  for (std::size_t first = 0; first < samples_.size(); first += batch_size) {
    const std::size_t count = std::min(batch_size, samples_.size() - first);
    const Batch batch = buffer.read(data, std::span(samples_).subspan(first, count), false, normalisation);
    for (const auto& [parameters, factor] : {std::pair(previous, 1.0), std::pair(round, -1.0)}) {
      model.represent(parameters, batch, std::span(rows).first(count * size_), workspace);
      for (std::size_t i = 0; i < count; ++i)
        add_direction(std::span<const float>(rows).subspan(i * size_, size_), factor,
                      directions_.data() + (first + i) * size_);
    }
  }
}

void Contrast::select(std::span<const std::uint32_t> samples, ContrastTerm& term) const {
  term.directions.clear();
  for (const std::uint32_t sample : samples) {
    const auto found = std::ranges::lower_bound(samples_, sample);
    FEDGE_CHECK(found != samples_.end() && *found == sample, "a sample whose direction is known");
    term.directions.push_back(directions_.data() +
                              static_cast<std::size_t>(found - samples_.begin()) * size_);
  }
}

}  // namespace fedge::learn
