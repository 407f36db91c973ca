// TimeWheel: an event queue like sim/event_queue.h, with the same order (by time, then by order of
// scheduling), for tens of millions of events most of which lie within a second. It has buckets of about four
// milliseconds, of which only the open one is sorted, and a heap for later events. Buckets are lists of
// chunks from one pool; the last freed chunk is reused first, which keeps the memory of waiting events small.
// ahead() looks into the open bucket, to prefetch memory. One thread; push and pop are O(1) if times are
// spread over a bucket.
// Source: Brown, "Calendar queues", CACM 31(10), 1988, with buckets of a fixed width.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/time.h"

namespace fedge::sim {

template <class Payload>
class TimeWheel {
 public:
  struct Entry {
    Time at;
    std::uint64_t order;
    Payload payload;
  };

  void push(Time at, Payload payload) {
    ++size_;
    place({at, next_order_++, std::move(payload)});
  }
  bool empty() const { return size_ == 0; }
  // The entry that pop() would return; the wheel must not be empty.
  const Entry& next() {
    open();
    return open_[position_];
  }
  Entry pop() {
    open();
    --size_;
    return std::move(open_[position_++]);
  }
  // The entry that pop() would return after `steps` others, or null if it is not in the open bucket; only a
  // hint.
  const Entry* ahead(std::size_t steps) const {
    return position_ + steps < open_.size() ? &open_[position_ + steps] : nullptr;
  }

 private:
  static constexpr int kShift = 22;  // 2^22 ns a bucket
  static constexpr std::int64_t kBuckets = 512;
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  static constexpr int kPartShift = 14;  // 2^14 ns a part of a bucket
  static constexpr std::size_t kParts = std::size_t{1} << (kShift - kPartShift);

  static constexpr std::size_t kChunk = 16;  // entries

  struct Chunk {
    std::array<Entry, kChunk> entries;
    std::uint32_t used = 0;
    std::uint32_t next = kNone;
  };

  static bool earlier(const Entry& a, const Entry& b) {
    return a.at != b.at ? a.at < b.at : a.order < b.order;
  }
  static bool later(const Entry& a, const Entry& b) { return earlier(b, a); }
  static std::int64_t bucket_of(Time at) { return at.time_since_epoch().count() >> kShift; }
  static std::size_t part_of(Time at) {
    return static_cast<std::size_t>(at.time_since_epoch().count() >> kPartShift) % kParts;
  }

  void place(Entry entry) {
    const std::int64_t bucket = bucket_of(entry.at);
    if (bucket <= current_) {
      const auto from = open_.begin() + static_cast<std::ptrdiff_t>(position_);
      open_.insert(std::upper_bound(from, open_.end(), entry, earlier), std::move(entry));
    } else if (bucket < current_ + kBuckets) {
      std::uint32_t& first = buckets_[static_cast<std::size_t>(bucket % kBuckets)];
      if (first == kNone || chunks_[first].used == kChunk) first = take_chunk(first);
      Chunk& chunk = chunks_[first];
      chunk.entries[chunk.used++] = std::move(entry);
      ++in_buckets_;
    } else {
      far_.push_back(std::move(entry));
      std::push_heap(far_.begin(), far_.end(), later);
    }
  }

  void open() {
    while (position_ == open_.size()) {
      open_.clear();
      position_ = 0;
      current_ = in_buckets_ == 0 ? std::max(current_ + 1, bucket_of(far_.front().at)) : current_ + 1;
      spread(std::exchange(buckets_[static_cast<std::size_t>(current_ % kBuckets)], kNone));
      in_buckets_ -= open_.size();
      while (!far_.empty() && bucket_of(far_.front().at) < current_ + kBuckets) {
        std::pop_heap(far_.begin(), far_.end(), later);
        Entry entry = std::move(far_.back());
        far_.pop_back();
        place(std::move(entry));
      }
    }
  }

  // Moves a bucket's entries into open_ and sorts them: first by parts of the bucket's time, then each short
  // part by comparison.
  void spread(std::uint32_t first) {
    std::array<std::uint32_t, kParts + 1> begins{};
    for_each_in(first, [&](const Entry& entry) { ++begins[part_of(entry.at) + 1]; });
    for (std::size_t part = 1; part <= kParts; ++part) begins[part] += begins[part - 1];
    open_.resize(begins[kParts]);
    for_each_in(first, [&](Entry& entry) { open_[begins[part_of(entry.at)]++] = std::move(entry); });
    for (std::size_t part = 0, begin = 0; part < kParts; begin = begins[part++]) {  // holds ends now
      const auto at = open_.begin() + static_cast<std::ptrdiff_t>(begin);
      if (begins[part] - begin > 1) std::sort(at, open_.begin() + begins[part], earlier);
    }
    while (first != kNone) {
      Chunk& chunk = chunks_[first];
      chunk.used = 0;
      const std::uint32_t freed = std::exchange(first, chunk.next);
      chunk.next = std::exchange(free_, freed);
    }
  }

  template <class Visit>
  void for_each_in(std::uint32_t chunk, Visit visit) {
    for (; chunk != kNone; chunk = chunks_[chunk].next)
      for (std::uint32_t i = 0; i < chunks_[chunk].used; ++i) visit(chunks_[chunk].entries[i]);
  }

  // Takes an empty chunk and links it before `next`.
  std::uint32_t take_chunk(std::uint32_t next) {
    std::uint32_t taken = free_;
    if (taken == kNone) {
      taken = static_cast<std::uint32_t>(chunks_.size());
      chunks_.emplace_back();
    } else {
      free_ = chunks_[taken].next;
    }
    chunks_[taken].next = next;
    return taken;
  }

  std::vector<std::uint32_t> buckets_ = std::vector<std::uint32_t>(kBuckets, kNone);  // first chunks
  std::vector<Chunk> chunks_;
  std::uint32_t free_ = kNone;
  std::vector<Entry> open_;  // sorted from position_ on
  std::vector<Entry> far_;   // a heap
  std::size_t position_ = 0;
  std::size_t in_buckets_ = 0;
  std::size_t size_ = 0;
  std::int64_t current_ = -1;  // the open bucket; earlier ones are empty
  std::uint64_t next_order_ = 0;
};

}  // namespace fedge::sim
