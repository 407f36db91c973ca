#include "dht/overlays/values/value_store.h"

#include <algorithm>
#include <tuple>

namespace fedge::dht {

bool later_wins(const Value* present, const Value& offered) {
  if (present == nullptr) return true;
  if (offered.sequence != present->sequence) return offered.sequence > present->sequence;
  return offered.expires >= present->expires;
}

std::vector<StoredValue>::iterator ValueStore::place_of(Id key, std::uint64_t slot) {
  return std::lower_bound(values_.begin(), values_.end(), std::tuple(key, slot),
                          [](const StoredValue& stored, const std::tuple<Id, std::uint64_t>& sought) {
                            return std::tuple(stored.value.key, stored.value.slot) < sought;
                          });
}

StoredValue* ValueStore::get(Id key, std::uint64_t slot) {
  const auto place = place_of(key, slot);
  const bool there = place != values_.end() && place->value.key == key && place->value.slot == slot;
  return there ? &*place : nullptr;
}

StoredValue* ValueStore::offer(const Value& value, Time now) {
  if (value.expires <= now || value.size() > limits_.value_bytes) return nullptr;
  if (StoredValue* present = get(value.key, value.slot)) {
    if (!policy_(present->value.expires > now ? &present->value : nullptr, value)) return nullptr;
    present->value = value;
    return present;
  }
  if (values_.size() >= limits_.values || !policy_(nullptr, value)) return nullptr;
  return &*values_.insert(place_of(value.key, value.slot), StoredValue{value, {}, false});
}

void ValueStore::find(Id key, Time now, std::vector<Value>& out) const {
  const auto place =
      std::lower_bound(values_.begin(), values_.end(), key,
                       [](const StoredValue& stored, Id sought) { return stored.value.key < sought; });
  for (auto it = place; it != values_.end() && it->value.key == key; ++it)
    if (it->value.expires > now) out.push_back(it->value);
}

void ValueStore::erase(Id key, std::uint64_t slot) {
  if (const StoredValue* stored = get(key, slot)) values_.erase(values_.begin() + (stored - values_.data()));
}

void ValueStore::expire(Time now) {
  std::erase_if(values_, [&](const StoredValue& stored) { return stored.value.expires <= now; });
}

}  // namespace fedge::dht
