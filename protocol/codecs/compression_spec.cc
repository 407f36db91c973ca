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
    config::KindDoc{"none", "", "32-bit floats, without compression"},
    config::KindDoc{"float16", "", "16-bit floats (binary16), rounded to nearest"},
    config::KindDoc{"bfloat16", "",
                    "16-bit floats with the exponent range of 32-bit floats, rounded to nearest"},
    config::KindDoc{"int8", "",
                    "8-bit integers in blocks of 256 values, each with a scale; stochastic rounding"},
    config::KindDoc{"qsgd", "Alistarh et al. 2017",
                    "buckets of 512 values, each with a norm; stochastic rounding to levels"},
    config::KindDoc{"top_k", "Stich, Cordonnier, Jaggi 2018",
                    "the largest values only; error feedback can send the rest later"},
    config::KindDoc{"rand_k", "Konecny et al. 2016",
                    "values drawn at random, scaled up so that the expectation is unchanged"},
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
  const std::size_t chosen = section.choice("kind", names, 0, "How the values of an update are encoded.");
  const Kind& kind = kKinds[chosen];
  spec.format.codec = kind.codec;
  spec.format.random = kind.random;
  const auto belongs = [&](const char* key, bool here, const char* to) {
    if (!here && section.has(key))
      section.refuse(key, "has no effect with kind = \"" + names[chosen] + "\"; it applies only to " + to);
  };
  spec.format.zstd =
      section.boolean("zstd", false, "Whether the encoded bytes are also compressed with zstd.");
  belongs("levels", kind.codec == Codec::kQsgd, "qsgd");
  spec.format.levels = static_cast<std::uint32_t>(
      section.integer("levels", spec.format.levels, {1, kMaxQsgdLevels},
                      "qsgd: number of levels on each side of 0. 15 levels take 5 bits per value."));
  belongs("fraction", kind.codec == Codec::kSparse, "top_k and rand_k");
  spec.format.fraction = section.number("fraction", spec.format.fraction, {1e-6, 1.0},
                                        "top_k, rand_k: fraction of the values that is sent.");
  const bool top_k = kind.codec == Codec::kSparse && !kind.random;
  belongs("error_feedback", top_k, "top_k");
  spec.error_feedback =
      section.boolean("error_feedback", true,
                      "top_k: whether a client adds the values that it did not send to its next update.") &&
      top_k;
  root.adopt(section);
  return spec;
}

bool made_by(const Compression& compression, const Manifest& manifest) {
  return manifest.codec == compression.codec && (manifest.raw_size > 0) == compression.zstd &&
         manifest.levels == (compression.codec == Codec::kQsgd ? compression.levels : 0);
}

}  // namespace fedge::protocol
