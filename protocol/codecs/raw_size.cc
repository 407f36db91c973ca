#include "protocol/codecs/raw_size.h"

#include <algorithm>
#include <bit>

#include "core/check.h"

namespace fedge::protocol {
namespace {

std::uint64_t blocks_of(std::uint64_t values, std::uint64_t block) {
  return values / block + (values % block != 0 ? 1 : 0);
}

std::uint64_t bytes_of_bits(std::uint64_t bits) { return bits / 8 + (bits % 8 != 0 ? 1 : 0); }

// Full buckets end at a byte border, so only the last one is rounded up.
std::uint64_t qsgd_size(std::uint32_t levels, std::uint64_t values) {
  return blocks_of(values, kQsgdBucket) * sizeof(float) + bytes_of_bits(values * qsgd_bits(levels));
}

}  // namespace

std::uint32_t qsgd_bits(std::uint32_t levels) {
  return static_cast<std::uint32_t>(std::bit_width(2 * levels));
}

SizeBounds raw_size_bounds(Codec codec, std::uint32_t levels, std::uint64_t values) {
  const auto exactly = [](std::uint64_t size) { return SizeBounds{size, size}; };
  switch (codec) {
    case Codec::kFloat32:
      return exactly(values * 4);
    case Codec::kFloat16:
    case Codec::kBfloat16:
      return exactly(values * 2);
    case Codec::kInt8:
      return exactly(blocks_of(values, kInt8Block) * sizeof(float) + values);
    case Codec::kQsgd:
      return exactly(qsgd_size(levels, values));
    case Codec::kSparse: {
      // A count for each block, plus at most a bitmap (a list of positions is used only where it is
      // shorter) and every value.
      const std::uint64_t counts = blocks_of(values, kSparseBlock) * 4;
      return {counts, counts + bytes_of_bits(values) + values * 4};
    }
    case Codec::kMasked32:
      return exactly(values * 4);
    case Codec::kMasked64:
      return exactly(values * 8);
  }
  FEDGE_CHECK(false, "a codec that validate() has not seen");
}

// A block's positions are a bitmap if more than 1 in 32 values is kept, so it has at most 4 bytes for each;
// or they are gaps of at most 3 bytes each, together shorter than the bitmap.
std::uint64_t sparse_size_max(std::uint64_t values, std::uint64_t kept) {
  const std::uint64_t blocks = blocks_of(values, kSparseBlock);
  return blocks * 4 + std::min(bytes_of_bits(values) + blocks, kept * 4) + kept * sizeof(float);
}

std::uint64_t max_zstd_size(std::uint64_t raw_size) { return raw_size + raw_size / 256 + 64; }

}  // namespace fedge::protocol
