// Roster: the connected clients and their claims, by ascending number. Insertion and removal are O(log
// clients). Iteration, which every round does, is O(clients) and reads memory in order, unlike a map. 40
// bytes a client if client numbers are consecutive, as enrolment assigns them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "core/ids.h"

namespace fedge::server {

class Roster {
 public:
  struct Entry {
    SampleCount samples;    // weight: claimed samples, up to the client's maximum
    double capability = 1;  // fraction of the model that it claims it can train
    SampleCount said;       // that it claims to train on; 0: it only evaluates
    SampleCount evaluates;  // that it claims to evaluate on; 0: it does not evaluate
  };

  // Adds the client or replaces its entry.
  void set(ClientId client, const Entry& entry) {
    std::unique_ptr<Page>& page = pages_[client.value() / kPage];
    if (!page) page = std::make_unique<Page>();
    Slot& slot = (*page)[client.value() % kPage];
    count(slot, -1);
    slot = {entry, true};
    count(slot, 1);
  }
  void erase(ClientId client) {
    const auto page = pages_.find(client.value() / kPage);
    if (page == pages_.end()) return;
    Slot& slot = (*page->second)[client.value() % kPage];
    count(slot, -1);
    slot.present = false;
  }

  void clear() {
    pages_.clear();
    size_ = trainers_ = 0;
  }

  // Returns null if the client is not connected.
  const Entry* find(ClientId client) const {
    const auto page = pages_.find(client.value() / kPage);
    if (page == pages_.end()) return nullptr;
    const Slot& slot = (*page->second)[client.value() % kPage];
    return slot.present ? &slot.entry : nullptr;
  }
  std::size_t size() const { return size_; }
  // Number of clients that have training samples.
  std::size_t trainers() const { return trainers_; }

  // Calls f(client, entry) for every client, ascending.
  template <class F>
  void each(const F& f) const {
    for (const auto& [number, page] : pages_)
      for (std::uint32_t i = 0; i < kPage; ++i)
        if (const Slot& slot = (*page)[i]; slot.present) f(ClientId(number * kPage + i), slot.entry);
  }

 private:
  static constexpr std::uint32_t kPage = 1024;
  struct Slot {
    Entry entry;
    bool present = false;
  };
  using Page = std::array<Slot, kPage>;

  // Adds the slot's client to the numbers, or takes it away.
  void count(const Slot& slot, int change) {
    if (!slot.present) return;
    size_ += static_cast<std::size_t>(change);
    if (slot.entry.said.value() > 0) trainers_ += static_cast<std::size_t>(change);
  }

  std::map<std::uint32_t, std::unique_ptr<Page>> pages_;  // by number / kPage
  std::size_t size_ = 0;
  std::size_t trainers_ = 0;
};

}  // namespace fedge::server
