// Owns a file descriptor and closes it on destruction.
#pragma once

#include <unistd.h>

#include <utility>

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

}  // namespace fedge
