// Line: one direction of a virtual client's link, first come, first served. A bulk transfer is an object's
// chunks, which one side requests; it may end early. A request takes one latency, so the line really carries
// a transfer one latency later than the line's times say.
#pragma once

#include <algorithm>

#include "core/ids.h"
#include "core/time.h"

namespace fedge::sim {

class Line {
 public:
  struct Transfer {
    Time begin{};  // when its first byte enters the line
    Time end{};    // when its last byte has passed
    Bytes size;

    // Bytes that have passed at this time.
    Bytes passed(Time then) const;
  };
  // Sends bytes that take this long. Returns when the last one has passed.
  Time send(Time now, Duration takes) { return free_ = std::max(free_, now) + takes; }
  Transfer begin(Time now, Bytes size, Duration takes);
  // Ends the transfer at this time. Whatever was sent after it keeps its times.
  void end(const Transfer& transfer, Time then);
  // The connection is lost, and with it all that was being sent.
  void cut(Time now) { free_ = now; }
  Time free() const { return free_; }

 private:
  Time free_{};
};

// ByteCount counts the bytes of all clients in one direction, for the metrics of rounds.
class ByteCount {
 public:
  void add(Bytes bytes) { total_ += bytes.value(); }
  // Counts bytes of an earlier add() no longer: they were not sent.
  void remove(Bytes bytes) { total_ -= bytes.value(); }
  // Returns what has come since the last take().
  Bytes take();

 private:
  std::uint64_t total_ = 0;
  std::uint64_t taken_ = 0;
};

}  // namespace fedge::sim
