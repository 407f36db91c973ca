#include "core/split/split_layout.h"

#include <algorithm>
#include <string>

#include "core/check.h"

namespace fedge {

Result<SplitLayout> SplitLayout::of(const ParameterLayout& layout, const AdapterLayout& adapters,
                                    std::size_t cut_ranks) {
  if (adapters.matrices.empty())
    return invalid("split training needs a model with adapters; set model.adapter.rank");
  if (cut_ranks > adapters.rank)
    return invalid("rank " + std::to_string(cut_ranks) +
                   " at the cut is above model.adapter.rank, which is " + std::to_string(adapters.rank));
  SplitLayout split;
  split.adapters_ = adapters;
  split.cut_ranks_ = cut_ranks == 0 ? adapters.rank : cut_ranks;
  for (const AdaptedMatrix& matrix : adapters.matrices) {
    // Layer 0 is the embedding, and each block has the same targets, so blocks come one by one from 1 on.
    const std::size_t block = layout.tensor_at(matrix.weight).layer;
    FEDGE_CHECK(block == split.blocks_.size() || block == split.blocks_.size() + 1, "matrices by block");
    if (block > split.blocks_.size()) split.blocks_.push_back({{matrix.a, matrix.a}, {matrix.b, matrix.b}});
    split.blocks_.back().a.end = matrix.a + matrix.in;
    split.blocks_.back().b.end = matrix.b + matrix.out;
  }
  split.ends_.assign(split.blocks_.size() + 1, 0);
  for (const TensorInfo& tensor : layout.tensors())
    if (tensor.layer < split.ends_.size()) split.ends_[tensor.layer] = tensor.offset + tensor.size;
  return split;
}

Coverage SplitLayout::between(std::size_t first, std::size_t last, std::size_t cut,
                              std::size_t cut_ranks) const {
  FEDGE_CHECK(cut >= 1 && cut <= blocks(), "a cut behind a block of the model");
  std::vector<Range> ranges;
  for (std::size_t rank = 0; rank < adapters_.rank; ++rank) {
    const std::size_t row = adapters_.offset + rank * adapters_.row;
    for (std::size_t block = first + 1; block <= last; ++block) {
      if (rank >= cut_ranks && (block == cut || block == cut + 1)) continue;
      const Block& place = blocks_[block - 1];
      ranges.push_back({row + place.a.begin, row + place.a.end});
      ranges.push_back({row + place.b.begin, row + place.b.end});
    }
  }
  return Coverage::of(std::move(ranges));
}

Coverage SplitLayout::read_below(std::size_t cut, bool head) const {
  std::vector<Range> ranges = {{0, ends_.at(cut)}};
  if (head) ranges.push_back({ends_.back(), adapters_.offset});
  return Coverage::of(std::move(ranges)).unite(between(0, cut, cut, adapters_.rank));
}

Coverage SplitLayout::read_above(std::size_t cut) const {
  return between(cut, blocks(), cut, adapters_.rank);
}

void SplitLayout::join(std::size_t cut, std::span<const float> below, std::span<const float> above,
                       std::span<float> both) const {
  const Coverage lower = this->below(cut);
  const Coverage upper = this->above(cut);
  FEDGE_CHECK(below.size() == lower.count() && above.size() == upper.count() &&
                  both.size() == below.size() + above.size(),
              "the values of both halves");
  // Ranges of the two halves alternate and never overlap.
  const float* from[] = {below.data(), above.data()};
  const std::vector<Range>* left[] = {&lower.ranges(), &upper.ranges()};
  std::size_t next[] = {0, 0};
  float* to = both.data();
  while (next[0] < left[0]->size() || next[1] < left[1]->size()) {
    const bool second = next[0] == left[0]->size() ||
                        (next[1] < left[1]->size() && (*left[1])[next[1]].begin < (*left[0])[next[0]].begin);
    const Range& range = (*left[second])[next[second]++];
    to = std::copy_n(from[second], range.size(), to);
    from[second] += range.size();
  }
}

std::size_t SplitLayout::cut_of(const Coverage& below) const {
  for (std::size_t cut = 1; cut <= blocks(); ++cut)
    if (this->below(cut) == below) return cut;
  return 0;
}

Coverage SplitLayout::changed_by(const Coverage& trained) const {
  const std::size_t cut = cut_of(trained);
  return cut > 0 ? both(cut) : trained;
}

Result<AlignedBuffer<float>> SplitLayout::joined(const Coverage& trained, std::span<const float> below,
                                                 std::span<const float> above) const {
  const std::size_t cut = cut_of(trained);
  if (cut == 0 || below.size() != trained.count() || above.size() != this->above(cut).count())
    return invalid("the halves of an update do not fit each other");
  AlignedBuffer<float> both(below.size() + above.size());
  join(cut, below, above, both.span());
  return both;
}

}  // namespace fedge
