// Manifest: a model or an update as content-addressed chunks. The payload (the covered parameters,
// packed, in the codec's encoding) is cut into chunks of chunk_size bytes, the last one shorter;
// each chunk is named by its SHA-256. The manifest's id is the SHA-256 of its canonical bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/coverage.h"
#include "core/crypto/sha256.h"
#include "core/result.h"

namespace fedge::protocol {

using ObjectId = Digest;

// How a payload encodes its values; docs/PROTOCOL.md has the bytes.
enum class Codec : std::uint8_t {
  kFloat32 = 0,
  kFloat16 = 1,
  kBfloat16 = 2,
  kInt8 = 3,
  kQsgd = 4,
  kSparse = 5,
  // Masked integers, little-endian, modulo 2^32 or 2^64: nothing can be read of them but a sum.
  kMasked32 = 6,
  kMasked64 = 7,
};
inline constexpr Codec kLastCodec = Codec::kMasked64;
inline bool is_masked(Codec codec) { return codec == Codec::kMasked32 || codec == Codec::kMasked64; }

struct Manifest {
  Digest layout{};  // ParameterLayout::hash()
  Coverage coverage;
  Codec codec = Codec::kFloat32;
  std::uint64_t payload_size = 0;  // bytes
  std::uint32_t chunk_size = 0;    // bytes
  std::vector<Digest> chunks;
  std::uint64_t raw_size = 0;  // bytes before zstd; 0: the payload is not compressed by zstd
  std::uint32_t levels = 0;    // of kQsgd: s, 1 to kMaxQsgdLevels; 0 for the others

  // Every value as it is: what a model is sent as.
  bool is_plain_float32() const { return codec == Codec::kFloat32 && raw_size == 0 && levels == 0; }
  std::size_t chunk_count() const { return chunks.size(); }
  std::size_t chunk_length(std::size_t index) const;  // bytes of this chunk
  // First parameter position, in the packed payload, of this chunk (plain float32 alone).
  std::size_t first_value(std::size_t index) const { return index * chunk_size / sizeof(float); }
  ObjectId id() const;
  bool operator==(const Manifest&) const = default;
};

// A manifest of plain float32; hashes every chunk of the payload. chunk_size: a multiple of 4 within
// limits.h. codecs/payload_codec.h has the one for other codecs.
Manifest make_manifest(const Digest& layout, Coverage coverage, std::span<const std::byte> payload,
                       std::uint32_t chunk_size);

// Internal consistency of a manifest from a peer: sizes, counts and codec fit each other and the
// limits. payload_size is exactly what the codec makes of coverage.count() values, or within what it
// can make of them (kSparse); with zstd that holds for raw_size, and payload_size for what zstd can
// make of it.
Result<void> validate(const Manifest& manifest);

// Whether these bytes are that chunk; the error names the chunk's number and both hashes.
Result<void> verify_chunk(const Manifest& manifest, std::size_t index, std::span<const std::byte> bytes);

}  // namespace fedge::protocol
