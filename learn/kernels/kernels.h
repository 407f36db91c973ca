// Kernels: the inner loops of training, compiled once for each instruction set and chosen at run time
// by what the processor can do. Plain pointers, row-major float32, no allocation, no threads.
// One instruction set gives the same bits on every machine and for every call; different ones may
// round differently. Convolutions are 5x5 over images with a border of two zeros on each side, channels
// last, so that a kernel row at a pixel is one run of floats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fedge::learn {

// Shapes of a dense layer over a batch: x is rows x in, w is out x in, y is rows x out.
struct DenseShape {
  std::size_t rows = 0;
  std::size_t in = 0;
  std::size_t out = 0;
};

// Some of a dense layer's outputs: begin <= end <= out.
struct Outputs {
  std::size_t begin = 0;
  std::size_t end = 0;
};

// A convolution over one image: x is (height + 4) x (width + 4) x in, border included; y is
// height x width x (panels * Kernels::panel), the last outputs being there to fill a panel.
struct ConvolutionPanels {
  std::size_t height = 0;
  std::size_t width = 0;
  std::size_t in = 0;
  std::size_t panels = 0;
};

// The images' layout for pooling: y is height x width x stride, of which `out` channels count.
struct PoolShape {
  std::size_t height = 0;  // even, like width
  std::size_t width = 0;
  std::size_t out = 0;
  std::size_t stride = 0;  // a multiple of Kernels::panel
};

// A sparse matrix by rows: row.terms[0 .. row.count) are its elements. A row times a dense matrix is a
// sum of runs of floats, each beginning at a term's place; it is added to the run at row.to.
struct Term {
  std::uint32_t from = 0;
  float factor = 0;
};
struct TermRow {
  const Term* terms = nullptr;
  std::uint32_t count = 0;
  std::uint32_t to = 0;
};
struct TermRows {
  const TermRow* rows = nullptr;
  std::size_t count = 0;
};

// add_terms works by whole vectors: what follows a run, up to a multiple of this many floats from its
// start, must be there too; it is read, and written with garbage.
inline constexpr std::size_t kRunRounding = 16;

// A matrix somewhere in memory: element (i, j) is data[i * row + j * column].
struct Matrix {
  const float* data = nullptr;
  std::size_t row = 0;
  std::size_t column = 1;
};

struct ProductShape {
  std::size_t rows = 0;
  std::size_t inner = 0;  // at least 1
  std::size_t columns = 0;
};

// Where a product goes: by rows.
struct ProductTarget {
  float* data = nullptr;
  std::size_t row = 0;
  const float* bias = nullptr;  // added to each row; null: none
  bool add = false;             // to what is there
  float factor = 1;             // of the product
};

// Rows that are multiplied before the next, so that they stay in the second cache; and what a product
// needs to work in.
inline constexpr std::size_t kProductRows = 504;
inline constexpr std::size_t kProductScratch = 256 * (768 + kProductRows);

// Rows of a language model's activations.
struct NormShape {
  std::size_t rows = 0;
  std::size_t width = 0;
};

// For each row of a layer norm, kept from forward for backward.
struct NormStatistics {
  float mean = 0;
  float scale = 0;  // 1 / sqrt(variance + 1e-5)
};

// Scores of `rows` queries, the first of which is the first-th of its sequence, and of as many keys as
// there are columns, `step` floats from row to row. A query sees the keys up to itself.
struct CausalShape {
  std::size_t rows = 0;
  std::size_t first = 0;
  std::size_t columns = 0;  // at least first + rows
  std::size_t step = 0;
  float scale = 1;  // of the scores
};

// AdamW (Loshchilov and Hutter, ICLR 2019, algorithm 2) as PyTorch has it, one step:
// w -= learning_rate * decay * w; m, v = moments of g; w -= learning_rate * (m / correction1) /
// (sqrt(v / correction2) + epsilon).
struct AdamStep {
  float learning_rate = 0;
  float decay = 0;
  float beta1 = 0;
  float beta2 = 0;
  float epsilon = 0;
  float correction1 = 1;  // 1 - beta1^t
  float correction2 = 1;
};

struct Kernels {
  const char* name;  // "portable", "x86-64-v3" ...

  // y = x w^T + bias.
  void (*dense_forward)(const DenseShape& shape, const float* x, const float* w, const float* bias, float* y);
  // dx = dy w.
  void (*dense_backward)(const DenseShape& shape, const float* dy, const float* w, float* dx);
  // w = keep * w + dy^T x; with keep = 0, w is written and never read. A gradient has keep = 0; an SGD
  // step keep = 1 and dy scaled by minus the learning rate. Only the rows of w that belong to `outputs` are
  // read or written; a row gets the same bits whichever others are computed with it.
  void (*dense_update)(const DenseShape& shape, const Outputs& outputs, const float* dy, const float* x,
                       float keep, float* w);
  // bias = keep * bias + column sums of dy (rows x out), of `outputs` alone, as above.
  void (*bias_update)(const DenseShape& shape, const Outputs& outputs, const float* dy, float keep,
                      float* bias);
  // y = max(y, 0).
  void (*relu)(float* y, std::size_t count);
  // dy = 0 where y <= 0: y is the layer's output after relu.
  void (*relu_backward)(const float* y, float* dy, std::size_t count);
  // probabilities = exp(logits - row maximum), normalised; rows x classes, may be in place.
  void (*softmax)(const float* logits, std::size_t rows, std::size_t classes, float* probabilities);
  // y += a * x.
  void (*axpy)(float a, const float* x, float* y, std::size_t count);

  // Outputs of a convolution that are computed together: its weights are packed into panels of so many.
  std::size_t panel;
  // w is panels x 25 in x panel, bias panels x panel.
  void (*convolve)(const ConvolutionPanels& shape, const float* x, const float* w, const float* bias,
                   float* y);
  // output (height/2 x width/2 x out) = relu of the largest of each 2x2; winners says which of the four
  // it was (the first of equals), counted along the rows.
  void (*pool)(const PoolShape& shape, const float* y, float* output, std::int32_t* winners);
  // For each row: to[row.to + j] += sum over its terms of factor * from[term.from + j], j < run.
  void (*add_terms)(const TermRows& rows, const float* from, std::size_t run, float* to);

  // target = factor a b (+ bias) (+ target), a being rows x inner and b inner x columns; `scratch` has
  // kProductScratch floats. Meant for many rows: b is copied.
  void (*product)(const ProductShape& shape, const Matrix& a, const Matrix& b, const ProductTarget& target,
                  float* scratch);
  // y = gain * (x - mean) / deviation + bias, row by row (Ba, Kiros, Hinton 2016).
  void (*layer_norm)(const NormShape& shape, const float* x, const float* gain, const float* bias, float* y,
                     NormStatistics* statistics);
  // dx += the derivative by x of what dy is the derivative by y of.
  void (*layer_norm_backward)(const NormShape& shape, const float* x, const float* gain,
                              const NormStatistics* statistics, const float* dy, float* dx);
  // gain += , bias += the derivatives by them.
  void (*layer_norm_gradient)(const NormShape& shape, const float* x, const NormStatistics* statistics,
                              const float* dy, float* gain, float* bias);
  // y = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))): GELU's approximation (Hendrycks and Gimpel 2016).
  void (*gelu)(const float* x, float* y, std::size_t count);
  // dy *= the derivative at x.
  void (*gelu_backward)(const float* x, float* dy, std::size_t count);
  // Scores become probabilities, in place; 0 where a query sees no key.
  void (*causal_softmax)(const CausalShape& shape, float* scores);
  // d(probabilities) become d(scores), in place.
  void (*causal_softmax_backward)(const CausalShape& shape, const float* probabilities, float* gradient);
  void (*adam_step)(const AdamStep& step, const float* gradient, float* w, float* m, float* v,
                    std::size_t count);
};

// The best this processor can run; chosen once, at first use.
const Kernels& kernels();
// All that this processor can run, the portable ones first: for tests that try each.
std::vector<const Kernels*> supported_kernels();

}  // namespace fedge::learn
