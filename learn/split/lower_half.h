// LowerHalf: the client's half of one split training: the embedding and the blocks up to the cut, before and
// after the peer's half. With `keeps_targets` (the "U shape"; Vepakomma et al. 2018, section 3.2) the head
// and the loss run on the client too, and the peer sees no targets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/aligned_buffer.h"
#include "core/result.h"
#include "learn/data/batch.h"
#include "learn/model.h"
#include "learn/split/split_model.h"
#include "learn/split/upper_peer.h"

namespace fedge::learn {

class LowerHalf {
 public:
  // `peer` must outlive it.
  LowerHalf(UpperPeer& peer, std::size_t cut, const SplitTrainingSpec& spec)
      : peer_(peer), cut_(cut), spec_(spec) {}

  // The peer's error; nothing is exchanged after it.
  const std::optional<Error>& fault() const { return fault_; }
  std::size_t cut() const { return cut_; }
  // TrainingResult::activation_correlation.
  double correlation() const { return correlation_; }
  void begin(const SplitStart& start);
  // One batch, of these samples: adds to the gradient of the blocks up to the cut. After a fault the result
  // is of no use.
  struct Step {
    std::uint64_t number = 0;  // from 0
    std::span<const std::uint32_t> samples;
  };
  BatchLoss run(const SplitModel& model, std::span<const float> parameters, const Batch& batch,
                const Step& step, std::span<float> gradient, Workspace& workspace);
  void end(std::uint64_t steps);

 private:
  Result<void> run_piece(const SplitModel& model, std::span<const float> parameters, const Batch& batch,
                         ExchangedPiece piece, std::span<double> losses, std::span<float> gradient,
                         Workspace& workspace);

  UpperPeer& peer_;
  std::size_t cut_;
  SplitTrainingSpec spec_;
  std::optional<Error> fault_;
  // Keep the embeddings of some tokens, and compare them with the activations.
  void embed(const SplitModel& model, std::span<const float> parameters, const Batch& batch,
             const ExchangedPiece& piece, Workspace& workspace);
  void compare(const SentTokens& sent, std::span<const float> activations, std::size_t width);

  std::vector<float> embeddings_;
  double correlation_ = 0;
  AlignedBuffer<float> values_;  // of a piece
  std::vector<std::byte> sent_;  // and as bytes
  CutFeedback feedback_;         // of the activations at the cut
};

}  // namespace fedge::learn
