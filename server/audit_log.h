// AuditLog: the trail of what changed who may connect and what ran, `audit.log` of the data directory. Lines
// are appended, never changed; each holds the hash of the one before (server/access/audit_entry.h), so that
// no line can be altered, left out or moved without a trace. A line is on the disk before what it tells of
// takes effect, and one that fails after that has a second line that says so: only after a crash, or on a
// disk without room for it, the log may tell of one thing that did not come to pass, never the other way. The
// number and hash of the last entry are also in `audit.head`: a log that is cut off, moved away or put back
// from a backup does not verify, and the next entry continues the lost ones, so that the parts of a log
// verify again when they are put together.
// The command-line tool and a running coordinator write at the same time, under a lock on the file itself.
// Anyone who may write both files may also write them anew: keep a head hash elsewhere and give it to
// verify().
// No secret is ever in it. Any thread; appending costs one fsync and reads the last line alone.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/result.h"
#include "server/access/audit_entry.h"
#include "server/access/calendar.h"

namespace fedge::server {

// "uid 1000": who runs this program, as the actor of what the command-line tool does.
std::string operator_name();

// The action of an entry that says that an earlier one, its subject, did not come to pass.
inline constexpr const char* kChangeFailed = "change.failed";
AuditEvent change_failed(std::uint64_t entry, const std::string& action, const std::string& reason);

class AuditLog {
 public:
  // The directory must exist when something is appended; the file is made then, mode 0600.
  explicit AuditLog(const std::filesystem::path& data_directory,
                    std::function<UnixSeconds()> calendar = calendar_now);

  // Whatever the error, what the entry tells of must not be done. A torn last line, left by a crash, is cut
  // off, and an entry "log.repaired" says so. kCorrupt if the last line does not verify otherwise.
  Result<void> append(const AuditEvent& event) const;
  // The same; returns the entry's number.
  Result<std::uint64_t> record(const AuditEvent& event) const;
  // The number of the last entry; 0 if there is none. Reads the last line alone.
  Result<std::uint64_t> last() const;
  // The entries above this number, ascending; reads no more of the log than holds them. kCorrupt: one of them
  // does not hold by itself.
  Result<std::vector<AuditEntry>> entries_after(std::uint64_t sequence) const;

  struct Summary {
    std::uint64_t entries = 0;
    std::string head;  // the last entry's hash, 64 zeros if there is none
  };
  // Reads the whole log, line by line, and hands over each entry that holds. kCorrupt names the first line
  // that does not, and why. With `expected`, a hash that the log once had as its head, kCorrupt also if no
  // entry has it: then the log has been cut off below it, or replaced; the same for the hash in audit.head.
  // kNotFound: there is no log.
  Result<Summary> verify(const std::string& expected = "",
                         const std::function<void(const AuditEntry&)>& visit = {}) const;

 private:
  std::filesystem::path file_;
  std::filesystem::path head_file_;
  std::function<UnixSeconds()> calendar_;
};

}  // namespace fedge::server
