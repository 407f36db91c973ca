#include "protocol/codecs/compression_spec.h"

#include <array>
#include <string>
#include <vector>

#include "protocol/limits.h"

namespace fedge::protocol {
namespace {

struct Kind {
  Codec codec;
  bool random = false;
};

constexpr std::array kDocs = {
    config::KindDoc{"none", "", "binary32 as it is"},
    config::KindDoc{"float16", "", "binary16, rounded to nearest"},
    config::KindDoc{"bfloat16", "", "the upper half of binary32, rounded to nearest"},
    config::KindDoc{"int8", "", "blocks of 256 values with a scale each, stochastic rounding"},
    config::KindDoc{"qsgd", "Alistarh et al. 2017",
                    "buckets of 512 values with a norm each, stochastic rounding to levels"},
    config::KindDoc{"top_k", "Stich, Cordonnier, Jaggi 2018",
                    "the largest values, the others are sent later"},
    config::KindDoc{"rand_k", "Konecny et al. 2016", "values drawn at random, scaled up"},
};
constexpr std::array kKinds = {Kind{Codec::kFloat32},     Kind{Codec::kFloat16}, Kind{Codec::kBfloat16},
                               Kind{Codec::kInt8},        Kind{Codec::kQsgd},    Kind{Codec::kSparse},
                               Kind{Codec::kSparse, true}};
static_assert(kDocs.size() == kKinds.size());

}  // namespace

std::span<const config::KindDoc> compression_kinds() { return kDocs; }

CompressionSpec read_compression(config::Reader& root) {
  CompressionSpec spec;
  config::Reader section = root.section("compression");
  std::vector<std::string> names;
  for (const config::KindDoc& doc : kDocs) names.emplace_back(doc.name);
  const std::size_t chosen = section.choice("kind", names, 0, "How an update's values are encoded.");
  const Kind& kind = kKinds[chosen];
  spec.format.codec = kind.codec;
  spec.format.random = kind.random;
  const auto belongs = [&](const char* key, bool here, const char* to) {
    if (!here && section.has(key))
      section.fail(key, "has no effect with kind = \"" + names[chosen] + "\", it belongs to " + to);
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
