// The vocabulary of a published language model: its tokens, its merges and the rules by which it divides a
// text. Readers of other formats are beside this file. Its own format is text that can be compared, and that
// travels with a model:
//   fedge-vocabulary 1
//   splitter gpt2            how a text is divided into words (splitter.h)
//   characters no            whether merging starts from characters, not from bytes
//   leading_space no         whether a space is put before each text
//   whole_words no           whether a word that is a token is not merged from parts
//   begin none               the token before a text, the one after it, and the one for what has no token
//   end 50256
//   unknown none
//   tokens 50257
//   t \x20the                t: text; b: a byte that has no character of its own; c: control
//   ...
//   merges 50000
//   1 2 257                  left, right, what they make; in order of priority
//   = 3 257                  left and right begin with =: the same priority as the merge before
// Bytes are written as in escaped.h. The parser trusts nothing: a merge must make the bytes of its parts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "learn/text/vocabulary/splitter.h"
#include "learn/token.h"

namespace fedge::learn {

inline constexpr std::size_t kMaxMerges = std::size_t{1} << 21;
inline constexpr std::size_t kMaxTokenBytes = 1024;
inline constexpr std::size_t kMaxVocabularyText = std::size_t{64} << 20;

enum class TokenKind : std::uint8_t {
  kText,
  kByte,     // one byte, used where a character has no token
  kControl,  // never made from a text; decodes to nothing
};

struct VocabularyMerge {
  Token left = 0;
  Token right = 0;
  Token made = 0;
  std::uint32_t priority = 0;  // the lowest is merged first; of equals the leftmost
  bool operator==(const VocabularyMerge&) const = default;
};

struct Vocabulary {
  Splitter splitter = Splitter::kGpt2;
  bool characters = false;
  bool leading_space = false;
  bool whole_words = false;
  std::optional<Token> begin;
  std::optional<Token> end;
  std::optional<Token> unknown;
  std::vector<std::string> tokens;  // bytes; of a control token its name
  std::vector<TokenKind> kinds;
  std::vector<VocabularyMerge> merges;  // priorities ascending
  bool operator==(const Vocabulary&) const = default;

  void add(std::string bytes, TokenKind kind) {
    tokens.push_back(std::move(bytes));
    kinds.push_back(kind);
  }
};

// kInvalid, saying what is wrong: too many tokens, bounds, merges of or into control tokens, a merge whose
// token has other bytes than its parts.
Result<void> check_vocabulary(const Vocabulary& vocabulary);
// Whether a token stands for each byte. Otherwise a text may have bytes that become the unknown token, or, if
// there is none, are left out.
bool has_all_bytes(const Vocabulary& vocabulary);

// `vocabulary` must pass check_vocabulary().
std::string vocabulary_text(const Vocabulary& vocabulary);
// kCorrupt, with the line, for any text that vocabulary_text() cannot write.
Result<Vocabulary> parse_vocabulary(std::string_view text);

// The merges of a vocabulary whose tokens have scores, as in SentencePiece: any two tokens whose bytes
// together are a token are merged, the highest score first. `scores`: one for each token.
std::vector<VocabularyMerge> merges_by_score(const Vocabulary& vocabulary, const std::vector<float>& scores);

}  // namespace fedge::learn
