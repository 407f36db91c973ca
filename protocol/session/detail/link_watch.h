// LinkWatch: whether the peer of a link is alive, reads what it is sent, and keeps within the limits of
// `limits.h`. Counts ticks of a quarter of the ping interval instead of comparing times: a program that was
// stopped or busy for a while first reads what has arrived before it declares its peer dead. No socket or
// timer; O(1). Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/result.h"
#include "protocol/session/endpoint.h"

namespace fedge::protocol {

class LinkWatch {
 public:
  explicit LinkWatch(const Timeouts& timeouts) : timeouts_(timeouts) {}

  std::chrono::milliseconds interval() const { return timeouts_.ping / 4; }

  // Counts a received control frame. kResource: the peer sends them faster than allowed.
  Result<void> control_frame(std::size_t header_bytes);
  // A frame was received to its end.
  void frame_ended() { frame_ticks_ = 0; }

  // The state of the link at a tick.
  struct Observed {
    std::uint64_t received = 0;  // bytes, in all
    std::uint64_t written = 0;   // bytes, in all
    bool has_output = false;
    std::size_t in_hand = 0;  // bytes received of an incomplete frame
  };
  struct Verdict {
    std::optional<Error> lost = {};      // the peer is gone: end the link
    std::optional<Error> at_fault = {};  // the peer is too slow: tell it, and end the link
    bool ping = false;                   // the peer is silent: ask whether it is alive
  };
  Verdict tick(const Observed& observed);

 private:
  bool too_slow(std::size_t in_hand);

  Timeouts timeouts_;
  int silent_ticks_ = 0;   // nothing received
  int stalled_ticks_ = 0;  // output pending, but nothing written
  int frame_ticks_ = 0;    // since the incomplete frame began
  std::uint64_t received_before_ = 0;
  std::uint64_t written_before_ = 0;
  std::size_t control_frames_ = 0;  // since the last tick
  std::size_t control_bytes_ = 0;   // header bytes since the last tick
};

}  // namespace fedge::protocol
