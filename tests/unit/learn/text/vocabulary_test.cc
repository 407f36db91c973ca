// The vocabularies of published models: their text form, their merges, and files that are wrong.
#include "learn/text/vocabulary/vocabulary.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/rng.h"
#include "learn/text/tokenizer.h"
#include "learn/text/vocabulary/files.h"
#include "learn/text/vocabulary/merging.h"
#include "tests/support/text.h"

using namespace fedge;
using namespace fedge::learn;
using fedge::test::contains;

namespace {

// A vocabulary of bytes, and of all strings of a few letters with a score each.
Vocabulary scored_vocabulary(Rng& rng, bool equal_scores) {
  Vocabulary vocabulary{.splitter = Splitter::kWhole, .characters = true};
  std::vector<float> scores;
  const auto add = [&](const std::string& text, TokenKind kind) {
    vocabulary.add(text, kind);
    scores.push_back(equal_scores ? static_cast<float>(rng.below(3)) : static_cast<float>(rng.uniform()));
  };
  for (int byte = 0; byte < 256; ++byte) add(std::string(1, static_cast<char>(byte)), TokenKind::kByte);
  for (const char* text : {"a", "b", " ", "aa", "ab", "ba", "a ", " a", "aab", "aba", " ab", "abab", " aa"})
    add(text, TokenKind::kText);
  vocabulary.merges = merges_by_score(vocabulary, scores);
  return vocabulary;
}

// Merges as run.c of llama2.c does: looks at every pair each time.
std::vector<Token> slow_merge(const Vocabulary& vocabulary, std::vector<Token> symbols) {
  while (true) {
    const VocabularyMerge* best = nullptr;
    std::size_t at = 0;
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i)
      for (const VocabularyMerge& merge : vocabulary.merges)
        if (merge.left == symbols[i] && merge.right == symbols[i + 1] &&
            (best == nullptr || merge.priority < best->priority)) {
          best = &merge;
          at = i;
        }
    if (best == nullptr) return symbols;
    symbols[at] = best->made;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

Vocabulary small_vocabulary() {
  Vocabulary vocabulary{.splitter = Splitter::kGpt2};
  for (int byte = 0; byte < 256; ++byte)
    vocabulary.add(std::string(1, static_cast<char>(byte)), TokenKind::kText);
  vocabulary.add("ab", TokenKind::kText);
  vocabulary.add("<end>", TokenKind::kControl);
  vocabulary.end = 257;
  vocabulary.merges = {{'a', 'b', 256, 0}};
  return vocabulary;
}

void check_refused(const std::string& text, const std::string& words) {
  const auto parsed = parse_vocabulary(text);
  REQUIRE_FALSE(parsed.has_value());
  CHECK(parsed.error().code == ErrorCode::kCorrupt);
  CHECK_MESSAGE(contains(parsed.error().message, words), parsed.error().message);
}

std::string replaced(std::string text, const std::string& old, const std::string& with) {
  const std::size_t at = text.find(old);
  REQUIRE(at != std::string::npos);
  return text.replace(at, old.size(), with);
}

template <class Read>
void check_file_refused(Read read, const std::string& bytes, const std::string& words) {
  const auto parsed = read(bytes);
  REQUIRE_FALSE(parsed.has_value());
  CHECK_MESSAGE(contains(parsed.error().message, words), parsed.error().message);
}

}  // namespace

TEST_CASE("vocabulary: short and long words are merged as by looking at every pair each time") {
  Rng rng(5);
  for (int round = 0; round < 40; ++round) {
    const Vocabulary vocabulary = scored_vocabulary(rng, round % 2 == 0);
    const PairTable pairs(vocabulary.merges);
    for (const std::size_t size : std::vector<std::size_t>{0, 1, 2, 5, 63, 64, 65, 150}) {
      std::vector<Token> symbols(size);
      for (Token& symbol : symbols) symbol = static_cast<Token>(256 + rng.below(3));
      const std::vector<Token> slow = slow_merge(vocabulary, symbols);
      merge_symbols(pairs, symbols);
      CHECK(symbols == slow);
    }
  }
}

TEST_CASE("vocabulary: its text reads back as the same vocabulary, and has one form") {
  Rng rng(6);
  Vocabulary scored = scored_vocabulary(rng, true);
  scored.leading_space = true;
  scored.begin = 3;
  for (const Vocabulary& vocabulary : {small_vocabulary(), scored}) {
    const std::string text = vocabulary_text(vocabulary);
    const auto read = parse_vocabulary(text);
    REQUIRE_MESSAGE(read.has_value(), read.error().message);
    CHECK(*read == vocabulary);
    CHECK(vocabulary_text(*read) == text);
  }
}

TEST_CASE("vocabulary: a text that is wrong is refused, with its line") {
  const std::string text = vocabulary_text(small_vocabulary());
  check_refused("", "line 1");
  check_refused(text.substr(0, text.size() / 2), "line");
  check_refused(text + "x\n", "a line after the last merge");
  check_refused(replaced(text, "splitter gpt2", "splitter gpt9"), "line 2: \"gpt9\", expected a splitter");
  check_refused(replaced(text, "characters no", "characters maybe"), "line 3");
  check_refused(replaced(text, "end 257", "end 0257"), "expected a number");
  check_refused(replaced(text, "end 257", "end 258"), "token 258 is named");
  check_refused(replaced(text, "tokens 258", "tokens 2000000"), "too many");
  check_refused(replaced(text, "t ab", "b ab"), "is not one byte");
  check_refused(replaced(text, "t ab", "x ab"), "expected t, b or c");
  check_refused(replaced(text, "97 98 256", "97 98 300"), "names token 300");
  check_refused(replaced(text, "97 98 256", "97 97 256"), "has other bytes");
  check_refused(replaced(text, "97 98 256", "97 257 256"), "which is a control token");
  check_refused(replaced(text, "97 98 256", "= 97 98 256"), "expected a first merge");
}

TEST_CASE("vocabulary: a token cannot be merged from itself, so that merging ends") {
  // A cycle needs a merge whose token has the bytes of one of its parts; its other part would be empty.
  const std::string text = vocabulary_text(small_vocabulary());
  check_refused(replaced(text, "97 98 256", "256 98 256"), "has other bytes");
  check_refused(replaced(text, "97 98 256", "97 97 97"), "has other bytes");
}

TEST_CASE("vocabulary: what a character has no token for becomes its bytes, or the unknown token") {
  Rng rng(7);
  Vocabulary vocabulary = scored_vocabulary(rng, false);
  const auto tokenizer = Tokenizer::published(vocabulary_text(vocabulary));
  REQUIRE(tokenizer.has_value());
  CHECK(tokenizer->encode("\u00e9") == std::vector<Token>{0xc3, 0xa9});
  CHECK(tokenizer->decode(tokenizer->encode("a\u00e9b\xff")) == "a\u00e9b\xff");
  vocabulary = {.splitter = Splitter::kWhole, .characters = true, .unknown = 1};
  vocabulary.add("a", TokenKind::kText);
  vocabulary.add("?", TokenKind::kControl);
  const auto poor = Tokenizer::published(vocabulary_text(vocabulary));
  REQUIRE(poor.has_value());
  CHECK(poor->encode("ab\u00e9") == std::vector<Token>{0, 1, 1, 1});
  CHECK(poor->decode(std::vector<Token>{0, 1, 0}) == "aa");
}

TEST_CASE("vocabulary: a byte that no token stands for is left out of a text, never made a control token") {
  Vocabulary vocabulary = small_vocabulary();
  CHECK(has_all_bytes(vocabulary));
  vocabulary.kinds['q'] = TokenKind::kControl;
  CHECK_FALSE(has_all_bytes(vocabulary));
  const auto tokenizer = Tokenizer::published(vocabulary_text(vocabulary));
  REQUIRE(tokenizer.has_value());
  CHECK(tokenizer->encode("aqc q") == std::vector<Token>{'a', 'c', ' '});
  // The unknown token stands for the byte, unless it is the one that ends a text.
  vocabulary.unknown = 'x';
  CHECK(Tokenizer::published(vocabulary_text(vocabulary))->encode("q") == std::vector<Token>{'x'});
  vocabulary.unknown = vocabulary.end;
  CHECK(Tokenizer::published(vocabulary_text(vocabulary))->encode("q").empty());
}

TEST_CASE("vocabulary: a prompt that spells a control token becomes letters") {
  Vocabulary vocabulary = small_vocabulary();
  const auto control = static_cast<Token>(vocabulary.tokens.size());
  vocabulary.add("<|end|>", TokenKind::kControl);
  const auto tokenizer = Tokenizer::published(vocabulary_text(vocabulary));
  REQUIRE(tokenizer.has_value());
  for (const auto& tokens : {tokenizer->encode("a<|end|>"), tokenizer->prompt("a<|end|>")}) {
    CHECK(std::ranges::find(tokens, control) == tokens.end());
    CHECK(tokenizer->decode(tokens).ends_with("a<|end|>"));
  }
}

TEST_CASE("vocabulary: a byte has its own token, whether or not a character is the same byte") {
  Vocabulary vocabulary{.splitter = Splitter::kWhole, .characters = true};
  vocabulary.add("A", TokenKind::kText);
  for (int byte = 0; byte < 256; ++byte)
    vocabulary.add(std::string(1, static_cast<char>(byte)), TokenKind::kByte);
  const auto tokenizer = Tokenizer::published(vocabulary_text(vocabulary));
  REQUIRE(tokenizer.has_value());
  CHECK(tokenizer->encode("AB") == std::vector<Token>{0, 1 + 'B'});
}

TEST_CASE("vocabulary: files of other tokenizers, or broken ones, are refused with the reason") {
  check_file_refused(parse_tokenizer_json, "[]", "not a JSON object");
  check_file_refused(parse_tokenizer_json, R"({"model": {"type": "WordPiece"}})", "WordPiece");
  check_file_refused(parse_tokenizer_json, R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})",
                     "neither bytes nor U+2581");
  const auto with_words = [](const std::string& words, const std::string& vocabulary,
                             const std::string& merges) {
    return R"({"pre_tokenizer": )" + words + R"(, "model": {"type": "BPE", "vocab": )" + vocabulary +
           R"(, "merges": )" + merges + "}}";
  };
  const std::string bytes = R"({"type": "ByteLevel", "add_prefix_space": false})";
  check_file_refused(parse_tokenizer_json, with_words(R"({"type": "Whitespace"})", "{}", "[]"),
                     "the pre-tokenizer Whitespace");
  check_file_refused(parse_tokenizer_json, with_words(bytes, R"({"a": 0, "b": 0})", "[]"), "wrong id");
  check_file_refused(parse_tokenizer_json, with_words(bytes, R"({"a": 4000000000})", "[]"), "wrong id");
  check_file_refused(parse_tokenizer_json, with_words(bytes, R"({"a": 0})", R"(["a b"])"),
                     "names what is no token");
  check_file_refused(parse_tokenizer_json,
                     R"({"normalizer": {"type": "Lowercase"}, "model": {"type": "BPE"}})",
                     "normalizer Lowercase");
  check_file_refused(parse_sentencepiece, "\n\x7f", "its fields end before the file does");
  check_file_refused(parse_sentencepiece,
                     "\n\x03\n\x01"
                     "a",
                     "is no BPE");
  check_file_refused(parse_llama2c_vocabulary, "abc", "not a tokenizer.bin");
  check_file_refused(parse_llama2c_vocabulary, std::string("\x05\0\0\0\0\0\0\0\xff\xff\xff\x7f", 12),
                     "a token ends after the file does");
}
