#include "learn/text/bpe_trainer.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/rng.h"
#include "learn/text/bpe_table.h"
#include "learn/text/tokenizer.h"
#include "learn/text/words.h"

using namespace fedge;
using namespace fedge::learn;

namespace {

// Slow reference: recounts every pair of every word for each merge.
std::vector<std::pair<int, int>> slow_merges(std::string_view text, std::size_t merges) {
  std::vector<std::vector<int>> words;
  while (!text.empty()) {
    const std::string_view word = first_word(text);
    text.remove_prefix(word.size());
    words.emplace_back();
    for (const char c : word) words.back().push_back(static_cast<unsigned char>(c));
  }
  std::vector<std::pair<int, int>> result;
  while (result.size() < merges) {
    std::map<std::pair<int, int>, int> counts;
    for (const auto& word : words)
      for (std::size_t i = 0; i + 1 < word.size(); ++i) ++counts[{word[i], word[i + 1]}];
    std::pair<int, int> best;
    int most = 1;
    for (const auto& [pair, count] : counts)
      if (count > most) best = pair, most = count;
    if (most < 2) break;
    for (auto& word : words)
      for (std::size_t i = 0; i + 1 < word.size(); ++i) {
        if (std::pair(word[i], word[i + 1]) != best) continue;
        word[i] = static_cast<int>(256 + result.size());
        word.erase(word.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      }
    result.push_back(best);
  }
  return result;
}

std::vector<std::pair<int, int>> merges_of(const std::string& text) {
  const auto table = parse_bpe_table(text);
  REQUIRE_MESSAGE(table.has_value(), table.error().message);
  std::vector<std::pair<int, int>> merges;
  for (const BpeMerge merge : table->merges) merges.emplace_back(merge.left, merge.right);
  return merges;
}

}  // namespace

TEST_CASE("bpe trainer: the example of Sennrich, Haddow and Birch learns es, est, lo, low") {
  // low 5, lower 2, newest 6, widest 3: es 9, est 9, lo 7, low 7, then ne, new and newest 6 each. A newline
  // replaces the paper's mark at the end of a word, and is a separate word here.
  std::string text;
  const std::pair<const char*, int> words[] = {{"low", 5}, {"lower", 2}, {"newest", 6}, {"widest", 3}};
  for (const auto& [word, times] : words)
    for (int i = 0; i < times; ++i) text += std::string(word) + "\n";
  CHECK(*train_bpe(text, 256 + 4) == "fedge-bpe 1 4\ne s\nes t\nl o\nlo w\n");
}

TEST_CASE("bpe trainer: of equally frequent pairs the smaller goes first") {
  CHECK(*train_bpe("cd\nab\nab\ncd\n", 258) == "fedge-bpe 1 2\na b\nc d\n");
  CHECK(*train_bpe("ba\nbc\nba\nbc\n", 258) == "fedge-bpe 1 2\nb a\nb c\n");
}

TEST_CASE("bpe trainer: the space goes with the word behind it and odd bytes are escaped") {
  CHECK(*train_bpe("of the the\\\t\\\t", 260) == "fedge-bpe 1 4\n\\x20 t\n\\x5c \\x09\nh e\n\\x20t he\n");
}

TEST_CASE("bpe trainer: it stops where no pair occurs twice") {
  CHECK(*train_bpe("", 300) == "fedge-bpe 1 0\n");
  CHECK(*train_bpe("abcdefg", 300) == "fedge-bpe 1 0\n");
  CHECK(*train_bpe("aaaaaa", 256) == "fedge-bpe 1 0\n");
  CHECK(*train_bpe("xyxy\n", 300) == "fedge-bpe 1 1\nx y\n");
}

TEST_CASE("bpe trainer: a vocabulary without the bytes or beyond 65535 is refused") {
  for (const std::size_t vocabulary : {std::size_t{0}, std::size_t{255}, std::size_t{65536}}) {
    const auto table = train_bpe("text", vocabulary);
    REQUIRE_FALSE(table.has_value());
    CHECK(table.error().code == ErrorCode::kInvalid);
    CHECK(table.error().message.find("expected 256 to 65535") != std::string::npos);
  }
}

TEST_CASE("bpe trainer: incremental counts learn what counting anew for each merge learns") {
  Rng rng = Rng(21).fork("trainer");
  constexpr std::string_view kAlphabet = "aaaabbc  d\n'9";
  for (unsigned round = 0; round < 15; ++round) {
    std::string text;
    for (int i = 0; i < 1500; ++i) text += kAlphabet[rng.below(kAlphabet.size() - round % 8)];
    const auto table = train_bpe(text, 256 + 200);
    REQUIRE(table.has_value());
    REQUIRE(merges_of(*table) == slow_merges(text, 200));
  }
}

TEST_CASE("bpe trainer: a table is written as it was read") {
  Rng rng = Rng(22).fork("trainer");
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += static_cast<char>(rng.below(7) * 37);
  const auto table = train_bpe(text, 700);
  REQUIRE(table.has_value());
  const auto parsed = parse_bpe_table(*table);
  REQUIRE(parsed.has_value());
  CHECK(parsed->tokens.size() == 700);
  CHECK(bpe_table_text(*parsed) == *table);
}
