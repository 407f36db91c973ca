// RecordGuard: checks records from untrusted nodes for a directory. Selects each signer's latest record and
// remembers it until it expires, so that an earlier one cannot be replayed; counts the records that it
// refuses. Not thread-safe. Memory: 200 bytes for each remembered record, up to the given number.
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

  // Returns the latest record of each signer among the values found under this key, in the order of
  // signers, at most kMaxSignersPerKey. Omits a signer whose latest record is older than one seen before,
  // or differs from one with the same number. Older records beside a later one are not counted as flaws:
  // nodes keep them for a while. When the memory is full, new signers are not remembered until some records
  // have expired.
  std::vector<Record> latest(const Key& key, const std::vector<std::vector<std::byte>>& values, Time now);

  const FlawCounts& counts() const { return counts_; }
  std::size_t remembered() const { return last_.size(); }

 private:
  struct Last {
    std::uint64_t sequence = 0;
    Digest bytes{};
    Time expires{};
  };

  // The flaw compared with the remembered record; nothing if there is none, and the record is then
  // remembered.
  std::optional<Flaw> compare(const Record& record, Time now);
  bool has_room(Time now);

  std::size_t max_remembered_;
  std::map<std::pair<Key, PublicKey>, Last> last_;
  Time next_end_{};  // earliest expiry in a full memory
  FlawCounts counts_;
};

}  // namespace fedge::dht
