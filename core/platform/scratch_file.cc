#include "core/platform/scratch_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <utility>

#include "core/platform/files.h"

namespace fedge {

Result<ScratchFile> ScratchFile::create(const std::filesystem::path& directory) {
  std::string name = (directory / "scratch-XXXXXX").string();
  const int fd = ::mkostemp(name.data(), O_CLOEXEC);
  if (fd < 0) return system_error("cannot create a scratch file in", directory, errno);
  ::unlink(name.c_str());
  return ScratchFile("a scratch file in " + directory.string(), fd);
}

Result<ScratchFile> ScratchFile::open(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return system_error("cannot open", path, errno);
  return ScratchFile(path.string(), fd);
}

ScratchFile::~ScratchFile() {
  if (fd_ >= 0) ::close(fd_);
}

ScratchFile::ScratchFile(ScratchFile&& other) noexcept
    : name_(std::move(other.name_)), fd_(std::exchange(other.fd_, -1)) {}

ScratchFile& ScratchFile::operator=(ScratchFile&& other) noexcept {
  std::swap(name_, other.name_);
  std::swap(fd_, other.fd_);
  return *this;
}

Result<void> ScratchFile::write(std::uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return system_error("cannot write", name_, errno);
    offset += static_cast<std::uint64_t>(written);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

Result<void> ScratchFile::read(std::uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t taken = ::pread(fd_, out.data(), out.size(), static_cast<off_t>(offset));
    if (taken < 0 && errno == EINTR) continue;
    if (taken < 0) return system_error("cannot read", name_, errno);
    if (taken == 0) return Error{ErrorCode::kCorrupt, name_ + " ends early"};
    offset += static_cast<std::uint64_t>(taken);
    out = out.subspan(static_cast<std::size_t>(taken));
  }
  return {};
}

Result<void> ScratchFile::sync() const {
  if (::fdatasync(fd_) != 0) return system_error("cannot write", name_, errno);
  return {};
}

}  // namespace fedge
