// A table of BPE merges as text that people can read and diff:
//   fedge-bpe 1 2        format, version, number of merges
//   t h                  one merge a line: what the left and the right token stand for
//   \x20 th
// Printable ASCII stands as it is; the space, the backslash and every other byte are \xNN in lower case, so
// that a table has one text. Tokens 0 to 255 are the bytes; merge i makes token 256 + i. A table is made
// whole by the trainer or by the parser, which trusts nothing, and not changed afterwards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace fedge::learn {

inline constexpr std::size_t kByteTokens = 256;
inline constexpr std::size_t kMaxVocabulary = 65535;  // so that 65535 is never a token

struct BpeMerge {
  std::uint16_t left = 0;
  std::uint16_t right = 0;
  bool operator==(const BpeMerge&) const = default;
};

struct BpeTable {
  std::vector<BpeMerge> merges;     // merges[i] makes token 256 + i out of two tokens before it
  std::vector<std::string> tokens;  // the bytes each token stands for: 256 + merges.size(), all different

  static BpeTable bytes();  // no merges
  // The next token. The caller has seen to it that there is room for it and that no token has its bytes.
  void add(BpeMerge merge);
};

// kCorrupt with the line for anything that bpe_table_text could not have written.
Result<BpeTable> parse_bpe_table(std::string_view text);
std::string bpe_table_text(const BpeTable& table);

}  // namespace fedge::learn
