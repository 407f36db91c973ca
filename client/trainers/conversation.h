// Conversation: one process of a trainer program, and the frames exchanged with it. Blocks the calling
// thread; meanwhile the program's standard error goes into the log. Every error ends the conversation,
// because the program's state is then unknown: close it and begin a new one. Memory: one frame.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "client/trainers/line_log.h"
#include "client/trainers/process.h"
#include "client/trainers/trainer_frames.h"
#include "core/event.h"
#include "core/result.h"
#include "core/time.h"

namespace fedge::client {

struct TrainerOptions {
  std::vector<std::string> command;
  std::uint64_t memory_bytes = 0;   // limit of private memory; 0: none
  int nice = 10;                    // lower priority than the rest of the device
  Duration silence = seconds(300);  // the program counts as hanging after this time without a frame
  Duration grace = seconds(10);     // time to answer after it was told to give up
  std::function<void(const Event&)> on_event;
};

// This machine's steady clock, with an arbitrary origin.
inline Time trainer_now() { return Time(std::chrono::steady_clock::now().time_since_epoch()); }

class Conversation {
 public:
  static Result<std::unique_ptr<Conversation>> begin(const TrainerOptions& options,
                                                     const PayloadLimits& limits);
  ~Conversation();

  // Queue data for the next listen(), which sends it. Lent bytes must stay valid until listen() returns.
  void say(std::string frame);
  void lend(std::span<const std::byte> bytes);

  struct Waiting {
    std::uint64_t task = 0;  // 0: wait for "ready"
    std::stop_token stop;    // tell the program to give up
    std::stop_token finish;  // tell the program to end its training
    std::stop_token leave;   // return at once
  };
  // Waits for the next ready, update, predictions, evaluation or error of this task; ignores those of earlier
  // tasks. An error says what the program did instead: it ended, hangs, or sent an invalid message.
  Result<TrainerFrame> listen(const Waiting& waiting);

 private:
  struct Piece {
    std::string owned;
    std::span<const std::byte> lent;
    std::size_t sent = 0;
    std::span<const std::byte> left() const {
      return (owned.empty() ? lent : std::as_bytes(std::span(owned))).subspan(sent);
    }
  };

  Conversation(const TrainerOptions& options, std::unique_ptr<ChildProcess> process,
               const PayloadLimits& limits)
      : options_(options), process_(std::move(process)), reader_(limits) {}

  void pass_on_stops(const Waiting& waiting);
  Result<std::optional<TrainerFrame>> exchange(Duration patience, int wake);
  Result<std::optional<TrainerFrame>> receive();
  Result<bool> answers(const TrainerMessage& message, const Waiting& waiting);
  void send();
  void read_errors();
  void report(Severity severity, const char* name, const char* key, const std::string& value) const;
  Error closed();
  Error silent(const Waiting& waiting) const;

  const TrainerOptions& options_;
  std::unique_ptr<ChildProcess> process_;
  TrainerFrameReader reader_;
  LineLog log_;
  std::deque<Piece> outgoing_;
  Time silent_at_{};  // when the program counts as hanging
  std::optional<Time> give_up_at_;
  bool told_to_finish_ = false;
};

}  // namespace fedge::client
