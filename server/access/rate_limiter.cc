#include "server/access/rate_limiter.h"

namespace fedge::server {

void RateLimiter::forget_old(Entry& entry, Time now) const {
  while (!entry.times.empty() && now - entry.times.front() >= window_) entry.times.pop_front();
}

bool RateLimiter::full(const std::string& key, Time now) {
  const auto known = by_key_.find(key);
  if (known == by_key_.end()) return false;
  forget_old(*known->second, now);
  return known->second->times.size() >= limit_;
}

bool RateLimiter::count(const std::string& key, Time now) {
  if (const auto known = by_key_.find(key); known != by_key_.end()) {
    entries_.splice(entries_.begin(), entries_, known->second);
  } else {
    if (entries_.size() >= max_keys_) {
      by_key_.erase(entries_.back().key);
      entries_.pop_back();
    }
    entries_.push_front({key, {}});
    by_key_.emplace(key, entries_.begin());
  }
  Entry& entry = entries_.front();
  forget_old(entry, now);
  if (entry.times.size() >= limit_) entry.times.pop_front();
  entry.times.push_back(now);
  return entry.times.size() >= limit_;
}

}  // namespace fedge::server
