// LocalPeer: the UpperPeer in the client's own process, on the same parameter vector. So a simulation trains
// in split with the same halves as a device and a server.
#pragma once

#include <cstdint>
#include <span>

#include "learn/split/upper_half.h"

namespace fedge::learn {

class LocalPeer final : public UpperPeer {
 public:
  // All must outlive it. `parameters`: of the whole model, where the client trains too; `frozen`: where those
  // are that are not trainable.
  LocalPeer(UpperHalf& half, const SplitLayout& layout, std::span<float> parameters, const float* frozen)
      : half_(half), layout_(layout), parameters_(parameters), frozen_(frozen) {}

  Result<void> begin(const SplitStart& start) override {
    state_ = half_.begin(start, layout_, parameters_);
    half_.enter(state_, parameters_, frozen_);
    return {};
  }
  Result<void> exchange(const ExchangedPiece& piece, std::vector<std::byte>& values,
                        std::span<double> losses) override {
    return half_.exchange(piece, values, losses);
  }
  Result<void> forward(const ExchangedPiece& piece, std::vector<std::byte>& values) override {
    return half_.forward(piece, values);
  }
  Result<void> backward(const ExchangedPiece& piece, std::vector<std::byte>& values) override {
    return half_.backward(piece, values);
  }
  Result<void> end(std::uint64_t) override { return {}; }

 private:
  UpperHalf& half_;
  const SplitLayout& layout_;
  std::span<float> parameters_;
  const float* frozen_;
  SplitState state_;
};

}  // namespace fedge::learn
