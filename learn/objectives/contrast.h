// Contrast: the model-contrastive term of MOON (Li, He, Song, "Model-contrastive federated learning", CVPR
// 2021, eq. 3). The representation of a sample is the input of the model's last layer. For each sample, with
// z the representation of the model being trained, u and v those of the round's model and of the client's
// last model, and sim(a, b) = a.b / (|a| |b|), the term is
//
//   mu * -log( exp(sim(z, u) / t) / (exp(sim(z, u) / t) + exp(sim(z, v) / t)) )  =  mu * log(1 + exp(s / t)),
//   s = sim(z, v) - sim(z, u) = z.d / |z|,  d = v / |v| - u / |u|,
//   d term / d z = mu / t * 1 / (1 + exp(-s / t)) * (d - s z / |z|) / |z|.
//
// u and v do not change during a training, so d is computed once for each sample.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "learn/model.h"

namespace fedge::learn {

// Adds the derivative of `scale` times the mean of the term over the batch's samples to `gradient`. Both
// `representation` and `gradient` have a row for each sample; term.directions holds d of each.
void add_contrast_gradient(const ContrastTerm& term, const float* representation, std::size_t size,
                           float scale, float* gradient);

// The directions d of one client's samples.
class Contrast {
 public:
  // Computes them for the two models; `previous` is the client's last model.
  void prepare(const Model& model, std::span<const float> round, std::span<const float> previous,
               const Dataset& data, std::span<const std::uint32_t> samples,
               const Normalisation* normalisation, BatchBuffer& buffer, std::size_t batch_size,
               Workspace& workspace);
  // Fills term.directions for these samples, which must be among those of prepare().
  void select(std::span<const std::uint32_t> samples, ContrastTerm& term) const;

 private:
  std::size_t size_ = 0;                // of a representation
  std::vector<std::uint32_t> samples_;  // ascending
  std::vector<float> directions_;       // a row for each of them
};

}  // namespace fedge::learn
