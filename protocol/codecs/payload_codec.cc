#include "protocol/codecs/payload_codec.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "core/check.h"
#include "protocol/codecs/kernels/kernels.h"
#include "protocol/codecs/little_endian.h"
#include "protocol/codecs/quantised.h"
#include "protocol/codecs/raw_size.h"
#include "protocol/codecs/selection.h"
#include "protocol/codecs/sparse.h"
#include "protocol/codecs/zstd_frame.h"
#include "protocol/limits.h"

namespace fedge::protocol {
namespace {

constexpr std::size_t kEncodedBlock = 4096;  // values encoded together where the codec has no blocks
constexpr std::size_t kZstdPortion = 128 << 10;

// Collects a payload's blocks; with zstd compresses them before they accumulate.
class PayloadWriter {
 public:
  explicit PayloadWriter(bool zstd) {
    if (zstd) zstd_.emplace();
  }

  // encode(first, count, out) appends the bytes of the values [first, first + count).
  template <class Encode>
  void write_blocks(std::size_t values, std::size_t block, const Encode& encode) {
    for (std::size_t first = 0; first < values; first += block) {
      encode(first, std::min(block, values - first), bytes_);
      if (zstd_ && bytes_.size() >= kZstdPortion) compress();
    }
  }

  void reserve(std::uint64_t size) {
    if (!zstd_) bytes_.reserve(static_cast<std::size_t>(size));
  }

  EncodedPayload finish(const Compression& compression) {
    EncodedPayload payload{.codec = compression.codec};
    if (compression.codec == Codec::kQsgd) payload.levels = compression.levels;
    if (zstd_) {
      compress();
      payload.raw_size = raw_size_;
      payload.bytes = zstd_->finish();
    } else {
      payload.bytes = std::move(bytes_);
    }
    return payload;
  }

 private:
  void compress() {
    zstd_->add(bytes_);
    raw_size_ += bytes_.size();
    bytes_.clear();
  }

  std::vector<std::byte> bytes_;
  std::optional<ZstdCompressor> zstd_;
  std::uint64_t raw_size_ = 0;
};

struct Values {
  std::span<const float> in;
  std::span<float> decoded;
};

void write_float32(const Values& values, PayloadWriter& writer) {
  writer.write_blocks(values.in.size(), kEncodedBlock,
                      [&](std::size_t first, std::size_t count, std::vector<std::byte>& out) {
                        append(out, values.in.subspan(first, count));
                      });
  if (values.in.data() != values.decoded.data())
    std::copy(values.in.begin(), values.in.end(), values.decoded.begin());
}

// Encodes float16 and bfloat16 with their conversion functions.
void write_halves(const Values& values, PayloadWriter& writer, decltype(Kernels::to_float16) narrow,
                  decltype(Kernels::from_float16) widen) {
  std::array<std::uint16_t, kEncodedBlock> patterns;
  writer.write_blocks(values.in.size(), kEncodedBlock,
                      [&](std::size_t first, std::size_t count, std::vector<std::byte>& out) {
                        narrow(values.in.data() + first, count, patterns.data());
                        append(out, std::span<const std::uint16_t>(patterns).first(count));
                        widen(patterns.data(), count, values.decoded.data() + first);
                      });
}

void write_int8(const Values& values, PayloadWriter& writer, Rng rng) {
  Draws draws(rng);
  writer.write_blocks(
      values.in.size(), kInt8Block, [&](std::size_t first, std::size_t count, std::vector<std::byte>& out) {
        encode_int8_block(values.in.subspan(first, count), draws, out, values.decoded.subspan(first, count));
      });
}

void write_qsgd(const Values& values, PayloadWriter& writer, Rng rng, std::uint32_t levels) {
  const QsgdCodec codec(levels);
  Draws draws(rng);
  writer.write_blocks(values.in.size(), kQsgdBucket,
                      [&](std::size_t first, std::size_t count, std::vector<std::byte>& out) {
                        codec.encode_bucket(values.in.subspan(first, count), draws, out,
                                            values.decoded.subspan(first, count));
                      });
}

void write_sparse(const Values& values, PayloadWriter& writer, Rng rng, const Compression& compression) {
  const std::size_t d = values.in.size();
  const std::size_t k = kept_values(compression.fraction, d);
  const Selection kept = compression.random ? select_random(d, k, rng) : select_largest(values.in, k);
  const double factor = compression.random ? static_cast<double>(d) / static_cast<double>(k) : 1.0;
  writer.write_blocks(
      d, kSparseBlock, [&](std::size_t first, std::size_t count, std::vector<std::byte>& out) {
        encode_sparse_block(
            {values.in.subspan(first, count), std::span(kept).subspan(first / 64, (count + 63) / 64), factor},
            out, values.decoded.subspan(first, count));
      });
}

}  // namespace

Result<void> validate(const Compression& compression) {
  if (compression.codec > kLastCodec || is_masked(compression.codec))
    return invalid("codec " + std::to_string(static_cast<unsigned>(compression.codec)) + " does not exist");
  if (compression.codec == Codec::kQsgd && (compression.levels < 1 || compression.levels > kMaxQsgdLevels))
    return invalid("QSGD has " + std::to_string(compression.levels) + " levels; 1 to " +
                   std::to_string(kMaxQsgdLevels) + " are allowed");
  if (compression.codec == Codec::kSparse && !(compression.fraction > 0 && compression.fraction <= 1))
    return invalid("the fraction of the values to send is " + std::to_string(compression.fraction) +
                   "; it must be above 0 and at most 1");
  return {};
}

bool all_finite(std::span<const float> values) {
  return kernels().max_magnitude(values.data(), values.size()) < 0x7f800000;
}

EncodedPayload encode_payload(const Compression& compression, std::span<const float> values,
                              std::span<float> decoded, const Rng& rng) {
  FEDGE_CHECK(validate(compression), "a valid compression");
  FEDGE_CHECK(!values.empty() && decoded.size() == values.size(), "values, and as much room for them");
  FEDGE_CHECK(all_finite(values), "finite values");
  PayloadWriter writer(compression.zstd);
  const SizeBounds bounds = raw_size_bounds(compression.codec, compression.levels, values.size());
  if (bounds.min == bounds.max) writer.reserve(bounds.max);
  const Kernels& kernel = kernels();
  const Values both{values, decoded};
  switch (compression.codec) {
    case Codec::kFloat32:
      write_float32(both, writer);
      break;
    case Codec::kFloat16:
      write_halves(both, writer, kernel.to_float16, kernel.from_float16);
      break;
    case Codec::kBfloat16:
      write_halves(both, writer, kernel.to_bfloat16, kernel.from_bfloat16);
      break;
    case Codec::kInt8:
      write_int8(both, writer, rng.fork("payload"));
      break;
    case Codec::kQsgd:
      write_qsgd(both, writer, rng.fork("payload"), compression.levels);
      break;
    case Codec::kSparse:
      write_sparse(both, writer, rng.fork("payload"), compression);
      break;
    case Codec::kMasked32:
    case Codec::kMasked64:
      FEDGE_CHECK(false, "masks are no compression");
  }
  return writer.finish(compression);
}

EncodedPayload encode_with_feedback(const Compression& compression, std::span<float> update,
                                    std::span<float> error, const Rng& rng) {
  FEDGE_CHECK(update.size() == error.size(), "an error for each value");
  for (std::size_t i = 0; i < update.size(); ++i) error[i] += update[i];
  EncodedPayload payload = encode_payload(compression, error, update, rng);
  for (std::size_t i = 0; i < update.size(); ++i) error[i] -= update[i];
  return payload;
}

Manifest make_manifest(const Digest& layout, Coverage coverage, const EncodedPayload& payload,
                       std::uint32_t chunk_size) {
  Manifest manifest = make_manifest(layout, std::move(coverage), payload.bytes, chunk_size);
  manifest.codec = payload.codec;
  manifest.raw_size = payload.raw_size;
  manifest.levels = payload.levels;
  return manifest;
}

}  // namespace fedge::protocol
