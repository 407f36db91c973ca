// Tokenizer: converts text to small integers and back. There are four kinds:
//   bytes  each byte is a token; vocabulary 256; lossless
//   ascii  printable ASCII 0x20 to 0x7e are tokens 0 to 94, the newline is 95; for small models of English
//   bpe    byte-level byte-pair encoding (Sennrich, Haddow, Birch 2016, arXiv:1508.07909, section 3.2;
//          over bytes as in Radford et al. 2019): tokens 0 to 255 are bytes, each merge of the table adds
//          one more; lossless. Merges stay within words (words.h).
//   vocabulary  that of a published model (vocabulary/vocabulary.h): byte-level BPE as above with the words
//          of its family, or BPE over characters as in SentencePiece (Kudo and Richardson 2018). A text never
//          becomes a control token
// Immutable, cheap to copy and thread-safe. Time is linear, and n log n in the length of a word; the last two
// kinds cache up to 65,536 words per call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "learn/token.h"

namespace fedge::learn {

enum class TokenizerKind { kBytes, kAscii, kBpe, kVocabulary };

class Tokenizer {
 public:
  static Tokenizer bytes();
  static Tokenizer ascii();
  // `table` is a text written by train_bpe() (format: bpe_table.h). kCorrupt, with the line, if it is
  // invalid.
  static Result<Tokenizer> bpe(std::string_view table);
  // `table` is a text written by vocabulary_text(). kCorrupt, with the line, if it is invalid.
  static Result<Tokenizer> published(std::string_view table);

  TokenizerKind kind() const;
  std::size_t vocabulary() const;  // tokens are 0 to vocabulary() - 1; at most kMaxTokens
  // The control tokens before and after a text, if the vocabulary has them.
  std::optional<Token> begin() const;
  std::optional<Token> end() const;

  // `ascii` is lossy. Tabs and carriage returns become spaces; typographic quotes, dashes, ellipses and
  // spaces in UTF-8 become similar ASCII. Any other code point and each malformed byte becomes one '?'.
  std::vector<Token> encode(std::string_view text) const;
  // Each token must be below vocabulary(). decode(encode(x)) == x for `bytes` and `bpe`, for any bytes; also
  // for `vocabulary`, unless it puts a space before a text or has no token for some byte.
  std::string decode(std::span<const Token> tokens) const;
  // The tokens from which a model continues a text: begin(), if there is one, then the text's.
  std::vector<Token> prompt(std::string_view text) const;
  // A text that begins with the first of these tokens: decode(), without the space that encode() put there.
  std::string text(std::span<const Token> tokens) const;
  std::size_t bytes(Token token) const;  // number of bytes that a token decodes to; token < vocabulary()

  std::string_view table() const;  // the argument of bpe() or published(); empty for other kinds

 private:
  struct State;
  explicit Tokenizer(std::shared_ptr<const State> state);
  std::shared_ptr<const State> state_;
};

}  // namespace fedge::learn
