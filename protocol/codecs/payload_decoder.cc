#include <algorithm>
#include <array>
#include <string>

#include "core/check.h"
#include "protocol/codecs/byte_stream.h"
#include "protocol/codecs/kernels/kernels.h"
#include "protocol/codecs/payload_codec.h"
#include "protocol/codecs/quantised.h"
#include "protocol/codecs/raw_size.h"
#include "protocol/codecs/sparse.h"

namespace fedge::protocol {
namespace {

constexpr std::size_t kDecodedBlock = 4096;  // values decoded together where the codec has no blocks

std::size_t block_of(Codec codec) {
  switch (codec) {
    case Codec::kInt8:
      return kInt8Block;
    case Codec::kQsgd:
      return kQsgdBucket;
    case Codec::kSparse:
      return kSparseBlock;
    default:
      return kDecodedBlock;
  }
}

Result<void> decode_halves(ByteStream& bytes, std::span<float> out, decltype(Kernels::from_float16) widen) {
  std::array<std::uint16_t, kDecodedBlock> patterns;
  FEDGE_TRY_VOID(bytes.read_values(std::span(patterns).first(out.size())));
  widen(patterns.data(), out.size(), out.data());
  return {};
}

}  // namespace

struct PayloadDecoder::Impl {
  Codec codec;
  std::uint32_t levels;
  std::uint64_t undecoded;  // values
  std::unique_ptr<ByteStream> bytes;
  std::uint64_t decoded = 0;
  std::vector<float> block;     // decoded, but not completely read
  std::span<const float> rest;  // the unread values of `block`

  // Decodes the next block: block_of(codec) values, or the remaining ones.
  Result<void> decode(std::span<float> out) {
    const auto result = decode_block(out);
    if (!result) return result.error().with_prefix("from value " + std::to_string(decoded) + " on: ");
    if (codec != Codec::kFloat32 && !all_finite(out)) return not_finite(out);
    decoded += out.size();
    undecoded -= out.size();
    return {};
  }

  Result<void> decode_block(std::span<float> out) {
    switch (codec) {
      case Codec::kFloat32:
        return bytes->read_values(out);
      case Codec::kFloat16:
        return decode_halves(*bytes, out, kernels().from_float16);
      case Codec::kBfloat16:
        return decode_halves(*bytes, out, kernels().from_bfloat16);
      case Codec::kInt8:
        return decode_int8_block(*bytes, out);
      case Codec::kQsgd:
        return QsgdCodec(levels).decode_bucket(*bytes, out);
      case Codec::kSparse:
        return decode_sparse_block(*bytes, out);
      case Codec::kMasked32:
      case Codec::kMasked64:
        break;
    }
    FEDGE_CHECK(false, "a codec that validate() has not seen");
  }

  Error not_finite(std::span<const float> values) const {
    std::size_t first = 0;
    while (all_finite(values.subspan(first, 1))) ++first;
    return invalid("value " + std::to_string(decoded + first) + " is not finite");
  }
};

PayloadDecoder::PayloadDecoder(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
PayloadDecoder::PayloadDecoder(PayloadDecoder&&) noexcept = default;
PayloadDecoder& PayloadDecoder::operator=(PayloadDecoder&&) noexcept = default;
PayloadDecoder::~PayloadDecoder() = default;

Result<PayloadDecoder> PayloadDecoder::open(const Manifest& manifest, ChunkSource& chunks) {
  FEDGE_TRY_VOID(validate(manifest));
  if (is_masked(manifest.codec)) return invalid("masked values cannot be decoded; they can only be summed");
  auto bytes = make_chunk_stream(manifest, chunks);
  if (manifest.raw_size != 0) bytes = make_zstd_stream(std::move(bytes), manifest.raw_size);
  return PayloadDecoder(std::unique_ptr<Impl>(new Impl{.codec = manifest.codec,
                                                       .levels = manifest.levels,
                                                       .undecoded = manifest.coverage.count(),
                                                       .bytes = std::move(bytes)}));
}

std::uint64_t PayloadDecoder::remaining() const { return impl_->undecoded + impl_->rest.size(); }

Result<void> PayloadDecoder::read(std::span<float> out) {
  FEDGE_CHECK(out.size() <= remaining(), "no more values than there are");
  const std::size_t full = block_of(impl_->codec);
  while (!out.empty()) {
    if (impl_->rest.empty()) {
      const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(full, impl_->undecoded));
      if (out.size() >= size) {
        FEDGE_TRY_VOID(impl_->decode(out.first(size)));
        out = out.subspan(size);
        continue;
      }
      impl_->block.resize(full);
      const auto block = std::span(impl_->block).first(size);
      FEDGE_TRY_VOID(impl_->decode(block));
      impl_->rest = block;
    }
    const std::size_t size = std::min(out.size(), impl_->rest.size());
    std::copy_n(impl_->rest.begin(), size, out.begin());
    impl_->rest = impl_->rest.subspan(size);
    out = out.subspan(size);
  }
  return {};
}

Result<void> PayloadDecoder::finish() {
  if (remaining() > 0)
    return Error{ErrorCode::kCorrupt, std::to_string(remaining()) + " values of the payload were not read"};
  FEDGE_TRY(end, impl_->bytes->at_end());
  if (!end) return Error{ErrorCode::kCorrupt, "the payload has extra bytes after the last value"};
  return {};
}

}  // namespace fedge::protocol
