// The codecs that round to levels at random, one block at a time: int8 with a scale for each block, and
// QSGD (Alistarh et al., "QSGD: communication-efficient SGD via gradient quantization and encoding",
// NIPS 2017, section 3.1) with the L2 norm of each bucket and a fixed number of bits a value. Both are
// unbiased: the mean of what is received is what was sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/result.h"
#include "core/rng.h"
#include "protocol/codecs/byte_stream.h"
#include "protocol/codecs/kernels/kernels.h"
#include "protocol/codecs/raw_size.h"

namespace fedge::protocol {

// The random numbers of a payload, drawn in bulk: more than twice as fast as one by one from Rng.
class Draws {
 public:
  explicit Draws(Rng rng) : source_{.key = rng.next_u64(), .stream = rng.next_u64()} {}
  // out.size(): a multiple of kDrawGroup.
  void next(std::span<std::uint32_t> out);

 private:
  DrawSource source_;
  std::uint64_t used_ = 0;  // counters
};

// Up to kInt8Block finite values: their bytes are appended to `out`, what the receiver will see is
// written to `decoded` (same size; may be the values themselves).
void encode_int8_block(std::span<const float> values, Draws& draws, std::vector<std::byte>& out,
                       std::span<float> decoded);
// kInvalid for a scale that is not a normal positive number (or 0 with levels of 0), or a level of -128.
Result<void> decode_int8_block(ByteStream& bytes, std::span<float> out);

class QsgdCodec {
 public:
  explicit QsgdCodec(std::uint32_t levels);  // 1 to kMaxQsgdLevels
  // As above, up to kQsgdBucket values.
  void encode_bucket(std::span<const float> values, Draws& draws, std::vector<std::byte>& out,
                     std::span<float> decoded) const;
  // kInvalid for a norm that is not a normal positive number (or 0 with levels of 0), a level beyond
  // `levels`, or padding that is not 0.
  Result<void> decode_bucket(ByteStream& bytes, std::span<float> out) const;

 private:
  std::uint32_t levels_;
  std::uint32_t bits_;
};

}  // namespace fedge::protocol
