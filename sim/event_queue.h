// EventQueue: the next events in virtual time. Ordered by time, then by order of scheduling, so that a
// simulation is a function of its seed. Header-only; push and pop are O(log n).
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/time.h"

namespace fedge::sim {

template <class Payload>
class EventQueue {
 public:
  struct Entry {
    Time at;
    std::uint64_t order;
    Payload payload;
  };

  void push(Time at, Payload payload) {
    heap_.push_back({at, next_order_++, std::move(payload)});
    std::push_heap(heap_.begin(), heap_.end(), later);
  }
  Entry pop() {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    Entry entry = std::move(heap_.back());
    heap_.pop_back();
    return entry;
  }
  // The entry that pop() would return.
  const Entry& next() const { return heap_.front(); }
  bool empty() const { return heap_.empty(); }
  std::size_t size() const { return heap_.size(); }

 private:
  static bool later(const Entry& a, const Entry& b) { return a.at != b.at ? a.at > b.at : a.order > b.order; }

  std::vector<Entry> heap_;
  std::uint64_t next_order_ = 0;
};

}  // namespace fedge::sim
