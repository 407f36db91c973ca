#include "learn/text/tokenizer.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

#include "core/check.h"
#include "core/text.h"
#include "learn/text/bpe_table.h"
#include "learn/text/vocabulary/merging.h"
#include "learn/text/vocabulary/vocabulary.h"

namespace fedge::learn {
namespace {

constexpr char kFirstPrintable = ' ';
constexpr char kLastPrintable = '~';
constexpr Token kAsciiNewline = kLastPrintable - kFirstPrintable + 1;
constexpr std::size_t kCachedWords = std::size_t{1} << 16;  // per call of encode

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
  Vocabulary words;  // for `bytes` and `ascii`, only its tokens
  std::string table;
  PairTable pairs;
  std::array<Token, 256> bytes;                         // the token of each byte; kNoToken: it is left out
  std::unordered_map<std::string_view, Token> texts{};  // of characters or whole words; never iterated

  State(TokenizerKind which, Vocabulary vocabulary, std::string_view text = {})
      : kind(which), words(std::move(vocabulary)), table(text), pairs(words.merges) {
    // Some vocabularies name the end of a text as the unknown token: a text must not end by a rare byte.
    if (words.unknown == words.begin || words.unknown == words.end) words.unknown.reset();
    bytes.fill(words.unknown.value_or(kNoToken));
    std::array<bool, 256> alone{};
    for (Token token = 0; token < words.tokens.size(); ++token) {
      const std::string& said = words.tokens[token];
      if (words.kinds[token] == TokenKind::kText && (words.characters || words.whole_words))
        texts.emplace(said, token);
      if (words.kinds[token] == TokenKind::kControl || said.size() != 1) continue;
      // A byte's own token comes before a character that is the same byte.
      const auto byte = static_cast<unsigned char>(said[0]);
      if (!alone[byte]) bytes[byte] = token;
      alone[byte] = alone[byte] || words.kinds[token] == TokenKind::kByte || !words.characters;
    }
  }

  std::string_view bytes_of(Token token) const {
    FEDGE_CHECK(token < words.tokens.size(), "the vocabulary has no such token");
    if (words.kinds[token] == TokenKind::kControl) return {};
    return words.tokens[token];
  }

  void encode_word(std::string_view word, std::vector<Token>& symbols) const {
    symbols.clear();
    if (words.whole_words) {
      if (const auto whole = texts.find(word); whole != texts.end()) return symbols.push_back(whole->second);
    }
    for (std::size_t i = 0; i < word.size();) {
      std::uint32_t code = 0;
      const std::size_t size =
          words.characters ? std::max<std::size_t>(take_character(word.substr(i), code), 1) : 1;
      const auto known = words.characters ? texts.find(word.substr(i, size)) : texts.end();
      if (known != texts.end())
        symbols.push_back(known->second);
      else
        for (const char c : word.substr(i, size))
          if (const Token token = bytes[static_cast<unsigned char>(c)]; token != kNoToken)
            symbols.push_back(token);
      i += size;
    }
    merge_symbols(pairs, symbols);
  }

  // Most words of a text occur repeatedly: their tokens are copied from their first occurrence in the output.
  std::vector<Token> encode(std::string_view text) const {
    struct Place {
      std::size_t at = 0;
      std::size_t size = 0;
    };
    std::unordered_map<std::string_view, Place> seen;  // never iterated
    std::vector<Token> out;
    out.reserve(text.size() / 3);
    std::vector<Token> symbols;
    while (!text.empty()) {
      const std::string_view word = split_word(words.splitter, text);
      text.remove_prefix(word.size());
      const std::size_t at = out.size();
      if (const auto found = seen.find(word); found != seen.end()) {
        const auto [from, size] = found->second;
        out.resize(at + size);
        std::copy_n(out.begin() + static_cast<std::ptrdiff_t>(from), size,
                    out.begin() + static_cast<std::ptrdiff_t>(at));
        continue;
      }
      encode_word(word, symbols);
      out.insert(out.end(), symbols.begin(), symbols.end());
      if (seen.size() < kCachedWords) seen.emplace(word, Place{at, out.size() - at});
    }
    return out;
  }
};

namespace {

Vocabulary with_tokens(const std::vector<std::string>& tokens) {
  Vocabulary vocabulary;
  for (const std::string& token : tokens) vocabulary.add(token, TokenKind::kText);
  return vocabulary;
}

}  // namespace

Tokenizer::Tokenizer(std::shared_ptr<const State> state) : state_(std::move(state)) {}

Tokenizer Tokenizer::bytes() {
  return Tokenizer(
      std::make_shared<const State>(TokenizerKind::kBytes, with_tokens(BpeTable::bytes().tokens)));
}

Tokenizer Tokenizer::ascii() {
  std::vector<std::string> tokens;
  for (char c = kFirstPrintable; c <= kLastPrintable; ++c) tokens.emplace_back(1, c);
  tokens.emplace_back("\n");
  return Tokenizer(std::make_shared<const State>(TokenizerKind::kAscii, with_tokens(tokens)));
}

Result<Tokenizer> Tokenizer::bpe(std::string_view table) {
  FEDGE_TRY(parsed, parse_bpe_table(table));
  Vocabulary vocabulary = with_tokens(parsed.tokens);
  vocabulary.splitter = Splitter::kFedge;
  for (std::size_t i = 0; i < parsed.merges.size(); ++i)
    vocabulary.merges.push_back({parsed.merges[i].left, parsed.merges[i].right,
                                 static_cast<Token>(kByteTokens + i), static_cast<std::uint32_t>(i)});
  return Tokenizer(std::make_shared<const State>(TokenizerKind::kBpe, std::move(vocabulary), table));
}

Result<Tokenizer> Tokenizer::published(std::string_view table) {
  FEDGE_TRY(vocabulary, parse_vocabulary(table));
  return Tokenizer(std::make_shared<const State>(TokenizerKind::kVocabulary, std::move(vocabulary), table));
}

TokenizerKind Tokenizer::kind() const { return state_->kind; }
std::size_t Tokenizer::vocabulary() const { return state_->words.tokens.size(); }
std::optional<Token> Tokenizer::begin() const { return state_->words.begin; }
std::optional<Token> Tokenizer::end() const { return state_->words.end; }
std::string_view Tokenizer::table() const { return state_->table; }
std::size_t Tokenizer::bytes(Token token) const { return state_->bytes_of(token).size(); }

std::vector<Token> Tokenizer::encode(std::string_view text) const {
  if (state_->kind == TokenizerKind::kAscii) return encode_ascii(text);
  if (state_->kind != TokenizerKind::kBytes)
    return state_->words.leading_space && !text.empty() ? state_->encode(" " + std::string(text))
                                                        : state_->encode(text);
  std::vector<Token> out(text.size());
  std::transform(text.begin(), text.end(), out.begin(), [](char c) { return static_cast<unsigned char>(c); });
  return out;
}

std::string Tokenizer::decode(std::span<const Token> tokens) const {
  std::string text;
  for (const Token token : tokens) text += state_->bytes_of(token);
  return text;
}

std::vector<Token> Tokenizer::prompt(std::string_view text) const {
  std::vector<Token> tokens = encode(text);
  if (begin()) tokens.insert(tokens.begin(), *begin());
  return tokens;
}

std::string Tokenizer::text(std::span<const Token> tokens) const {
  std::string text = decode(tokens);
  if (state_->words.leading_space && text.starts_with(' ')) text.erase(0, 1);
  return text;
}

}  // namespace fedge::learn
