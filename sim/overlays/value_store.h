// ValueStore: the values that one node holds for the overlay, by key and slot, bounded. Who holds the others
// is noted with each, for repair. A policy decides whether an offered value may replace the one that is
// there; by default the later wins. Owned by one node; one thread; offer and find are O(log values) and a
// move.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "sim/overlays/message.h"

namespace fedge::sim {

// Whether `offered` may be taken; `present` is what lies under its key and slot, or null.
using StorePolicy = std::function<bool(const Value* present, const Value& offered)>;

// A higher sequence, or the same one with a life at least as long.
bool later_wins(const Value* present, const Value& offered);

struct StoreLimits {
  std::size_t values = 4096;       // per node
  std::size_t value_bytes = 4096;  // per value
};

struct StoredValue {
  Value value;
  std::vector<Address> holders;  // who is known to have it too, or was offered it
  bool cached = false;           // left by a lookup that passed: not repaired
};

class ValueStore {
 public:
  ValueStore(StoreLimits limits, StorePolicy policy) : limits_(limits), policy_(std::move(policy)) {}

  // Takes the value unless it has expired, is too large, there is no room, or the policy says no. The stored
  // value, whose holders the caller sets; null if it was not taken.
  StoredValue* offer(const Value& value, Time now);
  // Appends what lies under the key and lives.
  void find(Id key, Time now, std::vector<Value>& out) const;
  StoredValue* get(Id key, std::uint64_t slot);
  void erase(Id key, std::uint64_t slot);
  void expire(Time now);
  void clear() { values_.clear(); }

  // By key, then slot.
  std::vector<StoredValue>& values() { return values_; }
  const std::vector<StoredValue>& values() const { return values_; }
  const StoreLimits& limits() const { return limits_; }

 private:
  std::vector<StoredValue>::iterator place_of(Id key, std::uint64_t slot);

  StoreLimits limits_;
  StorePolicy policy_;
  std::vector<StoredValue> values_;
};

}  // namespace fedge::sim
