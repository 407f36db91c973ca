#include "learn/trained_rows.h"

#include <algorithm>
#include <utility>

namespace fedge::learn {
namespace {

struct Touched {
  std::vector<Range> rows;
  bool whole = true;
};

// Records the rows of `tensor` that `range` touches. Calls must be in ascending order of the ranges.
void touch(const TensorInfo& tensor, const Range& range, Touched& touched) {
  const std::size_t row = tensor.size / tensor.shape.front();
  const std::size_t begin = std::max(range.begin, tensor.offset) - tensor.offset;
  const std::size_t end = std::min(range.end, tensor.offset + tensor.size) - tensor.offset;
  touched.whole = touched.whole && begin % row == 0 && end % row == 0;
  const Range rows{begin / row, (end + row - 1) / row};
  if (!touched.rows.empty() && rows.begin <= touched.rows.back().end)
    touched.rows.back().end = rows.end;
  else
    touched.rows.push_back(rows);
}

}  // namespace

std::size_t TrainedRows::lowest() const {
  const auto trained = [](const LayerRows& rows) { return !rows.either.empty(); };
  return static_cast<std::size_t>(std::find_if(layers.begin(), layers.end(), trained) - layers.begin());
}

TrainedRows trained_rows(const ParameterLayout& layout, const Coverage& coverage) {
  TrainedRows result;
  result.moved = coverage;
  auto range = coverage.ranges().begin();
  const auto last = coverage.ranges().end();
  for (const TensorInfo& tensor : layout.tensors()) {
    Touched touched;
    const std::size_t end = tensor.offset + tensor.size;
    while (range != last && range->begin < end) {
      if (range->end > tensor.offset) touch(tensor, *range, touched);
      if (range->end > end) break;  // the range continues in the next tensor
      ++range;
    }
    if (result.layers.size() <= tensor.layer) result.layers.resize(tensor.layer + 1);
    LayerRows& layer = result.layers[tensor.layer];
    layer.either = Coverage::of(std::move(layer.either)).unite(Coverage::of(touched.rows)).ranges();
    (tensor.shape.size() > 1 ? layer.weights : layer.biases) = std::move(touched.rows);
    result.whole = result.whole && touched.whole;
  }
  return result;
}

}  // namespace fedge::learn
