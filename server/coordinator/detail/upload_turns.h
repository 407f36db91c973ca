// UploadTurns: which clients' updates are on their way at the same time. No more than `at_once` begin, the
// rest wait in the order they asked, so that the memory of a thousand clients that send at once goes with the
// coordinator's speed and not with their number. One that takes longer than kPatience keeps nobody waiting
// any more: slow clients cannot shut out the others. On the io_context's thread; owned by shared_ptr.
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

  // Calls begin() when it is this client's turn, at once if that is now. Takes the place of what the client
  // asked for before.
  void ask(ClientId client, std::function<void()> begin);
  // The client's upload has ended, or is not wanted any more.
  void leave(ClientId client);
  // Nobody's turn comes any more.
  void stop();

 private:
  using Clock = std::chrono::steady_clock;
  void begin_queued();
  void begin_soon();
  void watch();

  boost::asio::io_context& io_;
  std::size_t at_once_;
  protocol::Timer timer_;
  std::map<ClientId, Clock::time_point> moving_;  // that others wait for, and since when
  std::map<ClientId, std::function<void()>> queued_;
  std::deque<ClientId> order_;  // of those queued, and of some that no longer are
  bool watching_ = false;
};

}  // namespace fedge::server
