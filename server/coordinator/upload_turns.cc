#include <utility>

#include "protocol/session/loop.h"

#include "server/coordinator/detail/upload_turns.h"

namespace fedge::server {

void UploadTurns::ask(ClientId client, std::function<void()> begin) {
  moving_.erase(client);
  if (moving_.size() < at_once_ && queued_.empty()) {
    moving_[client] = Clock::now();
    return begin();
  }
  if (queued_.insert_or_assign(client, std::move(begin)).second) order_.push_back(client);
  if (moving_.size() < at_once_) begin_soon();
  watch();
}

void UploadTurns::leave(ClientId client) {
  queued_.erase(client);
  if (moving_.erase(client) > 0) begin_soon();
}

void UploadTurns::stop() {
  queued_.clear();
  order_.clear();
  timer_.cancel();
}

void UploadTurns::begin_queued() {
  while (moving_.size() < at_once_ && !order_.empty()) {
    const ClientId client = order_.front();
    order_.pop_front();
    auto turn = queued_.extract(client);
    if (turn.empty()) continue;
    moving_[client] = Clock::now();
    turn.mapped()();
  }
}

// Posted, so that the next upload does not begin inside the callback that ended the last one.
void UploadTurns::begin_soon() {
  if (queued_.empty()) return;
  protocol::post(io_, protocol::weakly(this, [this] { begin_queued(); }));
}

void UploadTurns::watch() {
  if (queued_.empty() || std::exchange(watching_, true)) return;
  timer_.after(kPatience, protocol::weakly(this, [this] {
                 watching_ = false;
                 const auto long_ago = Clock::now() - kPatience;
                 std::erase_if(moving_, [&](const auto& upload) { return upload.second <= long_ago; });
                 begin_queued();
                 watch();
               }));
}

}  // namespace fedge::server
