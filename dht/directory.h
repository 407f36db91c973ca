// Directory: records under 32-byte keys that expire unless they are published again: how nodes find out about
// each other without asking each other. Written in callbacks, so that an overlay network can stand behind it;
// MemoryDirectory is the one within a process. The room is told the time and never asks for it.
// One thread: all calls and callbacks. A callback may call the directory again, but not destroy it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/crypto/sha256.h"
#include "core/result.h"
#include "core/time.h"
#include "protocol/limits.h"

namespace fedge::dht {

using Key = Digest;

// Of tables in memory. Keys are hashes already: which of their bytes are taken is as good as any.
struct KeyHash {
  std::size_t operator()(const Key& key) const noexcept {
    std::size_t hash = 0;
    std::memcpy(&hash, key.data(), sizeof hash);
    return hash;
  }
};

struct Record {
  Key key{};
  std::uint32_t round = 0;     // of two records with one key the later is kept: by round,
  std::uint64_t sequence = 0;  // then by sequence
  Time expires{};              // it is gone at this time
  std::vector<std::byte> value;
  bool operator==(const Record&) const = default;
};

// A watched key's record was published, or (`record` is null) has expired. The pointer is good for the call.
struct Change {
  Key key{};
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

class Directory {
 public:
  using Found = std::function<void(const std::optional<Record>&)>;
  using OnChange = std::function<void(const Change&)>;

  virtual ~Directory() = default;
  // kInvalid: a value of more than protocol::kMaxRecordBytes. kStale: there is a later record or the same
  // one, or it has expired. kResource: the directory is full.
  virtual Result<void> publish(Record record) = 0;
  // Calls `found` once, with nothing if there is no record; possibly before lookup() returns.
  virtual void lookup(const Key& key, Found found) = 0;
  // Calls `on_change` for every change under these keys from now on, and for what is there already, possibly
  // before watch() returns. kResource: too many keys are watched.
  virtual Result<Subscription> watch(std::vector<Key> keys, OnChange on_change) = 0;
  // It is `now`, which never goes back: forgets what has expired.
  virtual void expire(Time now) = 0;
};

}  // namespace fedge::dht
