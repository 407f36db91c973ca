// FullDisk: work that is repeated until the disk has room for it. Reports the first failure, and the first
// success after it. Pure.
#pragma once

#include <functional>
#include <utility>

#include "core/event.h"
#include "core/result.h"
#include "core/time.h"

namespace fedge::server {

class FullDisk {
 public:
  static constexpr Duration kRetryAfter = seconds(1);

  explicit FullDisk(std::function<void(const Event&)> report) : report_(std::move(report)) {}

  // Returns whether the disk was full (kResource), so that the work must be repeated after kRetryAfter.
  bool stopped(const Result<void>& outcome) {
    const bool full = !outcome && outcome.error().code == ErrorCode::kResource;
    if (full && !std::exchange(full_, true))
      report_(Event{Severity::kError, "disk.full", {}}.with("reason", outcome.error().message));
    if (outcome) found_room();
    return full;
  }
  void found_room() {
    if (std::exchange(full_, false)) report_(Event{Severity::kInfo, "disk.space_available", {}});
  }
  // The work is given up: its next failure is reported again.
  void forget() { full_ = false; }
  // Whether no work has succeeded since the disk was full.
  bool is_full() const { return full_; }

 private:
  std::function<void(const Event&)> report_;
  bool full_ = false;
};

}  // namespace fedge::server
