#include "server/live/event_feed.h"

#include <algorithm>
#include <utility>

namespace fedge::server {

void EventFeed::publish(FeedEvent event) {
  {
    const std::lock_guard lock(mutex_);
    event.id = ++last_;
    events_.push_back(std::move(event));
    if (events_.size() > kKept) events_.pop_front();
  }
  const std::lock_guard lock(calling_);
  if (listener_) listener_();
}

void EventFeed::listen(std::function<void()> listener) {
  const std::lock_guard lock(calling_);
  listener_ = std::move(listener);
}

EventFeed::Part EventFeed::after(std::uint64_t id, std::size_t most) const {
  const std::lock_guard lock(mutex_);
  const auto first = std::ranges::upper_bound(events_, id, {}, &FeedEvent::id);
  const auto count = std::min<std::size_t>(most, static_cast<std::size_t>(events_.end() - first));
  return {.events = {first, first + static_cast<std::ptrdiff_t>(count)},
          .gap = !events_.empty() && events_.front().id > id + 1};
}

std::uint64_t EventFeed::last() const {
  const std::lock_guard lock(mutex_);
  return last_;
}

}  // namespace fedge::server
