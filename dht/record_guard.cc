#include "dht/record_guard.h"

#include <algorithm>
#include <span>

namespace fedge::dht {

std::vector<Record> RecordGuard::latest(const Key& key, const std::vector<std::vector<std::byte>>& values,
                                        Time now) {
  std::map<PublicKey, Record> by_signer;
  for (const auto& bytes : values) {
    Opened opened = open_record(key, bytes, now);
    if (const auto* refusal = std::get_if<Refusal>(&opened)) {
      ++counts_[refusal->flaw];
      continue;
    }
    auto& record = std::get<Record>(opened);
    Record& best = by_signer[record.signer];
    if (best.bytes.empty() || best.sequence < record.sequence) best = std::move(record);
  }
  std::vector<Record> records;
  for (auto& [signer, record] : by_signer) {
    if (records.size() == kMaxSignersPerKey) break;
    if (const auto flaw = compare(record, now))
      ++counts_[*flaw];
    else
      records.push_back(std::move(record));
  }
  return records;
}

std::optional<Flaw> RecordGuard::compare(const Record& record, Time now) {
  const Last current{record.sequence, sha256(std::span<const std::byte>(record.bytes)), record.expires};
  const auto known = last_.find({record.key, record.signer});
  if (known == last_.end()) {
    if (has_room(now)) last_.emplace(std::pair(record.key, record.signer), current);
    return std::nullopt;
  }
  Last& last = known->second;
  if (!in_time(last.expires, now)) last = current;
  if (record.sequence < last.sequence) return Flaw::kRolledBack;
  if (record.sequence == last.sequence && current.bytes != last.bytes) return Flaw::kConflicting;
  last = current;
  return std::nullopt;
}

bool RecordGuard::has_room(Time now) {
  if (last_.size() < max_remembered_) return true;
  if (in_time(next_end_, now)) return false;
  std::erase_if(last_, [now](const auto& item) { return !in_time(item.second.expires, now); });
  next_end_ = Time::max();
  for (const auto& [place, last] : last_) next_end_ = std::min(next_end_, last.expires);
  return last_.size() < max_remembered_;
}

}  // namespace fedge::dht
