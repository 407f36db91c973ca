// ValueStore: the values that one node holds for the overlay, by key and slot, bounded. Each value has the
// list of its other holders, for repair. A policy decides whether an offered value may replace the stored
// one; by default the later one wins. Owned by one node; one thread; offer and find are O(log values) and a
// move.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "dht/overlays/message.h"

namespace fedge::dht {

// Decides whether to store `offered`; `present` is the value at its key and slot, or null.
using StorePolicy = std::function<bool(const Value* present, const Value& offered)>;

// Accepts a higher sequence, or the same sequence with an expiry at least as late.
bool later_wins(const Value* present, const Value& offered);

struct StoreLimits {
  std::size_t values = 4096;       // per node
  std::size_t value_bytes = 4096;  // per value
};

struct StoredValue {
  Value value;
  std::vector<Address> holders;  // nodes known to have it or offered it
  bool cached = false;           // cached by a passing lookup: not repaired
};

class ValueStore {
 public:
  ValueStore(StoreLimits limits, StorePolicy policy) : limits_(limits), policy_(std::move(policy)) {}

  // Stores the value unless it has expired, is too large, the store is full, or the policy refuses. Returns
  // the stored value, whose holders the caller sets; null if it was not stored.
  StoredValue* offer(const Value& value, Time now);
  // Appends the unexpired values under the key.
  void find(Id key, Time now, std::vector<Value>& out) const;
  StoredValue* get(Id key, std::uint64_t slot);
  void erase(Id key, std::uint64_t slot);
  void expire(Time now);
  void clear() { values_.clear(); }

  // Sorted by key, then slot.
  std::vector<StoredValue>& values() { return values_; }
  const std::vector<StoredValue>& values() const { return values_; }
  const StoreLimits& limits() const { return limits_; }

 private:
  std::vector<StoredValue>::iterator place_of(Id key, std::uint64_t slot);

  StoreLimits limits_;
  StorePolicy policy_;
  std::vector<StoredValue> values_;
};

}  // namespace fedge::dht
