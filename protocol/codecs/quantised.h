// The codecs with stochastic rounding to levels, one block at a time: int8, with a scale for each block,
// and QSGD, with the L2 norm of each bucket and a fixed number of bits for each value. Both are unbiased:
// the mean of the decoded value is the encoded one. Source of QSGD: Alistarh et al., "QSGD:
// communication-efficient SGD via gradient quantization and encoding", NIPS 2017, section 3.1.
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

// A payload's random numbers, drawn in bulk: more than twice as fast as one by one from Rng.
class Draws {
 public:
  explicit Draws(Rng rng) : source_{.key = rng.next_u64(), .stream = rng.next_u64()} {}
  // out.size() must be a multiple of kDrawGroup.
  void next(std::span<std::uint32_t> out);

 private:
  DrawSource source_;
  std::uint64_t used_ = 0;  // counters used so far
};

// Encodes up to kInt8Block finite values. Appends their bytes to `out` and writes what the receiver will
// decode to `decoded` (same size; may alias `values`).
void encode_int8_block(std::span<const float> values, Draws& draws, std::vector<std::byte>& out,
                       std::span<float> decoded);
// kInvalid for a scale that is neither a normal positive number nor 0 with all levels 0, or for level -128.
Result<void> decode_int8_block(ByteStream& bytes, std::span<float> out);

class QsgdCodec {
 public:
  explicit QsgdCodec(std::uint32_t levels);  // 1 to kMaxQsgdLevels
  // Like encode_int8_block, for up to kQsgdBucket values.
  void encode_bucket(std::span<const float> values, Draws& draws, std::vector<std::byte>& out,
                     std::span<float> decoded) const;
  // kInvalid for a norm that is neither a normal positive number nor 0 with all levels 0, for a level
  // beyond `levels`, or for padding that is not 0.
  Result<void> decode_bucket(ByteStream& bytes, std::span<float> out) const;

 private:
  std::uint32_t levels_;
  std::uint32_t bits_;
};

}  // namespace fedge::protocol
