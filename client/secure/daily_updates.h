// DailyUpdates: how many updates a client has made today for its coordinator, in its state directory, so that
// its owner can say how many there may be (fedge-client run --max-updates-per-day). Not thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "core/crypto/sha256.h"
#include "core/result.h"
#include "protocol/messages.h"

namespace fedge::client {

class DailyUpdates {
 public:
  // Days are counted in UTC, and never backwards: a clock that is set back brings no day back. kCorrupt, with
  // the file's name, if it is damaged.
  static Result<DailyUpdates> read(const std::filesystem::path& state_directory, std::uint64_t day);

  // Names what an update is made of: the run's description (by its hash), task, model and part of it. An
  // update of which any of that is different is another one.
  static Digest work_of(const Digest& terms, const protocol::TrainRequest& request);

  // kRefused if the update would be one too many; the last one once more counts once.
  Result<void> admit(const Digest& work, std::uint32_t most) const;
  // Likewise, of one that is about to be sent: on the disk, also after a power cut, once this returns.
  Result<void> count(const Digest& work, std::uint32_t most);

 private:
  explicit DailyUpdates(std::filesystem::path file) : file_(std::move(file)) {}
  bool is_last(const Digest& work) const { return made_ > 0 && to_hex(work) == last_; }

  std::filesystem::path file_;
  std::uint64_t day_ = 0;
  std::uint32_t made_ = 0;
  std::string last_;  // what the last was made of, in hexadecimal
};

}  // namespace fedge::client
