// How many bytes a codec makes of a number of values. Manifests are checked against this before anything is
// allocated. Pure arithmetic.
#pragma once

#include <cstddef>
#include <cstdint>

#include "protocol/chunks/manifest.h"

namespace fedge::protocol {

// Number of values that are encoded together; a payload's last block may be shorter.
inline constexpr std::size_t kInt8Block = 256;
inline constexpr std::size_t kQsgdBucket = 512;
inline constexpr std::size_t kSparseBlock = 65'536;

struct SizeBounds {
  std::uint64_t min = 0;
  std::uint64_t max = 0;  // equal to min except for kSparse
};

// Size before zstd of `values` values, 1 to kMaxParameters; levels: 1 to kMaxQsgdLevels for kQsgd.
SizeBounds raw_size_bounds(Codec codec, std::uint32_t levels, std::uint64_t values);

// The largest size before zstd of an update of `values` values of which the sparse codec sends `kept`.
std::uint64_t sparse_size_max(std::uint64_t values, std::uint64_t kept);

// The largest output of zstd for raw_size bytes: incompressible data is stored, with a few extra bytes for
// each 128 KiB and for the frame.
std::uint64_t max_zstd_size(std::uint64_t raw_size);

// Bits for each value in QSGD: ceil(log2(2 levels + 1)).
std::uint32_t qsgd_bits(std::uint32_t levels);

}  // namespace fedge::protocol
