#include "core/platform/files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "core/platform/detail/descriptor.h"

namespace fedge {
namespace {

// Length of the random suffix of a temporary file.
constexpr std::size_t kSuffix = 6;

struct RegularFile {
  Descriptor fd;
  std::uint64_t size = 0;
};

// Opens only a regular file: a device never ends. O_NONBLOCK, because opening a pipe waits for its writer.
Result<RegularFile> open_regular(const std::filesystem::path& path, int flags = O_RDONLY, unsigned mode = 0) {
  RegularFile file{
      Descriptor(::open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK, static_cast<mode_t>(mode)))};
  if (file.fd.get() < 0) return system_error("cannot open", path, errno);
  struct stat status {};
  if (::fstat(file.fd.get(), &status) != 0) return system_error("cannot read", path, errno);
  if (!S_ISREG(status.st_mode))
    return invalid(std::string(flags == O_RDONLY ? "cannot read " : "cannot write ") + path.string() +
                   ": it is not a regular file");
  file.size = static_cast<std::uint64_t>(status.st_size);
  return file;
}

Error too_large(const std::filesystem::path& path, std::size_t max_bytes) {
  return {ErrorCode::kResource,
          path.string() + " is larger than the limit of " + std::to_string(max_bytes) + " bytes"};
}

Result<std::string> read_all(int fd, const std::filesystem::path& path, std::size_t max_bytes) {
  std::string text;
  char buffer[64 << 10];
  for (;;) {
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error("cannot read", path, errno);
    if (got == 0) return text;
    if (text.size() + static_cast<std::size_t>(got) > max_bytes) return too_large(path, max_bytes);
    text.append(buffer, static_cast<std::size_t>(got));
  }
}

// Gives a new file this mode, or the owner and mode of the file that it replaces. Otherwise root could
// replace a daemon's file by one that the daemon cannot read.
Result<void> take_over_access(int fd, const std::filesystem::path& path, mode_t mode) {
  struct stat former {};
  struct stat made {};
  if (::fstat(fd, &made) != 0) return system_error("cannot stat the temporary file for", path, errno);
  if (::lstat(path.c_str(), &former) == 0 && S_ISREG(former.st_mode)) {
    mode = former.st_mode & 07777;
    if ((former.st_uid != made.st_uid || former.st_gid != made.st_gid) &&
        ::fchown(fd, former.st_uid, former.st_gid) != 0)
      return system_error("cannot preserve the owner of", path, errno);
  }
  if (::fchmod(fd, mode) != 0) return system_error("cannot set the mode of", path, errno);
  return {};
}

}  // namespace

Result<void> write_all(int fd, std::span<const std::byte> bytes, const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return system_error("cannot write", path, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

Result<FileIdentity> identity_of(const std::filesystem::path& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return system_error("cannot stat", path, errno);
  return FileIdentity{info.st_dev, info.st_ino};
}

Result<void> check_owner(const std::filesystem::path& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return {};
    return system_error("cannot stat", path, errno);
  }
  if (info.st_uid == ::geteuid()) return {};
  const std::string owner = std::to_string(info.st_uid);
  return Error{ErrorCode::kRefused, path.string() + " belongs to uid " + owner +
                                        ", but this program runs as uid " + std::to_string(::geteuid()) +
                                        "; run the program as the owner of the file: sudo -u '#" + owner +
                                        "' ..."};
}

Result<std::filesystem::path> user_data_directory() {
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0')
    return Error{ErrorCode::kNotFound, "the environment variable HOME is not set"};
  return std::filesystem::path(home) / ".local/share/fedge";
}

void raise_open_files_limit() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= files.rlim_max) return;
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
}

Error system_error(const std::string& what, const std::filesystem::path& path, int error_number) {
  ErrorCode code = ErrorCode::kUnavailable;
  if (error_number == ENOENT || error_number == ENOTDIR) code = ErrorCode::kNotFound;
  if (error_number == EACCES || error_number == EPERM || error_number == ELOOP) code = ErrorCode::kRefused;
  if (error_number == ENOSPC || error_number == EDQUOT || error_number == EMFILE || error_number == ENFILE ||
      error_number == ENOMEM)
    code = ErrorCode::kResource;
  return {code, what + " " + path.string() + ": " + std::strerror(error_number)};
}

Result<std::string> read_file(const std::filesystem::path& path, std::size_t max_bytes) {
  FEDGE_TRY(file, open_regular(path));
  if (file.size > max_bytes) return too_large(path, max_bytes);
  return read_all(file.fd.get(), path, max_bytes);
}

Result<std::string> read_standard_input(std::size_t max_bytes) {
  return read_all(STDIN_FILENO, "the standard input", max_bytes);
}

Result<void> write_file_atomic(const std::filesystem::path& path,
                               std::span<const std::span<const std::byte>> pieces, unsigned mode) {
  const std::filesystem::path directory = path.has_parent_path() ? path.parent_path() : ".";
  std::string temporary =
      (directory / ("." + path.filename().string() + "." + std::string(kSuffix, 'X'))).string();
  Descriptor fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (fd.get() < 0) return system_error("cannot create a temporary file for", path, errno);
  Result<void> result;
  for (const auto piece : pieces)
    if (result) result = write_all(fd.get(), piece, temporary);
  if (result) result = take_over_access(fd.get(), path, static_cast<mode_t>(mode));
  if (result && ::fsync(fd.get()) != 0) result = system_error("cannot sync", temporary, errno);
  if (::close(fd.release()) != 0 && result) result = system_error("cannot close", temporary, errno);
  if (result && ::rename(temporary.c_str(), path.c_str()) != 0)
    result = system_error("cannot replace", path, errno);
  if (!result) {
    ::unlink(temporary.c_str());
    return result;
  }
  return sync_directory(directory);
}

Result<void> write_file_atomic(const std::filesystem::path& path, std::span<const std::byte> bytes,
                               unsigned mode) {
  return write_file_atomic(path, std::span(&bytes, 1), mode);
}

Result<void> write_file_atomic(const std::filesystem::path& path, std::string_view text, unsigned mode) {
  return write_file_atomic(path, std::as_bytes(std::span(text)), mode);
}

Result<void> write_file_at(const std::filesystem::path& path, std::uint64_t offset,
                           std::span<const std::byte> bytes, unsigned mode) {
  FEDGE_TRY(file, open_regular(path, O_WRONLY | O_CREAT | O_NOFOLLOW, mode));
  const Descriptor& fd = file.fd;
  if (file.size < offset)
    return Error{ErrorCode::kCorrupt, path.string() + " was truncated while it was in use"};
  if (::lseek(fd.get(), static_cast<off_t>(offset), SEEK_SET) < 0)
    return system_error("cannot write", path, errno);
  FEDGE_TRY_VOID(write_all(fd.get(), bytes, path));
  if (::fsync(fd.get()) != 0) return system_error("cannot sync", path, errno);
  return offset > 0 ? Result<void>() : sync_directory(path.has_parent_path() ? path.parent_path() : ".");
}

void remove_unfinished(const std::filesystem::path& path) {
  const std::string begin = "." + path.filename().string() + ".";
  std::error_code ignored;
  std::filesystem::directory_iterator entry(path.has_parent_path() ? path.parent_path() : ".", ignored);
  for (; !ignored && entry != std::filesystem::directory_iterator(); entry.increment(ignored)) {
    const std::string name = entry->path().filename().string();
    if (name.size() == begin.size() + kSuffix && name.starts_with(begin)) ::unlink(entry->path().c_str());
  }
}

Result<void> make_directory(const std::filesystem::path& path, unsigned mode) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return {};
  std::vector<std::filesystem::path> parents;  // parents of the directories to create
  for (auto missing = path; !missing.empty() && !std::filesystem::is_directory(missing, error);
       missing = missing.parent_path())
    parents.push_back(missing.has_parent_path() ? missing.parent_path() : ".");
  std::filesystem::create_directories(path, error);
  if (error) return system_error("cannot create directory", path, error.value());
  if (::chmod(path.c_str(), static_cast<mode_t>(mode)) != 0)
    return system_error("cannot set the mode of", path, errno);
  for (const auto& parent : parents) FEDGE_TRY_VOID(sync_directory(parent));
  return {};
}

Result<void> sync_directory(const std::filesystem::path& directory) {
  const Descriptor fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0) return system_error("cannot open directory", directory, errno);
  if (::fsync(fd.get()) != 0) return system_error("cannot sync directory", directory, errno);
  return {};
}

FileLock::FileLock(const std::filesystem::path& path)
    : fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)) {
  while (fd_ >= 0 && ::flock(fd_, LOCK_EX) != 0 && errno == EINTR) {
  }
}

FileLock::FileLock(const std::filesystem::path& path, std::chrono::milliseconds patience,
                   const std::stop_token& stop)
    : fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (fd_ >= 0 && ::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
    const int reason = errno;
    if (reason == EINTR) continue;
    if (reason == EWOULDBLOCK && !stop.stop_requested() && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      continue;
    }
    ::close(std::exchange(fd_, -1));
    errno = reason;
  }
}

FileLock::~FileLock() {
  if (fd_ >= 0) ::close(fd_);
}

Result<DirectoryLock> DirectoryLock::acquire(const std::filesystem::path& directory) {
  const std::filesystem::path file = directory / "lock";
  Descriptor fd(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (fd.get() < 0) return system_error("cannot open", file, errno);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK)
      return Error{ErrorCode::kUnavailable, directory.string() + " is in use by another process"};
    return system_error("cannot lock", file, errno);
  }
  return DirectoryLock(fd.release());
}

DirectoryLock::~DirectoryLock() {
  if (fd_ >= 0) ::close(fd_);
}
DirectoryLock::DirectoryLock(DirectoryLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
DirectoryLock& DirectoryLock::operator=(DirectoryLock&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Result<ReadOnlyFile> ReadOnlyFile::open(const std::filesystem::path& path) {
  FEDGE_TRY(file, open_regular(path));
  return ReadOnlyFile(path, file.fd.release(), file.size);
}

ReadOnlyFile::~ReadOnlyFile() {
  if (fd_ >= 0) ::close(fd_);
}
ReadOnlyFile::ReadOnlyFile(ReadOnlyFile&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), size_(other.size_) {}
ReadOnlyFile& ReadOnlyFile::operator=(ReadOnlyFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(size_, other.size_);
  return *this;
}

Result<void> ReadOnlyFile::read(std::uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t got = ::pread(fd_, out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error("cannot read", path_, errno);
    if (got == 0) return Error{ErrorCode::kCorrupt, path_.string() + " is truncated"};
    out = out.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
  return {};
}

}  // namespace fedge
