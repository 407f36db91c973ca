#include "protocol/detail/wire_values.h"

#include <google/protobuf/stubs/logging.h>

#include <algorithm>

#include "core/check.h"
#include "protocol/limits.h"

namespace fedge::protocol {
namespace {

static_assert(static_cast<int>(ErrorCode::kInvalid) + 1 == v1::ERROR_INVALID);
static_assert(static_cast<int>(ErrorCode::kNotFound) + 1 == v1::ERROR_NOT_FOUND);
static_assert(static_cast<int>(ErrorCode::kCorrupt) + 1 == v1::ERROR_CORRUPT);
static_assert(static_cast<int>(ErrorCode::kRefused) + 1 == v1::ERROR_REFUSED);
static_assert(static_cast<int>(ErrorCode::kStale) + 1 == v1::ERROR_STALE);
static_assert(static_cast<int>(ErrorCode::kUnsupported) + 1 == v1::ERROR_UNSUPPORTED);
static_assert(static_cast<int>(ErrorCode::kUnavailable) + 1 == v1::ERROR_UNAVAILABLE);
static_assert(static_cast<int>(ErrorCode::kResource) + 1 == v1::ERROR_RESOURCE);

static_assert(static_cast<int>(Codec::kFloat32) == v1::CODEC_FLOAT32);
static_assert(static_cast<int>(Codec::kFloat16) == v1::CODEC_FLOAT16);
static_assert(static_cast<int>(Codec::kBfloat16) == v1::CODEC_BFLOAT16);
static_assert(static_cast<int>(Codec::kInt8) == v1::CODEC_INT8);
static_assert(static_cast<int>(Codec::kQsgd) == v1::CODEC_QSGD);
static_assert(static_cast<int>(Codec::kMasked64) == v1::CODEC_MASKED64);
static_assert(kLastCodec == Codec::kMasked64);

std::span<const std::uint8_t> octets(const std::string& bytes) {
  return {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
}

}  // namespace

std::uint32_t to_wire_wait(Duration time) {
  const Duration wait = std::clamp<Duration>(time, Duration::zero(), kMaxRetryAfter);
  return static_cast<std::uint32_t>(wait / std::chrono::milliseconds(1));
}

v1::ErrorCode to_wire(ErrorCode code) { return static_cast<v1::ErrorCode>(static_cast<int>(code) + 1); }

ErrorCode from_wire(v1::ErrorCode code) {
  return code >= v1::ERROR_INVALID && code <= v1::ERROR_RESOURCE
             ? static_cast<ErrorCode>(static_cast<int>(code) - 1)
             : ErrorCode::kInvalid;
}

std::string to_wire(const Digest& digest) { return {digest.begin(), digest.end()}; }

Result<Digest> digest_from_wire(const std::string& bytes) {
  Digest digest{};
  if (bytes.size() != digest.size())
    return invalid("a hash must have 32 bytes, not " + std::to_string(bytes.size()));
  std::copy_n(octets(bytes).begin(), digest.size(), digest.begin());
  return digest;
}

std::string to_wire(const PublicKey& key) { return {key.bytes.begin(), key.bytes.end()}; }

Result<PublicKey> key_from_wire(const std::string& bytes) {
  PublicKey key{};
  if (bytes.size() != key.bytes.size()) return invalid("a key must have 32 bytes");
  std::copy_n(octets(bytes).begin(), key.bytes.size(), key.bytes.begin());
  return key;
}

std::string to_wire(const Coverage& coverage) {
  const std::vector<std::uint8_t> bytes = coverage.encode();
  return {bytes.begin(), bytes.end()};
}

Result<Coverage> coverage_from_wire(const std::string& bytes) {
  if (bytes.empty()) return invalid("the coverage is empty");
  if (bytes.size() > kMaxCoverageBytes)
    return invalid("the coverage takes " + std::to_string(bytes.size()) + " bytes; at most " +
                   std::to_string(kMaxCoverageBytes) + " are allowed");
  return Coverage::decode(octets(bytes), kMaxParameters, kMaxCoverageRanges);
}

v1::Manifest to_wire(const Manifest& manifest) {
  v1::Manifest wire;
  wire.set_layout(to_wire(manifest.layout));
  wire.set_coverage(to_wire(manifest.coverage));
  wire.set_codec(static_cast<v1::Codec>(manifest.codec));
  wire.set_payload_size(manifest.payload_size);
  wire.set_chunk_size(manifest.chunk_size);
  wire.set_raw_size(manifest.raw_size);
  wire.set_levels(manifest.levels);
  std::string& hashes = *wire.mutable_chunk_hashes();
  hashes.reserve(manifest.chunks.size() * sizeof(Digest));
  for (const Digest& digest : manifest.chunks) hashes.append(digest.begin(), digest.end());
  return wire;
}

Result<Manifest> from_wire(const v1::Manifest& wire) {
  const std::string& hashes = wire.chunk_hashes();
  if (hashes.size() % sizeof(Digest) != 0 || hashes.size() / sizeof(Digest) > kMaxChunks)
    return invalid("chunk_hashes has " + std::to_string(hashes.size()) +
                   " bytes, not 32 for each of at most " + std::to_string(kMaxChunks) + " chunks");
  if (wire.codec() < v1::CODEC_FLOAT32 || wire.codec() > v1::CODEC_MASKED64)
    return Error{ErrorCode::kUnsupported,
                 "codec " + std::to_string(static_cast<int>(wire.codec())) + " is not known to this version"};
  Manifest manifest;
  FEDGE_TRY(layout, digest_from_wire(wire.layout()));
  FEDGE_TRY(coverage, coverage_from_wire(wire.coverage()));
  manifest.layout = layout;
  manifest.coverage = std::move(coverage);
  manifest.codec = static_cast<Codec>(wire.codec());
  manifest.payload_size = wire.payload_size();
  manifest.chunk_size = wire.chunk_size();
  manifest.raw_size = wire.raw_size();
  manifest.levels = wire.levels();
  manifest.chunks.resize(hashes.size() / sizeof(Digest));
  for (std::size_t i = 0; i < manifest.chunks.size(); ++i)
    std::copy_n(octets(hashes).begin() + static_cast<std::ptrdiff_t>(i * sizeof(Digest)), sizeof(Digest),
                manifest.chunks[i].begin());
  FEDGE_TRY_VOID(validate(manifest));
  return manifest;
}

Result<void> parse_wire(google::protobuf::MessageLite& wire, std::span<const std::byte> bytes,
                        std::span<const FieldCount> counts) {
  static const bool silent = [] {
    google::protobuf::SetLogHandler(nullptr);
    return true;
  }();
  const Error malformed = invalid("its bytes are not a valid protobuf message");
  if (!silent || bytes.size() > kMaxHeader) return malformed;
  FEDGE_TRY_VOID(check_fields(bytes, counts));
  if (!wire.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return malformed;
  return {};
}

std::string serialise(const google::protobuf::MessageLite& wire) {
  std::string bytes;
  const bool ok = wire.SerializeToString(&bytes);
  FEDGE_CHECK(ok, "a message of ours does not serialise");
  return bytes;
}

std::string frame_around(MessageType type, const std::string& header) {
  const FrameHeaderBytes fixed =
      encode_frame_header({.type = type, .header_size = static_cast<std::uint32_t>(header.size())});
  std::string frame;
  frame.reserve(fixed.size() + header.size());
  frame.append(reinterpret_cast<const char*>(fixed.data()), fixed.size());
  return frame.append(header);
}

}  // namespace fedge::protocol
