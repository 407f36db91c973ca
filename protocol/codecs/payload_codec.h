// Payload codecs: how the values of an update become fewer bytes, and values again. docs/PROTOCOL.md
// has the bytes. Encoding holds the encoded payload in memory, with kSparse a bit for each value as
// well; decoding holds one chunk, one block (up to 65,536 values) and with zstd about 650 KB more.
// Nothing here is thread-safe. All instruction sets give the same bits.
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

// How updates are to be compressed.
struct Compression {
  Codec codec = Codec::kFloat32;
  bool zstd = false;          // also compress what the codec gives
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

// Encodes values[0 .. d), d >= 1, and writes to `decoded` (same size; may be the values themselves) what
// a receiver will see, bit for bit. `compression` is valid and the values are finite (all_finite()).
//  - kFloat16, kBfloat16: to nearest even; what is beyond the largest finite number becomes that.
//  - kInt8: 255 levels per block, kQsgd: 2s + 1 per bucket; rounded at random, so that the mean is the
//    value. A block whose scale (largest magnitude / 127) or norm is below the normal numbers of
//    binary32 is sent as zeros.
//  - kSparse: the k largest (biased: see encode_with_feedback), or k at random scaled by d/k (unbiased).
// Randomness: rng.fork("payload"); the same arguments give the same bytes (with zstd: from the same
// version of its library).
EncodedPayload encode_payload(const Compression& compression, std::span<const float> values,
                              std::span<float> decoded, const Rng& rng);

// Whether no value is infinite or NaN.
bool all_finite(std::span<const float> values);

// Error feedback (Seide et al., INTERSPEECH 2014; Stich et al., "Sparsified SGD with memory", NeurIPS
// 2018): sends p = update + error and keeps error = p - decoded for the next time, so that what a
// biased codec left out is not lost, but late. `update` becomes what the receiver will see. `error`
// begins as zeros and stays with the client, also over rounds it takes no part in; both have the same
// size and their sum is finite.
EncodedPayload encode_with_feedback(const Compression& compression, std::span<float> update,
                                    std::span<float> error, const Rng& rng);

// The manifest of an encoded payload. chunk_size: a multiple of 4 within limits.h.
Manifest make_manifest(const Digest& layout, Coverage coverage, const EncodedPayload& payload,
                       std::uint32_t chunk_size);

// Reads the values of an object's payload in packed order, whatever its codec: manifest.coverage.count()
// of them. An error of read() or finish() ends the decoder's use.
class PayloadDecoder {
 public:
  // kInvalid or kUnsupported if validate() refuses the manifest. `chunks` outlives the decoder, the
  // manifest need not.
  static Result<PayloadDecoder> open(const Manifest& manifest, ChunkSource& chunks);
  PayloadDecoder(PayloadDecoder&&) noexcept;
  PayloadDecoder& operator=(PayloadDecoder&&) noexcept;
  ~PayloadDecoder();

  // The next out.size() values; never more than remaining(). All are finite, but for those of
  // kFloat32, which are as they were sent. kCorrupt if the payload ends too early or is not the zstd
  // frame declared, kInvalid if it is not what the codec writes; errors of `chunks` as they are.
  Result<void> read(std::span<float> out);
  // Values not read yet.
  std::uint64_t remaining() const;
  // kCorrupt if values or bytes are left over.
  Result<void> finish();

 private:
  struct Impl;
  explicit PayloadDecoder(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace fedge::protocol
