#include "protocol/session/detail/link_watch.h"

#include <string>

#include "protocol/limits.h"

namespace fedge::protocol {

Result<void> LinkWatch::control_frame(std::size_t header_bytes) {
  control_bytes_ += header_bytes;
  if (++control_frames_ > kMaxControlFramesPerTick || control_bytes_ > kMaxControlBytesPerTick)
    return Error{ErrorCode::kResource, "the peer sends control frames faster than allowed"};
  return {};
}

LinkWatch::Verdict LinkWatch::tick(const Observed& observed) {
  const auto idle_ticks = static_cast<int>(timeouts_.idle / interval());
  silent_ticks_ = observed.received == received_before_ ? silent_ticks_ + 1 : 0;
  stalled_ticks_ = observed.has_output && observed.written == written_before_ ? stalled_ticks_ + 1 : 0;
  received_before_ = observed.received;
  written_before_ = observed.written;
  control_frames_ = 0;
  control_bytes_ = 0;
  const std::string time =
      std::to_string(std::chrono::duration_cast<std::chrono::seconds>(timeouts_.idle).count());
  if (silent_ticks_ >= idle_ticks)
    return {.lost = Error{ErrorCode::kUnavailable, "the peer has sent nothing for " + time + " s"}};
  if (stalled_ticks_ >= idle_ticks)
    return {.lost = Error{ErrorCode::kUnavailable, "the peer has not read any bytes for " + time + " s"}};
  if (too_slow(observed.in_hand))
    return {.at_fault =
                Error{ErrorCode::kResource, "the peer sends fewer than " +
                                                std::to_string(kMinBytesPerSecond) + " bytes per second"}};
  return {.ping = silent_ticks_ > 0 && silent_ticks_ % 4 == 0};
}

// Limits only the incoming rate. Output may be slow because thousands of peers get data at the same time,
// and the data waiting for it is bounded.
bool LinkWatch::too_slow(std::size_t in_hand) {
  frame_ticks_ = in_hand > 0 ? frame_ticks_ + 1 : 0;
  const std::chrono::milliseconds counted = frame_ticks_ * interval() - timeouts_.slow_grace;
  if (counted.count() <= 0) return false;
  return in_hand < static_cast<std::uint64_t>(counted.count()) * kMinBytesPerSecond / 1000;
}

}  // namespace fedge::protocol
