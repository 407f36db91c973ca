#include "protocol/codecs/compression_spec.h"

#include <array>
#include <string>
#include <vector>

#include "protocol/limits.h"

namespace fedge::protocol {
namespace {

struct Kind {
  const char* name;
  Codec codec;
  bool random = false;
};

constexpr std::array kKinds = {Kind{"none", Codec::kFloat32},       Kind{"float16", Codec::kFloat16},
                               Kind{"bfloat16", Codec::kBfloat16},  Kind{"int8", Codec::kInt8},
                               Kind{"qsgd", Codec::kQsgd},          Kind{"top_k", Codec::kSparse},
                               Kind{"rand_k", Codec::kSparse, true}};

}  // namespace

CompressionSpec read_compression(config::Reader& root) {
  CompressionSpec spec;
  config::Reader section = root.section("compression");
  std::vector<std::string> names;
  for (const Kind& kind : kKinds) names.emplace_back(kind.name);
  const Kind& kind = kKinds[section.choice("kind", names, 0, "How an update's values are encoded.")];
  spec.format.codec = kind.codec;
  spec.format.random = kind.random;
  const auto belongs = [&](const char* key, bool here, const char* to) {
    if (!here && section.has(key))
      section.fail(key, std::string("has no effect with kind = \"") + kind.name + "\", it belongs to " + to);
  };
  spec.format.zstd = section.boolean("zstd", false, "Compress the encoded bytes as well.");
  belongs("levels", kind.codec == Codec::kQsgd, "qsgd");
  spec.format.levels = static_cast<std::uint32_t>(
      section.integer("levels", spec.format.levels, {1, kMaxQsgdLevels},
                      "qsgd: levels on either side of 0; 15 take 5 bits a value."));
  belongs("fraction", kind.codec == Codec::kSparse, "top_k and rand_k");
  spec.format.fraction = section.number("fraction", spec.format.fraction, {1e-6, 1.0},
                                        "top_k, rand_k: this part of the values is sent.");
  const bool top_k = kind.codec == Codec::kSparse && !kind.random;
  belongs("error_feedback", top_k, "top_k");
  spec.error_feedback =
      section.boolean("error_feedback", true, "top_k: a client sends later what it left out.") && top_k;
  root.adopt(section);
  return spec;
}

bool made_by(const Compression& compression, const Manifest& manifest) {
  return manifest.codec == compression.codec && (manifest.raw_size > 0) == compression.zstd &&
         manifest.levels == (compression.codec == Codec::kQsgd ? compression.levels : 0);
}

}  // namespace fedge::protocol
