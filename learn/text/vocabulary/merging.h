// Merging: turns the symbols of a word into tokens. Repeatedly, the pair of neighbours of the lowest priority
// is merged, the leftmost of equals, until no pair can be. Short words are scanned; longer ones use a queue,
// so that a word of n symbols takes n log n steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "learn/text/vocabulary/vocabulary.h"
#include "learn/token.h"

namespace fedge::learn {

// What each pair of tokens is merged into. Uses open addressing: a look-up is a multiplication and usually
// one cache line, since every pair of neighbours in a word is looked up.
class PairTable {
 public:
  struct Merged {
    Token made = kNoToken;  // kNoToken: the pair is not merged
    std::uint32_t priority = UINT32_MAX;
  };

  explicit PairTable(const std::vector<VocabularyMerge>& merges);
  Merged find(Token left, Token right) const;

 private:
  struct Slot {
    std::uint64_t key = 0;
    Merged merged;  // kNoToken: free
  };
  static std::uint64_t key_of(Token left, Token right) { return std::uint64_t{left} << 32U | right; }
  std::size_t place_of(std::uint64_t key) const {
    return (key * 0x9e3779b97f4a7c15U >> 32U) & (slots_.size() - 1);
  }
  std::vector<Slot> slots_;
};

// Merges `symbols` in place.
void merge_symbols(const PairTable& pairs, std::vector<Token>& symbols);

}  // namespace fedge::learn
