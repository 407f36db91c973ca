// UpperHalf: the server's half of split trainings. It runs the blocks above the cut, the head and the loss,
// and moves the adapters of these blocks, with the optimizer and the learning rates of the client's half. One
// thread. It can serve the trainings of many clients in turn: a SplitState is what has to be kept of one.
// Memory: scratch of one piece, and 4 to 12 bytes a parameter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/aligned_buffer.h"
#include "core/coverage.h"
#include "core/result.h"
#include "core/split/split_layout.h"
#include "learn/model.h"
#include "learn/optimizers/optimizer.h"
#include "learn/spec.h"
#include "learn/split/cut_codec.h"
#include "learn/split/upper_peer.h"

namespace fedge::learn {

// One client's training: the values and moments of the adapters above its cut.
struct SplitState {
  SplitStart start;
  Coverage held;
  Coverage trained;            // a part of `held`
  std::uint64_t steps = 0;     // made
  std::vector<float> values;   // packed over `held`
  std::vector<float> moments;  // of the optimizer, over `trained`
  // Sum over the pieces of an incomplete batch, over `trained`; empty between batches.
  std::vector<float> gradient;
  CutFeedback feedback;  // of the gradients at the cut
};

class UpperHalf {
 public:
  // `model` must outlive it and have a split().
  UpperHalf(const Model& model, const TrainingSpec& spec);

  // Begins a training from these parameters, of the whole model.
  SplitState begin(const SplitStart& start, const SplitLayout& layout,
                   std::span<const float> parameters) const;
  // Continues with this training: `parameters`, of the whole model, get its values. Frozen parameters are
  // read from `frozen`, as long as the whole model, or from `parameters` if it is null. All must stay in
  // place until leave(), which writes the values back.
  void enter(SplitState& state, std::span<float> parameters, const float* frozen);
  void leave(SplitState& state) const;

  // The functions of UpperPeer for the training that was entered. The pieces must be in order, and their
  // shapes and targets those of the model. kInvalid: the values cannot be decoded; nothing has changed.
  Result<void> exchange(const ExchangedPiece& piece, std::vector<std::byte>& values,
                        std::span<double> losses);
  Result<void> forward(const ExchangedPiece& piece, std::vector<std::byte>& values);
  Result<void> backward(const ExchangedPiece& piece, std::vector<std::byte>& values);

 private:
  std::span<float> room(const ExchangedPiece& piece);
  // Decodes and runs the blocks above the cut.
  Result<void> run_forward(const ExchangedPiece& piece, std::span<const std::byte> values);
  // Runs them backward from the gradient in values_, and encodes.
  void run_backward(const ExchangedPiece& piece, std::vector<std::byte>& values);
  void move();

  const Model& model_;
  const SplitModel& split_;
  TrainingSpec spec_;
  Optimizer optimizer_;
  std::unique_ptr<Workspace> workspace_;
  AlignedBuffer<float> gradient_;
  CutCodec codec_;
  AlignedBuffer<float> values_;  // of a piece
  std::span<float> parameters_;
  SplitState* state_ = nullptr;  // that was entered
  std::uint64_t steps_ = 0;
  bool within_batch_ = false;
};

}  // namespace fedge::learn
