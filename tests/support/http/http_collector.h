// A collector of traces on a port of this machine. It receives requests one after the other and answers each
// as its script says; after the script with 200.
#pragma once

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace fedge::test {

class HttpCollector {
 public:
  // What to do with a request: to send this text, and more of the same without an end, or never to answer.
  struct Reply {
    std::string text = {};
    bool endless = false;
    bool hangs = false;
    std::shared_future<void> after = {};  // the answer waits for this, if it is valid
  };
  static Reply status(const std::string& status, const std::string& fields = "",
                      const std::string& body = "{}") {
    return {"HTTP/1.1 " + status + "\r\nContent-Type: application/json\r\n" + fields +
            "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body};
  }

  explicit HttpCollector(std::deque<Reply> script = {})
      : script_(std::move(script)), listening_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    REQUIRE(::bind(listening_, reinterpret_cast<const sockaddr*>(&address), size) == 0);
    REQUIRE(::listen(listening_, 64) == 0);
    REQUIRE(::getsockname(listening_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~HttpCollector() {
    ::shutdown(listening_, SHUT_RDWR);
    thread_.join();
    for (const int socket : hanging_) ::close(socket);
    ::close(listening_);
  }
  HttpCollector(const HttpCollector&) = delete;
  HttpCollector& operator=(const HttpCollector&) = delete;

  std::uint16_t port() const { return port_; }
  // Returns the head and the body of each request, once there are this many.
  std::vector<std::pair<std::string, std::string>> requests(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return requests_.size() >= count; });
    return requests_;
  }

 private:
  void serve() {
    for (int socket = ::accept(listening_, nullptr, nullptr); socket >= 0;
         socket = ::accept(listening_, nullptr, nullptr)) {
      receive(socket);
      Reply reply = status("200 OK");
      if (!script_.empty()) {
        reply = script_.front();
        script_.pop_front();
      }
      if (reply.after.valid()) reply.after.wait();
      if (reply.hangs) {
        hanging_.push_back(socket);
        continue;
      }
      bool sent = send(socket, reply.text);
      while (reply.endless && sent) sent = send(socket, std::string(1024, 'x'));
      ::shutdown(socket, SHUT_WR);
      char rest[1024];
      while (::recv(socket, rest, sizeof rest, 0) > 0) continue;  // so that closing resets nothing
      ::close(socket);
    }
  }
  static bool send(int socket, const std::string& text) {
    for (std::size_t sent = 0; sent < text.size();) {
      const ssize_t size = ::send(socket, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
      if (size <= 0) return false;
      sent += static_cast<std::size_t>(size);
    }
    return true;
  }
  void receive(int socket) {
    std::string all;
    std::size_t end = std::string::npos;
    std::size_t length = 0;
    char part[65536];
    while (end == std::string::npos || all.size() < end + 4 + length) {
      const ssize_t size = ::recv(socket, part, sizeof part, 0);
      if (size <= 0) break;
      all.append(part, static_cast<std::size_t>(size));
      if (end != std::string::npos) continue;
      end = all.find("\r\n\r\n");
      if (const auto at = all.find("Content-Length: "); end != std::string::npos && at < end)
        length = std::strtoul(all.c_str() + at + 16, nullptr, 10);
    }
    if (end == std::string::npos) return;
    const std::lock_guard lock(mutex_);
    requests_.emplace_back(all.substr(0, end), all.substr(end + 4));
    changed_.notify_all();
  }

  std::deque<Reply> script_;
  int listening_;
  std::uint16_t port_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::pair<std::string, std::string>> requests_;
  std::vector<int> hanging_;
  std::thread thread_;
};

}  // namespace fedge::test
