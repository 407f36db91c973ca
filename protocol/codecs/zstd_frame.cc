#include "protocol/codecs/zstd_frame.h"

#include <zstd.h>

#include <array>
#include <new>
#include <string>

#include "core/check.h"
#include "protocol/codecs/byte_stream.h"
#include "protocol/limits.h"

namespace fedge::protocol {
namespace {

// Updates hardly contain repetitions. zstd gains from skewed bytes, and higher levels find no more of
// those.
constexpr int kLevel = 1;
constexpr std::size_t kBuffer = 32 << 10;
// Bytes of the magic number in file order. Skippable frames and formats before zstd 1.0 begin differently.
constexpr std::array<std::uint8_t, 4> kZstdMagic = {0x28, 0xb5, 0x2f, 0xfd};

// Errors here are lack of memory or bugs.
std::size_t checked(std::size_t result) {
  FEDGE_CHECK(ZSTD_isError(result) == 0, ZSTD_getErrorName(result));
  return result;
}

template <class Context>
Context* allocated(Context* context) {
  if (context == nullptr) throw std::bad_alloc();
  return context;
}

class ZstdStream final : public ByteStream {
 public:
  ZstdStream(std::unique_ptr<ByteStream> packed, std::uint64_t raw_size)
      : packed_(std::move(packed)),
        raw_size_(raw_size),
        context_(allocated(ZSTD_createDCtx()), &ZSTD_freeDCtx),
        out_(kBuffer) {
    checked(ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, kZstdWindowLog));
  }

 protected:
  Result<std::span<const std::byte>> refill() override {
    if (!begun_) FEDGE_TRY_VOID(begin());
    ZSTD_outBuffer out{out_.data(), out_.size(), 0};
    while (out.pos == 0 && !frame_ended_) FEDGE_TRY_VOID(step(out));
    if (out.pos == 0) FEDGE_TRY_VOID(check_end());
    return std::span<const std::byte>(out_).first(out.pos);
  }

 private:
  static Error corrupt(std::string what) { return {ErrorCode::kCorrupt, "zstd: " + std::move(what)}; }

  Result<void> begin() {
    begun_ = true;
    for (const std::uint8_t expected : kZstdMagic) {
      FEDGE_TRY(byte, packed_->read_byte());
      if (byte != expected) return corrupt("the payload does not begin with a zstd frame");
    }
    in_ = {kZstdMagic.data(), kZstdMagic.size(), 0};
    return {};
  }

  Result<void> step(ZSTD_outBuffer& out) {
    if (in_.pos == in_.size) {
      FEDGE_TRY(more, packed_->take_some());
      if (more.empty()) return corrupt("the payload ends within the frame");
      in_ = {more.data(), more.size(), 0};
    }
    const std::size_t result = ZSTD_decompressStream(context_.get(), &out, &in_);
    if (ZSTD_isError(result) != 0) return corrupt(ZSTD_getErrorName(result));
    frame_ended_ = result == 0;
    produced_ += out.pos;
    if (produced_ > raw_size_)
      return corrupt("the frame decompresses to more than the declared " + std::to_string(raw_size_) +
                     " bytes");
    return {};
  }

  Result<void> check_end() {
    if (produced_ < raw_size_)
      return corrupt("the frame decompresses to " + std::to_string(produced_) +
                     " bytes instead of the declared " + std::to_string(raw_size_));
    FEDGE_TRY(end, packed_->at_end());
    if (in_.pos != in_.size || !end) return corrupt("bytes follow the frame");
    return {};
  }

  std::unique_ptr<ByteStream> packed_;
  std::uint64_t raw_size_;
  std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context_;
  std::vector<std::byte> out_;
  ZSTD_inBuffer in_{nullptr, 0, 0};
  std::uint64_t produced_ = 0;
  bool begun_ = false;
  bool frame_ended_ = false;
};

}  // namespace

struct ZstdCompressor::Impl {
  std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context{allocated(ZSTD_createCCtx()), &ZSTD_freeCCtx};
  std::vector<std::byte> block = std::vector<std::byte>(kBuffer);
  std::vector<std::byte> frame;

  // Compresses all of the bytes; with ZSTD_e_end also ends the frame.
  void compress(std::span<const std::byte> bytes, ZSTD_EndDirective directive) {
    ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
    std::size_t waiting = 0;
    do {
      ZSTD_outBuffer out{block.data(), block.size(), 0};
      waiting = checked(ZSTD_compressStream2(context.get(), &out, &in, directive));
      frame.insert(frame.end(), block.begin(), block.begin() + static_cast<std::ptrdiff_t>(out.pos));
    } while (in.pos < in.size || (directive == ZSTD_e_end && waiting > 0));
  }
};

ZstdCompressor::ZstdCompressor() : impl_(std::make_unique<Impl>()) {
  checked(ZSTD_CCtx_setParameter(impl_->context.get(), ZSTD_c_compressionLevel, kLevel));
  checked(ZSTD_CCtx_setParameter(impl_->context.get(), ZSTD_c_windowLog, kZstdWindowLog));
}

ZstdCompressor::~ZstdCompressor() = default;

void ZstdCompressor::add(std::span<const std::byte> bytes) { impl_->compress(bytes, ZSTD_e_continue); }

std::vector<std::byte> ZstdCompressor::finish() {
  impl_->compress({}, ZSTD_e_end);
  return std::move(impl_->frame);
}

std::unique_ptr<ByteStream> make_zstd_stream(std::unique_ptr<ByteStream> packed, std::uint64_t raw_size) {
  return std::make_unique<ZstdStream>(std::move(packed), raw_size);
}

}  // namespace fedge::protocol
