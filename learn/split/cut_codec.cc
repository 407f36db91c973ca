#include "learn/split/cut_codec.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>

#include "core/check.h"

namespace fedge::learn {
namespace {

static_assert(std::endian::native == std::endian::little, "values are sent as they are in memory");

constexpr float kLargestByte = 127;

// Calls visit(values of the token, its number) for all tokens that are sent.
template <class Value, class Visit>
void for_each_token(std::span<Value> values, std::size_t width, const SentTokens& sent, const Visit& visit) {
  FEDGE_CHECK(values.size() == sent.of.size() * sent.length * width, "values of all tokens");
  std::size_t number = 0;
  for (std::size_t s = 0; s < sent.of.size(); ++s)
    for (std::size_t t = 0; t < sent.of[s]; ++t)
      visit(values.subspan((s * sent.length + t) * width, width), number++);
}

void encode_int8(std::span<const float> values, std::byte* out) {
  float largest = 0;
  bool finite = true;
  for (const float value : values) {
    largest = std::max(largest, std::abs(value));
    finite = finite && std::isfinite(value);
  }
  // The receiver refuses such a token.
  const float scale = finite ? largest / kLargestByte : std::numeric_limits<float>::quiet_NaN();
  std::memcpy(out, &scale, sizeof(scale));
  out += sizeof(scale);
  for (const float value : values) {
    // Nothing is left of values if the scale underflows to 0.
    const float rounded =
        scale > 0 ? std::nearbyint(std::clamp(value / scale, -kLargestByte, kLargestByte)) : 0;
    *out++ = static_cast<std::byte>(static_cast<std::int8_t>(rounded));
  }
}

bool decode_int8(const std::byte* bytes, std::span<float> values) {
  float scale = 0;
  std::memcpy(&scale, bytes, sizeof(scale));
  bytes += sizeof(scale);
  for (float& value : values) value = scale * static_cast<float>(static_cast<std::int8_t>(*bytes++));
  return std::isfinite(scale) && scale <= std::numeric_limits<float>::max() / (kLargestByte + 1);
}

}  // namespace

std::vector<std::uint32_t> sent_tokens(std::span<const Token> targets, std::size_t length) {
  std::vector<std::uint32_t> sent(targets.size() / length);
  for (std::size_t i = 0; i < targets.size(); ++i)
    if (targets[i] != kNoToken) sent[i / length] = static_cast<std::uint32_t>(i % length + 1);
  return sent;
}

std::size_t SentTokens::count() const { return std::accumulate(of.begin(), of.end(), std::size_t{0}); }

std::size_t CutCodec::bytes(const SentTokens& sent) const {
  const std::size_t token =
      kind_ == CutEncoding::kFloat32 ? width_ * sizeof(float) : sizeof(float) + width_ * sizeof(std::int8_t);
  return sent.count() * token;
}

void CutCodec::encode(std::span<const float> values, const SentTokens& sent,
                      std::vector<std::byte>& out) const {
  out.resize(bytes(sent));
  const std::size_t token = sent.count() == 0 ? 0 : out.size() / sent.count();
  for_each_token(values, width_, sent, [&](std::span<const float> from, std::size_t number) {
    std::byte* to = out.data() + number * token;
    if (kind_ == CutEncoding::kFloat32)
      std::memcpy(to, from.data(), token);
    else
      encode_int8(from, to);
  });
}

Result<void> CutCodec::decode(std::span<const std::byte> bytes, const SentTokens& sent,
                              std::span<float> values) const {
  if (bytes.size() != this->bytes(sent))
    return invalid("the values at the cut have " + std::to_string(bytes.size()) + " bytes, expected " +
                   std::to_string(this->bytes(sent)) + " for " + std::to_string(sent.count()) + " tokens");
  std::ranges::fill(values, 0.0F);
  const std::size_t token = sent.count() == 0 ? 0 : bytes.size() / sent.count();
  std::size_t bad = sent.count();
  for_each_token(values, width_, sent, [&](std::span<float> to, std::size_t number) {
    const std::byte* from = bytes.data() + number * token;
    bool finite = true;
    if (kind_ == CutEncoding::kInt8) {
      finite = decode_int8(from, to);
    } else {
      std::memcpy(to.data(), from, token);
      for (const float value : to) finite = finite && std::isfinite(value);
    }
    if (!finite) bad = std::min(bad, number);
  });
  if (bad < sent.count())
    return invalid("the values at the cut are not finite in token " + std::to_string(bad) + " of " +
                   std::to_string(sent.count()));
  return {};
}

void CutFeedback::encode(const CutCodec& codec, std::span<float> values, const SentTokens& sent,
                         std::span<const std::uint32_t> samples, std::vector<std::byte>& out) {
  FEDGE_CHECK(samples.size() == sent.of.size(), "a sample for each sequence");
  const std::size_t width = samples.empty() ? 0 : values.size() / (samples.size() * sent.length);
  std::vector<std::vector<float>*> residuals;
  for (std::size_t s = 0; s < samples.size(); ++s) {
    std::vector<float>* residual = remembered(samples[s], sent.of[s] * width);
    residuals.push_back(residual);
    for (std::size_t i = 0; residual != nullptr && i < residual->size(); ++i)
      values[s * sent.length * width + i] += (*residual)[i];
  }
  codec.encode(values, sent, out);
  decoded_.resize(values.size());
  const auto decoded = codec.decode(out, sent, decoded_);
  for (std::size_t s = 0; s < samples.size(); ++s) {
    const std::size_t first = s * sent.length * width;
    for (std::size_t i = 0; residuals[s] != nullptr && i < residuals[s]->size(); ++i)
      (*residuals[s])[i] = decoded ? values[first + i] - decoded_[first + i] : 0.0F;
  }
}

// Null if there is no room for it.
std::vector<float>* CutFeedback::remembered(std::uint32_t sample, std::size_t size) {
  const auto found = residuals_.find(sample);
  const std::size_t had = found == residuals_.end() ? 0 : found->second.size();
  if ((floats_ - had + size) * sizeof(float) > kFeedbackBytes) return nullptr;
  floats_ += size - had;
  std::vector<float>& residual = residuals_[sample];
  residual.resize(size);
  return &residual;
}

}  // namespace fedge::learn
