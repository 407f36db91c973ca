// EventFeed: the coordinator's last events, for those who watch it live. The coordinator's thread publishes,
// any thread reads. Memory: kKept events.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/ids.h"
#include "server/store/run_store.h"

namespace fedge::server {

struct FeedEvent {
  std::uint64_t id = 0;                 // ascending from 1 in each process
  std::string name;                     // as in docs/reference/events.md, or a name of the admin API's stream
  std::string project = {};             // that it concerns; empty: the whole coordinator
  std::optional<RunNumber> run = {};    // that it concerns
  std::optional<ClientId> client = {};  // likewise
  std::string data = {};                // JSON on one line
};

class EventFeed {
 public:
  static constexpr std::size_t kKept = 2000;

  // Numbers the event and calls the listener, on the calling thread.
  void publish(FeedEvent event);
  // `listener` is called after each event; it must not wait. An empty one ends the calls.
  void listen(std::function<void()> listener);

  struct Part {
    std::vector<FeedEvent> events;  // ascending
    bool gap = false;               // events before them were dropped
  };
  // Returns at most `most` events after this one.
  Part after(std::uint64_t id, std::size_t most) const;
  // Returns the number of the last event; 0 before the first.
  std::uint64_t last() const;

 private:
  mutable std::mutex mutex_;
  std::mutex calling_;  // while the listener is called
  std::deque<FeedEvent> events_;
  std::uint64_t last_ = 0;
  std::function<void()> listener_;
};

}  // namespace fedge::server
