// For tests of failures to open a file or a connection.
#pragma once

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <unistd.h>

namespace fedge::test {

// While this object lives, the process cannot open another descriptor.
class NoMoreDescriptors {
 public:
  NoMoreDescriptors() {
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before_) == 0);
    const int next = ::dup(STDERR_FILENO);
    REQUIRE(next >= 0);
    ::close(next);
    const rlimit none{static_cast<rlim_t>(next), before_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  }
  ~NoMoreDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  NoMoreDescriptors(const NoMoreDescriptors&) = delete;
  NoMoreDescriptors& operator=(const NoMoreDescriptors&) = delete;

 private:
  rlimit before_{};
};

}  // namespace fedge::test
