// Directory: signed records under 32-byte keys that expire unless they are published again: how nodes find
// out about each other without asking each other. Of one signer's records under one key the latest counts;
// records of several signers lie beside each other. Whatever a directory gives out has been checked
// (record.h) and is not earlier than what it has given out before and has not expired; what was not right is
// counted. MemoryDirectory is the one within a process, NetworkDirectory stands on OpenDHT, OverlayDirectory
// of sim/ on a simulated overlay. The room is told the time, on the calendar, and never asks for it. One
// thread: all calls and callbacks. A callback may call the directory again, but not destroy it.
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

// Of tables in memory. Keys are hashes already: which of their bytes are taken is as good as any.
struct KeyHash {
  std::size_t operator()(const Key& key) const noexcept {
    std::size_t hash = 0;
    std::memcpy(&hash, key.data(), sizeof hash);
    return hash;
  }
};

// A later record of a watched key was found, or (`record` is null) the last one of this signer has expired.
// The pointer is good for the call.
struct Change {
  Key key{};
  PublicKey signer;
  const Record* record = nullptr;
};

// Ends when it is destroyed; may outlive the directory.
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

// How many records were ignored, by flaw.
struct FlawCounts {
  std::array<std::uint64_t, kFlaws> counts{};
  std::uint64_t& operator[](Flaw flaw) { return counts[static_cast<std::size_t>(flaw)]; }
  std::uint64_t operator[](Flaw flaw) const { return counts[static_cast<std::size_t>(flaw)]; }
  std::uint64_t total() const;
};

// Records under one key that a lookup gives out: those of the smallest keys of signers.
inline constexpr std::size_t kMaxSignersPerKey = 200;

class Directory {
 public:
  using Done = std::function<void(const Result<void>&)>;
  using Found = std::function<void(const Result<std::vector<Record>>&)>;
  using OnChange = std::function<void(const Change&)>;

  virtual ~Directory() = default;
  // Calls `done` once, possibly before publish() returns. kInvalid: no valid record; the message says why.
  // kStale: there is a later one of this signer, or another one with its number, or it has expired.
  // kResource: there is no room. kUnavailable: no node could be reached. Success
  // is not to say that it lies anywhere: nodes in others' hands may drop what they acknowledge, and do so
  // where this machine's clock is wrong by more than the record lasts.
  virtual void publish(const Record& record, Done done) = 0;
  // Calls `found` once with the records under the key, one a signer, by signer; possibly before lookup()
  // returns. kUnavailable: nobody could be asked, which is not to say that there is none.
  virtual void lookup(const Key& key, Found found) = 0;
  struct Watch {
    std::vector<Key> keys;
    Duration every = seconds(10);  // a directory in others' hands looks at each key this often
  };
  // Calls `on_change` for every change under these keys from now on, and for what is there already, possibly
  // before watch() returns. kResource: too many keys are watched.
  virtual Result<Subscription> watch(Watch watch, OnChange on_change) = 0;
  // It is `now`: forgets what is not in_time(). A calendar that was ahead may be put right: what it took for
  // expired then counts again when it is found or published again, and what is periodic goes on as before.
  virtual void advance(Time now) = 0;
  // Of what others have given it.
  virtual FlawCounts ignored() const = 0;
};

}  // namespace fedge::dht
