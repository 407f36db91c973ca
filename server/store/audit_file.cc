#include "server/store/detail/audit_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <span>
#include <system_error>
#include <utility>

#include "core/platform/detail/descriptor.h"
#include "core/platform/files.h"

namespace fedge::server {
namespace {

constexpr std::size_t kAnchorDigits = 20;
constexpr std::size_t kAnchorSize = kAnchorDigits + 1 + 64 + 1;
constexpr std::string_view kSegmentBegin = "audit.";
constexpr std::string_view kSegmentEnd = ".log";

}  // namespace

LockedFile::LockedFile(std::filesystem::path path, int flags, int how) : path_(std::move(path)) {
  // While this process waited for the lock, the file may have been renamed.
  do {
    if (fd_ >= 0) ::close(fd_);
    fd_ = ::open(path_.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
  } while (fd_ >= 0 && lock(how) && !is_at_its_path());
}

LockedFile::~LockedFile() {
  if (fd_ >= 0) ::close(fd_);
}

bool LockedFile::lock(int how) {
  while (::flock(fd_, how) != 0) {
    if (errno == EINTR) continue;
    const int error = errno;
    ::close(std::exchange(fd_, -1));
    errno = error;
    return false;
  }
  return true;
}

bool LockedFile::is_at_its_path() const {
  struct stat open {};
  struct stat named {};
  return ::fstat(fd_, &open) == 0 && ::lstat(path_.c_str(), &named) == 0 && open.st_dev == named.st_dev &&
         open.st_ino == named.st_ino;
}

Error LockedFile::error(const char* what) const { return system_error(what, path_, errno); }
void LockedFile::unlock() const { ::flock(fd_, LOCK_UN); }

Result<std::uint64_t> LockedFile::size() const {
  struct stat info {};
  if (::fstat(fd_, &info) != 0) return error("cannot inspect");
  if (!S_ISREG(info.st_mode)) return invalid(path_.string() + " is not a regular file");
  return static_cast<std::uint64_t>(info.st_size);
}

Result<std::string> LockedFile::read(std::uint64_t offset, std::size_t length) const {
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

Result<void> LockedFile::append(std::string_view bytes) const {
  FEDGE_TRY(before, size());
  if (const auto written = write_all(fd_, std::as_bytes(std::span(bytes)), path_); !written) {
    // If this fails, the next append cuts off the rest.
    (void)!::ftruncate(fd_, static_cast<off_t>(before));
    return written.error();
  }
  if (::fsync(fd_) != 0) return error("cannot sync");
  return {};
}

Result<AuditTail> read_tail(const LockedFile& file, const std::string& name) {
  FEDGE_TRY(size, file.size());
  const std::uint64_t window = std::min<std::uint64_t>(size, 2 * kMaxAuditLine);
  const std::uint64_t from = size - window;
  FEDGE_TRY(text, file.read(from, static_cast<std::size_t>(window)));
  const std::size_t end = text.rfind('\n');
  const Error corrupt{ErrorCode::kCorrupt,
                      name +
                          " is damaged at its end; check it with: fedge audit verify. Changes that must be "
                          "recorded are refused until you restore the file or move it away"};
  AuditTail tail;
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

Result<AuditTail> read_log_tail(const LockedFile& active, const std::filesystem::path& directory) {
  FEDGE_TRY(tail, read_tail(active, (directory / "audit.log").string()));
  if (tail.kept > 0) return tail;
  FEDGE_TRY(segments, audit_segments(directory));
  if (segments.empty()) return tail;
  const LockedFile closed(segments.back().path, O_RDONLY, LOCK_SH);
  if (!closed.held()) return closed.error("cannot open");
  FEDGE_TRY(before, read_tail(closed, segments.back().path.string()));
  tail.sequence = before.sequence;
  tail.head = before.head;
  return tail;
}

std::uint64_t audit_segment_number(std::string_view name) {
  if (!name.starts_with(kSegmentBegin) || !name.ends_with(kSegmentEnd)) return 0;
  if (name.size() <= kSegmentBegin.size() + kSegmentEnd.size()) return 0;
  const auto digits =
      name.substr(kSegmentBegin.size(), name.size() - kSegmentBegin.size() - kSegmentEnd.size());
  std::uint64_t number = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool whole = parsed.ec == std::errc() && parsed.ptr == digits.data() + digits.size();
  return whole && digits.front() != '0' ? number : 0;
}

Result<std::vector<AuditSegment>> audit_segments(const std::filesystem::path& directory) {
  std::vector<AuditSegment> segments;
  std::error_code error;
  std::filesystem::directory_iterator entry(directory, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error))
    if (const auto number = audit_segment_number(entry->path().filename().string()))
      segments.push_back({number, entry->path()});
  if (error && error != std::errc::no_such_file_or_directory)
    return system_error("cannot list", directory, error.value());
  std::ranges::sort(segments, {}, &AuditSegment::number);
  return segments;
}

Result<AuditEntry> first_entry_of(const std::filesystem::path& file) {
  const LockedFile open(file, O_RDONLY, LOCK_SH);
  if (!open.held()) return open.error("cannot open");
  FEDGE_TRY(text, open.read(0, kMaxAuditLine));
  auto entry = parse_audit_entry(std::string_view(text).substr(0, text.find('\n')));
  if (!entry) return entry.error().with_prefix(file.string() + " line 1: ");
  return entry;
}

Result<std::optional<AuditAnchor>> read_anchor(const std::filesystem::path& path) {
  const auto text = read_file(path, 4096);
  if (!text && text.error().code == ErrorCode::kNotFound) return std::optional<AuditAnchor>();
  if (!text) return text.error();
  if (text->empty()) return std::optional<AuditAnchor>();  // a power cut before the first write
  AuditAnchor anchor;
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

Result<void> write_anchor(const std::filesystem::path& path, const AuditAnchor& anchor) {
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

}  // namespace fedge::server
