// DailyUpdates: counts the updates that a client has made today for its coordinator, in its state
// directory. The owner can limit them (fedge-client run --max-updates-per-day). Not thread-safe.
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
  // `day` counts in UTC and never goes back: setting the clock back does not reset the count. kCorrupt,
  // with the file's name, if it is damaged.
  static Result<DailyUpdates> read(const std::filesystem::path& state_directory, std::uint64_t day);

  // Hashes what determines an update: the run description's hash, run, round, track, model, control
  // variate, data share and coverage. Updates that differ in any of these count separately.
  static Digest work_of(const Digest& terms, const protocol::TrainRequest& request);

  // kRefused if the update would exceed `most`. A repetition of the last one is not counted again.
  Result<void> admit(const Digest& work, std::uint32_t most) const;
  // Like admit(), for an update that is about to be sent. Durable once it returns.
  Result<void> count(const Digest& work, std::uint32_t most);

 private:
  explicit DailyUpdates(std::filesystem::path file) : file_(std::move(file)) {}
  bool is_last(const Digest& work) const { return made_ > 0 && to_hex(work) == last_; }

  std::filesystem::path file_;
  std::uint64_t day_ = 0;
  std::uint32_t made_ = 0;
  std::string last_;  // work_of() the last one, in hexadecimal
};

}  // namespace fedge::client
