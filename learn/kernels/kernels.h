// Kernels: the inner loops of training, compiled once for each instruction set and chosen at run time by the
// processor. They use plain pointers and row-major float32, allocate nothing and start no threads. One
// instruction set gives the same bits on every machine and in every call; different ones may round
// differently. Images have their channels last, so that a row of a convolution's kernel at a pixel is one run
// of floats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "learn/kernels/operands.h"

namespace fedge::learn {

struct Kernels {
  const char* name;  // "portable", "x86-64-v3" ...

  // y = x w^T + bias.
  void (*dense_forward)(const DenseShape& shape, const float* x, const float* w, const float* bias, float* y);
  // dx = dy w.
  void (*dense_backward)(const DenseShape& shape, const float* dy, const float* w, float* dx);
  // w = keep * w + dy^T x; with keep = 0, w is written and never read. A gradient uses keep = 0; an SGD step
  // uses keep = 1 and dy scaled by minus the learning rate. Only the rows of `outputs` are read or written. A
  // row gets the same bits whichever rows are computed with it.
  void (*dense_update)(const DenseShape& shape, const Outputs& outputs, const float* dy, const float* x,
                       float keep, float* w);
  // bias = keep * bias + column sums of dy (rows x out), only for `outputs`.
  void (*bias_update)(const DenseShape& shape, const Outputs& outputs, const float* dy, float keep,
                      float* bias);
  // y = max(y, 0).
  void (*relu)(float* y, std::size_t count);
  // dy = 0 where y <= 0; y is the layer's output after relu.
  void (*relu_backward)(const float* y, float* dy, std::size_t count);
  // probabilities = exp(logits - row maximum), normalised; rows x classes; may be in place.
  void (*softmax)(const float* logits, std::size_t rows, std::size_t classes, float* probabilities);
  // y += a * x.
  void (*axpy)(float a, const float* x, float* y, std::size_t count);

  // Floats of a vector. The right operand of a product of patches is packed into panels of two vectors; the
  // last panel has one if that is enough, and is padded with zeros.
  std::size_t lanes;
  // Packs w (inner x columns) into panels: packed_size(columns) * inner floats.
  void (*pack_panels)(const Matrix& w, std::size_t inner, std::size_t columns, float* packed);
  // target = start + patches w. Each sum adds its terms in the order of the patch.
  void (*multiply_patches)(const Patches& patches, const float* x, std::size_t columns, const float* packed,
                           const PatchTarget& target);
  // packed (like w) += patches^T dy. Row r of dy begins at r * dy_row; it has at least packed_size(columns)
  // floats.
  void (*add_patch_gradient)(const Patches& patches, const float* x, std::size_t columns, const float* dy,
                             std::size_t dy_row, float* packed);
  std::size_t packed_size(std::size_t columns) const { return (columns + lanes - 1) / lanes * lanes; }
  // Where element (i, column) of the right operand is among the packed ones.
  std::size_t packed_place(std::size_t inner, std::size_t columns, std::size_t i, std::size_t column) const {
    const std::size_t first = column / (2 * lanes) * (2 * lanes);
    const std::size_t width = columns - first <= lanes ? lanes : 2 * lanes;
    return first * inner + i * width + column - first;
  }
  // output (height/2 x width/2 x out) = relu of the maximum of each 2x2 square. winners: index of the maximum
  // among the four, row by row; the first of equals.
  void (*pool)(const PoolShape& shape, const float* y, float* output, std::int32_t* winners);
  // The gradient with respect to y, from that with respect to the output: at each winner whose output is
  // positive, and zero elsewhere. The strides beyond `out` get zeros.
  void (*unpool)(const PoolShape& shape, const float* output, const std::int32_t* winners, const float* dy,
                 float* y);
  // For each row: to[row.to + j] += sum over its terms of factor * from[term.from + j], j < run.
  void (*add_terms)(const TermRows& rows, const float* from, std::size_t run, float* to);

  // target = factor a b (+ bias) (+ target), where a is rows x inner and b is inner x columns. `scratch` has
  // kProductScratch floats. Intended for many rows, since both are copied.
  void (*product)(const ProductShape& shape, const Matrix& a, const Matrix& b, const ProductTarget& target,
                  float* scratch);
  // y = gain * (x - mean) / deviation + bias, row by row (Ba, Kiros, Hinton 2016).
  void (*layer_norm)(const NormShape& shape, const float* x, const float* gain, const float* bias, float* y,
                     NormStatistics* statistics);
  // dx += the gradient with respect to x, given the gradient dy with respect to y.
  void (*layer_norm_backward)(const NormShape& shape, const float* x, const float* gain,
                              const NormStatistics* statistics, const float* dy, float* dx);
  // gain and bias += the gradients with respect to the layer's gain and bias.
  void (*layer_norm_gradient)(const NormShape& shape, const float* x, const NormStatistics* statistics,
                              const float* dy, float* gain, float* bias);
  // y = gain * x / sqrt(mean of x^2 + epsilon), row by row (Zhang and Sennrich, "RMSNorm", 2019, eq. 4). The
  // gradients are added like those of layer_norm(); there is no bias.
  void (*rms_norm)(const NormShape& shape, float epsilon, const float* x, const float* gain, float* y,
                   NormStatistics* statistics);
  void (*rms_norm_backward)(const NormShape& shape, const float* x, const float* gain,
                            const NormStatistics* statistics, const float* dy, float* dx);
  void (*rms_norm_gradient)(const NormShape& shape, const float* x, const NormStatistics* statistics,
                            const float* dy, float* gain);
  // Over the columns of x (rows x width): sums += x; sums += (x - shift)^2; sums += (x - shift) dy;
  // y = factor x + term; dx = dy_factor dy + x_factor x + term.
  void (*column_sums)(const NormShape& shape, const float* x, float* sums);
  void (*column_squares)(const NormShape& shape, const float* x, const float* shift, float* sums);
  void (*column_products)(const NormShape& shape, const float* x, const float* shift, const float* dy,
                          float* sums);
  void (*column_affine)(const NormShape& shape, const float* x, const float* factor, const float* term,
                        float* y);
  void (*column_combine)(const NormShape& shape, const float* x, const float* x_factor, const float* term,
                         const float* dy, const float* dy_factor, float* dx);
  // y = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))): GELU's approximation (Hendrycks and Gimpel 2016).
  void (*gelu)(const float* x, float* y, std::size_t count);
  // dy *= gelu'(x).
  void (*gelu_backward)(const float* x, float* dy, std::size_t count);
  // y = 1 / (1 + e^-y), in place, and y = tanh(y); dy is multiplied by the derivative, from the output y.
  void (*sigmoid)(float* y, std::size_t count);
  void (*sigmoid_backward)(const float* y, float* dy, std::size_t count);
  void (*tanh)(float* y, std::size_t count);
  void (*tanh_backward)(const float* y, float* dy, std::size_t count);
  // y = x sigmoid(x); dy *= silu'(x).
  void (*silu)(const float* x, float* y, std::size_t count);
  void (*silu_backward)(const float* x, float* dy, std::size_t count);
  // y = silu(gate) * up for each row, whose `width` gates lie before its `width` other values ("SwiGLU";
  // Shazeer 2020, eq. 6). x: rows x 2 width.
  void (*gated_silu)(const NormShape& shape, const float* x, float* y);
  // dx (rows x 2 width) from dy.
  void (*gated_silu_backward)(const NormShape& shape, const float* x, const float* dy, float* dx);
  // y = slope * y where y <= 0; dy likewise, from the output y. slope > 0.
  void (*leaky_relu)(float slope, float* y, std::size_t count);
  void (*leaky_relu_backward)(float slope, const float* y, float* dy, std::size_t count);
  // y += a * b, element by element.
  void (*multiply_add)(const float* a, const float* b, float* y, std::size_t count);

  // A step of an LSTM for one sequence, with PyTorch's gates i, f, g, o. `gates` (4 x units) holds the sums
  // of inputs, recurrent terms and biases, and gets the gates' values. former, cell: the cell before and
  // after the step; y = o tanh(cell).
  void (*lstm_cell)(std::size_t units, float* gates, const float* former, float* cell, float* y);
  // Turns the gates' values into the gradient with respect to their sums, in place. dy: with respect to y.
  // dcell: with respect to the cell, except through y; on return, with respect to `former`.
  void (*lstm_cell_backward)(std::size_t units, float* gates, const float* former, const float* cell,
                             const float* dy, float* dcell);
  // A step of a GRU for one sequence, with PyTorch's gates r, z, n: y = (1 - z) n + z former. `gates` and
  // `recurrent` (3 x units each) hold the sums over the inputs and over `former`, with their biases; `gates`
  // gets the gates' values.
  void (*gru_cell)(std::size_t units, float* gates, const float* recurrent, const float* former, float* y);
  // Turns the gates' values and the recurrent sums into the gradients with respect to both sums, in place.
  // dformer: with respect to `former`, except through the recurrent sums.
  void (*gru_cell_backward)(std::size_t units, float* gates, float* recurrent, const float* former,
                            const float* dy, float* dformer);
  // Turns scores into probabilities in place; 0 for keys that a query does not see.
  void (*causal_softmax)(const CausalShape& shape, float* scores);
  // Turns the gradient with respect to the probabilities into that with respect to the scores, in place.
  void (*causal_softmax_backward)(const CausalShape& shape, const float* probabilities, float* gradient);
  // output (group x size) = softmax(scale q keys) values. `weights` is scratch of `seen` floats.
  void (*attend)(const AttendShape& shape, const float* q, const float* keys, const float* values,
                 float* weights, float* output);
  void (*adam_step)(const AdamStep& step, const float* gradient, float* w, float* m, float* v,
                    std::size_t count);
};

// The best kernels for this processor, chosen at first use.
const Kernels& kernels();
// All kernels that this processor can run, the portable ones first; for tests.
std::vector<const Kernels*> supported_kernels();

}  // namespace fedge::learn
