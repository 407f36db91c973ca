#include "server/store/run_store.h"

#include <array>
#include <cstdio>
#include <utility>

#include "core/crypto/random.h"
#include "server/store/sqlite_store.h"

namespace fedge::server {

const char* name_of(RunStatus status) {
  constexpr std::array kNames = {"pending", "running", "paused", "finished", "failed", "stopped"};
  return kNames[static_cast<std::size_t>(status)];
}

std::string text_of(RunId run) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(run.value()));
  return digits;
}

RunRecord new_run(const std::string& name, const std::string& document) {
  std::array<std::uint8_t, 8> bytes;
  fill_random(bytes);
  std::uint64_t id = 0;
  for (const std::uint8_t byte : bytes) id = (id << 8) | byte;
  return {.id = RunId(id), .name = name, .document = document, .submitted = calendar_now()};
}

Result<RunRecord> transition(RunRecord run, RunStatus wanted, const std::string& reason, UnixSeconds now) {
  const bool open = !has_ended(run.status);
  const bool possible = wanted == RunStatus::kStopped  ? open
                        : wanted == RunStatus::kPaused ? open && run.status != RunStatus::kPaused
                                                       : run.status == RunStatus::kPaused;
  if (!possible)
    return Error{ErrorCode::kRefused, "run " + std::to_string(run.number.value()) + " is " +
                                          name_of(run.status) +
                                          (wanted == RunStatus::kPending ? ", not paused"
                                           : open                        ? " already"
                                                                         : " and can no longer be changed")};
  run.status = wanted;
  run.reason = reason;
  if (wanted == RunStatus::kStopped && run.started == 0) run.ended = now;
  return run;
}

std::filesystem::path run_store_path(const std::filesystem::path& data_directory) {
  return data_directory / "runs.db";
}

}  // namespace fedge::server
