#include "learn/text/vocabulary/splitter.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/text.h"
#include "learn/text/vocabulary/unicode_classes.h"
#include "learn/text/words.h"

namespace fedge::learn {
namespace {

enum class CharKind { kEnd, kLetter, kNumber, kSpace, kOther };

struct Character {
  CharKind kind = CharKind::kEnd;
  std::size_t size = 0;  // bytes
};

Character character_at(std::string_view text, std::size_t at) {
  if (at >= text.size()) return {};
  std::uint32_t code = 0;
  const std::size_t size = take_character(text.substr(at), code);
  if (size == 0) return {CharKind::kOther, 1};
  if (is_letter(code)) return {CharKind::kLetter, size};
  if (is_number(code)) return {CharKind::kNumber, size};
  return {is_white_space(code) ? CharKind::kSpace : CharKind::kOther, size};
}

// The end of the run of characters of this kind that begins at `at`, of at most so many characters.
std::size_t run_end(std::string_view text, std::size_t at, CharKind kind, std::size_t most = SIZE_MAX) {
  for (std::size_t taken = 0; taken < most; ++taken) {
    const Character next = character_at(text, at);
    if (next.kind != kind) break;
    at += next.size;
  }
  return at;
}

// The length of an English contraction at the start, or 0.
std::size_t contraction(std::string_view text, bool any_case) {
  for (const std::string_view ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
    const std::string_view begin = text.substr(0, ending.size());
    const bool same = std::ranges::equal(begin, ending, [&](char a, char b) {
      return a == b || (any_case && a >= 'A' && a <= 'Z' && a - 'A' + 'a' == b);
    });
    if (same) return ending.size();
  }
  return 0;
}

// A run of white space, of which the last character belongs to the next word, if there is one.
std::size_t spaces_before_word(std::string_view text, bool word_follows) {
  std::size_t end = 0;
  std::size_t last = 0;
  for (Character next = character_at(text, 0); next.kind == CharKind::kSpace;
       next = character_at(text, end)) {
    last = end;
    end += next.size;
  }
  return word_follows && end < text.size() && last > 0 ? last : end;
}

// '(s|t|re|ve|m|ll|d)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// digits_apart: each number is a word, and what is before it is matched as if the text ended there.
std::size_t gpt2_word(std::string_view text, bool digits_apart) {
  if (const std::size_t length = contraction(text, false); length > 0) return length;
  const std::size_t start = text[0] == ' ' ? 1 : 0;
  const CharKind kind = character_at(text, start).kind;
  if (digits_apart && kind == CharKind::kNumber)
    return start == 1 ? 1 : run_end(text, 0, CharKind::kNumber, 1);
  if (kind != CharKind::kEnd && kind != CharKind::kSpace) return run_end(text, start, kind);
  const std::size_t end = run_end(text, 0, CharKind::kSpace);
  return spaces_before_word(text, !digits_apart || character_at(text, end).kind != CharKind::kNumber);
}

// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,digits}| ?[^\s\p{L}\p{N}]+[\r\n]*|
// \s*[\r\n]+|\s+(?!\S)|\s+
std::size_t llama_word(std::string_view text, std::size_t digits) {
  constexpr std::string_view kLineEnds = "\r\n";
  if (const std::size_t length = contraction(text, true); length > 0) return length;
  const Character first = character_at(text, 0);
  if (first.kind == CharKind::kLetter) return run_end(text, 0, CharKind::kLetter);
  if (first.kind == CharKind::kNumber) return run_end(text, 0, CharKind::kNumber, digits);
  if (kLineEnds.find(text[0]) == std::string_view::npos &&
      character_at(text, first.size).kind == CharKind::kLetter)
    return run_end(text, first.size, CharKind::kLetter);
  const std::size_t start = text[0] == ' ' ? 1 : 0;
  if (character_at(text, start).kind == CharKind::kOther) {
    const std::size_t end = run_end(text, start, CharKind::kOther);
    return std::min(text.find_first_not_of(kLineEnds, end), text.size());
  }
  const std::size_t end = run_end(text, 0, CharKind::kSpace);
  const std::size_t line_end = text.substr(0, end).find_last_of(kLineEnds);
  return line_end != std::string_view::npos ? line_end + 1 : spaces_before_word(text, true);
}

std::size_t spaces_word(std::string_view text) {
  const std::size_t word = std::min(text.find_first_not_of(' '), text.size());
  return std::min(text.find(' ', word), text.size());
}

}  // namespace

const std::vector<std::string>& splitter_names() {
  static const std::vector<std::string> kNames = {"fedge",  "whole",  "spaces", "gpt2",
                                                  "digits", "llama3", "qwen2"};
  return kNames;
}

std::string_view split_word(Splitter splitter, std::string_view text) {
  if (text.empty() || splitter == Splitter::kWhole) return text;
  switch (splitter) {
    case Splitter::kFedge:
      return first_word(text);
    case Splitter::kSpaces:
      return text.substr(0, spaces_word(text));
    case Splitter::kGpt2:
      return text.substr(0, gpt2_word(text, false));
    case Splitter::kDigits:
      return text.substr(0, gpt2_word(text, true));
    default:
      return text.substr(0, llama_word(text, splitter == Splitter::kLlama3 ? 3 : 1));
  }
}

}  // namespace fedge::learn
