#include "protocol/chunks/manifest.h"

#include <string>
#include <string_view>

#include "core/check.h"
#include "protocol/codecs/raw_size.h"
#include "protocol/limits.h"

namespace fedge::protocol {
namespace {

void put(std::vector<std::byte>& out, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i)
    out.push_back(static_cast<std::byte>(static_cast<std::uint8_t>(value >> (8 * i))));
}

template <class Octets>
void put(std::vector<std::byte>& out, const Octets& octets) {
  for (const auto octet : octets) out.push_back(static_cast<std::byte>(octet));
}

std::uint64_t chunks_needed(std::uint64_t payload_size, std::uint64_t chunk_size) {
  return payload_size / chunk_size + (payload_size % chunk_size != 0 ? 1 : 0);
}

std::string number(std::uint64_t value) { return std::to_string(value); }

Result<void> check_codec(const Manifest& manifest) {
  if (manifest.codec > kLastCodec)
    return Error{ErrorCode::kUnsupported, "codec " + number(static_cast<std::uint64_t>(manifest.codec)) +
                                              " is not known to this version"};
  if (manifest.codec == Codec::kQsgd) {
    if (manifest.levels < 1 || manifest.levels > kMaxQsgdLevels)
      return invalid("QSGD with " + number(manifest.levels) + " levels; 1 to " + number(kMaxQsgdLevels) +
                     " are allowed");
  } else if (is_masked(manifest.codec) && manifest.raw_size != 0) {
    return invalid("masked values cannot be compressed with zstd");
  } else if (manifest.levels != 0) {
    return invalid("levels is " + number(manifest.levels) + ", but must be 0 for a codec without levels");
  }
  return {};
}

Result<void> check_chunks(const Manifest& manifest) {
  if (manifest.chunk_size < kMinChunkSize || manifest.chunk_size > kMaxChunkSize ||
      manifest.chunk_size % sizeof(float) != 0)
    return invalid("chunk_size " + number(manifest.chunk_size) + " is not a multiple of 4 between " +
                   number(kMinChunkSize) + " and " + number(kMaxChunkSize));
  if (manifest.payload_size == 0) return invalid("the payload is empty");
  const std::uint64_t needed = chunks_needed(manifest.payload_size, manifest.chunk_size);
  if (needed > kMaxChunks)
    return invalid("a payload of " + number(manifest.payload_size) + " bytes in chunks of " +
                   number(manifest.chunk_size) + " makes " + number(needed) + " chunks; at most " +
                   number(kMaxChunks) + " are allowed: choose a larger chunk_size");
  if (manifest.chunks.size() != needed)
    return invalid("a payload of " + number(manifest.payload_size) + " bytes in chunks of " +
                   number(manifest.chunk_size) + " makes " + number(needed) + " chunks, but " +
                   number(manifest.chunks.size()) + " hashes are given");
  return {};
}

Result<void> check_sizes(const Manifest& manifest) {
  const std::uint64_t values = manifest.coverage.count();
  if (values == 0) return invalid("the coverage is empty");
  const bool zstd = manifest.raw_size != 0;
  const std::uint64_t size = zstd ? manifest.raw_size : manifest.payload_size;
  const SizeBounds bounds = raw_size_bounds(manifest.codec, manifest.levels, values);
  if (size < bounds.min || size > bounds.max)
    return invalid(
        "a coverage of " + number(values) + " parameters needs " +
        (bounds.min == bounds.max ? number(bounds.min) : number(bounds.min) + " to " + number(bounds.max)) +
        " bytes of payload, but " + (zstd ? "raw_size" : "payload_size") + " is " + number(size));
  if (!zstd) return {};
  if (manifest.payload_size > max_zstd_size(size))
    return invalid("zstd produces at most " + number(max_zstd_size(size)) + " bytes from " + number(size) +
                   ", but payload_size is " + number(manifest.payload_size));
  if (size > manifest.payload_size * kMaxZstdRatio)
    return invalid("a zstd payload of " + number(manifest.payload_size) + " bytes cannot expand to " +
                   number(size) + " bytes; at most " + number(kMaxZstdRatio) + " times its size is allowed");
  return {};
}

}  // namespace

std::size_t Manifest::chunk_length(std::size_t index) const {
  FEDGE_CHECK(index < chunk_count(), "no such chunk");
  const std::uint64_t begin = std::uint64_t{index} * chunk_size;
  return static_cast<std::size_t>(std::min<std::uint64_t>(chunk_size, payload_size - begin));
}

// The canonical bytes, integers little-endian: "fedge manifest 1\n", layout, codec (1 byte), payload size
// (8), chunk size (4), number of chunks (4), length of the coverage (4), coverage, chunk hashes. For
// everything but plain float32: "fedge manifest 2\n", the same fields, raw size (8), levels (4).
ObjectId Manifest::id() const {
  const std::string_view tag = is_plain_float32() ? "fedge manifest 1\n" : "fedge manifest 2\n";
  const std::vector<std::uint8_t> ranges = coverage.encode();
  std::vector<std::byte> bytes;
  bytes.reserve(tag.size() + 65 + ranges.size() + chunks.size() * sizeof(Digest));
  put(bytes, tag);
  put(bytes, layout);
  put(bytes, static_cast<std::uint64_t>(codec), 1);
  put(bytes, payload_size, 8);
  put(bytes, chunk_size, 4);
  put(bytes, chunks.size(), 4);
  put(bytes, ranges.size(), 4);
  put(bytes, ranges);
  for (const Digest& digest : chunks) put(bytes, digest);
  if (!is_plain_float32()) {
    put(bytes, raw_size, 8);
    put(bytes, levels, 4);
  }
  return sha256(std::span<const std::byte>(bytes));
}

Manifest make_manifest(const Digest& layout, Coverage coverage, std::span<const std::byte> payload,
                       std::uint32_t chunk_size) {
  FEDGE_CHECK(chunk_size >= kMinChunkSize && chunk_size <= kMaxChunkSize && chunk_size % sizeof(float) == 0,
              "chunk size " + std::to_string(chunk_size));
  Manifest manifest{.layout = layout,
                    .coverage = std::move(coverage),
                    .codec = Codec::kFloat32,
                    .payload_size = payload.size(),
                    .chunk_size = chunk_size,
                    .chunks = {}};
  manifest.chunks.resize(chunks_needed(payload.size(), chunk_size));
  for (std::size_t i = 0; i < manifest.chunks.size(); ++i)
    manifest.chunks[i] = sha256(payload.subspan(i * chunk_size, manifest.chunk_length(i)));
  return manifest;
}

Result<void> validate(const Manifest& manifest) {
  FEDGE_TRY_VOID(check_codec(manifest));
  FEDGE_TRY_VOID(check_chunks(manifest));
  if (manifest.coverage.end() > kMaxParameters || manifest.coverage.ranges().size() > kMaxCoverageRanges)
    return invalid("the coverage has more parameters or ranges than this version supports");
  return check_sizes(manifest);
}

Result<void> verify_chunk(const Manifest& manifest, std::size_t index, std::span<const std::byte> bytes) {
  if (index >= manifest.chunk_count())
    return invalid("chunk " + std::to_string(index) + " does not exist; the object has " +
                   std::to_string(manifest.chunk_count()) + " chunks");
  if (bytes.size() != manifest.chunk_length(index))
    return Error{ErrorCode::kCorrupt, "chunk " + std::to_string(index) + " has " +
                                          std::to_string(bytes.size()) + " bytes instead of " +
                                          std::to_string(manifest.chunk_length(index))};
  const Digest actual = sha256(bytes);
  if (actual == manifest.chunks[index]) return {};
  return Error{ErrorCode::kCorrupt, "chunk " + std::to_string(index) + " is damaged: its SHA-256 is " +
                                        to_hex(actual) + ", but the manifest says " +
                                        to_hex(manifest.chunks[index])};
}

}  // namespace fedge::protocol
