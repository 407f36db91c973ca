#include "server/audit_log.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "core/crypto/sha256.h"
#include "core/platform/files.h"

namespace fedge::server {
namespace {

// The log's file, open and locked; both end with it.
class LockedFile {
 public:
  LockedFile(std::filesystem::path path, int flags, int lock)
      : path_(std::move(path)),
        fd_(::open(path_.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600)) {
    while (fd_ >= 0 && ::flock(fd_, lock) != 0) {
      if (errno == EINTR) continue;
      const int error = errno;
      ::close(std::exchange(fd_, -1));
      errno = error;
    }
  }
  ~LockedFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  LockedFile(const LockedFile&) = delete;
  LockedFile& operator=(const LockedFile&) = delete;

  bool held() const { return fd_ >= 0; }  // else errno says why not
  int get() const { return fd_; }
  Error error(const char* what) const { return system_error(what, path_, errno); }

  Result<std::uint64_t> size() const {
    struct stat info {};
    if (::fstat(fd_, &info) != 0) return error("cannot look at");
    if (!S_ISREG(info.st_mode)) return invalid(path_.string() + " is not a regular file");
    return static_cast<std::uint64_t>(info.st_size);
  }
  // These bytes, or fewer if the file ends before.
  Result<std::string> read(std::uint64_t offset, std::size_t length) const {
    std::string bytes(length, '\0');
    std::size_t got = 0;
    while (got < length) {
      const ssize_t more = ::pread(fd_, bytes.data() + got, length - got, static_cast<off_t>(offset + got));
      if (more < 0 && errno == EINTR) continue;
      if (more < 0) return error("cannot read");
      if (more == 0) break;
      got += static_cast<std::size_t>(more);
    }
    bytes.resize(got);
    return bytes;
  }
  // All or, if there is no room, nothing.
  Result<void> append(std::string_view bytes) const {
    FEDGE_TRY(before, size());
    while (!bytes.empty()) {
      const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) {
        const Error failed = error("cannot write");
        // What stays of it is cut off with the next entry.
        (void)!::ftruncate(fd_, static_cast<off_t>(before));
        return failed;
      }
      bytes.remove_prefix(static_cast<std::size_t>(written));
    }
    if (::fsync(fd_) != 0) return error("cannot sync");
    return {};
  }

 private:
  std::filesystem::path path_;
  int fd_;
};

// What a new line comes after.
struct Tail {
  std::uint64_t kept = 0;  // bytes of whole lines
  std::string torn;        // what follows them
  std::uint64_t sequence = 0;
  std::string head = first_audit_hash();
};

Result<Tail> read_tail(const LockedFile& file, const std::string& name) {
  FEDGE_TRY(size, file.size());
  const std::uint64_t window = std::min<std::uint64_t>(size, 2 * kMaxAuditLine);
  const std::uint64_t from = size - window;
  FEDGE_TRY(text, file.read(from, static_cast<std::size_t>(window)));
  const std::size_t end = text.rfind('\n');
  const Error corrupt{ErrorCode::kCorrupt,
                      name +
                          " is damaged at its end; see: fedge audit verify. Nothing that must be recorded "
                          "is done until it is restored or moved away"};
  Tail tail;
  tail.torn = end == std::string::npos ? text : text.substr(end + 1);
  if (tail.torn.size() >= kMaxAuditLine) return corrupt;
  tail.kept = size - tail.torn.size();
  if (tail.kept == 0) return tail;
  const std::string_view lines = std::string_view(text).substr(0, end);
  const std::size_t before = lines.rfind('\n');
  if (before == std::string_view::npos && from > 0) return corrupt;
  const auto last = parse_audit_entry(before == std::string_view::npos ? lines : lines.substr(before + 1));
  if (!last) return corrupt;
  tail.sequence = last->sequence;
  tail.head = last->hash;
  return tail;
}

// Follows the chain from line to line.
class Chain {
 public:
  explicit Chain(std::string name) : name_(std::move(name)) {}

  Result<AuditEntry> take(std::string_view line) {
    ++lines_;
    auto entry = parse_audit_entry(line);
    if (!entry) return wrong(entry.error().message);
    if (entry->previous != head_)
      return wrong("it does not continue " +
                   (lines_ == 1 ? std::string("an empty log") : "line " + std::to_string(lines_ - 1)) +
                   "; lines have been left out, added or moved");
    if (entry->sequence != lines_) return wrong("it has the number " + std::to_string(entry->sequence));
    head_ = entry->hash;
    return entry;
  }
  // Of a line that is not there as a whole.
  Error unfinished() {
    ++lines_;
    return wrong("it is not complete, as after a crash; the next entry cuts it off and says so");
  }
  Error too_long() {
    ++lines_;
    return wrong("it is longer than an entry can be");
  }

  std::uint64_t lines() const { return lines_; }
  const std::string& head() const { return head_; }

 private:
  Error wrong(const std::string& why) const {
    return {ErrorCode::kCorrupt, name_ + " line " + std::to_string(lines_) + ": " + why};
  }

  std::string name_;
  std::uint64_t lines_ = 0;
  std::string head_ = first_audit_hash();
};

}  // namespace

std::string operator_name() { return "uid " + std::to_string(::getuid()); }

AuditLog::AuditLog(const std::filesystem::path& data_directory, std::function<UnixSeconds()> calendar)
    : file_(data_directory / "audit.log"), calendar_(std::move(calendar)) {}

Result<void> AuditLog::append(const AuditEvent& event) const {
  const LockedFile file(file_, O_RDWR | O_CREAT | O_APPEND, LOCK_EX);
  if (!file.held()) return file.error("cannot open");
  FEDGE_TRY(tail, read_tail(file, file_.string()));
  std::string lines;
  const auto add = [&](const AuditEvent& one) -> Result<void> {
    FEDGE_TRY(line,
              format_audit_entry({++tail.sequence, calendar_text(calendar_()), one, tail.head, /*hash=*/""}));
    FEDGE_TRY(entry, parse_audit_entry(std::string_view(line).substr(0, line.size() - 1)));
    tail.head = entry.hash;
    lines += line;
    return {};
  };
  if (!tail.torn.empty()) {
    FEDGE_TRY_VOID(
        add({"audit log",
             "log.repaired",
             "line " + std::to_string(tail.sequence + 1),
             {{"bytes_cut_off", std::to_string(tail.torn.size())}, {"sha256", to_hex(sha256(tail.torn))}}}));
    if (::ftruncate(file.get(), static_cast<off_t>(tail.kept)) != 0) return file.error("cannot cut");
  }
  FEDGE_TRY_VOID(add(event));
  FEDGE_TRY_VOID(file.append(lines));
  // The first entries are only there once the directory knows of the file.
  return tail.kept == 0 ? sync_directory(file_.parent_path()) : Result<void>();
}

Result<AuditLog::Summary> AuditLog::verify(const std::string& expected,
                                           const std::function<void(const AuditEntry&)>& visit) const {
  std::optional<LockedFile> file(std::in_place, file_, O_RDONLY, LOCK_SH);
  if (!file->held()) return file->error("cannot open");
  FEDGE_TRY(size, file->size());
  // Below this lines are whole and stay as they are: nobody need wait for the end of the reading.
  ::flock(file->get(), LOCK_UN);
  Chain chain(file_.string());
  bool found = expected.empty() || expected == first_audit_hash();
  std::string rest;
  for (std::uint64_t offset = 0; offset < size;) {
    const auto length = static_cast<std::size_t>(std::min<std::uint64_t>(size - offset, 4 * kMaxAuditLine));
    FEDGE_TRY(piece, file->read(offset, length));
    if (piece.empty()) break;
    offset += piece.size();
    rest += piece;
    std::size_t begin = 0;
    for (std::size_t end = rest.find('\n'); end != std::string::npos; end = rest.find('\n', begin)) {
      FEDGE_TRY(entry, chain.take(std::string_view(rest).substr(begin, end - begin)));
      found = found || entry.hash == expected;
      if (visit) visit(entry);
      begin = end + 1;
    }
    rest.erase(0, begin);
    if (rest.size() >= kMaxAuditLine) return chain.too_long();
  }
  if (!rest.empty()) return chain.unfinished();
  if (!found)
    return Error{ErrorCode::kCorrupt, file_.string() + ": none of its " + std::to_string(chain.lines()) +
                                          " entries has the hash " + expected +
                                          "; it has been cut off below that entry, or replaced"};
  return Summary{chain.lines(), chain.head()};
}

}  // namespace fedge::server
