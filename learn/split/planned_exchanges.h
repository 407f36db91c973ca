// PlannedExchanges: what the halves of a split training will send each other, known before it: a simulation
// needs it for times and bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/ids.h"
#include "learn/data/batch.h"
#include "learn/data/partition.h"
#include "learn/task.h"

namespace fedge::learn {

class PlannedExchanges {
 public:
  struct Piece {
    std::uint64_t step = 0;
    std::uint32_t first = 0;             // sequence of the batch
    bool last = false;                   // of the batch
    std::size_t total = 0;               // targets of the batch
    std::vector<std::uint32_t> sent;     // tokens of each sequence
    std::vector<Token> targets;          // of these tokens
    std::vector<std::uint32_t> samples;  // their positions among the client's samples
    std::size_t tokens() const { return targets.size(); }
  };

  // The exchanges of Task::train() with these arguments. `task` must outlive them.
  PlannedExchanges(const Task& task, ClientId client, RoundNumber round, double data_share,
                   std::uint64_t max_steps);
  // Number of steps of the training.
  std::uint64_t steps() const { return steps_; }
  // The next piece; nothing after the last.
  std::optional<Piece> next();

 private:
  const Task& task_;
  ClientSamples all_;  // of the client
  BatchOrder order_;
  std::uint64_t steps_ = 0;
  std::uint64_t made_ = 0;  // steps begun
  std::span<const std::uint32_t> batch_;
  std::size_t taken_ = 0;  // sequences of the batch
};

}  // namespace fedge::learn
