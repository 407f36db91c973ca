#include "privacy/differential/tree_noise.h"

#include <array>
#include <bit>

#include "core/aligned_buffer.h"
#include "core/check.h"
#include "core/crypto/hkdf.h"
#include "privacy/differential/noise.h"

namespace fedge::privacy {
namespace {

Secret key_of(const TreeNode& node, const Secret& key) {
  std::array<std::uint8_t, 16> info{'t', 'r', 'e', 'e', static_cast<std::uint8_t>(node.level)};
  for (unsigned i = 0; i < 8; ++i) info.at(8 + i) = static_cast<std::uint8_t>(node.index >> (8 * i));
  return derive_key(key, {}, info);
}

}  // namespace

Secret tree_key(const Secret& root, TrackId track) {
  std::array<std::uint8_t, 16> info{'t', 'r', 'e', 'e', ' ', 'o', 'f'};
  for (unsigned i = 0; i < 8; ++i)
    info.at(8 + i) = static_cast<std::uint8_t>(std::uint64_t{track.value()} >> (8 * i));
  return derive_key(root, {}, info);
}

// At t = ...10..0, one new subtree replaces the subtrees that t - 1 = ...01..1 ended with.
void add_tree_noise(std::span<std::int64_t> numbers, std::uint64_t step, const TreeNoise& noise,
                    Parallel& parallel) {
  FEDGE_CHECK(step > 0, "steps are counted from 1");
  const auto begun = static_cast<unsigned>(std::countr_zero(step));
  const auto draw = [&](const TreeNode& node, std::span<std::int64_t> to) {
    const Secret key = key_of(node, noise.key);
    add_noise(to, {.key = key, .variance = noise.variance, .part = noise.part}, parallel);
  };
  draw({begun, (step >> begun) - 1}, numbers);
  AlignedBuffer<std::int64_t> ended(begun > 0 ? numbers.size() : 0);
  for (unsigned level = 0; level < begun; ++level) draw({level, ((step - 1) >> level) - 1}, ended.span());
  for (std::size_t i = 0; i < ended.size(); ++i)
    numbers[i] = static_cast<std::int64_t>(static_cast<std::uint64_t>(numbers[i]) -
                                           static_cast<std::uint64_t>(ended.data()[i]));
}

}  // namespace fedge::privacy
