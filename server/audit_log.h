// AuditLog: the trail of what changed who may connect and what ran, `audit.log` of the data directory. Lines
// are appended, never changed; each holds the hash of the one before (server/access/audit_entry.h), so that
// no line can be altered, left out or moved without a trace. A line is on the disk before what it tells of
// takes effect: after a crash the log may tell of one thing that did not come to pass, never the other way.
// The command-line tool and a running coordinator write at the same time, under a lock on the file itself.
// Anyone who may write the file may also cut off its end, or write all of it anew: keep a head hash
// elsewhere and give it to verify().
// No secret is ever in it. Any thread; appending costs one fsync and reads the last line alone.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "core/result.h"
#include "server/access/audit_entry.h"
#include "server/access/calendar.h"

namespace fedge::server {

// "uid 1000": who runs this program, as the actor of what the command-line tool does.
std::string operator_name();

class AuditLog {
 public:
  // The directory must exist when something is appended; the file is made then, mode 0600.
  explicit AuditLog(const std::filesystem::path& data_directory,
                    std::function<UnixSeconds()> calendar = calendar_now);

  // Whatever the error, what the entry tells of must not be done. A torn last line, left by a crash, is cut
  // off, and an entry "log.repaired" says so. kCorrupt if the last line does not verify otherwise.
  Result<void> append(const AuditEvent& event) const;

  struct Summary {
    std::uint64_t entries = 0;
    std::string head;  // the last entry's hash, 64 zeros if there is none
  };
  // Reads the whole log, line by line, and hands over each entry that holds. kCorrupt names the first line
  // that does not, and why. With `expected`, a hash that the log once had as its head, kCorrupt also if no
  // entry has it: then the log has been cut off below it, or replaced. kNotFound: there is no log.
  Result<Summary> verify(const std::string& expected = "",
                         const std::function<void(const AuditEntry&)>& visit = {}) const;

 private:
  std::filesystem::path file_;
  std::function<UnixSeconds()> calendar_;
};

}  // namespace fedge::server
