// Roster: the connected clients and their claims, by ascending number, and which of them are busy. Insertion
// and removal are O(log clients). Iteration, which every round does, is O(clients) and reads memory in order.
// A round that replaces a lost client looks for one free trainer, which reads 2 bits a client. 32 bytes and 3
// bits a client if client numbers are consecutive, as enrolment assigns them.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "core/check.h"
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
    const std::uint32_t i = client.value() % kPage;
    remove(*page, i);
    page->present.set(i, true);
    ++size_;
    if (entry.said.value() > 0) {
      page->trainers.set(i, true);
      ++trainers_;
    }
    page->samples[i] = entry.samples;
    page->rest[i] = {entry.capability, entry.said, entry.evaluates};
  }
  void erase(ClientId client) {
    const auto page = pages_.find(client.value() / kPage);
    if (page != pages_.end()) remove(*page->second, client.value() % kPage);
  }

  // Removes all clients. Those that are busy stay so.
  void clear() {
    for (const auto& [number, page] : pages_) page->present = page->trainers = {};
    size_ = trainers_ = 0;
  }

  // Whether a client is busy outlives its entry. A client that never had one cannot be.
  void set_busy(ClientId client, bool busy) {
    const auto page = pages_.find(client.value() / kPage);
    if (page != pages_.end()) page->second->busy.set(client.value() % kPage, busy);
  }

  // Returns nothing if the client is not connected.
  std::optional<Entry> find(ClientId client) const {
    const auto page = pages_.find(client.value() / kPage);
    const std::uint32_t i = client.value() % kPage;
    if (page == pages_.end() || !page->second->present.has(i)) return std::nullopt;
    return page->second->entry(i);
  }
  std::size_t size() const { return size_; }
  // Number of clients that have training samples.
  std::size_t trainers() const { return trainers_; }

  // Number of trainers that are not busy. O(clients), 64 at a time, as is nth_free().
  std::size_t free() const {
    std::size_t all = 0;
    for (const auto& [number, page] : pages_)
      for (std::uint32_t w = 0; w < kWords; ++w) all += ones(page->free(w));
    return all;
  }
  // The n-th of them, by ascending number. There must be more than n.
  std::pair<ClientId, Entry> nth_free(std::size_t n) const {
    for (const auto& [number, page] : pages_)
      for (std::uint32_t w = 0; w < kWords; ++w) {
        std::uint64_t word = page->free(w);
        if (n >= ones(word)) {
          n -= ones(word);
          continue;
        }
        for (; n > 0; --n) word &= word - 1;
        const std::uint32_t i = w * 64 + static_cast<std::uint32_t>(std::countr_zero(word));
        return {ClientId(number * kPage + i), page->entry(i)};
      }
    FEDGE_CHECK(false, "there are as many free trainers as free() says");
  }

  // Calls f(client, entry) for every client, ascending.
  template <class F>
  void each(const F& f) const {
    for (const auto& [number, page] : pages_)
      page->present.each([&f, first = number * kPage, &page = *page](std::uint32_t i) {
        f(ClientId(first + i), page.entry(i));
      });
  }
  // Calls f(client, entry.samples, busy) for every client that has training samples, ascending.
  template <class F>
  void each_trainer(const F& f) const {
    for (const auto& [number, page] : pages_)
      page->trainers.each([&f, first = number * kPage, &page = *page](std::uint32_t i) {
        f(ClientId(first + i), page.samples[i], page.busy.has(i));
      });
  }

 private:
  static constexpr std::uint32_t kPage = 1024;
  static constexpr std::uint32_t kWords = kPage / 64;
  static std::size_t ones(std::uint64_t word) { return static_cast<std::size_t>(std::popcount(word)); }

  class Bits {
   public:
    bool has(std::uint32_t i) const { return (words_[i / 64] >> (i % 64) & 1) != 0; }
    void set(std::uint32_t i, bool to) {
      const std::uint64_t bit = std::uint64_t{1} << (i % 64);
      words_[i / 64] = to ? words_[i / 64] | bit : words_[i / 64] & ~bit;
    }
    std::uint64_t word(std::uint32_t w) const { return words_[w]; }
    template <class F>
    void each(const F& f) const {
      for (std::uint32_t w = 0; w < words_.size(); ++w)
        for (std::uint64_t word = words_[w]; word != 0; word &= word - 1)
          f(w * 64 + static_cast<std::uint32_t>(std::countr_zero(word)));
    }

   private:
    std::array<std::uint64_t, kWords> words_{};
  };
  struct Rest {
    double capability = 1;
    SampleCount said, evaluates;
  };
  struct Page {
    Bits present, trainers, busy;  // the trainers are present
    std::array<SampleCount, kPage> samples;
    std::array<Rest, kPage> rest;

    std::uint64_t free(std::uint32_t w) const { return trainers.word(w) & ~busy.word(w); }
    Entry entry(std::uint32_t i) const {
      return {samples[i], rest[i].capability, rest[i].said, rest[i].evaluates};
    }
  };

  // Removes the entry if there is one.
  void remove(Page& page, std::uint32_t i) {
    if (page.present.has(i)) --size_;
    if (page.trainers.has(i)) --trainers_;
    page.present.set(i, false);
    page.trainers.set(i, false);
  }

  std::map<std::uint32_t, std::unique_ptr<Page>> pages_;  // by number / kPage
  std::size_t size_ = 0;
  std::size_t trainers_ = 0;
};

}  // namespace fedge::server
