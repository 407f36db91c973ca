// RecordGuard: stands between a directory and what strangers hand it. It opens each record, remembers the
// last of each signer under each key until that one's time is over, so that nobody who kept an earlier one
// can bring it back, and counts what it refuses. Not thread-safe. 200 bytes a record remembered, at most as
// many as it is told.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <utility>

#include "dht/directory.h"

namespace fedge::dht {

class RecordGuard {
 public:
  explicit RecordGuard(std::size_t max_remembered = std::size_t{1} << 16) : max_remembered_(max_remembered) {}

  // The record found under this key, unless it has a flaw, which is counted. The same record may come again
  // and again. Once the memory is full it knows those already in it, and no others, until some have expired.
  Opened admit(const Key& key, std::span<const std::byte> bytes, Time now);

  const FlawCounts& counts() const { return counts_; }
  std::size_t remembered() const { return last_.size(); }

 private:
  struct Last {
    std::uint64_t sequence = 0;
    Digest bytes{};
    Time expires{};
  };

  // The flaw beside what is remembered, or the record as the last one.
  std::optional<Refusal> compare(const Record& record, Time now);
  bool has_room(Time now);

  std::size_t max_remembered_;
  std::map<std::pair<Key, PublicKey>, Last> last_;
  Time next_end_{};  // no record of a full memory ends before
  FlawCounts counts_;
};

}  // namespace fedge::dht
