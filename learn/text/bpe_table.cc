#include "learn/text/bpe_table.h"

#include <charconv>
#include <optional>
#include <unordered_map>
#include <utility>

#include "core/text.h"
#include "learn/text/escaped.h"
#include "learn/text/words.h"

namespace fedge::learn {
namespace {

constexpr std::string_view kHeader = "fedge-bpe 1 ";
constexpr std::size_t kMaxMerges = kMaxVocabulary - kByteTokens;
constexpr std::size_t kQuotedBytes = 80;  // of a faulty line, quoted in an error

Error corrupt_table(std::size_t line, const std::string& what) {
  return {ErrorCode::kCorrupt, "BPE table, line " + std::to_string(line) + ": " + what};
}

std::string quoted(std::string_view text) { return "\"" + clean_text(text, kQuotedBytes) + "\""; }

class Parser {
 public:
  explicit Parser(std::string_view text) : rest_(text), table_(BpeTable::bytes()) {
    for (std::size_t i = 0; i < table_.tokens.size(); ++i)
      known_.emplace(table_.tokens[i], static_cast<std::uint16_t>(i));
  }

  Result<BpeTable> run() {
    FEDGE_TRY(merges, read_header());
    for (std::size_t i = 0; i < merges; ++i) FEDGE_TRY_VOID(read_merge(merges));
    if (!rest_.empty())
      return corrupt_table(line_ + 1,
                           "an extra line after the " + std::to_string(merges) + " declared merges");
    return std::move(table_);
  }

 private:
  // The next line without its newline; nothing if there is no newline.
  std::optional<std::string_view> next_line() {
    const std::size_t end = rest_.find('\n');
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    ++line_;
    return line;
  }

  Result<std::size_t> read_header() {
    const auto line = next_line();
    if (!line || !line->starts_with(kHeader))
      return corrupt_table(1, "not a BPE table: expected \"fedge-bpe 1 N\", where N is the number of merges");
    const std::string_view digits = line->substr(kHeader.size());
    std::size_t merges = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), merges);
    if (error != std::errc() || end != digits.data() + digits.size() || std::to_string(merges) != digits)
      return corrupt_table(1, quoted(digits) + " is not a number of merges");
    if (merges > kMaxMerges)
      return corrupt_table(1, std::to_string(merges) + " merges are too many; at most " +
                                  std::to_string(kMaxMerges) + " fit a vocabulary of " +
                                  std::to_string(kMaxVocabulary));
    return merges;
  }

  Result<void> read_merge(std::size_t merges) {
    const auto line = next_line();
    if (!line)
      return corrupt_table(line_ + 1, "the table is truncated: it declares " + std::to_string(merges) +
                                          " merges, but has only " + std::to_string(table_.merges.size()) +
                                          " complete lines of merges");
    const std::size_t space = line->find(' ');
    if (space == std::string_view::npos)
      return corrupt_table(line_,
                           quoted(*line) + " is not a merge; expected two tokens separated by a space");
    FEDGE_TRY(left, read_token(line->substr(0, space)));
    FEDGE_TRY(right, read_token(line->substr(space + 1)));
    std::string made = table_.tokens[left] + table_.tokens[right];
    if (made.size() > kMaxWordBytes)
      return corrupt_table(line_, quoted(*line) + " makes a token of " + std::to_string(made.size()) +
                                      " bytes; the maximum is " + std::to_string(kMaxWordBytes));
    const auto [at, is_new] =
        known_.emplace(std::move(made), static_cast<std::uint16_t>(table_.tokens.size()));
    if (!is_new)
      return corrupt_table(line_, quoted(*line) + " duplicates token " + std::to_string(at->second));
    table_.add({left, right});
    return {};
  }

  Result<std::uint16_t> read_token(std::string_view text) const {
    const auto bytes = unescaped(text);
    if (!bytes)
      return corrupt_table(line_, quoted(text) +
                                      " is malformed: write printable ASCII as is, and write the space, the "
                                      "backslash and all other bytes as \\xNN in lower case");
    const auto found = known_.find(*bytes);
    if (found == known_.end())
      return corrupt_table(line_, quoted(text) + " is neither a single byte nor a token of an earlier line");
    return found->second;
  }

  std::string_view rest_;
  std::size_t line_ = 0;  // lines read so far
  BpeTable table_;
  std::unordered_map<std::string, std::uint16_t> known_;  // never iterated
};

}  // namespace

BpeTable BpeTable::bytes() {
  BpeTable table;
  for (std::size_t byte = 0; byte < kByteTokens; ++byte)
    table.tokens.emplace_back(1, static_cast<char>(byte));
  return table;
}

void BpeTable::add(BpeMerge merge) {
  FEDGE_CHECK(tokens.size() < kMaxVocabulary, "no room for another token");
  FEDGE_CHECK(merge.left < tokens.size() && merge.right < tokens.size(), "a merge of what is no token");
  tokens.push_back(tokens[merge.left] + tokens[merge.right]);
  merges.push_back(merge);
}

Result<BpeTable> parse_bpe_table(std::string_view text) { return Parser(text).run(); }

std::string bpe_table_text(const BpeTable& table) {
  std::string text = std::string(kHeader) + std::to_string(table.merges.size()) + "\n";
  for (const BpeMerge merge : table.merges) {
    append_escaped(text, table.tokens[merge.left]);
    text += ' ';
    append_escaped(text, table.tokens[merge.right]);
    text += '\n';
  }
  return text;
}

}  // namespace fedge::learn
