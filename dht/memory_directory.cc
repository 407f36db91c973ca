#include "dht/memory_directory.h"

#include <algorithm>
#include <string>

namespace fedge::dht {
namespace {

Error full(const char* what, std::size_t limit) {
  return {ErrorCode::kResource,
          std::string("the directory is full: it holds at most ") + std::to_string(limit) + " " + what};
}

std::string name_of(const Record& record) {
  return "round " + std::to_string(record.round) + ", sequence " + std::to_string(record.sequence);
}

}  // namespace

struct MemoryDirectory::Watches {
  struct Watch {
    std::vector<Key> keys;
    std::shared_ptr<const OnChange> on_change;  // outlives an unsubscription out of its own call
  };
  std::map<std::uint64_t, Watch> all;  // by the order of subscription
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
  return a.when != b.when ? a.when > b.when : a.key > b.key;
}

void MemoryDirectory::add_end(const End& end) {
  ends_.push_back(end);
  std::push_heap(ends_.begin(), ends_.end(), later);
  // Records that are published again and again leave their earlier ends behind.
  if (ends_.size() <= 2 * records_.size() + 64) return;
  ends_.clear();
  for (const auto& [key, record] : records_) ends_.push_back({record.expires, key});
  std::make_heap(ends_.begin(), ends_.end(), later);
}

Result<void> MemoryDirectory::publish(Record record) {
  if (record.value.size() > protocol::kMaxRecordBytes)
    return invalid("a directory record of " + std::to_string(record.value.size()) + " bytes; at most " +
                   std::to_string(protocol::kMaxRecordBytes) + " are allowed");
  if (record.expires <= now_)
    return Error{ErrorCode::kStale, "the directory record of " + name_of(record) + " has expired already"};
  const auto known = records_.find(record.key);
  const bool is_new = known == records_.end();
  if (!is_new &&
      std::pair(record.round, record.sequence) <= std::pair(known->second.round, known->second.sequence))
    return Error{ErrorCode::kStale, "the directory has a record of " + name_of(known->second) +
                                        ", which that of " + name_of(record) + " does not follow"};
  if (is_new && records_.size() >= options_.max_records) return full("records", options_.max_records);
  const std::size_t others = bytes_ - (is_new ? 0 : known->second.value.size());
  if (record.value.size() > options_.max_bytes - others) return full("bytes of values", options_.max_bytes);
  bytes_ = others + record.value.size();
  const Record told = record;  // a watcher may publish the next one
  const End end{record.expires, record.key};
  if (is_new)
    records_.emplace(record.key, std::move(record));
  else
    known->second = std::move(record);
  add_end(end);
  tell({told.key, &told});
  return {};
}

void MemoryDirectory::tell(const Change& change) {
  const auto found = watches_->by_key.find(change.key);
  if (found == watches_->by_key.end()) return;
  const std::vector<std::uint64_t> ids = found->second;  // a watcher may come or go meanwhile
  for (const std::uint64_t id : ids) {
    const auto watch = watches_->all.find(id);
    if (watch == watches_->all.end()) continue;
    const auto on_change = watch->second.on_change;
    (*on_change)(change);
  }
}

void MemoryDirectory::lookup(const Key& key, Found found) {
  const auto known = records_.find(key);
  found(known == records_.end() ? std::nullopt : std::optional<Record>(known->second));
}

Result<Subscription> MemoryDirectory::watch(std::vector<Key> keys, OnChange on_change) {
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
    lookup(key, [&](const std::optional<Record>& record) {
      if (record) (*callback)({key, &*record});
    });
  return Subscription([id, watches = std::weak_ptr<Watches>(watches_)] {
    if (const auto alive = watches.lock()) alive->remove(id);
  });
}

void MemoryDirectory::expire(Time now) {
  now_ = std::max(now_, now);
  while (!ends_.empty() && ends_.front().when <= now_) {
    std::pop_heap(ends_.begin(), ends_.end(), later);
    const End end = ends_.back();
    ends_.pop_back();
    const auto known = records_.find(end.key);
    if (known == records_.end() || known->second.expires != end.when) continue;  // published again since
    bytes_ -= known->second.value.size();
    records_.erase(known);
    tell({end.key, nullptr});
  }
}

}  // namespace fedge::dht
