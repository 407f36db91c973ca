// RateLimiter: at most so many events in any stretch of time, for each key (an address, a token). Pure: it
// is told the time, on a clock that never jumps. It remembers at most so many keys, each at most `limit`
// times; when there is one too many, the key that has been quiet for longest is forgotten.
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
  // Limits of at least 1.
  RateLimiter(std::size_t limit, Duration window, std::size_t max_keys = 4096)
      : limit_(limit), window_(window), max_keys_(max_keys) {}

  // Whether this key has had its share within the window that ends now.
  bool full(const std::string& key, Time now);
  // One more of this key; true if that was the last one it may have.
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
  std::list<Entry> entries_;  // the one counted last in front
  std::unordered_map<std::string, std::list<Entry>::iterator> by_key_;
};

}  // namespace fedge::server
