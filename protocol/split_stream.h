// SplitOutgoing and SplitIncoming: the values of split training in parts, under credit: a sender has at most
// kSplitWindow parts on their way that the receiver has not taken. Pure; no socket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/ids.h"
#include "core/result.h"
#include "protocol/limits.h"
#include "protocol/split_messages.h"

namespace fedge::protocol {

class SplitOutgoing {
 public:
  // Nothing to send.
  SplitOutgoing() = default;
  // `head`: part 0 without values; `values` are not empty.
  SplitOutgoing(SplitValues head, std::vector<std::byte> values);

  // The next part; nothing if there is no credit, or none is left.
  std::optional<SplitValues> next();
  // The receiver has taken this part.
  void taken(std::uint32_t part);
  // Begins again, after a lost connection.
  void again();
  const SplitValues& head() const { return head_; }

 private:
  SplitValues head_;
  std::vector<std::byte> values_;
  std::uint32_t sent_ = 0;   // parts
  std::uint32_t taken_ = 0;  // parts
};

class SplitIncoming {
 public:
  // At most this many bytes of values.
  explicit SplitIncoming(std::size_t most) : most_(most) {}

  // Takes a part. Returns the message with all values once it is complete. Part 0 begins anew. kInvalid:
  // another part than the next, or too many bytes.
  Result<std::optional<SplitValues>> take(SplitValues part);

 private:
  std::size_t most_;
  std::optional<SplitValues> whole_;
  std::uint32_t next_ = 0;
};

// The bytes of all frames of a message with this part 0 and this number of bytes of values, without building
// it.
Bytes split_frames_size(const SplitValues& head, std::size_t values);

}  // namespace fedge::protocol
