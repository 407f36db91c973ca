// MemoryDirectory: the directory within a process: a hash table of records, a heap of expiry times, a table
// of watchers. Used by simulations without an overlay, and as the reference for other directories. Cost:
// publish O(log n) amortised and one signature check, lookup O(signers), advance O(log n) for each expired
// record. A key's changes are reported to watchers in the order of subscription; expiries in the order of
// time, key, signer.
#pragma once

#include <map>
#include <unordered_map>

#include "dht/directory.h"

namespace fedge::dht {

struct MemoryDirectoryOptions {
  std::size_t max_records = std::size_t{1} << 21;
  std::size_t max_bytes = std::size_t{1} << 30;    // over all records
  std::size_t max_watched = std::size_t{1} << 22;  // keys, summed over watchers
};

class MemoryDirectory final : public Directory {
 public:
  explicit MemoryDirectory(const MemoryDirectoryOptions& options = {});
  ~MemoryDirectory() override;

  void publish(const Record& record, Done done) override;
  // Publishes a record that open_record() has just returned.
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
  // A heap, earliest first; may contain outdated entries of renewed records.
  std::vector<End> ends_;
  std::size_t count_ = 0;
  std::size_t bytes_ = 0;
  FlawCounts ignored_;
  Time now_{};
  std::shared_ptr<Watches> watches_;
};

}  // namespace fedge::dht
