// Kernels: the inner loops of training, compiled once for each instruction set and chosen at run time by the
// processor. They use plain pointers and row-major float32, allocate nothing and start no threads. One
// instruction set gives the same bits on every machine and in every call; different ones may round
// differently. Convolutions are 5x5 over images with a border of two zeros on each side, channels last, so
// that a kernel row at a pixel is one run of floats.
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

// A range of a dense layer's outputs: begin <= end <= out.
struct Outputs {
  std::size_t begin = 0;
  std::size_t end = 0;
};

// A convolution over one image. x is (height + 4) x (width + 4) x in, including the border. y is height x
// width x (panels * Kernels::panel); its last outputs pad the last panel.
struct ConvolutionPanels {
  std::size_t height = 0;
  std::size_t width = 0;
  std::size_t in = 0;
  std::size_t panels = 0;
};

// Layout of an image for pooling: y is height x width x stride, of which the first `out` channels are used.
struct PoolShape {
  std::size_t height = 0;  // even, like width
  std::size_t width = 0;
  std::size_t out = 0;
  std::size_t stride = 0;  // a multiple of Kernels::panel
};

// A sparse matrix by rows, with the elements row.terms[0 .. row.count). A row times a dense matrix is a sum
// of runs of floats; each run begins at its term's `from`. The sum is added to the run at row.to.
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

// add_terms works on whole vectors. The floats after a run must exist up to a multiple of this number from
// its start; they are read, and overwritten with garbage.
inline constexpr std::size_t kRunRounding = 16;

// A strided matrix: element (i, j) is data[i * row + j * column].
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

// The target of a product, stored by rows.
struct ProductTarget {
  float* data = nullptr;
  std::size_t row = 0;
  const float* bias = nullptr;  // added to each row of the target; null: none
  bool add = false;             // whether to add to the target
  float factor = 1;             // factor of the product
};

// kProductRows: rows of a block, which stays in the level-2 cache. kProductScratch: floats of scratch that a
// product needs.
inline constexpr std::size_t kProductRows = 504;
inline constexpr std::size_t kProductScratch = 256 * (768 + kProductRows);

// Shape of a language model's activations.
struct NormShape {
  std::size_t rows = 0;
  std::size_t width = 0;
};

// Statistics of one row of a layer norm, kept from the forward pass for the backward pass.
struct NormStatistics {
  float mean = 0;
  float scale = 0;  // 1 / sqrt(variance + 1e-5)
};

// Attention scores of `rows` queries for `columns` keys, `step` floats from row to row. The first query is
// number `first` of its sequence. A query sees the keys up to itself.
struct CausalShape {
  std::size_t rows = 0;
  std::size_t first = 0;
  std::size_t columns = 0;  // at least first + rows
  std::size_t step = 0;
  float scale = 1;  // factor of the scores
};

// One step of AdamW (Loshchilov and Hutter, ICLR 2019, algorithm 2) as in PyTorch, with moments m and v:
//   w -= learning_rate * decay * w
//   w -= learning_rate * (m / correction1) / (sqrt(v / correction2) + epsilon)
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

  // Number of outputs of a convolution that are computed together; weights are packed into panels of this
  // many.
  std::size_t panel;
  // Computes one image. w: panels x (25 * in) x panel; bias: panels x panel.
  void (*convolve)(const ConvolutionPanels& shape, const float* x, const float* w, const float* bias,
                   float* y);
  // output (height/2 x width/2 x out) = relu of the maximum of each 2x2 square. winners: index of the maximum
  // among the four, row by row; the first of equals.
  void (*pool)(const PoolShape& shape, const float* y, float* output, std::int32_t* winners);
  // For each row: to[row.to + j] += sum over its terms of factor * from[term.from + j], j < run.
  void (*add_terms)(const TermRows& rows, const float* from, std::size_t run, float* to);

  // target = factor a b (+ bias) (+ target), where a is rows x inner and b is inner x columns. `scratch` has
  // kProductScratch floats. Intended for many rows, since b is copied.
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
  // y = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))): GELU's approximation (Hendrycks and Gimpel 2016).
  void (*gelu)(const float* x, float* y, std::size_t count);
  // dy *= gelu'(x).
  void (*gelu_backward)(const float* x, float* dy, std::size_t count);
  // Turns scores into probabilities in place; 0 for keys that a query does not see.
  void (*causal_softmax)(const CausalShape& shape, float* scores);
  // Turns the gradient with respect to the probabilities into that with respect to the scores, in place.
  void (*causal_softmax_backward)(const CausalShape& shape, const float* probabilities, float* gradient);
  void (*adam_step)(const AdamStep& step, const float* gradient, float* w, float* m, float* v,
                    std::size_t count);
};

// The best kernels for this processor, chosen at first use.
const Kernels& kernels();
// All kernels that this processor can run, the portable ones first; for tests.
std::vector<const Kernels*> supported_kernels();

}  // namespace fedge::learn
