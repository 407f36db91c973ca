#include "learn/text/words.h"

#include <algorithm>

namespace fedge::learn {
namespace {

enum class Kind { kNewline, kSpace, kLetter, kDigit, kOther };

Kind kind_of(char c) {
  if (c == '\n') return Kind::kNewline;
  if (c == ' ') return Kind::kSpace;
  if (c >= '0' && c <= '9') return Kind::kDigit;
  const bool letter =
      (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || static_cast<unsigned char>(c) >= 0x80;
  return letter ? Kind::kLetter : Kind::kOther;
}

}  // namespace

std::string_view first_word(std::string_view text) {
  const std::size_t limit = std::min(text.size(), kMaxWordBytes);
  std::size_t at = 0;
  while (at < limit && text[at] == ' ') ++at;
  if (at == limit) return text.substr(0, limit);
  const Kind kind = kind_of(text[at]);
  if (at > 0 && kind == Kind::kNewline) return text.substr(0, at);
  if (at > 1) return text.substr(0, at - 1);
  if (kind == Kind::kNewline) return text.substr(0, 1);
  while (++at < limit) {
    if (kind_of(text[at]) == kind) continue;
    const bool apostrophe = kind == Kind::kLetter && text[at] == '\'' && at + 1 < text.size() &&
                            kind_of(text[at + 1]) == Kind::kLetter;
    if (!apostrophe) break;
  }
  return text.substr(0, at);
}

}  // namespace fedge::learn
