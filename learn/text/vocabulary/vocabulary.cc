#include "learn/text/vocabulary/vocabulary.h"

#include <algorithm>
#include <bitset>
#include <charconv>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "core/text.h"
#include "learn/text/escaped.h"

namespace fedge::learn {
namespace {

constexpr std::string_view kTitle = "fedge-vocabulary 1";
constexpr std::string_view kKinds = "tbc";
constexpr std::size_t kQuotedLine = 80;  // bytes of a faulty line, quoted in an error

std::string shown_token(const Vocabulary& vocabulary, Token token) {
  std::string text = "token " + std::to_string(token) + " (";
  append_escaped(text, std::string_view(vocabulary.tokens[token]).substr(0, 40));
  return text + ")";
}

Result<void> check_merge(const Vocabulary& v, const VocabularyMerge& merge) {
  for (const Token token : {merge.left, merge.right, merge.made}) {
    if (token >= v.tokens.size())
      return invalid("a merge names token " + std::to_string(token) + ", but there are only " +
                     std::to_string(v.tokens.size()));
    if (v.kinds[token] == TokenKind::kControl)
      return invalid("a merge names " + shown_token(v, token) + ", which is a control token");
  }
  if (v.tokens[merge.made] != v.tokens[merge.left] + v.tokens[merge.right])
    return invalid("a merge of " + shown_token(v, merge.left) + " and " + shown_token(v, merge.right) +
                   " makes " + shown_token(v, merge.made) + ", which has other bytes");
  return {};
}

Result<void> check_tokens(const Vocabulary& v) {
  for (Token token = 0; token < v.tokens.size(); ++token) {
    const std::string& text = v.tokens[token];
    if (text.size() > kMaxTokenBytes)
      return invalid("token " + std::to_string(token) + " has " + std::to_string(text.size()) +
                     " bytes; at most " + std::to_string(kMaxTokenBytes) + " are allowed");
    if (v.kinds[token] == TokenKind::kControl) continue;
    if (text.empty()) return invalid("token " + std::to_string(token) + " is empty, but no control token");
    if (v.kinds[token] == TokenKind::kByte && text.size() != 1)
      return invalid(shown_token(v, token) + " is not one byte");
  }
  return {};
}

// Reads a text line by line.
class VocabularyParser {
 public:
  explicit VocabularyParser(std::string_view text) : rest_(text) {}

  Result<Vocabulary> run() {
    FEDGE_TRY_VOID(expect_line(kTitle));
    FEDGE_TRY(splitter, read_choice("splitter", splitter_names()));
    made_.splitter = static_cast<Splitter>(splitter);
    const std::vector<std::string> answers = {"no", "yes"};
    for (const auto& [key, flag] : {std::pair{"characters", &made_.characters},
                                    {"leading_space", &made_.leading_space},
                                    {"whole_words", &made_.whole_words}}) {
      FEDGE_TRY(answer, read_choice(key, answers));
      *flag = answer == 1;
    }
    for (const auto& [key, token] :
         {std::pair{"begin", &made_.begin}, {"end", &made_.end}, {"unknown", &made_.unknown}}) {
      FEDGE_TRY(value, read_value(key));
      if (value == "none") continue;
      FEDGE_TRY(number, read_number(value));
      *token = static_cast<Token>(number);
    }
    FEDGE_TRY(tokens, read_count("tokens", kMaxTokens));
    for (std::size_t i = 0; i < tokens; ++i) FEDGE_TRY_VOID(read_token());
    FEDGE_TRY(merges, read_count("merges", kMaxMerges));
    for (std::size_t i = 0; i < merges; ++i) FEDGE_TRY_VOID(read_merge());
    if (!rest_.empty()) return fail("a line after the last merge");
    if (const auto sound = check_vocabulary(made_); !sound)
      return Error{ErrorCode::kCorrupt, "vocabulary: " + sound.error().message};
    return std::move(made_);
  }

 private:
  Error fail(const std::string& what) const {
    return {ErrorCode::kCorrupt, "vocabulary, line " + std::to_string(line_) + ": " + what};
  }
  Error unexpected(std::string_view line, const std::string& expected) const {
    return fail("\"" + clean_text(line, kQuotedLine) + "\", expected " + expected);
  }

  // Empty at the end of the text.
  std::string_view next_line() {
    ++line_;
    const std::size_t end = rest_.find('\n');
    if (end == std::string_view::npos) return {};
    const std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return line;
  }
  Result<void> expect_line(std::string_view wanted) {
    const std::string_view line = next_line();
    if (line != wanted) return unexpected(line, "\"" + std::string(wanted) + "\"");
    return {};
  }
  Result<std::string_view> read_value(std::string_view key) {
    const std::string_view line = next_line();
    if (!line.starts_with(key) || line.size() <= key.size() || line[key.size()] != ' ')
      return unexpected(line, "\"" + std::string(key) + " ...\"");
    return line.substr(key.size() + 1);
  }
  Result<std::size_t> read_choice(std::string_view key, const std::vector<std::string>& choices) {
    FEDGE_TRY(value, read_value(key));
    const auto found = std::ranges::find(choices, value);
    if (found == choices.end()) return unexpected(value, "a " + std::string(key));
    return static_cast<std::size_t>(found - choices.begin());
  }
  // Numbers have one form: no leading zero, no sign.
  Result<std::uint32_t> read_number(std::string_view text) const {
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size() || std::to_string(number) != text)
      return unexpected(text, "a number");
    return number;
  }
  Result<std::size_t> read_count(std::string_view key, std::size_t most) {
    FEDGE_TRY(value, read_value(key));
    FEDGE_TRY(count, read_number(value));
    if (count > most)
      return fail(std::to_string(count) + " " + std::string(key) + " are too many; at most " +
                  std::to_string(most) + " are allowed");
    return static_cast<std::size_t>(count);
  }
  Result<void> read_token() {
    const std::string_view line = next_line();
    const std::size_t kind = line.size() < 2 || line[1] != ' ' ? kKinds.size() : kKinds.find(line[0]);
    if (kind >= kKinds.size()) return unexpected(line, "t, b or c, a space and a token");
    auto bytes = unescaped(line.substr(2));
    if (!bytes) return unexpected(line, "bytes in printable ASCII and \\xNN");
    made_.add(std::move(*bytes), static_cast<TokenKind>(kind));
    return {};
  }
  Result<void> read_merge() {
    std::string_view line = next_line();
    const bool same = line.starts_with("= ");
    if (same && made_.merges.empty()) return unexpected(line, "a first merge");
    const std::uint32_t former = made_.merges.empty() ? 0 : made_.merges.back().priority;
    VocabularyMerge merge{.priority = made_.merges.empty() || same ? former : former + 1};
    if (same) line.remove_prefix(2);
    const std::size_t one = line.find(' ');
    const std::size_t two = one == std::string_view::npos ? one : line.find(' ', one + 1);
    if (two == std::string_view::npos) return unexpected(line, "three tokens");
    FEDGE_TRY(left, read_number(line.substr(0, one)));
    FEDGE_TRY(right, read_number(line.substr(one + 1, two - one - 1)));
    FEDGE_TRY(made, read_number(line.substr(two + 1)));
    merge.left = left;
    merge.right = right;
    merge.made = made;
    made_.merges.push_back(merge);
    return {};
  }

  std::string_view rest_;
  std::size_t line_ = 0;
  Vocabulary made_;
};

}  // namespace

bool has_all_bytes(const Vocabulary& v) {
  std::bitset<256> bytes;
  for (Token token = 0; token < v.tokens.size(); ++token) {
    const std::string& text = v.tokens[token];
    if (v.kinds[token] == TokenKind::kControl || text.size() != 1) continue;
    const auto byte = static_cast<unsigned char>(text[0]);
    if (!v.characters || v.kinds[token] == TokenKind::kByte || byte < 0x80) bytes.set(byte);
  }
  return bytes.all();
}

Result<void> check_vocabulary(const Vocabulary& v) {
  if (v.tokens.empty()) return invalid("there are no tokens");
  if (v.tokens.size() > kMaxTokens)
    return invalid(std::to_string(v.tokens.size()) + " tokens are too many; at most " +
                   std::to_string(kMaxTokens) + " are allowed");
  if (v.merges.size() > kMaxMerges)
    return invalid(std::to_string(v.merges.size()) + " merges are too many; at most " +
                   std::to_string(kMaxMerges) + " are allowed");
  for (const auto& token : {v.begin, v.end, v.unknown})
    if (token && *token >= v.tokens.size())
      return invalid("token " + std::to_string(*token) + " is named, but there are only " +
                     std::to_string(v.tokens.size()));
  for (const VocabularyMerge& merge : v.merges) FEDGE_TRY_VOID(check_merge(v, merge));
  return check_tokens(v);
}

std::string vocabulary_text(const Vocabulary& v) {
  std::string text(kTitle);
  const auto line = [&](const char* key, const std::string& value) {
    text += "\n" + std::string(key) + " " + value;
  };
  const auto answer = [](bool yes) { return std::string(yes ? "yes" : "no"); };
  const auto token = [](const std::optional<Token>& t) { return t ? std::to_string(*t) : "none"; };
  line("splitter", splitter_names().at(static_cast<std::size_t>(v.splitter)));
  line("characters", answer(v.characters));
  line("leading_space", answer(v.leading_space));
  line("whole_words", answer(v.whole_words));
  line("begin", token(v.begin));
  line("end", token(v.end));
  line("unknown", token(v.unknown));
  line("tokens", std::to_string(v.tokens.size()));
  for (std::size_t i = 0; i < v.tokens.size(); ++i) {
    text += '\n';
    text += kKinds[static_cast<std::size_t>(v.kinds[i])];
    text += ' ';
    append_escaped(text, v.tokens[i]);
  }
  line("merges", std::to_string(v.merges.size()));
  for (std::size_t i = 0; i < v.merges.size(); ++i) {
    const VocabularyMerge& merge = v.merges[i];
    text += i > 0 && merge.priority == v.merges[i - 1].priority ? "\n= " : "\n";
    text += std::to_string(merge.left) + " " + std::to_string(merge.right) + " " + std::to_string(merge.made);
  }
  return text + "\n";
}

Result<Vocabulary> parse_vocabulary(std::string_view text) { return VocabularyParser(text).run(); }

std::vector<VocabularyMerge> merges_by_score(const Vocabulary& v, const std::vector<float>& scores) {
  std::unordered_map<std::string_view, Token> texts;  // never iterated
  for (Token token = 0; token < v.tokens.size(); ++token)
    if (v.kinds[token] == TokenKind::kText) texts.emplace(v.tokens[token], token);
  std::vector<Token> order(v.tokens.size());
  std::iota(order.begin(), order.end(), Token{0});
  std::ranges::stable_sort(order, [&](Token a, Token b) { return scores[a] > scores[b]; });
  std::vector<VocabularyMerge> merges;
  std::uint32_t priority = 0;
  const float* last = nullptr;
  for (const Token made : order) {
    const std::string_view text = v.tokens[made];
    const auto known = texts.find(text);
    if (known == texts.end() || known->second != made || text.size() > kMaxTokenBytes) continue;
    bool merged = false;
    for (std::size_t cut = 1; cut < text.size(); ++cut) {
      const auto left = texts.find(text.substr(0, cut));
      const auto right = texts.find(text.substr(cut));
      if (left == texts.end() || right == texts.end()) continue;
      if (!merged && last != nullptr && *last != scores[made]) ++priority;
      merged = true;
      last = &scores[made];
      merges.push_back({left->second, right->second, made, priority});
    }
    if (merges.size() > kMaxMerges) break;
  }
  return merges;
}

}  // namespace fedge::learn
