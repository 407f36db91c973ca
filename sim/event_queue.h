// EventQueue: the next events in virtual time. Ordered by time, then by order of scheduling, so that a
// simulation is a function of its seed. Header-only; push and pop are O(log n). A simulation of a million
// devices has a million events waiting: the heap is four-ary and holds 24 bytes an event, apart from the
// payloads, which stay where they are.
#pragma once

#include <algorithm>
#include <cstddef>
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
  struct Key {
    Time at;
    std::uint64_t order;
    std::uint32_t place;  // of the payload
  };

  void push(Time at, Payload payload) {
    std::uint32_t place = static_cast<std::uint32_t>(payloads_.size());
    if (free_.empty()) {
      payloads_.push_back(std::move(payload));
    } else {
      place = free_.back();
      free_.pop_back();
      payloads_[place] = std::move(payload);
    }
    heap_.push_back({at, next_order_++, place});
    rise(heap_.size() - 1);
  }
  Entry pop() {
    const Key first = heap_.front();
    heap_.front() = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) sink();
    free_.push_back(first.place);
    return {first.at, first.order, std::exchange(payloads_[first.place], Payload())};
  }
  // The key of the entry that pop() would return.
  const Key& next() const { return heap_.front(); }
  bool empty() const { return heap_.empty(); }
  std::size_t size() const { return heap_.size(); }

 private:
  static constexpr std::size_t kChildren = 4;
  static bool before(const Key& a, const Key& b) { return a.at != b.at ? a.at < b.at : a.order < b.order; }

  // Moves the last key up to its place.
  void rise(std::size_t i) {
    const Key key = heap_[i];
    for (; i > 0 && before(key, heap_[(i - 1) / kChildren]); i = (i - 1) / kChildren)
      heap_[i] = heap_[(i - 1) / kChildren];
    heap_[i] = key;
  }
  // Moves the first key down to its place.
  void sink() {
    const Key key = heap_.front();
    std::size_t i = 0;
    while (i * kChildren + 1 < heap_.size()) {
      const auto children = heap_.begin() + static_cast<std::ptrdiff_t>(i * kChildren + 1);
      const auto end = children + std::min<std::ptrdiff_t>(kChildren, heap_.end() - children);
      const auto least = std::min_element(children, end, before);
      if (!before(*least, key)) break;
      heap_[i] = *least;
      i = static_cast<std::size_t>(least - heap_.begin());
    }
    heap_[i] = key;
  }

  std::vector<Key> heap_;
  std::vector<Payload> payloads_;
  std::vector<std::uint32_t> free_;  // places without a payload
  std::uint64_t next_order_ = 0;
};

}  // namespace fedge::sim
