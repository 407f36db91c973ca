// The run file's [compression] section: how clients encode their updates.
#pragma once

#include <span>

#include "core/config/reader.h"
#include "protocol/codecs/payload_codec.h"

namespace fedge::protocol {

struct CompressionSpec {
  Compression format;
  bool error_feedback = false;  // send what a biased codec omits later; for top_k

  bool none() const { return format.codec == Codec::kFloat32 && !format.zstd; }
};

// The values of compression.kind.
std::span<const config::KindDoc> compression_kinds();

// Reads its section; an absent section means no compression. Errors are collected in `root`.
CompressionSpec read_compression(config::Reader& root);

// Whether a manifest matches this compression.
bool made_by(const Compression& compression, const Manifest& manifest);

}  // namespace fedge::protocol
