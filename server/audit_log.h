// AuditLog: the record of all changes to access and to runs, `audit.log` of the data directory, and the
// closed files before it, audit.1.log, audit.2.log and so on. Lines are only appended. Each contains the hash
// of the line before (server/access/audit_entry.h), so that altered, removed and moved lines are detected. A
// line is on the disk before its change takes effect; if the change then fails, a second line says so. So
// after a crash or on a full disk the log may contain a change that did not happen, but never lacks one that
// did. The number and hash of the last entry are also in `audit.head`: a log that was truncated, moved away
// or restored from a backup does not verify. The next entry continues the lost ones, so the parts of a log
// verify again when they are joined.
//
// The command-line tool and a running coordinator may write at the same time, under a lock on the file. A
// user who may write both files may also forge both: store a head hash elsewhere and pass it to verify().
// The log contains no secrets. Any thread; appending costs one fsync and reads only the last line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/platform/files.h"
#include "core/result.h"
#include "server/access/audit_entry.h"
#include "server/access/calendar.h"

namespace fedge::server {

// Returns the user that runs this program, for example "uid 1000": the actor of the command-line tool's
// actions.
std::string operator_name();

// The person or program that causes a change: "uid 1000", "user alice", and the address of the request, if
// any.
struct Actor {
  std::string name = operator_name();
  std::string address = {};
};
using AuditDetails = std::vector<std::pair<std::string, std::string>>;
// Returns the event with the actor's name, and its address as the detail "from".
AuditEvent event_by(const Actor& actor, std::string action, std::string subject, AuditDetails details = {});

// Action of an entry saying that the change of an earlier entry, its subject, did not happen.
inline constexpr const char* kChangeFailed = "change.failed";
AuditEvent change_failed(const Actor& actor, std::uint64_t entry, const std::string& action,
                         const std::string& reason);

class AuditLog {
 public:
  // The directory must exist before the first append, which creates the file with mode 0600.
  explicit AuditLog(const std::filesystem::path& data_directory,
                    std::function<UnixSeconds()> calendar = calendar_now);

  // Appends an entry. After any error the caller must not carry out the change. A torn last line, left by a
  // crash, is cut off and an entry "log.repaired" records that. kCorrupt if the last line is otherwise
  // invalid.
  Result<void> append(const AuditEvent& event) const;
  // Like append(), and returns the entry's number.
  Result<std::uint64_t> record(const AuditEvent& event) const;
  // Returns the number of the last entry, 0 if there is none. Reads only the last line.
  Result<std::uint64_t> last() const;
  // Returns the first entries above this number, ascending, at most `most`. Reads only the files that contain
  // them, and of audit.log only the end. kCorrupt: one of them is invalid.
  Result<std::vector<AuditEntry>> entries_after(std::uint64_t sequence, std::size_t most = SIZE_MAX) const;
  // Closes audit.log if it has at least this size: renames it to the next of audit.1.log, audit.2.log, ...
  // The next entry, "log.rotated", continues its last line in a new audit.log. Returns whether it did.
  Result<bool> rotate(std::uint64_t bytes) const;

  struct Summary {
    std::uint64_t entries = 0;
    std::string head;  // hash of the last entry, 64 zeros if there is none
  };
  // Reads the whole log and passes each valid entry to `visit`. kCorrupt names the first invalid line and
  // the reason. With `expected`, a hash that was once the log's head, kCorrupt also if no entry has it: the
  // log was truncated or replaced. The hash in audit.head is checked in the same way. kNotFound: there is
  // no log.
  Result<Summary> verify(const std::string& expected = "",
                         const std::function<void(const AuditEntry&)>& visit = {}) const;

  // The log at one moment, for a backup.
  struct Mark {
    std::uint64_t entries = 0;
    std::string head = first_audit_hash();
    std::vector<std::filesystem::path> closed = {};  // audit.1.log and so on, which do not change any more
    std::optional<ReadOnlyFile> active = {};         // audit.log, of which these bytes are complete lines
    std::uint64_t bytes = 0;
    std::string head_file = {};  // content of audit.head; empty: there is none
  };
  Result<Mark> mark() const;

 private:
  std::filesystem::path file_;
  std::filesystem::path head_file_;
  std::function<UnixSeconds()> calendar_;
};

}  // namespace fedge::server
