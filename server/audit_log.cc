#include "server/audit_log.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "core/crypto/sha256.h"
#include "core/platform/files.h"
#include "server/store/detail/audit_file.h"

namespace fedge::server {
namespace {

// Chooses what the next entry continues. If the log ends before the anchor, or has another hash, its end is
// lost. The next entry then continues from the anchor, and the returned "log.gap" entry records the loss.
std::optional<AuditEvent> go_on_from(const std::optional<AuditAnchor>& anchor, AuditTail& tail) {
  if (!anchor || tail.sequence > anchor->sequence || tail.head == anchor->hash) return std::nullopt;
  const std::uint64_t first = std::min(tail.sequence + 1, anchor->sequence);
  tail.sequence = anchor->sequence;
  tail.head = anchor->hash;
  return AuditEvent{"audit log",
                    "log.gap",
                    "entries " + std::to_string(first) + " to " + std::to_string(anchor->sequence),
                    {{"reason", "the log was truncated, moved away or replaced"}}};
}

// Checks the hash chain from line to line, and from file to file.
class Chain {
 public:
  // Continues with the lines of this file.
  void begin(std::string name) {
    before_ = std::exchange(name_, std::move(name));
    lines_ = 0;
  }
  Result<AuditEntry> take(std::string_view line) {
    ++lines_;
    auto entry = parse_audit_entry(line);
    if (!entry) return wrong(entry.error().message);
    if (entry->previous != head_) {
      const std::string end = before_.empty() ? "an empty log" : "the end of " + before_;
      return wrong("it does not continue " + (lines_ == 1 ? end : "line " + std::to_string(lines_ - 1)) +
                   "; lines were removed, inserted or moved");
    }
    if (entry->sequence != entries_ + 1)
      return wrong("its sequence number is " + std::to_string(entry->sequence));
    ++entries_;
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

  std::uint64_t entries() const { return entries_; }
  const std::string& head() const { return head_; }

 private:
  Error wrong(const std::string& why) const {
    return {ErrorCode::kCorrupt, name_ + " line " + std::to_string(lines_) + ": " + why};
  }

  std::string name_;
  std::string before_;  // the file before, if any
  std::uint64_t lines_ = 0;
  std::uint64_t entries_ = 0;
  std::string head_ = first_audit_hash();
};

using Visit = std::function<void(const AuditEntry&)>;

// Reads these bytes of a file, line by line, and continues the chain with them.
Result<void> read_lines(const LockedFile& file, std::uint64_t size, Chain& chain, const Visit& visit) {
  std::string rest;
  for (std::uint64_t offset = 0; offset < size;) {
    const auto length = static_cast<std::size_t>(std::min<std::uint64_t>(size - offset, 4 * kMaxAuditLine));
    FEDGE_TRY(piece, file.read(offset, length));
    if (piece.empty()) break;
    offset += piece.size();
    rest += piece;
    std::size_t begin = 0;
    for (std::size_t end = rest.find('\n'); end != std::string::npos; end = rest.find('\n', begin)) {
      FEDGE_TRY(entry, chain.take(std::string_view(rest).substr(begin, end - begin)));
      visit(entry);
      begin = end + 1;
    }
    rest.erase(0, begin);
    if (rest.size() >= kMaxAuditLine) return chain.too_long();
  }
  return rest.empty() ? Result<void>() : chain.unfinished();
}

// Reads the closed files, which do not change any more.
Result<void> read_segments(const std::vector<AuditSegment>& segments, Chain& chain, const Visit& visit) {
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const std::filesystem::path& path = segments[i].path;
    if (segments[i].number != i + 1)
      return Error{ErrorCode::kCorrupt,
                   (path.parent_path() / ("audit." + std::to_string(i + 1) + ".log")).string() +
                       " is missing, but " + path.filename().string() +
                       " continues it; the file was removed or moved away"};
    const LockedFile file(path, O_RDONLY, LOCK_SH);
    if (!file.held()) return file.error("cannot open");
    FEDGE_TRY(size, file.size());
    chain.begin(path.string());
    FEDGE_TRY_VOID(read_lines(file, size, chain, visit));
  }
  return {};
}

// Appends the entries above `sequence` to `found`, if they are all in this file. Reads from its end with a
// doubling window, until the window contains an entry at or below `sequence`.
Result<void> collect_end(const LockedFile& file, std::uint64_t sequence, std::vector<AuditEntry>& found) {
  FEDGE_TRY(size, file.size());
  for (std::uint64_t window = 4 * kMaxAuditLine;; window *= 2) {
    const std::uint64_t from = size > window ? size - window : 0;
    FEDGE_TRY(text, file.read(from, static_cast<std::size_t>(size - from)));
    std::size_t begin = from == 0 ? 0 : text.find('\n') + 1;
    found.clear();
    bool enough = from == 0;
    for (std::size_t end = text.find('\n', begin); end != std::string::npos; end = text.find('\n', begin)) {
      FEDGE_TRY(entry, parse_audit_entry(std::string_view(text).substr(begin, end - begin)));
      begin = end + 1;
      enough = enough || entry.sequence <= sequence;
      if (entry.sequence > sequence) found.push_back(std::move(entry));
    }
    if (enough) return {};
  }
}

// Appends the entries above `sequence` to `found`, at most `most` in all.
Result<void> collect(const LockedFile& file, std::uint64_t sequence, std::size_t most,
                     std::vector<AuditEntry>& found) {
  FEDGE_TRY(size, file.size());
  std::string rest;
  for (std::uint64_t offset = 0; offset < size && found.size() < most;) {
    FEDGE_TRY(piece, file.read(offset, 4 * kMaxAuditLine));
    if (piece.empty()) break;
    offset += piece.size();
    rest += piece;
    std::size_t begin = 0;
    for (std::size_t end = rest.find('\n'); end != std::string::npos && found.size() < most;
         end = rest.find('\n', begin)) {
      FEDGE_TRY(entry, parse_audit_entry(std::string_view(rest).substr(begin, end - begin)));
      begin = end + 1;
      if (entry.sequence > sequence) found.push_back(std::move(entry));
    }
    rest.erase(0, begin);
    if (rest.size() >= kMaxAuditLine)
      return Error{ErrorCode::kCorrupt, "a line is longer than the maximum length of an entry"};
  }
  return {};
}

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
  FEDGE_TRY(tail, read_log_tail(file, file_.parent_path()));
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
  if (!file.held() && errno != ENOENT) return file.error("cannot open");
  if (!file.held()) {
    FEDGE_TRY(segments, audit_segments(file_.parent_path()));
    if (segments.empty()) return known;
    const LockedFile closed(segments.back().path, O_RDONLY, LOCK_SH);
    if (!closed.held()) return closed.error("cannot open");
    FEDGE_TRY(end, read_tail(closed, segments.back().path.string()));
    return std::max(known, end.sequence);
  }
  FEDGE_TRY(tail, read_log_tail(file, file_.parent_path()));
  return std::max(known, tail.sequence);
}

// The rename is the whole change: before it and after it, the same lines are in the same order in the closed
// files and audit.log, which may be missing.
Result<bool> AuditLog::rotate(std::uint64_t bytes) const {
  AuditEvent event{"audit log", "log.rotated", "", {}};
  {
    const LockedFile file(file_, O_RDWR, LOCK_EX);
    if (!file.held() && errno == ENOENT) return false;
    if (!file.held()) return file.error("cannot open");
    FEDGE_TRY(size, file.size());
    if (size < bytes) return false;
    FEDGE_TRY(tail, read_tail(file, file_.string()));
    FEDGE_TRY(anchor, read_anchor(head_file_));
    // What is torn or lost, the next entry records first.
    if (tail.kept == 0 || !tail.torn.empty() || go_on_from(anchor, tail)) return false;
    FEDGE_TRY(segments, audit_segments(file_.parent_path()));
    event.subject = "audit." + std::to_string(segments.empty() ? 1 : segments.back().number + 1) + ".log";
    event.details = {{"last_entry", std::to_string(tail.sequence)}, {"hash", tail.head}};
    const auto closed = file_.parent_path() / event.subject;
    if (::renameat2(AT_FDCWD, file_.c_str(), AT_FDCWD, closed.c_str(), RENAME_NOREPLACE) != 0)
      return file.error("cannot rename");
    FEDGE_TRY_VOID(sync_directory(file_.parent_path()));
  }
  FEDGE_TRY_VOID(append(event));
  return true;
}

Result<AuditLog::Mark> AuditLog::mark() const {
  const LockedFile file(file_, O_RDONLY, LOCK_SH);
  if (!file.held() && errno != ENOENT) return file.error("cannot open");
  Mark mark;
  FEDGE_TRY(segments, audit_segments(file_.parent_path()));
  for (AuditSegment& segment : segments) mark.closed.push_back(std::move(segment.path));
  if (file.held()) {
    FEDGE_TRY(tail, read_log_tail(file, file_.parent_path()));
    FEDGE_TRY(active, ReadOnlyFile::open(file_));
    mark.active = std::move(active);
    mark.bytes = tail.kept;
    mark.entries = tail.sequence;
    mark.head = tail.head;
  }
  const auto head = read_file(head_file_, 4096);
  if (!head && head.error().code != ErrorCode::kNotFound) return head.error();
  if (head) mark.head_file = *head;
  return mark;
}

Result<std::vector<AuditEntry>> AuditLog::entries_after(std::uint64_t sequence, std::size_t most) const {
  const LockedFile file(file_, O_RDONLY, LOCK_SH);
  if (!file.held() && errno != ENOENT) return file.error("cannot open");
  FEDGE_TRY(segments, audit_segments(file_.parent_path()));
  std::vector<AuditEntry> entries;
  bool in_active = file.held();
  if (!segments.empty() && in_active) {
    FEDGE_TRY(tail, read_tail(file, file_.string()));
    in_active = false;
    if (tail.kept > 0) {
      FEDGE_TRY(first, first_entry_of(file_));
      in_active = first.sequence <= sequence + 1;
    }
  }
  if (in_active) {
    FEDGE_TRY_VOID(collect_end(file, sequence, entries));
    if (entries.size() > most) entries.resize(most);
    return entries;
  }
  // A closed file ends where the next one begins.
  std::size_t begin = 0;
  for (std::size_t i = 1; i < segments.size(); ++i) {
    FEDGE_TRY(first, first_entry_of(segments[i].path));
    if (first.sequence > sequence + 1) break;
    begin = i;
  }
  for (; begin < segments.size() && entries.size() < most; ++begin) {
    const LockedFile closed(segments[begin].path, O_RDONLY, LOCK_SH);
    if (!closed.held()) return closed.error("cannot open");
    FEDGE_TRY_VOID(collect(closed, sequence, most, entries));
  }
  if (file.held()) FEDGE_TRY_VOID(collect(file, sequence, most, entries));
  return entries;
}

Result<AuditLog::Summary> AuditLog::verify(const std::string& expected,
                                           const std::function<void(const AuditEntry&)>& visit) const {
  const LockedFile file(file_, O_RDONLY, LOCK_SH);
  const Error closed = file.held() ? Error{} : file.error("cannot open");
  if (!file.held() && closed.code != ErrorCode::kNotFound) return closed;
  FEDGE_TRY(anchor, read_anchor(head_file_));
  const auto cut = [&](std::uint64_t entries) {
    return Error{
        ErrorCode::kCorrupt,
        file_.string() + " has " + std::to_string(entries) + " entries, but entry " +
            std::to_string(anchor->sequence) +
            " (recorded in audit.head) is not among them; the log was truncated, moved away or replaced"};
  };
  FEDGE_TRY(segments, audit_segments(file_.parent_path()));
  if (!file.held() && segments.empty()) return anchor ? cut(0) : closed;
  std::uint64_t size = 0;
  if (file.held()) {
    FEDGE_TRY(present, file.size());
    size = present;
    // Lines within `size` are complete and do not change, so writers need not wait for this reader.
    file.unlock();
  }
  Chain chain;
  bool found = expected.empty() || expected == first_audit_hash();
  bool anchored = !anchor;
  const auto look = [&](const AuditEntry& entry) {
    found = found || entry.hash == expected;
    anchored = anchored || entry.hash == anchor->hash;
    if (visit) visit(entry);
  };
  FEDGE_TRY_VOID(read_segments(segments, chain, look));
  chain.begin(file_.string());
  if (file.held()) FEDGE_TRY_VOID(read_lines(file, size, chain, look));
  if (!found)
    return Error{ErrorCode::kCorrupt,
                 file_.string() + ": none of its " + std::to_string(chain.entries()) +
                     " entries has the hash " + expected +
                     "; either the hash is mistyped, or the log was truncated or replaced"};
  if (!anchored) return cut(chain.entries());
  return Summary{chain.entries(), chain.head()};
}

}  // namespace fedge::server
