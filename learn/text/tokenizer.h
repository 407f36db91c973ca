// Tokenizer: text to small numbers and back. Three kinds:
//   bytes  each byte is a token; vocabulary 256, nothing is lost
//   ascii  printable ASCII 0x20 to 0x7e are tokens 0 to 94, the newline is 95; for small models of English
//   bpe    byte-level byte-pair encoding (Sennrich, Haddow, Birch 2016, arXiv:1508.07909, section 3.2;
//          over bytes as in Radford et al. 2019): tokens 0 to 255 are bytes, each merge of the table makes
//          one more; nothing is lost. Merges stay within words (words.h).
// Immutable and cheap to copy; all of it may be used from any thread. Linear; `bpe` looks words up that it
// has met before in the same call, 65,536 at most.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "learn/token.h"

namespace fedge::learn {

enum class TokenizerKind { kBytes, kAscii, kBpe };

class Tokenizer {
 public:
  static Tokenizer bytes();
  static Tokenizer ascii();
  // From the text of a table as train_bpe makes it (bpe_table.h has the format); kCorrupt with the line.
  static Result<Tokenizer> bpe(std::string_view table);

  TokenizerKind kind() const;
  std::size_t vocabulary() const;  // tokens are 0 to this - 1; 65,535 at most

  // `ascii` makes spaces of tabs and carriage returns, and ASCII look-alikes of typographic quotes, dashes,
  // ellipses and spaces in UTF-8; of any other code point, and of each malformed byte, one '?'.
  std::vector<Token> encode(std::string_view text) const;
  // Every token < vocabulary(). decode(encode(x)) == x for `bytes` and `bpe`, whatever the bytes.
  std::string decode(std::span<const Token> tokens) const;
  std::size_t bytes(Token token) const;  // how many it decodes to; the same condition

  std::string_view table() const;  // what bpe() was given; else empty

 private:
  struct State;
  explicit Tokenizer(std::shared_ptr<const State> state);
  std::shared_ptr<const State> state_;
};

}  // namespace fedge::learn
