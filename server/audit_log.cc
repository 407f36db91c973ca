#include "server/audit_log.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>
#include <utility>

#include "core/crypto/sha256.h"
#include "core/platform/files.h"

namespace fedge::server {
namespace {

// An open, locked file. The destructor closes it, which releases the lock.
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

  bool held() const { return fd_ >= 0; }  // if false, errno gives the reason
  int get() const { return fd_; }
  Error error(const char* what) const { return system_error(what, path_, errno); }

  Result<std::uint64_t> size() const {
    struct stat info {};
    if (::fstat(fd_, &info) != 0) return error("cannot inspect");
    if (!S_ISREG(info.st_mode)) return invalid(path_.string() + " is not a regular file");
    return static_cast<std::uint64_t>(info.st_size);
  }
  // Reads these bytes, or fewer if the file ends before.
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
  // Appends all bytes, or none if the disk is full.
  Result<void> append(std::string_view bytes) const {
    FEDGE_TRY(before, size());
    while (!bytes.empty()) {
      const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) {
        const Error failed = error("cannot write");
        // If this fails, the next append cuts off the rest.
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

// The end of the log, which a new line continues.
struct Tail {
  std::uint64_t kept = 0;  // bytes of complete lines
  std::string torn;        // incomplete line after them
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
                          " is damaged at its end; check it with: fedge audit verify. Changes that must be "
                          "recorded are refused until you restore the file or move it away"};
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

// The last entry according to audit.head.
struct Anchor {
  std::uint64_t sequence = 0;
  std::string hash;
};
constexpr std::size_t kAnchorDigits = 20;
constexpr std::size_t kAnchorSize = kAnchorDigits + 1 + 64 + 1;

// Returns nothing if there is no anchor, as in logs of an older version.
Result<std::optional<Anchor>> read_anchor(const std::filesystem::path& path) {
  const auto text = read_file(path, 4096);
  if (!text && text.error().code == ErrorCode::kNotFound) return std::optional<Anchor>();
  if (!text) return text.error();
  if (text->empty()) return std::optional<Anchor>();  // a power cut before the first write
  Anchor anchor;
  const char* end = text->data() + kAnchorDigits;
  const bool shaped = text->size() == kAnchorSize && (*text)[kAnchorDigits] == ' ' && text->back() == '\n';
  if (!shaped || std::from_chars(text->data(), end, anchor.sequence).ptr != end)
    return Error{ErrorCode::kCorrupt,
                 path.string() +
                     " is damaged; compare the audit log with a head hash that you stored elsewhere (fedge "
                     "audit verify --expect), then remove this file"};
  anchor.hash = text->substr(kAnchorDigits + 1, 64);
  return std::optional(std::move(anchor));
}

// Overwrites the anchor in place. Its fixed size fits a sector, so after a power cut it is the new anchor
// or the one before; the log contains both. The caller holds the lock on the log.
Result<void> write_anchor(const std::filesystem::path& path, const Anchor& anchor) {
  std::string text = std::to_string(anchor.sequence);
  text = std::string(kAnchorDigits - text.size(), '0') + text + " " + anchor.hash + "\n";
  const LockedFile file(path, O_WRONLY | O_CREAT, LOCK_EX);
  if (!file.held()) return file.error("cannot open");
  ssize_t written = -1;
  do written = ::pwrite(file.get(), text.data(), text.size(), 0);
  while (written < 0 && errno == EINTR);
  if (written < 0 || static_cast<std::size_t>(written) != text.size())
    return system_error("cannot write", path, written < 0 ? errno : ENOSPC);
  return {};
}

// Chooses what the next entry continues. If the log ends before the anchor, or has another hash, its end is
// lost. The next entry then continues from the anchor, and the returned "log.gap" entry records the loss.
std::optional<AuditEvent> go_on_from(const std::optional<Anchor>& anchor, Tail& tail) {
  if (!anchor || tail.sequence > anchor->sequence || tail.head == anchor->hash) return std::nullopt;
  const std::uint64_t first = std::min(tail.sequence + 1, anchor->sequence);
  tail.sequence = anchor->sequence;
  tail.head = anchor->hash;
  return AuditEvent{"audit log",
                    "log.gap",
                    "entries " + std::to_string(first) + " to " + std::to_string(anchor->sequence),
                    {{"reason", "the log was truncated, moved away or replaced"}}};
}

// Checks the hash chain from line to line.
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
                   "; lines were removed, inserted or moved");
    if (entry->sequence != lines_) return wrong("its sequence number is " + std::to_string(entry->sequence));
    head_ = entry->hash;
    return entry;
  }
  // Returns the error about an incomplete last line.
  Error unfinished() {
    ++lines_;
    return wrong(
        "it is incomplete, as after a crash; the next entry to be written removes this line and records the "
        "removal");
  }
  Error too_long() {
    ++lines_;
    return wrong("it is longer than the maximum length of an entry");
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

AuditEvent event_by(const Actor& actor, std::string action, std::string subject, AuditDetails details) {
  if (!actor.address.empty()) details.emplace_back("from", actor.address);
  return {actor.name, std::move(action), std::move(subject), std::move(details)};
}

AuditEvent change_failed(const Actor& actor, std::uint64_t entry, const std::string& action,
                         const std::string& reason) {
  return event_by(actor, kChangeFailed, "entry " + std::to_string(entry),
                  {{"action", action}, {"reason", reason}});
}

AuditLog::AuditLog(const std::filesystem::path& data_directory, std::function<UnixSeconds()> calendar)
    : file_(data_directory / "audit.log"),
      head_file_(data_directory / "audit.head"),
      calendar_(std::move(calendar)) {}

Result<void> AuditLog::append(const AuditEvent& event) const {
  FEDGE_TRY(sequence, record(event));
  (void)sequence;
  return {};
}

Result<std::uint64_t> AuditLog::record(const AuditEvent& event) const {
  FEDGE_TRY_VOID(check_owner(file_));
  const LockedFile file(file_, O_RDWR | O_CREAT | O_APPEND, LOCK_EX);
  if (!file.held()) return file.error("cannot open");
  FEDGE_TRY(tail, read_tail(file, file_.string()));
  FEDGE_TRY(anchor, read_anchor(head_file_));
  const auto gap = go_on_from(anchor, tail);
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
  if (gap) FEDGE_TRY_VOID(add(*gap));
  FEDGE_TRY_VOID(add(event));
  FEDGE_TRY_VOID(file.append(lines));
  FEDGE_TRY_VOID(write_anchor(head_file_, {tail.sequence, tail.head}));
  // A new file is durable only after its directory is synced.
  if (tail.kept == 0) FEDGE_TRY_VOID(sync_directory(file_.parent_path()));
  return tail.sequence;
}

Result<std::uint64_t> AuditLog::last() const {
  FEDGE_TRY(anchor, read_anchor(head_file_));
  const std::uint64_t known = anchor ? anchor->sequence : 0;
  const LockedFile file(file_, O_RDONLY, LOCK_SH);
  if (!file.held() && errno == ENOENT) return known;
  if (!file.held()) return file.error("cannot open");
  FEDGE_TRY(tail, read_tail(file, file_.string()));
  return std::max(known, tail.sequence);
}

Result<std::vector<AuditEntry>> AuditLog::entries_after(std::uint64_t sequence) const {
  const LockedFile file(file_, O_RDONLY, LOCK_SH);
  if (!file.held() && errno == ENOENT) return std::vector<AuditEntry>();
  if (!file.held()) return file.error("cannot open");
  FEDGE_TRY(size, file.size());
  // Reads from the end with a doubling window, until the window contains an entry at or below `sequence`.
  for (std::uint64_t window = 4 * kMaxAuditLine;; window *= 2) {
    const std::uint64_t from = size > window ? size - window : 0;
    FEDGE_TRY(text, file.read(from, static_cast<std::size_t>(size - from)));
    std::size_t begin = from == 0 ? 0 : text.find('\n') + 1;
    std::vector<AuditEntry> entries;
    bool enough = from == 0;
    for (std::size_t end = text.find('\n', begin); end != std::string::npos; end = text.find('\n', begin)) {
      FEDGE_TRY(entry, parse_audit_entry(std::string_view(text).substr(begin, end - begin)));
      begin = end + 1;
      enough = enough || entry.sequence <= sequence;
      if (entry.sequence > sequence) entries.push_back(std::move(entry));
    }
    if (enough) return entries;
  }
}

Result<AuditLog::Summary> AuditLog::verify(const std::string& expected,
                                           const std::function<void(const AuditEntry&)>& visit) const {
  std::optional<LockedFile> file(std::in_place, file_, O_RDONLY, LOCK_SH);
  const Error closed = file->held() ? Error{} : file->error("cannot open");
  FEDGE_TRY(anchor, read_anchor(head_file_));
  const auto cut = [&](std::uint64_t entries) {
    return Error{
        ErrorCode::kCorrupt,
        file_.string() + " has " + std::to_string(entries) + " entries, but entry " +
            std::to_string(anchor->sequence) +
            " (recorded in audit.head) is not among them; the log was truncated, moved away or replaced"};
  };
  if (!file->held()) return anchor && closed.code == ErrorCode::kNotFound ? cut(0) : closed;
  FEDGE_TRY(size, file->size());
  // Unlocks: lines within `size` are complete and do not change, so writers need not wait for this reader.
  ::flock(file->get(), LOCK_UN);
  Chain chain(file_.string());
  bool found = expected.empty() || expected == first_audit_hash();
  bool anchored = !anchor;
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
      anchored = anchored || entry.hash == anchor->hash;
      if (visit) visit(entry);
      begin = end + 1;
    }
    rest.erase(0, begin);
    if (rest.size() >= kMaxAuditLine) return chain.too_long();
  }
  if (!rest.empty()) return chain.unfinished();
  if (!found)
    return Error{ErrorCode::kCorrupt,
                 file_.string() + ": none of its " + std::to_string(chain.lines()) +
                     " entries has the hash " + expected +
                     "; either the hash is mistyped, or the log was truncated or replaced"};
  if (!anchored) return cut(chain.lines());
  return Summary{chain.lines(), chain.head()};
}

}  // namespace fedge::server
