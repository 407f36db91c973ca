// Payloads in memory for tests of the payload codecs: an object's chunks and its decoded values.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "protocol/codecs/payload_codec.h"

namespace fedge::protocol {

class MemoryChunks final : public ChunkSource {
 public:
  MemoryChunks(std::span<const std::byte> bytes, std::size_t chunk_size)
      : bytes_(bytes), chunk_size_(chunk_size) {}
  Result<void> read_part(std::size_t chunk, std::size_t from, std::span<std::byte> out) override {
    std::memcpy(out.data(), bytes_.subspan(chunk * chunk_size_ + from).data(), out.size());
    return {};
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t chunk_size_;
};

inline std::vector<std::byte> bytes_of(std::initializer_list<int> octets) {
  std::vector<std::byte> bytes;
  for (const int octet : octets) bytes.push_back(static_cast<std::byte>(octet));
  return bytes;
}

// Returns the manifest of a payload with this many values, starting at parameter 0.
inline Manifest manifest_of(const EncodedPayload& payload, std::size_t values) {
  return make_manifest({}, Coverage::all(values), payload, 4096);
}

// Decodes a payload that must hold exactly `values` values, reading `step` of them at a time.
inline Result<std::vector<float>> decoded(const EncodedPayload& payload, std::size_t values,
                                          std::size_t step = ~std::size_t{0}) {
  const Manifest manifest = manifest_of(payload, values);
  MemoryChunks chunks(payload.bytes, manifest.chunk_size);
  FEDGE_TRY(decoder, PayloadDecoder::open(manifest, chunks));
  std::vector<float> result(values);
  for (std::size_t first = 0; first < values; first += std::min(step, values - first))
    FEDGE_TRY_VOID(decoder.read(std::span(result).subspan(first, std::min(step, values - first))));
  FEDGE_TRY_VOID(decoder.finish());
  return result;
}

// Returns the reason for which the payload is refused: "corrupt: ..." or "invalid: ...".
inline std::string refusal(const EncodedPayload& payload, std::size_t values) {
  const auto result = decoded(payload, values);
  return result ? "accepted" : std::string(to_string(result.error().code)) + ": " + result.error().message;
}

// Compares bit by bit: 0 differs from -0, and a NaN equals itself.
inline bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

}  // namespace fedge::protocol
