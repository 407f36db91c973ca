// The shapes and operands of the kernels (learn/kernels/kernels.h).
#pragma once

#include <cstddef>
#include <cstdint>

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

// The left operand of a product, read in place from an image: the row for the pixel (y, x) has `runs` runs of
// `length` floats. Run k begins at y * line + x * column + starts[k]. A plain matrix has one line and one
// run.
struct Patches {
  std::size_t height = 1;
  std::size_t width = 0;
  std::size_t line = 0;
  std::size_t column = 0;
  const std::uint32_t* starts = nullptr;
  std::size_t runs = 1;
  std::size_t length = 0;
  std::size_t inner() const { return runs * length; }
};

// The target of such a product. The sums of row r begin with start[r * start_row]: with a bias if start_row
// is 0. Null: with zeros.
struct PatchTarget {
  float* data = nullptr;
  std::size_t row = 0;
  const float* start = nullptr;
  std::size_t start_row = 0;
};

// Layout of an image for pooling: y is height x width x stride, of which the first `out` channels are used.
struct PoolShape {
  std::size_t height = 0;  // even, like width
  std::size_t width = 0;
  std::size_t out = 0;
  std::size_t stride = 0;  // a multiple of Kernels::lanes
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

// A product is computed in blocks: of kProductRows rows of the left operand, which stay in the level-2 cache,
// of kInnerBlock of the inner dimension, whose sums are added in order, and of kColumnBlock columns, a
// multiple of every panel's width. kProductScratch: floats of scratch that a product needs.
inline constexpr std::size_t kProductRows = 252;
inline constexpr std::size_t kInnerBlock = 256;
inline constexpr std::size_t kColumnBlock = 768;
inline constexpr std::size_t kProductScratch = kInnerBlock * kColumnBlock + (kInnerBlock + 16) * kProductRows;

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

// Attention of one token to those before it and itself. Some query heads share a head of keys and values,
// which lie by coordinate: coordinate i of token t is at [i * capacity + t].
struct AttendShape {
  std::size_t group = 0;     // query heads, side by side
  std::size_t size = 0;      // coordinates of a head
  std::size_t seen = 0;      // tokens, at least 1
  std::size_t capacity = 0;  // tokens that there is room for
  float scale = 1;           // factor of the scores
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

}  // namespace fedge::learn
