#include "dht/remote_directory.h"

#include <algorithm>
#include <string>
#include <utility>

namespace fedge::dht {

RemoteDirectory::RemoteDirectory(const RemoteOptions& options)
    : options_(options),
      guard_(options.max_remembered),
      watched_({.max_records = options.max_kept,
                .max_bytes = options.max_kept * kMaxSignedRecord,
                .max_watched = std::size_t{1} << 22}),
      self_(std::make_shared<RemoteDirectory*>(this)) {}

void RemoteDirectory::publish(const Record& record, Done done) {
  const Opened opened = open_record(record.key, record.bytes, now_);
  if (const auto* refusal = std::get_if<Refusal>(&opened))
    return done(Error{refusal->flaw == Flaw::kExpired ? ErrorCode::kStale : ErrorCode::kInvalid,
                      "directory record: " + refusal->reason});
  const auto& checked = std::get<Record>(opened);
  Published& last = published_[{checked.key, checked.signer}];
  const bool known = !last.bytes.empty();
  if (known && checked.bytes != last.bytes && checked.sequence <= last.sequence)
    return done(Error{ErrorCode::kStale, "directory record: sequence number " +
                                             std::to_string(checked.sequence) +
                                             " is not higher than the published sequence number " +
                                             std::to_string(last.sequence)});
  last = {checked.bytes, checked.sequence, checked.expires};
  put(checked, std::move(done));
}

void RemoteDirectory::lookup(const Key& key, Found found) {
  get(key, [self = self_, key, found = std::move(found)](const Result<Values>& values) {
    if (*self == nullptr) return;
    if (!values) return found(values.error());
    found((*self)->guard_.latest(key, *values, (*self)->now_));
  });
}

Result<Subscription> RemoteDirectory::watch(Watch watch, OnChange on_change) {
  std::vector<Key>& keys = watch.keys;
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  const auto is_new = [this](const Key& key) { return !keys_.contains(key); };
  const auto more = static_cast<std::size_t>(std::count_if(keys.begin(), keys.end(), is_new));
  if (more > options_.max_watched - keys_.size())
    return Error{ErrorCode::kResource,
                 "the directory watches at most " + std::to_string(options_.max_watched) + " keys"};
  FEDGE_TRY(told, watched_.watch({keys}, std::move(on_change)));
  for (const Key& key : keys) {
    Watched& watched = keys_[key];
    const bool sooner = watched.every.empty() || watch.every < *watched.every.begin();
    watched.every.insert(watch.every);
    if (!sooner) continue;
    due_.erase({watched.next, key});
    watched.next = now_;
    due_.emplace(now_, key);
  }
  auto held = std::make_shared<Subscription>(std::move(told));
  look_around();
  return Subscription([self = self_, watch = std::move(watch), held]() {
    *held = Subscription();
    if (*self != nullptr) (*self)->unwatch(watch);
  });
}

void RemoteDirectory::unwatch(const Watch& watch) {
  for (const Key& key : watch.keys) {
    const auto known = keys_.find(key);
    known->second.every.erase(known->second.every.find(watch.every));
    if (!known->second.every.empty()) continue;
    due_.erase({known->second.next, key});
    keys_.erase(known);
  }
}

void RemoteDirectory::look_around() {
  while (!due_.empty() && due_.begin()->first <= now_ && asking_ < options_.max_asking) {
    const Key key = due_.begin()->second;
    due_.erase(due_.begin());
    ++asking_;
    get(key, [self = self_, key](const Result<Values>& values) {
      if (*self != nullptr) (*self)->looked(key, values);
    });
  }
}

void RemoteDirectory::looked(const Key& key, const Result<Values>& values) {
  --asking_;
  // Ignore records for which there is no room; a later lookup may find some.
  if (values && keys_.contains(key))
    for (Record& record : guard_.latest(key, *values, now_))
      static_cast<void>(watched_.keep(std::move(record)));
  // All watchers may have left meanwhile, or new ones may already have scheduled a lookup.
  const auto known = keys_.find(key);
  if (known == keys_.end() || due_.contains({known->second.next, key})) return;
  known->second.next = now_ + *known->second.every.begin();
  due_.emplace(known->second.next, key);
}

// Shifts the schedule with the calendar, so that the intervals between lookups stay the same.
void RemoteDirectory::put_back(Duration by) {
  for (auto& [key, watched] : keys_) watched.next -= by;
  decltype(due_) due;
  for (const auto& [next, key] : due_) due.emplace(next - by, key);
  due_ = std::move(due);
}

void RemoteDirectory::advance(Time now) {
  const Time before = std::exchange(now_, now);
  if (now < before) put_back(before - now);
  std::erase_if(published_, [this](const auto& item) { return !in_time(item.second.expires, now_); });
  watched_.advance(now_);
  look_around();
}

}  // namespace fedge::dht
