// PolicyFile: who disagrees with whom while a run goes on, in `policy.toml` of the run's directory: the run
// file's [tracks] at first, then what an operator adds and lifts. The command-line tool changes the file,
// under a lock and whole, and records it in the audit log; the coordinator looks at it every second.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "aggregation/tracks/policy.h"
#include "core/result.h"
#include "server/audit_log.h"
#include "server/store/run_store.h"

namespace fedge::server {

class PolicyFile {
 public:
  PolicyFile(std::filesystem::path data_directory, RunNumber run);

  // ---- the coordinator's ----
  // The policy that stands there; otherwise the run's own is put there.
  Result<aggregation::Policy> open(const aggregation::Policy& own);
  // The policy, if the file is not as it was last read. The error says what is wrong with it; what held
  // before holds on.
  Result<std::optional<aggregation::Policy>> changed();

  // ---- the operator's ----
  Result<aggregation::Policy> read() const;
  // One more; its place, from 1. Clients are checked against the run's.
  Result<std::size_t> add(const config::Table& disagreement);
  // Without the one at this place, from 1.
  Result<void> lift(std::size_t place);

 private:
  // kNotFound says who makes the file.
  Result<void> must_exist() const;
  std::filesystem::path lock_path() const { return file_.parent_path() / "policy.lock"; }
  // Recorded in the audit log, if it is an operator's change, before it holds.
  Result<void> replace(const aggregation::Policy& policy, const std::optional<AuditEvent>& event) const;

  std::filesystem::path data_directory_;
  RunNumber run_;
  std::filesystem::path file_;
  std::string seen_;           // the file's text
  aggregation::Policy known_;  // and what it says
};

}  // namespace fedge::server
