#include "learn/text/rouge.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace fedge::learn {
namespace {

bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  bool inside = false;
  for (const char c : text) {
    if (is_blank(c)) {
      inside = false;
      continue;
    }
    if (!inside) words.emplace_back();
    inside = true;
    words.back() += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return words;
}

// The standard algorithm with a single row: row[j] is the LCS of the longer text's words so far and the
// shorter text's first j words.
std::size_t longest_common_subsequence(std::vector<std::string> a, std::vector<std::string> b) {
  if (a.size() < b.size()) std::swap(a, b);
  std::vector<std::size_t> row(b.size() + 1);
  for (const std::string& word : a) {
    std::size_t diagonal = 0;
    for (std::size_t j = 1; j < row.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = word == b[j - 1] ? diagonal + 1 : std::max(above, row[j - 1]);
      diagonal = above;
    }
  }
  return row.back();
}

}  // namespace

RougeScore rouge_l(std::string_view hypothesis, std::string_view reference) {
  std::vector<std::string> said = words_of(hypothesis);
  std::vector<std::string> wanted = words_of(reference);
  if (said.empty() || wanted.empty()) return {};
  const auto said_words = static_cast<double>(said.size());
  const auto wanted_words = static_cast<double>(wanted.size());
  const auto common = static_cast<double>(longest_common_subsequence(std::move(said), std::move(wanted)));
  RougeScore score{common / wanted_words, common / said_words, 0};
  if (common > 0) score.f = 2 * score.recall * score.precision / (score.recall + score.precision);
  return score;
}

}  // namespace fedge::learn
