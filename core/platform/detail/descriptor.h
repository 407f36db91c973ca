// Owns a file descriptor and closes it on destruction.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <span>
#include <utility>

#include "core/result.h"

namespace fedge {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this == &other) return *this;
    if (fd_ >= 0) ::close(fd_);
    fd_ = other.release();
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return fd_; }  // negative if empty
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

// Writes all bytes at the descriptor's position; `path` is for the error.
Result<void> write_all(int fd, std::span<const std::byte> bytes, const std::filesystem::path& path);

}  // namespace fedge
