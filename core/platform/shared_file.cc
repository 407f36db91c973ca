#include "core/platform/shared_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/platform/detail/descriptor.h"
#include "core/platform/files.h"

namespace fedge {
namespace {

constexpr const char* kNameBegin = "fedge-";
constexpr std::string_view kUnpublished = ".unpublished";

using Opened = std::pair<time_t, long>;

// A file that no process has open: each such process holds a shared lock on it.
struct Unused {
  Descriptor lock;  // exclusive: no process begins to use the file
  Opened opened;    // when it was last opened, in seconds and nanoseconds
};

// Returns nothing if a process has the file open.
std::optional<Unused> lock_unused(const std::filesystem::path& path) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status {};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) return std::nullopt;
  return Unused{std::move(file), Opened(status.st_mtim.tv_sec, status.st_mtim.tv_nsec)};
}

// Attempts to create a file that no other process takes for a leftover.
constexpr int kAttempts = 100;

// Creates a file and locks it. A process that removes leftovers may have found the file before it was locked:
// then there is another attempt.
Result<std::pair<std::string, int>> create_locked(const std::filesystem::path& directory) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::string name =
        (directory / (kNameBegin + std::string("XXXXXX") + std::string(kUnpublished))).string();
    const int fd = ::mkostemps(name.data(), static_cast<int>(kUnpublished.size()), O_CLOEXEC);
    if (fd < 0) return system_error("cannot create a file in", directory, errno);
    const bool contended = ::flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    struct stat status {};
    if (!contended && ::fstat(fd, &status) == 0 && status.st_nlink > 0) return std::pair(name, fd);
    ::unlink(name.c_str());
    ::close(fd);
  }
  return Error{ErrorCode::kUnavailable,
               "other processes remove the files that this one creates in " + directory.string()};
}

}  // namespace

Result<SharedFile> SharedFile::open(const std::filesystem::path& path, std::size_t bytes) {
  SharedFile file(path, ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (file.fd_ < 0) return system_error("cannot open", path, errno);
  struct stat status {};
  if (::fstat(file.fd_, &status) != 0) return system_error("cannot read", path, errno);
  if (status.st_uid != ::geteuid() || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return Error{ErrorCode::kRefused, path.string() + " can be written by other users"};
  if (!S_ISREG(status.st_mode) || static_cast<std::size_t>(status.st_size) != bytes)
    return Error{ErrorCode::kCorrupt,
                 path.string() + " is not a file of " + std::to_string(bytes) + " bytes"};
  ::flock(file.fd_, LOCK_SH | LOCK_NB);  // fails only while remove_unused() looks at the file
  ::futimens(file.fd_, nullptr);         // now, for remove_unused()
  FEDGE_TRY_VOID(file.map(bytes, false));
  return file;
}

Result<SharedFile> SharedFile::create(const std::filesystem::path& directory, std::size_t bytes) {
  FEDGE_TRY(created, create_locked(directory));
  const auto [name, fd] = created;
  SharedFile file(name, fd);
  file.writable_ = true;  // so that an error removes it
  // Writing to mapped memory for which the disk has no room would end the process.
  if (const int error = ::posix_fallocate(fd, 0, static_cast<off_t>(bytes)); error != 0)
    return system_error("cannot reserve " + std::to_string(bytes) + " bytes in", directory, error);
  FEDGE_TRY_VOID(file.map(bytes, true));
  return file;
}

Result<void> SharedFile::map(std::size_t bytes, bool writable) {
  void* const mapped =
      ::mmap(nullptr, bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd_, 0);
  if (mapped == MAP_FAILED) return system_error("cannot map into memory", path_, errno);
  data_ = static_cast<std::byte*>(mapped);
  size_ = bytes;
  return {};
}

Result<void> SharedFile::publish(const std::filesystem::path& path) {
  if (::rename(path_.c_str(), path.c_str()) != 0) return system_error("cannot rename", path_, errno);
  path_ = path;
  writable_ = false;
  if (::mprotect(data_, size_, PROT_READ) != 0) return system_error("cannot protect", path_, errno);
  return {};
}

// A file that is opened meanwhile loses its name, but whoever has opened it can go on reading it.
void SharedFile::remove_unused(const std::filesystem::path& directory, const std::string& extension,
                               std::size_t kept) {
  std::vector<std::pair<Opened, std::filesystem::path>> published;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::filesystem::path& path = entry->path();
    const bool left = path.extension() == kUnpublished && path.filename().string().starts_with(kNameBegin);
    if (!left && path.extension() != extension) continue;
    const auto unused = lock_unused(path);
    if (unused && left) ::unlink(path.c_str());
    if (unused && !left) published.emplace_back(unused->opened, path);
  }
  std::ranges::sort(published, std::greater());
  for (std::size_t i = kept; i < published.size(); ++i) ::unlink(published[i].second.c_str());
}

SharedFile::~SharedFile() {
  if (data_ != nullptr) ::munmap(data_, size_);
  if (fd_ < 0) return;
  if (writable_) ::unlink(path_.c_str());
  ::close(fd_);
}

SharedFile::SharedFile(SharedFile&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      writable_(other.writable_) {}

SharedFile& SharedFile::operator=(SharedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(writable_, other.writable_);
  return *this;
}

}  // namespace fedge
