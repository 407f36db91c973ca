#include "dht/memory_directory.h"

#include <algorithm>
#include <string>
#include <tuple>

#include "protocol/session/loop.h"

namespace fedge::dht {
namespace {

Error full(const char* what, std::size_t limit) {
  return {ErrorCode::kResource,
          std::string("the directory is full: it holds at most ") + std::to_string(limit) + " " + what};
}

}  // namespace

struct MemoryDirectory::Watches {
  struct Watcher {
    std::vector<Key> keys;
    std::shared_ptr<const OnChange> on_change;  // survives an unsubscription during its own call
  };
  std::map<std::uint64_t, Watcher> all;  // in the order of subscription
  std::unordered_map<Key, std::vector<std::uint64_t>, KeyHash> by_key;
  std::uint64_t next = 0;
  std::size_t watched = 0;

  void remove(std::uint64_t id) {
    const auto watch = all.find(id);
    for (const Key& key : watch->second.keys) {
      const auto ids = by_key.find(key);
      std::erase(ids->second, id);
      if (ids->second.empty()) by_key.erase(ids);
    }
    watched -= watch->second.keys.size();
    all.erase(watch);
  }
};

MemoryDirectory::MemoryDirectory(const MemoryDirectoryOptions& options)
    : options_(options), watches_(std::make_shared<Watches>()) {}

MemoryDirectory::~MemoryDirectory() = default;

bool MemoryDirectory::later(const End& a, const End& b) {
  return std::tie(a.when, a.key, a.signer) > std::tie(b.when, b.key, b.signer);
}

void MemoryDirectory::add_end(const End& end) {
  ends_.push_back(end);
  std::push_heap(ends_.begin(), ends_.end(), later);
  // Renewed records leave outdated entries in ends_; rebuild it when they dominate.
  if (ends_.size() <= 2 * count_ + 64) return;
  ends_.clear();
  for (const auto& [key, signers] : records_)
    for (const auto& [signer, record] : signers) ends_.push_back({record.expires, key, signer});
  std::make_heap(ends_.begin(), ends_.end(), later);
}

void MemoryDirectory::publish(const Record& record, Done done) {
  Opened opened = open_record(record.key, record.bytes, now_);
  if (const auto* refusal = std::get_if<Refusal>(&opened)) return done(ignore(*refusal));
  done(keep(std::get<Record>(std::move(opened))));
}

Error MemoryDirectory::ignore(const Refusal& refusal) {
  ++ignored_[refusal.flaw];
  const bool stale = refusal.flaw == Flaw::kExpired || refusal.flaw == Flaw::kRolledBack ||
                     refusal.flaw == Flaw::kConflicting;
  return {stale ? ErrorCode::kStale : ErrorCode::kInvalid, "directory record: " + refusal.reason};
}

Result<void> MemoryDirectory::keep(Record record) {
  BySigner& signers = records_[record.key];
  const auto known = signers.find(record.signer);
  const Record* present = known == signers.end() ? nullptr : &known->second;
  if (auto room = check_room(record, present, signers); !room) {
    if (signers.empty()) records_.erase(record.key);
    return room;
  }
  if (present != nullptr && present->bytes == record.bytes) return {};  // published again
  if (present != nullptr && record.sequence <= present->sequence) {
    const std::string numbers = "sequence number " + std::to_string(record.sequence) +
                                " is not higher than the stored sequence number " +
                                std::to_string(present->sequence);
    return ignore({record.sequence < present->sequence ? Flaw::kRolledBack : Flaw::kConflicting, numbers});
  }
  bytes_ += record.bytes.size() - (present != nullptr ? present->bytes.size() : 0);
  if (present == nullptr) ++count_;
  const Record told = record;  // a copy: a watcher may publish the next one
  signers.insert_or_assign(record.signer, std::move(record));
  add_end({told.expires, told.key, told.signer});
  tell({told.key, told.signer, &told});
  return {};
}

Result<void> MemoryDirectory::check_room(const Record& record, const Record* known,
                                         const BySigner& others) const {
  if (known == nullptr && count_ >= options_.max_records) return full("records", options_.max_records);
  if (known == nullptr && others.size() >= kMaxSignersPerKey)
    return full("signers under one key", kMaxSignersPerKey);
  const std::size_t rest = bytes_ - (known != nullptr ? known->bytes.size() : 0);
  if (record.bytes.size() > options_.max_bytes - rest) return full("bytes of records", options_.max_bytes);
  return {};
}

void MemoryDirectory::tell(const Change& change) {
  const auto found = watches_->by_key.find(change.key);
  if (found == watches_->by_key.end()) return;
  const std::vector<std::uint64_t> ids = found->second;  // a copy: a callback may add or remove watchers
  for (const std::uint64_t id : ids) {
    const auto watch = watches_->all.find(id);
    if (watch == watches_->all.end()) continue;
    const auto on_change = watch->second.on_change;
    (*on_change)(change);
  }
}

void MemoryDirectory::lookup(const Key& key, Found found) {
  std::vector<Record> records;
  if (const auto known = records_.find(key); known != records_.end())
    for (const auto& [signer, record] : known->second) records.push_back(record);
  found(records);
}

Result<Subscription> MemoryDirectory::watch(Watch watch, OnChange on_change) {
  std::vector<Key>& keys = watch.keys;
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  if (keys.size() > options_.max_watched - watches_->watched)
    return full("watched keys", options_.max_watched);
  const std::uint64_t id = watches_->next++;
  for (const Key& key : keys) watches_->by_key[key].push_back(id);
  watches_->watched += keys.size();
  const auto callback = std::make_shared<const OnChange>(std::move(on_change));
  watches_->all[id] = {keys, callback};
  for (const Key& key : keys)
    lookup(key, [&](const Result<std::vector<Record>>& records) {
      for (const Record& record : *records) (*callback)({key, record.signer, &record});
    });
  return Subscription(protocol::weakly(watches_, [id, watches = watches_.get()] { watches->remove(id); }));
}

void MemoryDirectory::advance(Time now) {
  const bool back = now < now_;
  now_ = now;
  if (back) put_back();
  while (!ends_.empty() && ends_.front().when <= now_) {
    std::pop_heap(ends_.begin(), ends_.end(), later);
    const End end = ends_.back();
    ends_.pop_back();
    const auto signers = records_.find(end.key);
    if (signers == records_.end()) continue;
    const auto known = signers->second.find(end.signer);
    if (known == signers->second.end() || known->second.expires != end.when) continue;  // renewed since
    this->end(end.key, end.signer);
  }
}

// Drops records that only a fast clock admitted: otherwise they would stay until they expire and keep out
// later ones.
void MemoryDirectory::put_back() {
  std::vector<End> gone;
  for (const End& end : ends_)
    if (!in_time(end.when, now_) && end.when > now_) gone.push_back(end);
  std::sort(gone.begin(), gone.end(), [](const End& a, const End& b) { return later(b, a); });
  for (const End& each : gone) {
    const auto signers = records_.find(each.key);
    if (signers == records_.end()) continue;
    const auto known = signers->second.find(each.signer);
    if (known != signers->second.end() && known->second.expires == each.when) end(each.key, each.signer);
  }
}

void MemoryDirectory::end(const Key& key, const PublicKey& signer) {
  const auto signers = records_.find(key);
  const auto known = signers->second.find(signer);
  bytes_ -= known->second.bytes.size();
  --count_;
  signers->second.erase(known);
  if (signers->second.empty()) records_.erase(signers);
  tell({key, signer, nullptr});
}

}  // namespace fedge::dht
