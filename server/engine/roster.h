// Roster: who is there, and what each says about itself, by ascending number. Coming and going is O(log
// clients); going through everybody, which every round does, is O(clients) and reads memory in order, where a
// map would wait for it a million times. 32 bytes a client where numbers follow each other, as enrolment
// hands them out.
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
    SampleCount samples;    // that it counts as: those that it says it trains on, up to what it may
    double capability = 1;  // share of the model that it says it can train
    SampleCount said;       // that it says it trains on
  };

  // Adds it, or changes what it says.
  void set(ClientId client, const Entry& entry) {
    std::unique_ptr<Page>& page = pages_[client.value() / kPage];
    if (!page) page = std::make_unique<Page>();
    Slot& slot = (*page)[client.value() % kPage];
    size_ += slot.present ? 0 : 1;
    slot = {entry, true};
  }
  void erase(ClientId client) {
    const auto page = pages_.find(client.value() / kPage);
    if (page == pages_.end()) return;
    bool& present = (*page->second)[client.value() % kPage].present;
    size_ -= present ? 1 : 0;
    present = false;
  }

  void clear() {
    pages_.clear();
    size_ = 0;
  }

  // Null if it is not there.
  const Entry* find(ClientId client) const {
    const auto page = pages_.find(client.value() / kPage);
    if (page == pages_.end()) return nullptr;
    const Slot& slot = (*page->second)[client.value() % kPage];
    return slot.present ? &slot.entry : nullptr;
  }
  std::size_t size() const { return size_; }

  // Calls f(client, entry) for everybody, ascending.
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

  std::map<std::uint32_t, std::unique_ptr<Page>> pages_;  // by number / kPage
  std::size_t size_ = 0;
};

}  // namespace fedge::server
