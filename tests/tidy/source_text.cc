#include <algorithm>
#include <cctype>
#include <utility>

#include "tests/tidy/tidy.h"

namespace fedge::tidy {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

class Blanker {
 public:
  Blanker(std::string_view source, bool blank_literals)
      : source_(source), out_(source), blank_literals_(blank_literals) {}

  std::string run() {
    while (at_ < source_.size()) {
      if (starts_with("//"))
        blank_until(source_.find('\n', at_), true);
      else if (starts_with("/*"))
        blank_until(end_after("*/", at_ + 2), true);
      else if (starts_with("R\"") && (at_ == 0 || !is_word(source_[at_ - 1])))
        raw_string();
      else if (source_[at_] == '"')
        literal('"');
      else if (source_[at_] == '\'' && (at_ == 0 || !is_word(source_[at_ - 1])))  // else a digit separator
        literal('\'');
      else
        ++at_;
    }
    return std::move(out_);
  }

 private:
  bool starts_with(std::string_view text) const { return source_.substr(at_, text.size()) == text; }

  std::size_t end_after(std::string_view text, std::size_t from) const {
    const std::size_t found = source_.find(text, from);
    return found == std::string_view::npos ? found : found + text.size();
  }

  void blank_until(std::size_t end, bool blank) {
    end = std::min(end, source_.size());
    for (; at_ < end; ++at_)
      if (blank && source_[at_] != '\n') out_[at_] = ' ';
  }

  void literal(char quote) {
    std::size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote && source_[end] != '\n')
      end += source_[end] == '\\' ? 2U : 1U;
    ++at_;
    blank_until(end, blank_literals_);
    if (at_ < source_.size()) ++at_;
  }

  void raw_string() {
    const std::size_t open = source_.find('(', at_);
    if (open == std::string_view::npos) {
      at_ = source_.size();
      return;
    }
    const std::string close = ")" + std::string(source_.substr(at_ + 2, open - at_ - 2)) + "\"";
    at_ = open + 1;
    blank_until(end_after(close, at_), blank_literals_);
  }

  std::string_view source_;
  std::string out_;
  bool blank_literals_;
  std::size_t at_ = 0;
};

}  // namespace

std::string without_comments(std::string_view source, bool blank_literals) {
  return Blanker(source, blank_literals).run();
}

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

}  // namespace fedge::tidy
