// RecordGuard: stands between a directory and what strangers hand it. It opens records, chooses of each
// signer's the latest, and remembers that one until its time is over, so that nobody who kept an earlier one
// can bring it back; what it refuses it counts. Not thread-safe. 200 bytes a record remembered, at most as
// many as it is told.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "dht/directory.h"

namespace fedge::dht {

class RecordGuard {
 public:
  explicit RecordGuard(std::size_t max_remembered = std::size_t{1} << 16) : max_remembered_(max_remembered) {}

  // Of what was found under this key the latest record of each signer, by signer, at most kMaxSignersPerKey.
  // A signer whose latest is earlier than one that has been seen before, or another one with its number, is
  // left out. Earlier ones beside a later one are nothing to reproach anybody with: nodes keep them for a
  // while. Once the memory is full it knows those already in it, and no others, until some have expired.
  std::vector<Record> latest(const Key& key, const std::vector<std::vector<std::byte>>& values, Time now);

  const FlawCounts& counts() const { return counts_; }
  std::size_t remembered() const { return last_.size(); }

 private:
  struct Last {
    std::uint64_t sequence = 0;
    Digest bytes{};
    Time expires{};
  };

  // The flaw beside what is remembered, or nothing, and the record is the last one.
  std::optional<Flaw> compare(const Record& record, Time now);
  bool has_room(Time now);

  std::size_t max_remembered_;
  std::map<std::pair<Key, PublicKey>, Last> last_;
  Time next_end_{};  // no record of a full memory ends before
  FlawCounts counts_;
};

}  // namespace fedge::dht
