// The sparse codec, one block at a time: how many values are kept, where they are (gaps as varints, or a
// bitmap when more than 1 in 32 is kept), and the values as binary32. All others are 0.
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
  std::span<const std::uint64_t> kept;  // bit i % 64 of word i / 64: whether value i is kept
  double factor = 1;                    // what kept values are multiplied by
};

// The block's bytes are appended to `out`, what the receiver will see is written to `decoded` (same
// size as the values; may be the values themselves). A kept value that is 0 is not sent, one that the
// factor makes too large for binary32 becomes its largest number.
void encode_sparse_block(const SparseBlock& block, std::vector<std::byte>& out, std::span<float> decoded);

// Up to kSparseBlock values. kInvalid for more kept values than there are values, a position beyond the
// block, a varint that is not minimal, a bitmap that does not have as many bits as declared or has one
// beyond the block. Positions out of order or twice cannot be written.
Result<void> decode_sparse_block(ByteStream& bytes, std::span<float> out);

}  // namespace fedge::protocol
