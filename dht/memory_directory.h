// MemoryDirectory: the directory within a process: a hash table of records, a heap of their ends, a table of
// who watches what. It takes records only from whom the process has authenticated; it checks no signature.
// Cost: publish O(log n) amortised, lookup O(1), expire O(log n) for each record that ends; a watched key's
// changes are told to its watchers in the order of their subscriptions, ends in the order of time, then key.
// Memory: 200 to 300 bytes a record besides its value (bench/dht).
#pragma once

#include <map>
#include <unordered_map>

#include "dht/directory.h"

namespace fedge::dht {

struct MemoryDirectoryOptions {
  std::size_t max_records = std::size_t{1} << 21;
  std::size_t max_bytes = std::size_t{1} << 30;    // of all values
  std::size_t max_watched = std::size_t{1} << 22;  // keys, each watcher's counted
};

class MemoryDirectory final : public Directory {
 public:
  explicit MemoryDirectory(const MemoryDirectoryOptions& options = {});
  ~MemoryDirectory() override;

  Result<void> publish(Record record) override;
  void lookup(const Key& key, Found found) override;
  Result<Subscription> watch(std::vector<Key> keys, OnChange on_change) override;
  void expire(Time now) override;

  std::size_t records() const { return records_.size(); }
  std::size_t bytes() const { return bytes_; }

 private:
  struct End {
    Time when;
    Key key;
  };
  struct Watches;

  static bool later(const End& a, const End& b);
  void add_end(const End& end);
  void tell(const Change& change);

  MemoryDirectoryOptions options_;
  std::unordered_map<Key, Record, KeyHash> records_;
  std::vector<End>
      ends_;  // a heap, the earliest first; of records published again their earlier ends as well
  std::size_t bytes_ = 0;
  Time now_{};
  std::shared_ptr<Watches> watches_;
};

}  // namespace fedge::dht
