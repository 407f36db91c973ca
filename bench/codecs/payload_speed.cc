// Encodes and decodes an update of 16 million float32 values in every codec, with and without zstd. Prints
// the payload's size and GB/s of float32; the yardstick is memcpy of the same values in the same run. The
// variants take turns; each variant's fastest turn counts.
//   bench_codecs [values] [turns]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "core/aligned_buffer.h"
#include "protocol/codecs/payload_codec.h"

namespace {

using namespace fedge;
using namespace fedge::protocol;

struct Variant {
  std::string name;
  Compression compression;
  EncodedPayload payload;
  double encode_seconds = std::numeric_limits<double>::infinity();
  double decode_seconds = std::numeric_limits<double>::infinity();
};

class PayloadChunks final : public ChunkSource {
 public:
  PayloadChunks(std::span<const std::byte> bytes, std::size_t chunk_size)
      : bytes_(bytes), chunk_size_(chunk_size) {}
  Result<void> read_part(std::size_t chunk, std::size_t from, std::span<std::byte> out) override {
    std::memcpy(out.data(), bytes_.data() + chunk * chunk_size_ + from, out.size());
    return {};
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t chunk_size_;
};

template <class Work>
double seconds_of(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::vector<Variant> all_variants() {
  const std::pair<const char*, Compression> codecs[] = {
      {"float32", {}},
      {"float16", {.codec = Codec::kFloat16}},
      {"bfloat16", {.codec = Codec::kBfloat16}},
      {"int8", {.codec = Codec::kInt8}},
      {"QSGD, 15 levels", {.codec = Codec::kQsgd}},
      {"QSGD, 1 level", {.codec = Codec::kQsgd, .levels = 1}},
      {"largest 1 %", {.codec = Codec::kSparse}},
      {"largest 10 %", {.codec = Codec::kSparse, .fraction = 0.1}},
      {"random 1 %", {.codec = Codec::kSparse, .random = true}},
  };
  std::vector<Variant> variants;
  for (const bool zstd : {false, true})
    for (auto [name, compression] : codecs) {
      compression.zstd = zstd;
      variants.push_back({.name = std::string(name) + (zstd ? " + zstd" : ""), .compression = compression});
    }
  return variants;
}

void decode(const EncodedPayload& payload, const Manifest& manifest, std::span<float> out) {
  PayloadChunks chunks(payload.bytes, manifest.chunk_size);
  auto decoder = PayloadDecoder::open(manifest, chunks);
  constexpr std::size_t kStep = 65'536;
  for (std::size_t first = 0; decoder && first < out.size(); first += kStep)
    if (!decoder->read(out.subspan(first, std::min(kStep, out.size() - first)))) std::abort();
  if (!decoder || !decoder->finish()) std::abort();
}

void take_turn(Variant& variant, std::span<const float> values, std::span<float> out) {
  variant.encode_seconds = std::min(
      variant.encode_seconds,
      seconds_of([&] { variant.payload = encode_payload(variant.compression, values, out, Rng(1)); }));
  const Manifest manifest = make_manifest({}, Coverage::all(values.size()), variant.payload, 256 << 10);
  variant.decode_seconds =
      std::min(variant.decode_seconds, seconds_of([&] { decode(variant.payload, manifest, out); }));
  variant.payload.bytes.shrink_to_fit();
}

int run(std::size_t count, int turns) {
  Rng rng(1);
  std::vector<float> pool(1 << 20);  // small normal values, like the updates of local training
  for (float& value : pool) value = static_cast<float>(0.01 * rng.normal());
  AlignedBuffer<float> values(count);
  AlignedBuffer<float> out(count);
  for (std::size_t i = 0; i < count; ++i)
    values.data()[i] = pool[i * 4099 % pool.size()] * static_cast<float>(1 + i % 7);

  std::vector<Variant> variants = all_variants();
  double memcpy_seconds = std::numeric_limits<double>::infinity();
  for (int turn = 0; turn < turns; ++turn) {
    memcpy_seconds = std::min(
        memcpy_seconds, seconds_of([&] { std::memcpy(out.data(), values.data(), count * sizeof(float)); }));
    for (Variant& variant : variants) take_turn(variant, values.span(), out.span());
  }

  const double gigabytes = 4e-9 * static_cast<double>(count);
  std::printf("%zu float32 values, best of %d turns, 1 thread; memcpy %.2f GB/s\n\n", count, turns,
              gigabytes / memcpy_seconds);
  std::printf("%-24s %10s %11s %14s %14s\n", "", "size", "bits/value", "encode GB/s", "decode GB/s");
  for (const Variant& variant : variants) {
    const double size = static_cast<double>(variant.payload.bytes.size());
    std::printf("%-24s %9.1f%% %11.2f %8.2f %4.0f%% %8.2f %4.0f%%\n", variant.name.c_str(),
                100 * size / (4.0 * static_cast<double>(count)), 8 * size / static_cast<double>(count),
                gigabytes / variant.encode_seconds, 100 * memcpy_seconds / variant.encode_seconds,
                gigabytes / variant.decode_seconds, 100 * memcpy_seconds / variant.decode_seconds);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const long values = argc > 1 ? std::atol(argv[1]) : 16'000'000;
  const int turns = argc > 2 ? std::atoi(argv[2]) : 5;
  if (values < 1 || turns < 1 || turns > 10'000) {
    std::fprintf(stderr, "usage: bench_codecs [values] [turns]\n");
    return 2;
  }
  return run(static_cast<std::size_t>(values), turns);
}
