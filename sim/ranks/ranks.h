// Ranks: the processes that simulate a run together, on one machine or several. Each runs all events of the
// simulation, because events are cheap and the same everywhere; trainings and sums are shared
// (shared_work.h).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/result.h"

namespace fedge::sim {

class Ranks {
 public:
  struct Message {
    std::size_t from = 0;
    std::string bytes;
  };

  virtual ~Ranks() = default;
  // This process's number, from 0.
  virtual std::size_t rank() const = 0;
  virtual std::size_t size() const = 0;
  // Sends a message to all other ranks and returns at once. The messages of a rank arrive in order. Any
  // thread.
  virtual void broadcast(std::string message) = 0;
  // Returns the next message of another rank; nothing if none arrives within `patience`. kUnavailable: a rank
  // is lost.
  virtual Result<std::optional<Message>> receive(std::chrono::microseconds patience) = 0;
  // Replaces each number by its sum over all ranks. All ranks must call it in the same order with as many
  // numbers. kUnavailable: a rank is lost.
  virtual Result<void> all_reduce(std::span<std::int64_t> numbers) = 0;
};

}  // namespace fedge::sim
