#include "learn/text/tokenizer.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

#include "core/check.h"
#include "core/text.h"
#include "learn/text/bpe_table.h"
#include "learn/text/words.h"

namespace fedge::learn {
namespace {

constexpr char kFirstPrintable = ' ';
constexpr char kLastPrintable = '~';
constexpr Token kAsciiNewline = kLastPrintable - kFirstPrintable + 1;
constexpr std::size_t kCachedWords = std::size_t{1} << 16;  // per call of encode

// The token that a pair is merged into. Uses open addressing: a look-up is a multiplication and usually one
// cache line, since every pair of neighbours in a word is looked up.
class PairTable {
 public:
  explicit PairTable(const std::vector<BpeMerge>& merges) {
    std::size_t size = 16;
    while (size < merges.size() * 2) size *= 2;
    slots_.assign(size, Slot{});
    for (std::size_t i = 0; i < merges.size(); ++i) {
      const std::uint32_t key = key_of(merges[i].left, merges[i].right);
      std::size_t at = place_of(key);
      while (slots_[at].made != kNoToken) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = {key, static_cast<Token>(kByteTokens + i)};
    }
  }

  // kNoToken if the table does not merge the pair.
  Token find(Token left, Token right) const {
    const std::uint32_t key = key_of(left, right);
    std::size_t at = place_of(key);
    while (slots_[at].made != kNoToken && slots_[at].key != key) at = (at + 1) & (slots_.size() - 1);
    return slots_[at].made;
  }

 private:
  struct Slot {
    std::uint32_t key = 0;
    Token made = kNoToken;  // kNoToken: free
  };
  static std::uint32_t key_of(Token left, Token right) {
    return static_cast<std::uint32_t>(left) << 16U | right;
  }
  std::size_t place_of(std::uint32_t key) const {
    return (key * 0x9e3779b97f4a7c15U >> 32U) & (slots_.size() - 1);
  }
  std::vector<Slot> slots_;
};

// Appends a word's tokens. Repeatedly merges the pair of neighbours that comes first in the table, the
// leftmost of equals, until no pair is in the table. A lower token number means an earlier merge.
void encode_word(std::string_view word, const PairTable& pairs, std::vector<Token>& out) {
  std::array<Token, kMaxWordBytes> tokens;
  std::array<Token, kMaxWordBytes> made;  // made[i]: the token that tokens[i] and tokens[i + 1] merge into
  std::size_t size = word.size();
  for (std::size_t i = 0; i < size; ++i) tokens[i] = static_cast<unsigned char>(word[i]);
  for (std::size_t i = 0; i + 1 < size; ++i) made[i] = pairs.find(tokens[i], tokens[i + 1]);
  while (size > 1) {
    const auto best = std::min_element(made.begin(), made.begin() + static_cast<std::ptrdiff_t>(size - 1));
    if (*best == kNoToken) break;
    const auto at = static_cast<std::size_t>(best - made.begin());
    tokens[at] = *best;
    for (std::size_t i = at + 1; i + 1 < size; ++i) tokens[i] = tokens[i + 1];
    for (std::size_t i = at; i + 2 < size; ++i) made[i] = made[i + 1];
    --size;
    if (at > 0) made[at - 1] = pairs.find(tokens[at - 1], tokens[at]);
    if (at + 1 < size) made[at] = pairs.find(tokens[at], tokens[at + 1]);
  }
  out.insert(out.end(), tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(size));
}

// Most words of a text occur repeatedly: their tokens are copied from their first occurrence in the output.
std::vector<Token> encode_bpe(std::string_view text, const PairTable& pairs) {
  struct Place {
    std::size_t at = 0;
    std::size_t size = 0;
  };
  std::unordered_map<std::string_view, Place> seen;  // never iterated
  std::vector<Token> out;
  out.reserve(text.size() / 3);
  while (!text.empty()) {
    const std::string_view word = first_word(text);
    text.remove_prefix(word.size());
    const std::size_t at = out.size();
    if (const auto found = seen.find(word); found != seen.end()) {
      const auto [from, size] = found->second;
      out.resize(at + size);
      std::copy_n(out.begin() + static_cast<std::ptrdiff_t>(from), size,
                  out.begin() + static_cast<std::ptrdiff_t>(at));
      continue;
    }
    encode_word(word, pairs, out);
    if (seen.size() < kCachedWords) seen.emplace(word, Place{at, out.size() - at});
  }
  return out;
}

// The ASCII text that resembles the character; "?" if there is none.
std::string_view look_alike(std::uint32_t code) {
  switch (code) {
    case '\t':
    case '\r':
    case 0x00a0:  // no-break space
    case 0x202f:
      return " ";
    case 0x2018:  // single quotation marks, prime
    case 0x2019:
    case 0x201a:
    case 0x201b:
    case 0x2032:
      return "'";
    case 0x00ab:  // double quotation marks, double prime
    case 0x00bb:
    case 0x201c:
    case 0x201d:
    case 0x201e:
    case 0x201f:
    case 0x2033:
      return "\"";
    case 0x2010:  // hyphens, figure and en dash, minus
    case 0x2011:
    case 0x2012:
    case 0x2013:
    case 0x2212:
      return "-";
    case 0x2014:  // em dash and bar, as ASCII texts write them
    case 0x2015:
      return "--";
    case 0x2026:
      return "...";
    default:
      return code >= 0x2000 && code <= 0x200a ? " " : "?";  // spaces of various widths
  }
}

std::vector<Token> encode_ascii(std::string_view text) {
  std::vector<Token> out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '\n' || (c >= kFirstPrintable && c <= kLastPrintable)) {
      out.push_back(c == '\n' ? kAsciiNewline : static_cast<Token>(c - kFirstPrintable));
      ++i;
      continue;
    }
    std::uint32_t code = 0;
    const std::size_t length = take_character(text.substr(i), code);
    for (const char like : length > 0 ? look_alike(code) : "?")
      out.push_back(static_cast<Token>(like - kFirstPrintable));
    i += std::max<std::size_t>(length, 1);
  }
  return out;
}

}  // namespace

struct Tokenizer::State {
  TokenizerKind kind;
  std::size_t vocabulary;
  std::string decoded;               // the bytes of all tokens, one after the other
  std::vector<std::uint32_t> begin;  // offset of each token in `decoded`, and the end
  std::string table;                 // bpe only, like `pairs`
  PairTable pairs;

  State(TokenizerKind which, const std::vector<std::string>& tokens, const std::vector<BpeMerge>& merges)
      : kind(which), vocabulary(tokens.size()), begin{0}, pairs(merges) {
    for (const std::string& token : tokens) {
      decoded += token;
      begin.push_back(static_cast<std::uint32_t>(decoded.size()));
    }
  }

  std::string_view bytes_of(Token token) const {
    FEDGE_CHECK(token < vocabulary, "the vocabulary has no such token");
    return std::string_view(decoded).substr(begin[token], begin[token + 1U] - begin[token]);
  }
};

Tokenizer::Tokenizer(std::shared_ptr<const State> state) : state_(std::move(state)) {}

Tokenizer Tokenizer::bytes() {
  return Tokenizer(std::make_shared<const State>(TokenizerKind::kBytes, BpeTable::bytes().tokens,
                                                 std::vector<BpeMerge>()));
}

Tokenizer Tokenizer::ascii() {
  std::vector<std::string> tokens;
  for (char c = kFirstPrintable; c <= kLastPrintable; ++c) tokens.emplace_back(1, c);
  tokens.emplace_back("\n");
  return Tokenizer(std::make_shared<const State>(TokenizerKind::kAscii, tokens, std::vector<BpeMerge>()));
}

Result<Tokenizer> Tokenizer::bpe(std::string_view table) {
  FEDGE_TRY(parsed, parse_bpe_table(table));
  auto state = std::make_shared<State>(TokenizerKind::kBpe, parsed.tokens, parsed.merges);
  state->table = table;
  return Tokenizer(std::move(state));
}

TokenizerKind Tokenizer::kind() const { return state_->kind; }
std::size_t Tokenizer::vocabulary() const { return state_->vocabulary; }
std::string_view Tokenizer::table() const { return state_->table; }
std::size_t Tokenizer::bytes(Token token) const { return state_->bytes_of(token).size(); }

std::vector<Token> Tokenizer::encode(std::string_view text) const {
  if (state_->kind == TokenizerKind::kAscii) return encode_ascii(text);
  if (state_->kind == TokenizerKind::kBpe) return encode_bpe(text, state_->pairs);
  std::vector<Token> out(text.size());
  std::transform(text.begin(), text.end(), out.begin(), [](char c) { return static_cast<unsigned char>(c); });
  return out;
}

std::string Tokenizer::decode(std::span<const Token> tokens) const {
  std::string text;
  for (const Token token : tokens) text += state_->bytes_of(token);
  return text;
}

}  // namespace fedge::learn
