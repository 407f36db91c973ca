// RemoteDirectory: the common part of directories whose records are on other nodes. A RecordGuard checks
// records received; watched keys are looked up periodically and kept in a MemoryDirectory, which notifies
// the watchers. A derived class only moves bytes, with put and get. Threads as for Directory. Memory: the
// guard's, and the records of watched keys.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "dht/memory_directory.h"
#include "dht/record_guard.h"

namespace fedge::dht {

struct RemoteOptions {
  std::size_t max_watched = 4096;                     // keys
  std::size_t max_kept = 1 << 16;                     // records of watched keys
  std::size_t max_asking = 64;                        // concurrent lookups for watches
  std::size_t max_remembered = std::size_t{1} << 16;  // RecordGuard
};

class RemoteDirectory : public Directory {
 public:
  void publish(const Record& record, Done done) final;
  void lookup(const Key& key, Found found) final;
  Result<Subscription> watch(Watch watch, OnChange on_change) final;
  void advance(Time now) override;
  FlawCounts ignored() const final { return guard_.counts(); }

 protected:
  using Values = std::vector<std::vector<std::byte>>;
  using Got = std::function<void(const Result<Values>&)>;

  explicit RemoteDirectory(const RemoteOptions& options);
  ~RemoteDirectory() override { *self_ = nullptr; }

  // Stores the record under its key until it expires, however nodes come and go; calls `done` once.
  virtual void put(const Record& record, Done done) = 0;
  // Gets all values under the key from the nodes that answer, unchecked; calls `got` once.
  virtual void get(const Key& key, Got got) = 0;
  Time now() const { return now_; }

 private:
  struct Published {
    std::vector<std::byte> bytes;
    std::uint64_t sequence = 0;
    Time expires{};
  };

  void unwatch(const Watch& watch);
  void look_around();
  void put_back(Duration by);
  void looked(const Key& key, const Result<Values>& values);

  RemoteOptions options_;
  Time now_{};
  RecordGuard guard_;
  MemoryDirectory watched_;
  struct Watched {
    std::multiset<Duration> every;  // of its watchers: the shortest applies
    Time next{};                    // next lookup; the last one while it is in progress
  };
  std::map<Key, Watched> keys_;
  std::set<std::pair<Time, Key>> due_;  // the next lookups
  std::size_t asking_ = 0;
  std::map<std::pair<Key, PublicKey>, Published> published_;  // by users of this directory
  std::shared_ptr<RemoteDirectory*> self_;                    // a late answer finds null
};

}  // namespace fedge::dht
