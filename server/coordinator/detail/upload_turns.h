// UploadTurns bounds how many updates are transferred at the same time. At most `at_once` begin; the rest
// wait in order of request. So memory depends on the coordinator's speed, not on the number of clients that
// send at once. A transfer longer than kPatience gives its place away, so slow clients cannot block the
// others. Use it on the io_context's thread; owned by shared_ptr.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>

#include "core/ids.h"
#include "protocol/session/loop.h"

namespace fedge::server {

inline constexpr std::size_t kUploadsAtOnce = 128;

class UploadTurns : public std::enable_shared_from_this<UploadTurns> {
 public:
  static constexpr std::chrono::seconds kPatience{1};

  UploadTurns(boost::asio::io_context& io, std::size_t at_once) : io_(io), at_once_(at_once), timer_(io) {}

  // Calls begin() when it is this client's turn, possibly at once. Replaces the client's earlier request.
  void ask(ClientId client, std::function<void()> begin);
  // Call when the client's upload has ended or is no longer wanted.
  void leave(ClientId client);
  // Drops all waiting requests.
  void stop();

 private:
  using Clock = std::chrono::steady_clock;
  void begin_queued();
  void begin_soon();
  void watch();

  boost::asio::io_context& io_;
  std::size_t at_once_;
  protocol::Timer timer_;
  std::map<ClientId, Clock::time_point> moving_;  // running uploads that occupy a place, and their start
  std::map<ClientId, std::function<void()>> queued_;
  std::deque<ClientId> order_;  // queued clients; may contain some that left the queue
  bool watching_ = false;
};

}  // namespace fedge::server
