// UpperPeer: the other half of a split training, as the client's half sees it: a server behind a link, or the
// same process. A client exchanges the pieces of a batch one after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/ids.h"
#include "core/result.h"
#include "learn/split/cut_codec.h"
#include "learn/split/split_model.h"
#include "learn/token.h"

namespace fedge::learn {

// What both halves must know of a training.
struct SplitStart {
  RoundNumber round = RoundNumber(1);
  std::size_t cut = 0;
  std::uint64_t steps = 0;  // that the training has in all, for the learning rate
};

// A piece, and what the loss needs of its batch.
struct ExchangedPiece {
  std::uint64_t step = 0;  // from 0
  bool last = false;       // of its batch: the server then moves its parameters
  SplitPiece place;
  SentTokens sent;
  std::span<const Token> targets;          // of the piece; empty if they stay on the client
  std::size_t total = 0;                   // number of targets of the whole batch
  std::span<const std::uint32_t> samples;  // of each sequence, with error feedback; else empty
};

class UpperPeer {
 public:
  virtual ~UpperPeer() = default;
  // The training begins, perhaps not for the first time.
  virtual Result<void> begin(const SplitStart& start) = 0;
  // Turns h into dh, both encoded (learn/split/cut_codec.h), and writes the sum of losses of each sequence.
  virtual Result<void> exchange(const ExchangedPiece& piece, std::vector<std::byte>& values,
                                std::span<double> losses) = 0;
  // If the targets stay on the client: turns h into z, and dz into dh.
  virtual Result<void> forward(const ExchangedPiece& piece, std::vector<std::byte>& values) = 0;
  virtual Result<void> backward(const ExchangedPiece& piece, std::vector<std::byte>& values) = 0;
  // The training has ended after this number of steps.
  virtual Result<void> end(std::uint64_t steps) = 0;
};

}  // namespace fedge::learn
