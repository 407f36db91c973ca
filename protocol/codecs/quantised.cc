#include "protocol/codecs/quantised.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "core/check.h"
#include "protocol/limits.h"

namespace fedge::protocol {
namespace {

using Levels = std::array<std::int8_t, kQsgdBucket>;

constexpr float kLargest = std::numeric_limits<float>::max();
constexpr float kSmallestNormal = std::numeric_limits<float>::min();

Result<float> read_factor(ByteStream& bytes, const char* name) {
  float factor = 0;
  FEDGE_TRY_VOID(bytes.read_values(std::span(&factor, 1)));
  const bool zero = factor == 0 && !std::signbit(factor);
  if (zero || (factor >= kSmallestNormal && factor <= kLargest)) return factor;
  return invalid(std::string("the ") + name + " is " + std::to_string(factor) +
                 "; it must be 0 or a normal positive number");
}

// Random levels near values * factor, each at most 1 away from it.
void round_levels(std::span<const float> values, double factor, Draws& draws, Levels& levels) {
  std::array<std::uint32_t, kQsgdBucket> numbers;
  draws.next(std::span(numbers).first((values.size() + kDrawGroup - 1) / kDrawGroup * kDrawGroup));
  kernels().round_levels({values.data(), numbers.data(), factor, values.size()}, levels.data());
}

// max / 127, adjusted so that 127 * scale is finite; 0 if that is below the normal numbers.
float int8_scale(float max) {
  float scale = max / 127.0F;
  while (std::isinf(scale * 127.0F)) scale = std::nextafter(scale, 0.0F);
  return scale < kSmallestNormal ? 0.0F : scale;
}

// Maps the integers 0, -1, 1, -2, 2 ... to 0, 1, 2, 3, 4 ..., and back.
std::uint64_t zigzag(std::int8_t level) {
  return static_cast<std::uint8_t>((level * 2) ^ (level < 0 ? -1 : 0));  // no branch: the sign is random
}
int from_zigzag(std::size_t code) {
  return code % 2 == 0 ? static_cast<int>(code / 2) : -static_cast<int>(code / 2) - 1;
}

// The value of each code in a bucket: norm * level / s, rounded to binary64 and then to binary32.
std::array<float, 2 * kMaxQsgdLevels + 1> qsgd_values(float norm, std::uint32_t levels) {
  std::array<float, 2 * kMaxQsgdLevels + 1> values{};
  for (std::size_t code = 0; code <= 2 * std::size_t{levels}; ++code)
    values[code] = static_cast<float>(static_cast<double>(norm) * from_zigzag(code) / levels);
  return values;
}

}  // namespace

void Draws::next(std::span<std::uint32_t> out) {
  FEDGE_CHECK(out.size() % kDrawGroup == 0, "whole groups");
  for (std::size_t first = 0; first < out.size(); first += kDrawGroup, used_ += kDrawCounters)
    kernels().draw(source_, used_, out.data() + first);
}

void encode_int8_block(std::span<const float> values, Draws& draws, std::vector<std::byte>& out,
                       std::span<float> decoded) {
  FEDGE_CHECK(values.size() <= kInt8Block && decoded.size() == values.size(), "one block");
  const float max = std::bit_cast<float>(kernels().max_magnitude(values.data(), values.size()));
  const float scale = int8_scale(max);
  Levels levels{};
  if (scale > 0) round_levels(values, 127.0 / static_cast<double>(max), draws, levels);
  append(out, scale);
  append(out, std::span<const std::int8_t>(levels).first(values.size()));
  kernels().scale_levels(levels.data(), values.size(), scale, decoded.data());
}

Result<void> decode_int8_block(ByteStream& bytes, std::span<float> out) {
  FEDGE_TRY(scale, read_factor(bytes, "scale"));
  Levels buffer;
  const auto levels = std::span(buffer).first(out.size());
  FEDGE_TRY_VOID(bytes.read_values(levels));
  if (std::find(levels.begin(), levels.end(), std::int8_t{-128}) != levels.end())
    return invalid("a level is -128; levels must be from -127 to 127");
  if (scale == 0 && std::any_of(levels.begin(), levels.end(), [](std::int8_t level) { return level != 0; }))
    return invalid("the scale is 0, but a level is not");
  kernels().scale_levels(levels.data(), levels.size(), scale, out.data());
  return {};
}

QsgdCodec::QsgdCodec(std::uint32_t levels) : levels_(levels), bits_(qsgd_bits(levels)) {
  FEDGE_CHECK(levels >= 1 && levels <= kMaxQsgdLevels, "levels of QSGD");
}

void QsgdCodec::encode_bucket(std::span<const float> values, Draws& draws, std::vector<std::byte>& out,
                              std::span<float> decoded) const {
  FEDGE_CHECK(values.size() <= kQsgdBucket && decoded.size() == values.size(), "one bucket");
  // The squares are exact and the sums only grow, so the norm is at least the largest magnitude. A norm too
  // large for binary32 becomes its largest number, which is still at least every magnitude.
  const double exact = std::sqrt(kernels().sum_of_squares(values.data(), values.size()));
  float norm = static_cast<float>(std::min(exact, static_cast<double>(kLargest)));
  if (norm < kSmallestNormal) norm = 0;
  Levels levels{};
  if (norm > 0) round_levels(values, levels_ / static_cast<double>(norm), draws, levels);
  append(out, norm);
  const auto table = qsgd_values(norm, levels_);
  for (std::size_t first = 0; first < values.size(); first += 8) {
    const std::size_t count = std::min<std::size_t>(8, values.size() - first);
    std::uint64_t word = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t code = zigzag(levels[first + i]);
      word |= code << (i * bits_);
      decoded[first + i] = table[code];
    }
    word = swapped_if_big_endian(word);
    const auto bytes = std::as_bytes(std::span(&word, 1)).first((count * bits_ + 7) / 8);
    out.insert(out.end(), bytes.begin(), bytes.end());
  }
}

Result<void> QsgdCodec::decode_bucket(ByteStream& bytes, std::span<float> out) const {
  FEDGE_TRY(norm, read_factor(bytes, "norm"));
  std::array<std::byte, kQsgdBucket + sizeof(std::uint64_t)> packed{};  // a value has at most 8 bits
  FEDGE_TRY_VOID(bytes.read(std::span(packed).first((out.size() * bits_ + 7) / 8)));
  const auto table = qsgd_values(norm, levels_);
  const std::uint64_t mask = (std::uint64_t{1} << bits_) - 1;
  std::uint64_t largest = 0;
  for (std::size_t first = 0; first < out.size(); first += 8) {
    const std::size_t count = std::min<std::size_t>(8, out.size() - first);
    std::uint64_t word = 0;
    std::memcpy(&word, packed.data() + first / 8 * bits_, sizeof word);
    word = swapped_if_big_endian(word);
    if (count < 8 && bits_ < 8 && (word >> (count * bits_)) != 0) return invalid("the padding is not 0");
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t code = word >> (i * bits_) & mask;
      largest = std::max(largest, code);
      out[first + i] = table[std::min<std::uint64_t>(code, table.size() - 1)];
    }
  }
  if (largest > 2 * std::uint64_t{levels_})
    return invalid("a level is above " + std::to_string(levels_) + " (code " + std::to_string(largest) + ")");
  if (norm == 0 && largest != 0) return invalid("the norm is 0, but a level is not");
  return {};
}

}  // namespace fedge::protocol
