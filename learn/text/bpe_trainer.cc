#include "learn/text/bpe_trainer.h"

#include <cstdint>
#include <optional>
#include <queue>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "learn/text/bpe_table.h"
#include "learn/text/words.h"

namespace fedge::learn {
namespace {

using Pair = std::uint32_t;  // left << 16 | right, so that pairs sort by (left, right)

constexpr std::uint64_t kFewestOccurrences = 2;  // a pair that occurs once is not worth a merge

struct Word {
  std::vector<std::uint16_t> tokens;
  std::uint64_t occurrences = 0;
};

// The distinct words as bytes, in the order of their first occurrence.
std::vector<Word> count_words(std::string_view text) {
  std::unordered_map<std::string_view, std::size_t> places;  // never iterated
  std::vector<Word> words;
  while (!text.empty()) {
    const std::string_view word = first_word(text);
    text.remove_prefix(word.size());
    const auto [at, is_new] = places.emplace(word, words.size());
    if (is_new) {
      words.emplace_back();
      for (const char c : word) words.back().tokens.push_back(static_cast<unsigned char>(c));
    }
    ++words[at->second].occurrences;
  }
  return words;
}

class TableTrainer {
 public:
  explicit TableTrainer(std::string_view text) : words_(count_words(text)), table_(BpeTable::bytes()) {
    known_.insert(table_.tokens.begin(), table_.tokens.end());
    std::vector<Pair> fresh;
    for (std::size_t i = 0; i < words_.size(); ++i) count_up(i, std::nullopt, fresh);
    enqueue(fresh);
  }

  BpeTable run(std::size_t vocabulary) {
    while (table_.tokens.size() < vocabulary && !queue_.empty()) {
      const Candidate best = queue_.top();
      queue_.pop();
      const std::uint64_t now = pairs_[best.pair].occurrences;
      if (now < kFewestOccurrences) continue;
      if (now == best.occurrences)
        merge(best.pair);
      else
        queue_.push({now, best.pair});  // other merges used some of its occurrences: requeue it
    }
    return std::move(table_);
  }

 private:
  struct Count {
    std::uint64_t occurrences = 0;
    std::vector<std::uint32_t> words;  // indices of words that contain or contained it, ascending
  };
  struct Candidate {
    std::uint64_t occurrences = 0;  // may be too high: after its first count, a pair only becomes rarer
    Pair pair = 0;
    bool operator<(const Candidate& other) const {
      return std::tuple(occurrences, other.pair) < std::tuple(other.occurrences, pair);
    }
  };

  // Adds the word's pairs to the counts. Records the word at all of them, or after a merge only at pairs with
  // the new token `made`. Pairs counted for the first time are appended to `fresh`.
  void count_up(std::size_t index, std::optional<std::uint16_t> made, std::vector<Pair>& fresh) {
    const Word& word = words_[index];
    for (std::size_t i = 0; i + 1 < word.tokens.size(); ++i) {
      const auto [at, is_fresh] = pairs_.try_emplace(pair_at(word, i));
      at->second.occurrences += word.occurrences;
      if (is_fresh) fresh.push_back(at->first);
      if (made && word.tokens[i] != *made && word.tokens[i + 1] != *made) continue;
      auto& places = at->second.words;
      if (places.empty() || places.back() != index) places.push_back(static_cast<std::uint32_t>(index));
    }
  }

  void enqueue(const std::vector<Pair>& fresh) {
    for (const Pair pair : fresh) queue_.push({pairs_[pair].occurrences, pair});
  }

  void count_down(const Word& word) {
    for (std::size_t i = 0; i + 1 < word.tokens.size(); ++i)
      pairs_[pair_at(word, i)].occurrences -= word.occurrences;
  }

  static Pair pair_at(const Word& word, std::size_t i) {
    return static_cast<Pair>(word.tokens[i]) << 16U | word.tokens[i + 1];
  }

  void merge(Pair pair) {
    const auto left = static_cast<std::uint16_t>(pair >> 16U);
    const auto right = static_cast<std::uint16_t>(pair & 0xffffU);
    // Skips a merge whose bytes already are a token: two tokens must not have the same text.
    if (!known_.insert(table_.tokens[left] + table_.tokens[right]).second) return;
    const auto made = static_cast<std::uint16_t>(table_.tokens.size());
    table_.add({left, right});
    std::vector<std::uint32_t> places = std::move(pairs_[pair].words);
    std::vector<Pair> fresh;
    for (const std::uint32_t place : places) {
      count_down(words_[place]);
      replace(words_[place].tokens, {left, right}, made);
      count_up(place, made, fresh);
    }
    enqueue(fresh);
  }

  static void replace(std::vector<std::uint16_t>& tokens, BpeMerge merge, std::uint16_t made) {
    std::size_t size = 0;
    for (std::size_t i = 0; i < tokens.size(); ++size) {
      const bool here = i + 1 < tokens.size() && tokens[i] == merge.left && tokens[i + 1] == merge.right;
      tokens[size] = here ? made : tokens[i];
      i += here ? 2 : 1;
    }
    tokens.resize(size);
  }

  std::vector<Word> words_;
  std::unordered_map<Pair, Count> pairs_;
  std::priority_queue<Candidate> queue_;
  BpeTable table_;
  std::unordered_set<std::string> known_;  // never iterated
};

}  // namespace

Result<std::string> train_bpe(std::string_view text, std::size_t vocabulary) {
  if (vocabulary < kByteTokens || vocabulary > kMaxVocabulary)
    return invalid("the BPE vocabulary has " + std::to_string(vocabulary) + " tokens; expected " +
                   std::to_string(kByteTokens) + " to " + std::to_string(kMaxVocabulary));
  return bpe_table_text(TableTrainer(text).run(vocabulary));
}

}  // namespace fedge::learn
