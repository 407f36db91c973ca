// PolicyFile: who disagrees with whom while a run goes on, in `policy.toml` of the coordinator's data
// directory: the run file's [tracks] at first, then what an operator adds and lifts. The command-line tool
// changes the file, under a lock and whole, and records it in the audit log; the coordinator looks at it
// every second. It belongs to one run: another run's is replaced, the same run's stays when the coordinator
// begins again.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "aggregation/tracks/policy.h"
#include "core/ids.h"
#include "core/result.h"
#include "server/audit_log.h"

namespace fedge::server {

class PolicyFile {
 public:
  explicit PolicyFile(std::filesystem::path data_directory);

  // ---- the coordinator's ----
  // The policy that stands there for this run; otherwise the run's own is put there.
  Result<aggregation::Policy> open(RunId run, const aggregation::Policy& own);
  // No policy can be had: no file either, so that nobody writes down what nobody reads.
  Result<void> remove() const;
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
  Result<std::string> read_text() const;
  // Recorded in the audit log, if it is an operator's change, before it holds.
  Result<void> replace(const std::string& first_line, const aggregation::Policy& policy,
                       const std::optional<AuditEvent>& event) const;

  std::filesystem::path directory_;
  std::filesystem::path file_;
  std::string seen_;           // the file's text
  aggregation::Policy known_;  // and what it says
};

}  // namespace fedge::server
