// MemoryDirectory: the directory within a process: a hash table of records, a heap of their ends, a table of
// who watches what. What a simulation without an overlay uses, and what the others are compared with.
// Cost: publish O(log n) amortised and one signature, lookup O(signers), advance O(log n) for each record
// that ends; a watched key's changes are told to its watchers in the order of their subscriptions, ends in
// the order of time, then key, then signer.
#pragma once

#include <map>
#include <unordered_map>

#include "dht/directory.h"

namespace fedge::dht {

struct MemoryDirectoryOptions {
  std::size_t max_records = std::size_t{1} << 21;
  std::size_t max_bytes = std::size_t{1} << 30;    // of all records
  std::size_t max_watched = std::size_t{1} << 22;  // keys, each watcher's counted
};

class MemoryDirectory final : public Directory {
 public:
  explicit MemoryDirectory(const MemoryDirectoryOptions& options = {});
  ~MemoryDirectory() override;

  void publish(const Record& record, Done done) override;
  // The same with a record as open_record() gave it, just now.
  Result<void> keep(Record record);
  void lookup(const Key& key, Found found) override;
  Result<Subscription> watch(Watch watch, OnChange on_change) override;
  void advance(Time now) override;
  FlawCounts ignored() const override { return ignored_; }

  std::size_t records() const { return count_; }
  std::size_t bytes() const { return bytes_; }

 private:
  using BySigner = std::map<PublicKey, Record>;
  struct End {
    Time when;
    Key key;
    PublicKey signer;
  };
  struct Watches;

  static bool later(const End& a, const End& b);
  Result<void> check_room(const Record& record, const Record* known, const BySigner& others) const;
  Error ignore(const Refusal& refusal);
  void add_end(const End& end);
  void put_back();
  void end(const Key& key, const PublicKey& signer);
  void tell(const Change& change);

  MemoryDirectoryOptions options_;
  std::unordered_map<Key, BySigner, KeyHash> records_;
  // A heap, the earliest first; of records published again their earlier ends as well.
  std::vector<End> ends_;
  std::size_t count_ = 0;
  std::size_t bytes_ = 0;
  FlawCounts ignored_;
  Time now_{};
  std::shared_ptr<Watches> watches_;
};

}  // namespace fedge::dht
