// RateLimiter allows at most `limit` events per key (an address, a token) in any window of time. Pure: the
// caller passes a monotonic time. It remembers at most `max_keys` keys and `limit` times for each; if there
// are too many keys, it forgets the least recently counted one.
#pragma once

#include <cstddef>
#include <deque>
#include <list>
#include <string>
#include <unordered_map>

#include "core/time.h"

namespace fedge::server {

class RateLimiter {
 public:
  // `limit` and `max_keys` must be at least 1.
  RateLimiter(std::size_t limit, Duration window, std::size_t max_keys = 4096)
      : limit_(limit), window_(window), max_keys_(max_keys) {}

  // Returns whether this key has reached the limit within the window that ends now.
  bool full(const std::string& key, Time now);
  // Counts an event; returns true if the key has now reached the limit.
  bool count(const std::string& key, Time now);
  std::size_t keys() const { return entries_.size(); }

 private:
  struct Entry {
    std::string key;
    std::deque<Time> times;  // oldest first, at most limit_
  };
  void forget_old(Entry& entry, Time now) const;

  std::size_t limit_;
  Duration window_;
  std::size_t max_keys_;
  std::list<Entry> entries_;  // most recently counted first
  std::unordered_map<std::string, std::list<Entry>::iterator> by_key_;
};

}  // namespace fedge::server
