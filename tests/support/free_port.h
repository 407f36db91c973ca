// A free port of 127.0.0.1. It lies below the ports of outgoing connections, so that it stays free between
// two starts of a program. While the object lives, no other test of this machine takes the port.
#pragma once

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <string>

namespace fedge::test {

class FreePort {
 public:
  FreePort() {
    for (number_ = 20000 + ::getpid() % 12000;; number_ = number_ < 32000 ? number_ + 1 : 20000) {
      sockaddr_un name{};
      name.sun_family = AF_UNIX;
      std::snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "fedge-test-port-%d", number_);
      claim_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
      const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_port = htons(static_cast<std::uint16_t>(number_));
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      const bool is_free = ::bind(claim_, reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0 &&
                           ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
      ::close(fd);
      if (is_free) return;
      ::close(claim_);
    }
  }
  ~FreePort() { ::close(claim_); }
  FreePort(const FreePort&) = delete;
  FreePort& operator=(const FreePort&) = delete;
  std::string address() const { return "127.0.0.1:" + std::to_string(number_); }

 private:
  int number_ = 0;
  int claim_ = -1;
};

}  // namespace fedge::test
