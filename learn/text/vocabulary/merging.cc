#include "learn/text/vocabulary/merging.h"

#include <algorithm>
#include <array>
#include <queue>
#include <tuple>

namespace fedge::learn {
namespace {

constexpr std::size_t kShortWord = 64;

void merge_short(const PairTable& pairs, std::vector<Token>& symbols) {
  std::array<PairTable::Merged, kShortWord> made;  // [i]: of symbols i and i + 1
  std::size_t size = symbols.size();
  for (std::size_t i = 0; i + 1 < size; ++i) made[i] = pairs.find(symbols[i], symbols[i + 1]);
  while (size > 1) {
    const auto best = std::min_element(made.begin(), made.begin() + static_cast<std::ptrdiff_t>(size - 1),
                                       [](const auto& a, const auto& b) { return a.priority < b.priority; });
    if (best->made == kNoToken) break;
    const auto at = static_cast<std::size_t>(best - made.begin());
    symbols[at] = best->made;
    for (std::size_t i = at + 1; i + 1 < size; ++i) symbols[i] = symbols[i + 1];
    for (std::size_t i = at; i + 2 < size; ++i) made[i] = made[i + 1];
    --size;
    if (at > 0) made[at - 1] = pairs.find(symbols[at - 1], symbols[at]);
    if (at + 1 < size) made[at] = pairs.find(symbols[at], symbols[at + 1]);
  }
  symbols.resize(size);
}

// The symbols as a list in which a merged one takes the place of its left part.
class LongWord {
 public:
  LongWord(const PairTable& pairs, std::vector<Token>& symbols)
      : pairs_(pairs), symbols_(symbols), next_(symbols.size()), former_(symbols.size()) {
    for (std::size_t i = 0; i < symbols.size(); ++i) {
      next_[i] = i + 1;
      former_[i] = i == 0 ? symbols.size() : i - 1;
    }
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) offer(i);
  }

  void run() {
    while (!queue_.empty()) {
      const Candidate best = queue_.top();
      queue_.pop();
      if (still_there(best)) merge(best);
    }
    std::size_t size = 0;
    for (std::size_t i = 0; i < symbols_.size(); i = next_[i]) symbols_[size++] = symbols_[i];
    symbols_.resize(size);
  }

 private:
  struct Candidate {
    std::uint32_t priority;
    std::size_t at;
    Token left, right, made;
    bool operator>(const Candidate& other) const {
      return std::tie(priority, at) > std::tie(other.priority, other.at);
    }
  };

  bool has_right(std::size_t at) const { return next_[at] < symbols_.size(); }
  void offer(std::size_t at) {
    const Token left = symbols_[at];
    const Token right = symbols_[next_[at]];
    const PairTable::Merged merged = pairs_.find(left, right);
    if (merged.made != kNoToken) queue_.push({merged.priority, at, left, right, merged.made});
  }
  bool still_there(const Candidate& candidate) const {
    return symbols_[candidate.at] == candidate.left && has_right(candidate.at) &&
           symbols_[next_[candidate.at]] == candidate.right;
  }
  void merge(const Candidate& candidate) {
    const std::size_t right = next_[candidate.at];
    symbols_[candidate.at] = candidate.made;
    symbols_[right] = kNoToken;  // a candidate that begins here is outdated
    next_[candidate.at] = next_[right];
    if (has_right(candidate.at)) {
      former_[next_[candidate.at]] = candidate.at;
      offer(candidate.at);
    }
    if (former_[candidate.at] < symbols_.size()) offer(former_[candidate.at]);
  }

  const PairTable& pairs_;
  std::vector<Token>& symbols_;
  std::vector<std::size_t> next_;
  std::vector<std::size_t> former_;
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue_;
};

}  // namespace

PairTable::PairTable(const std::vector<VocabularyMerge>& merges) {
  std::size_t size = 16;
  while (size < merges.size() * 2) size *= 2;
  slots_.assign(size, Slot{});
  for (const VocabularyMerge& merge : merges) {
    const std::uint64_t key = key_of(merge.left, merge.right);
    std::size_t at = place_of(key);
    while (slots_[at].merged.made != kNoToken && slots_[at].key != key) at = (at + 1) & (slots_.size() - 1);
    if (slots_[at].merged.made == kNoToken) slots_[at] = {key, {merge.made, merge.priority}};
  }
}

PairTable::Merged PairTable::find(Token left, Token right) const {
  const std::uint64_t key = key_of(left, right);
  std::size_t at = place_of(key);
  while (slots_[at].merged.made != kNoToken && slots_[at].key != key) at = (at + 1) & (slots_.size() - 1);
  return slots_[at].merged;
}

void merge_symbols(const PairTable& pairs, std::vector<Token>& symbols) {
  if (symbols.size() <= kShortWord) return merge_short(pairs, symbols);
  LongWord(pairs, symbols).run();
}

}  // namespace fedge::learn
