#include "bench/tracks/poisoned_data.h"

#include <algorithm>
#include <array>
#include <vector>

#include "core/platform/files.h"

namespace fedge::bench {
namespace {

constexpr std::size_t kSide = 28;
constexpr std::size_t kPixels = kSide * kSide;
constexpr std::uint8_t kTarget = 0;

void put_square(std::span<std::uint8_t> image) {
  for (std::size_t row = 0; row < 3; ++row)
    for (std::size_t column = 0; column < 3; ++column) image[row * kSide + column] = 255;
}

void poison_sample(Poison poison, std::span<std::uint8_t> image, std::uint8_t& label) {
  if (poison == Poison::kLabelFlip) label = static_cast<std::uint8_t>(9 - label);
  if (poison != Poison::kBackdoor) return;
  put_square(image);
  label = kTarget;
}

// IDX format: two zero bytes, 8 for unsigned bytes, the number of dimensions, the dimensions as big-endian
// 32-bit words, the elements.
Result<void> write_idx(const std::filesystem::path& path, const std::vector<std::uint32_t>& dimensions,
                       std::span<const std::uint8_t> elements) {
  std::vector<std::uint8_t> header = {0, 0, 8, static_cast<std::uint8_t>(dimensions.size())};
  for (const std::uint32_t dimension : dimensions)
    for (int shift = 24; shift >= 0; shift -= 8)
      header.push_back(static_cast<std::uint8_t>(dimension >> shift));
  const std::array pieces = {std::as_bytes(std::span(header)), std::as_bytes(elements)};
  return write_file_atomic(path, std::span<const std::span<const std::byte>>(pieces));
}

}  // namespace

Result<void> write_training_set(Poison poison, std::span<const std::uint32_t> samples,
                                const std::filesystem::path& directory) {
  // A partition over one client gives it all samples, in their order and as bytes.
  learn::DataSpec all;
  all.partition.clients = 1;
  FEDGE_TRY(original, learn::load_part(all, 0, Rng(0)));
  std::vector<std::uint8_t> pixels = original->packed.bytes;
  std::vector<std::uint8_t> labels(original->labels.begin(), original->labels.end());
  const std::size_t count = poison == Poison::kBackdoor ? samples.size() / 2 : samples.size();
  for (const std::uint32_t sample : samples.first(count))
    poison_sample(poison, std::span(pixels).subspan(sample * kPixels, kPixels), labels[sample]);
  const auto size = static_cast<std::uint32_t>(labels.size());
  FEDGE_TRY_VOID(write_idx(directory / "train-images-idx3-ubyte", {size, kSide, kSide}, pixels));
  return write_idx(directory / "train-labels-idx1-ubyte", {size}, labels);
}

learn::Dataset triggered(const learn::Dataset& test) {
  learn::Dataset result{.shape = test.shape,
                        .classes = test.classes,
                        .floats = {},
                        .labels = {},
                        .packed = {.bytes = {}, .value = test.packed.value}};
  for (std::size_t i = 0; i < test.size(); ++i) {
    if (test.labels[i] == kTarget) continue;
    std::vector<std::uint8_t> image(kPixels);
    std::copy_n(test.packed.bytes.begin() + static_cast<std::ptrdiff_t>(i * kPixels), kPixels, image.begin());
    put_square(image);
    result.packed.bytes.insert(result.packed.bytes.end(), image.begin(), image.end());
    result.labels.push_back(kTarget);
  }
  return result;
}

}  // namespace fedge::bench
