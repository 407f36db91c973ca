// A table of BPE merges as text that can be read and compared:
//   fedge-bpe 1 2        format, version, number of merges
//   t h                  one merge per line: the texts of the left and the right token
//   \x20 th
// Tokens are written as in escaped.h, so that a table has exactly one text. Tokens 0 to 255 are the bytes;
// merge i makes token 256 + i. Only the trainer and the parser build a table; the parser checks everything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace fedge::learn {

inline constexpr std::size_t kByteTokens = 256;
inline constexpr std::size_t kMaxVocabulary = 65535;

struct BpeMerge {
  std::uint16_t left = 0;
  std::uint16_t right = 0;
  bool operator==(const BpeMerge&) const = default;
};

struct BpeTable {
  std::vector<BpeMerge> merges;     // merges[i] makes token 256 + i from two earlier tokens
  std::vector<std::string> tokens;  // the bytes of each token: 256 + merges.size() entries, all different

  static BpeTable bytes();  // a table without merges
  // Appends the next token. The caller must ensure that there is room and that no token has the same bytes.
  void add(BpeMerge merge);
};

// kCorrupt, with the line, for any text that bpe_table_text() cannot write.
Result<BpeTable> parse_bpe_table(std::string_view text);
std::string bpe_table_text(const BpeTable& table);

}  // namespace fedge::learn
