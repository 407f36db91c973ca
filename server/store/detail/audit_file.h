// The files of an audit log: audit.log, to which lines are appended, the closed files audit.1.log,
// audit.2.log, ... before it, and audit.head, which has the last entry's number and hash. Private to AuditLog
// and backup/. Any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/platform/files.h"
#include "core/result.h"
#include "server/access/audit_entry.h"

namespace fedge::server {

// An open, locked file, which is the one that its path names. The destructor closes it, which releases the
// lock.
class LockedFile {
 public:
  LockedFile(std::filesystem::path path, int flags, int lock);
  ~LockedFile();
  LockedFile(const LockedFile&) = delete;
  LockedFile& operator=(const LockedFile&) = delete;

  bool held() const { return fd_ >= 0; }  // if false, errno gives the reason
  int get() const { return fd_; }
  Error error(const char* what) const;
  // Releases the lock; the file stays open.
  void unlock() const;

  Result<std::uint64_t> size() const;
  // Reads these bytes, or fewer if the file ends before.
  Result<std::string> read(std::uint64_t offset, std::size_t length) const;
  // Appends all bytes, or none if the disk is full.
  Result<void> append(std::string_view bytes) const;

 private:
  bool lock(int how);
  bool is_at_its_path() const;

  std::filesystem::path path_;
  int fd_ = -1;
};

// The end of the log, which a new line continues.
struct AuditTail {
  std::uint64_t kept = 0;  // bytes of complete lines in audit.log
  std::string torn;        // incomplete line after them
  std::uint64_t sequence = 0;
  std::string head = first_audit_hash();
};
// Reads the end of this file alone. kCorrupt: its last line is not an entry.
Result<AuditTail> read_tail(const LockedFile& file, const std::string& name);
// Reads the end of the log whose audit.log is locked: if that has no complete line, of the closed file
// before.
Result<AuditTail> read_log_tail(const LockedFile& active, const std::filesystem::path& directory);

// A file that was closed because it had reached its size.
struct AuditSegment {
  std::uint64_t number = 0;  // from 1
  std::filesystem::path path;
};
// Returns the number of "audit.12.log", and 0 for any other name.
std::uint64_t audit_segment_number(std::string_view name);
// Lists the closed files, ascending.
Result<std::vector<AuditSegment>> audit_segments(const std::filesystem::path& directory);
// Reads the first entry of a file. kCorrupt: it has none.
Result<AuditEntry> first_entry_of(const std::filesystem::path& file);

// The last entry according to audit.head.
struct AuditAnchor {
  std::uint64_t sequence = 0;
  std::string hash;
};
// Returns nothing if there is no anchor, as in logs of an older version.
Result<std::optional<AuditAnchor>> read_anchor(const std::filesystem::path& path);
// Overwrites the anchor in place. Its fixed size fits a sector, so after a power cut it is the new anchor
// or the one before; the log contains both. The caller holds the lock on the log.
Result<void> write_anchor(const std::filesystem::path& path, const AuditAnchor& anchor);

}  // namespace fedge::server
