// Payload codecs: encode an update's values in fewer bytes, and decode them. docs/PROTOCOL.md describes the
// bytes. Encoding holds the encoded payload in memory, with kSparse also one bit for each value. Decoding
// holds one chunk, one block (up to 65,536 values) and with zstd about 650 KB. Not thread-safe. All
// instruction sets give the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/result.h"
#include "core/rng.h"
#include "protocol/chunks/chunk_store.h"
#include "protocol/chunks/manifest.h"

namespace fedge::protocol {

// How to compress updates.
struct Compression {
  Codec codec = Codec::kFloat32;
  bool zstd = false;          // also compress the codec's output
  std::uint32_t levels = 15;  // kQsgd: s, from 1 to kMaxQsgdLevels
  double fraction = 0.01;     // kSparse: kept values k/d, above 0 and up to 1
  bool random = false;        // kSparse: k random values scaled by d/k instead of the k largest
};

// kInvalid if levels or fraction is out of range for the codec.
Result<void> validate(const Compression& compression);

struct EncodedPayload {
  std::vector<std::byte> bytes;
  Codec codec = Codec::kFloat32;
  std::uint64_t raw_size = 0;  // as in Manifest
  std::uint32_t levels = 0;    // as in Manifest
};

// Encodes values[0 .. d), d >= 1. Writes to `decoded` (same size; may alias `values`) exactly what a
// receiver will decode. `compression` must be valid and the values finite (all_finite()).
//  - kFloat16, kBfloat16: rounded to nearest even; larger magnitudes become the largest finite number.
//  - kInt8: 255 levels per block; kQsgd: 2s + 1 per bucket. Rounding is stochastic and unbiased. A block
//    whose scale (largest magnitude / 127) or norm is below the normal numbers of binary32 becomes zeros.
//  - kSparse: the k largest (biased: see encode_with_feedback), or k random ones scaled by d/k (unbiased).
// Randomness: rng.fork("payload"); the same arguments give the same bytes (with zstd: from the same
// version of its library).
EncodedPayload encode_payload(const Compression& compression, std::span<const float> values,
                              std::span<float> decoded, const Rng& rng);

// Whether no value is infinite or NaN.
bool all_finite(std::span<const float> values);

// Error feedback (Seide et al., INTERSPEECH 2014; Stich et al., "Sparsified SGD with memory", NeurIPS
// 2018). Sends p = update + error and keeps error = p - decoded for the next round, so that values which a
// biased codec omits are sent later. The call replaces `update` by what the receiver will decode. `error`
// starts as zeros and stays with the client across rounds that it skips. Both have the same size, and their
// sum must be finite.
EncodedPayload encode_with_feedback(const Compression& compression, std::span<float> update,
                                    std::span<float> error, const Rng& rng);

// The manifest of an encoded payload. chunk_size: a multiple of 4 within limits.h.
Manifest make_manifest(const Digest& layout, Coverage coverage, const EncodedPayload& payload,
                       std::uint32_t chunk_size);

// Decodes an object's payload, whatever its codec: manifest.coverage.count() values in packed order. After
// an error of read() or finish() the decoder is unusable.
class PayloadDecoder {
 public:
  // kInvalid or kUnsupported if validate() refuses the manifest. `chunks` must outlive the decoder; the
  // manifest need not.
  static Result<PayloadDecoder> open(const Manifest& manifest, ChunkSource& chunks);
  PayloadDecoder(PayloadDecoder&&) noexcept;
  PayloadDecoder& operator=(PayloadDecoder&&) noexcept;
  ~PayloadDecoder();

  // Reads the next out.size() values, at most remaining(). All are finite, except for kFloat32, whose
  // values are passed on unchecked. kCorrupt if the payload is too short or not the declared zstd frame,
  // kInvalid if the codec cannot have written it; errors of `chunks` are passed on.
  Result<void> read(std::span<float> out);
  // Number of values not yet read.
  std::uint64_t remaining() const;
  // kCorrupt if values or bytes are left over.
  Result<void> finish();

 private:
  struct Impl;
  explicit PayloadDecoder(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace fedge::protocol
