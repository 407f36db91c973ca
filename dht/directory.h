// Directory: signed records under 32-byte keys, through which nodes find each other. A record expires
// unless it is published again. Of one signer's records under one key only the latest counts; records of
// different signers coexist. A directory returns only records that are valid (record.h), unexpired, and not
// older than those it returned before; it counts the records that it ignored. Implementations:
// MemoryDirectory (one process), NetworkDirectory (OpenDHT), OverlayDirectory of sim/ (a simulated
// overlay). The caller supplies the calendar time; dht/ never reads a clock. All calls and callbacks on one
// thread. A callback may call the directory, but not destroy it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "core/result.h"
#include "core/time.h"
#include "dht/record.h"

namespace fedge::dht {

// Hash for tables in memory. Keys are hashes already, so any of their bytes will do.
struct KeyHash {
  std::size_t operator()(const Key& key) const noexcept {
    std::size_t hash = 0;
    std::memcpy(&hash, key.data(), sizeof hash);
    return hash;
  }
};

// A later record of a watched key was found, or (`record` is null) the last one of this signer has expired.
// The pointer is valid during the call.
struct Change {
  Key key{};
  PublicKey signer;
  const Record* record = nullptr;
};

// Ends the watch when it is destroyed; may outlive the directory.
class Subscription {
 public:
  Subscription() = default;
  explicit Subscription(std::function<void()> cancel) : cancel_(std::move(cancel)) {}
  Subscription(Subscription&& other) noexcept : cancel_(std::exchange(other.cancel_, nullptr)) {}
  Subscription& operator=(Subscription&& other) noexcept {
    std::swap(cancel_, other.cancel_);
    return *this;
  }
  Subscription(const Subscription&) = delete;
  Subscription& operator=(const Subscription&) = delete;
  ~Subscription() {
    if (cancel_) cancel_();
  }

 private:
  std::function<void()> cancel_;
};

// Number of ignored records for each flaw.
struct FlawCounts {
  std::array<std::uint64_t, kFlaws> counts{};
  std::uint64_t& operator[](Flaw flaw) { return counts[static_cast<std::size_t>(flaw)]; }
  std::uint64_t operator[](Flaw flaw) const { return counts[static_cast<std::size_t>(flaw)]; }
};

// A lookup returns at most this many records under one key: those of the smallest signer keys.
inline constexpr std::size_t kMaxSignersPerKey = 200;

class Directory {
 public:
  using Done = std::function<void(const Result<void>&)>;
  using Found = std::function<void(const Result<std::vector<Record>>&)>;
  using OnChange = std::function<void(const Change&)>;

  virtual ~Directory() = default;
  // Calls `done` once, possibly before publish() returns. kInvalid: the record is invalid; the message says
  // why. kStale: this signer has published a later one, or a different one with the same sequence number,
  // or it has expired. kResource: no room. kUnavailable: no node could be reached. Success does not
  // guarantee storage: remote nodes may drop what they acknowledged. They do so if this machine's clock is
  // wrong by more than the record's lifetime.
  virtual void publish(const Record& record, Done done) = 0;
  // Calls `found` once with the records under the key, one for each signer, in the order of signers;
  // possibly before lookup() returns. kUnavailable: no node could be asked; records may exist.
  virtual void lookup(const Key& key, Found found) = 0;
  struct Watch {
    std::vector<Key> keys;
    Duration every = seconds(10);  // how often a remote directory looks up each key
  };
  // Calls `on_change` for existing records and for every later change under these keys, possibly before
  // watch() returns. kResource: too many watched keys.
  virtual Result<Subscription> watch(Watch watch, OnChange on_change) = 0;
  // Sets the time and forgets records that are not in_time(). The calendar may be set back: a record that
  // it took for expired then counts again when it is found or published again, and periodic work continues.
  virtual void advance(Time now) = 0;
  // Counts of the records received from other nodes and ignored.
  virtual FlawCounts ignored() const = 0;
};

}  // namespace fedge::dht
