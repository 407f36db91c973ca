// A client that sends arbitrary bytes to a port of this machine and reads the answers.
#pragma once

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>

#include "server/http/unix_path.h"

namespace fedge::test {

class HttpClient {
 public:
  explicit HttpClient(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    REQUIRE(socket_ >= 0);
    const timeval patience{60, 0};  // so that the test cannot hang
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  }
  // Connects to a Unix socket.
  explicit HttpClient(const std::filesystem::path& path)
      : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    REQUIRE(socket_ >= 0);
    const timeval patience{60, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    const auto short_path = server::UnixPath::of(path);
    REQUIRE(short_path);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    short_path->text().copy(address.sun_path, sizeof address.sun_path - 1);
    REQUIRE(::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  }
  ~HttpClient() { ::close(socket_); }
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Returns false if the server has closed the connection; its answer can still be read.
  bool send(const std::string& bytes) {
    std::size_t sent = 0;
    while (sent < bytes.size()) {
      const ssize_t size = ::send(socket_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (size <= 0) return false;
      sent += static_cast<std::size_t>(size);
    }
    return true;
  }
  void send_end() { ::shutdown(socket_, SHUT_WR); }

  // Waits this long for an answer or the end of the connection; false if neither comes.
  bool hears_within(std::chrono::milliseconds wait) const {
    pollfd waiting{socket_, POLLIN, 0};
    return ::poll(&waiting, 1, static_cast<int>(wait.count())) > 0;
  }
  // Returns the bytes that arrive next; empty at the end.
  std::string read_some() {
    if (received_.empty()) more();
    return std::exchange(received_, {});
  }
  // Reads until the server closes the connection.
  std::string read_to_end() {
    while (more()) continue;
    return std::move(received_);
  }
  // Reads one answer, as long as its Content-Length says; empty if the server closes first.
  std::string read_answer(bool head = false) {
    while (true) {
      const std::size_t end = received_.find("\r\n\r\n");
      if (end != std::string::npos) {
        const std::size_t field = received_.find("Content-Length: ");
        REQUIRE(field < end);
        const std::size_t body = head ? 0 : std::strtoul(received_.c_str() + field + 16, nullptr, 10);
        if (received_.size() >= end + 4 + body) {
          std::string answer = received_.substr(0, end + 4 + body);
          received_.erase(0, answer.size());
          return answer;
        }
      }
      if (!more()) return "";
    }
  }

 private:
  bool more() {
    char piece[4096];
    const ssize_t size = ::recv(socket_, piece, sizeof piece, 0);
    if (size > 0) received_.append(piece, static_cast<std::size_t>(size));
    return size > 0;
  }

  int socket_;
  std::string received_;
};

inline std::string get(const std::string& path) { return "GET " + path + " HTTP/1.1\r\nHost: test\r\n\r\n"; }

inline std::string body_of(const std::string& answer) {
  const std::size_t end = answer.find("\r\n\r\n");
  return end == std::string::npos ? "" : answer.substr(end + 4);
}

}  // namespace fedge::test
