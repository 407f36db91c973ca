// PolicyFile: the disagreements between clients of a running run, in `policy.toml` of the run's directory.
// It starts with the run file's [tracks]; operators add and lift disagreements. The command-line tool
// replaces the file atomically under a lock and records the change in the audit log. The coordinator reads
// the file every second.
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
  RunNumber run() const { return run_; }
  // Records later changes in this name; by default in that of this process's user.
  void act_as(Actor actor) { actor_ = std::move(actor); }

  // ---- for the coordinator ----
  // Returns the file's policy; writes `own` to the file first if there is none.
  Result<aggregation::Policy> open(const aggregation::Policy& own);
  // Returns the policy if the file changed since the last read. The error says what is wrong with the file;
  // the earlier policy then stays in force.
  Result<std::optional<aggregation::Policy>> changed();

  // No disagreement can be added from now on, for this reason; also after a restart.
  Result<void> close(const std::string& reason) const;

  // ---- for the operator ----
  Result<aggregation::Policy> read() const;
  // Adds a disagreement and returns its position, from 1. Its clients must be clients of the run. kRefused:
  // the coordinator has closed the policy.
  Result<std::size_t> add(const config::Table& disagreement);
  // Removes the disagreement at this position, from 1.
  Result<void> lift(std::size_t place);

 private:
  // kNotFound says when a coordinator creates the file.
  Result<void> must_exist() const;
  std::filesystem::path lock_path() const { return file_.parent_path() / "policy.lock"; }
  std::filesystem::path closed_path() const { return file_.parent_path() / "policy.closed"; }
  // Writes the file; records an operator's change in the audit log first.
  Result<void> replace(const aggregation::Policy& policy, const std::optional<AuditEvent>& event) const;

  std::filesystem::path data_directory_;
  RunNumber run_;
  Actor actor_;
  std::filesystem::path file_;
  std::string seen_;           // last content read, or last error
  aggregation::Policy known_;  // last valid policy
};

}  // namespace fedge::server
