// CutCodec: activations and gradients at the cut as bytes, little-endian. Of each sequence only the tokens up
// to its last target are sent: nothing depends on the others, which are zeros to the receiver.
//   float32  for each token its values
//   int8     for each token a float32, the scale, and then a signed byte for each value: value = scale * byte
// Any thread. Externally synchronised: CutFeedback.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "core/result.h"
#include "learn/split/split_training_spec.h"
#include "learn/token.h"

namespace fedge::learn {

// For each sequence of `length` tokens, the number of tokens up to its last target.
std::vector<std::uint32_t> sent_tokens(std::span<const Token> targets, std::size_t length);

// The tokens of a piece that are sent.
struct SentTokens {
  std::span<const std::uint32_t> of;  // each sequence; at most `length`
  std::size_t length = 0;             // of each sequence
  std::size_t count() const;
};

class CutCodec {
 public:
  CutCodec(CutEncoding kind, std::size_t width) : kind_(kind), width_(width) {}

  std::size_t bytes(const SentTokens& sent) const;
  // `values`: sequences x length x width.
  void encode(std::span<const float> values, const SentTokens& sent, std::vector<std::byte>& out) const;
  // kInvalid: another number of bytes, or a value that is not finite; says which.
  Result<void> decode(std::span<const std::byte> bytes, const SentTokens& sent,
                      std::span<float> values) const;

 private:
  CutEncoding kind_;
  std::size_t width_;
};

// The most that the feedback of one side of a training remembers.
inline constexpr std::size_t kFeedbackBytes = std::size_t{16} << 20;

// CutFeedback: what rounding has cut off each sample when it was last sent, which is added before it is sent
// again. Memory: 4 bytes a value sent, for every sample of a training, but at most kFeedbackBytes: samples
// beyond are sent as they are.
class CutFeedback {
 public:
  // Encodes values with what was cut off before; `samples`: of each sequence.
  void encode(const CutCodec& codec, std::span<float> values, const SentTokens& sent,
              std::span<const std::uint32_t> samples, std::vector<std::byte>& out);
  // Of what it remembers.
  std::size_t bytes() const { return floats_ * sizeof(float); }

 private:
  std::vector<float>* remembered(std::uint32_t sample, std::size_t size);

  std::map<std::uint32_t, std::vector<float>> residuals_;  // by sample
  std::size_t floats_ = 0;                                 // in residuals_
  std::vector<float> decoded_;
};

}  // namespace fedge::learn
