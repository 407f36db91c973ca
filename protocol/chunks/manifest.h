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

// How a payload encodes its values; docs/PROTOCOL.md describes the bytes.
enum class Codec : std::uint8_t {
  kFloat32 = 0,
  kFloat16 = 1,
  kBfloat16 = 2,
  kInt8 = 3,
  kQsgd = 4,
  kSparse = 5,
  // Masked integers, little-endian, modulo 2^32 or 2^64: only a sum of them can be decoded.
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

  // Whether every value is sent unchanged, as models are.
  bool is_plain_float32() const { return codec == Codec::kFloat32 && raw_size == 0 && levels == 0; }
  std::size_t chunk_count() const { return chunks.size(); }
  std::size_t chunk_length(std::size_t index) const;  // bytes of this chunk
  // Position of the chunk's first value in the packed payload (plain float32 only).
  std::size_t first_value(std::size_t index) const { return index * chunk_size / sizeof(float); }
  ObjectId id() const;
  bool operator==(const Manifest&) const = default;
};

// Makes a manifest of plain float32; hashes every chunk. chunk_size must be a multiple of 4 within
// limits.h. codecs/payload_codec.h has the function for other codecs.
Manifest make_manifest(const Digest& layout, Coverage coverage, std::span<const std::byte> payload,
                       std::uint32_t chunk_size);

// Checks the consistency of a peer's manifest: sizes, counts and codec must fit each other and the limits.
// payload_size must be a size that the codec can make of coverage.count() values. With zstd this holds for
// raw_size, and payload_size must be a size that zstd can make of it.
Result<void> validate(const Manifest& manifest);

// Checks the chunk's hash; the error contains the chunk's index and both hashes.
Result<void> verify_chunk(const Manifest& manifest, std::size_t index, std::span<const std::byte> bytes);

}  // namespace fedge::protocol
