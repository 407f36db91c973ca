#include "dht/record_guard.h"

#include <algorithm>
#include <numeric>
#include <string>

namespace fedge::dht {

std::uint64_t FlawCounts::total() const {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

Opened RecordGuard::admit(const Key& key, std::span<const std::byte> bytes, Time now) {
  Opened opened = open_record(key, bytes, now);
  if (const auto* record = std::get_if<Record>(&opened))
    if (auto refusal = compare(*record, now)) opened = std::move(*refusal);
  if (const auto* refusal = std::get_if<Refusal>(&opened)) ++counts_[refusal->flaw];
  return opened;
}

std::optional<Refusal> RecordGuard::compare(const Record& record, Time now) {
  const Last current{record.sequence, sha256(std::span<const std::byte>(record.bytes)), record.expires};
  const auto known = last_.find({record.key, record.signer});
  if (known == last_.end()) {
    if (has_room(now)) last_.emplace(std::pair(record.key, record.signer), current);
    return std::nullopt;
  }
  const Last& last = known->second;
  if (record.sequence < last.sequence)
    return Refusal{Flaw::kRolledBack, "number " + std::to_string(record.sequence) + " after number " +
                                          std::to_string(last.sequence)};
  if (record.sequence == last.sequence && current.bytes != last.bytes)
    return Refusal{Flaw::kConflicting,
                   "another record with number " + std::to_string(record.sequence) + " of the same signer"};
  known->second = current;
  return std::nullopt;
}

bool RecordGuard::has_room(Time now) {
  if (last_.size() < max_remembered_) return true;
  if (now < next_end_) return false;
  std::erase_if(last_, [now](const auto& item) { return item.second.expires <= now; });
  next_end_ = Time::max();
  for (const auto& [place, last] : last_) next_end_ = std::min(next_end_, last.expires);
  return last_.size() < max_remembered_;
}

}  // namespace fedge::dht
