// The sparse codec, one block at a time: the number of kept values, their positions (gaps as varints, or a
// bitmap if more than 1 in 32 is kept), and the values as binary32. All other values are 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/result.h"
#include "protocol/codecs/byte_stream.h"
#include "protocol/codecs/raw_size.h"

namespace fedge::protocol {

struct SparseBlock {
  std::span<const float> values;        // up to kSparseBlock, finite
  std::span<const std::uint64_t> kept;  // bit i % 64 of word i / 64: value i is kept
  double factor = 1;                    // multiplies the kept values
};

// Appends the block's bytes to `out` and writes what the receiver will decode to `decoded` (size of
// `values`; may alias them). A kept value that is 0 is not sent. A product too large for binary32 becomes
// its largest number.
void encode_sparse_block(const SparseBlock& block, std::vector<std::byte>& out, std::span<float> decoded);

// Decodes up to kSparseBlock values. kInvalid for more kept values than values, a position or bit outside
// the block, a varint that is not minimal, or a bitmap with another number of bits than declared. The
// format cannot express positions that are unordered or repeated.
Result<void> decode_sparse_block(ByteStream& bytes, std::span<float> out);

}  // namespace fedge::protocol
