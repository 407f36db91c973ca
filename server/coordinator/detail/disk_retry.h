// DiskRetry repeats work that a full disk stopped, every second until there is room. Reports like FullDisk.
// Use it on the io_context's thread. Private to coordinator/.
#pragma once

#include <functional>
#include <utility>

#include "protocol/session/loop.h"
#include "server/conductor/full_disk.h"

namespace fedge::server {

class DiskRetry {
 public:
  // `again` repeats everything that was stopped since its last call; it may destroy this object.
  DiskRetry(boost::asio::io_context& io, std::function<void(const Event&)> report, protocol::Job again,
            Duration wait = FullDisk::kRetryAfter)
      : disk_(std::move(report)), again_(std::move(again)), wait_(wait), timer_(io) {}

  // Returns whether the disk was full; `again` is then called later.
  bool stopped(const Result<void>& outcome) {
    const bool full = disk_.stopped(outcome);
    if (full && !std::exchange(armed_, true))
      timer_.after(wait_, [this, again = again_] {
        armed_ = false;
        again();
      });
    return full;
  }
  void found_room() { disk_.found_room(); }
  bool is_full() const { return disk_.is_full(); }
  void cancel() {
    armed_ = false;
    timer_.cancel();
  }

 private:
  FullDisk disk_;
  protocol::Job again_;
  Duration wait_;
  protocol::Timer timer_;
  bool armed_ = false;
};

}  // namespace fedge::server
