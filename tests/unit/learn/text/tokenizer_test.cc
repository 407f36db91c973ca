#include "learn/text/tokenizer.h"

#include <doctest/doctest.h>

#include <map>
#include <utility>

#include "core/rng.h"
#include "learn/text/bpe_trainer.h"
#include "learn/text/words.h"

using namespace fedge;
using namespace fedge::learn;

namespace {

using Tokens = std::vector<Token>;

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    words.emplace_back(first_word(text));
    text.remove_prefix(words.back().size());
  }
  return words;
}

// Random text over a small alphabet, so that pairs repeat, with every character class of the word rule.
std::string random_text(Rng& rng, std::size_t size) {
  constexpr std::string_view kAlphabet("aaabbc  dé'1\n.\\\0", 17);
  std::string text;
  for (std::size_t i = 0; i < size; ++i) text += kAlphabet[rng.below(kAlphabet.size())];
  return text;
}

// BPE as in the paper, on strings and without optimisation: applies each merge of the table in order to the
// whole word.
Tokens slow_encode(const std::string& table, const std::string& text) {
  const auto unescape = [](const std::string& written) {
    std::string bytes;
    for (std::size_t i = 0; i < written.size(); ++i) {
      if (written[i] != '\\') {
        bytes += written[i];
        continue;
      }
      bytes += static_cast<char>(std::stoi(written.substr(i + 2, 2), nullptr, 16));
      i += 3;
    }
    return bytes;
  };
  std::vector<std::pair<std::string, std::string>> merges;
  std::map<std::string, Token> numbers;
  for (int byte = 0; byte < 256; ++byte)
    numbers[std::string(1, static_cast<char>(byte))] = static_cast<Token>(byte);
  for (std::size_t at = table.find('\n') + 1; at < table.size(); at = table.find('\n', at) + 1) {
    const std::string line = table.substr(at, table.find('\n', at) - at);
    const std::size_t space = line.find(' ');
    merges.emplace_back(unescape(line.substr(0, space)), unescape(line.substr(space + 1)));
    numbers[merges.back().first + merges.back().second] = static_cast<Token>(255 + merges.size());
  }
  Tokens out;
  for (const std::string& word : words_of(text)) {
    std::vector<std::string> parts;
    for (const char c : word) parts.emplace_back(1, c);
    for (const auto& [left, right] : merges) {
      for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
        if (parts[i] != left || parts[i + 1] != right) continue;
        parts[i] += right;
        parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      }
    }
    for (const std::string& part : parts) out.push_back(numbers.at(part));
  }
  return out;
}

void check_table_refused(const std::string& table, const std::string& words) {
  const auto result = Tokenizer::bpe(table);
  REQUIRE_FALSE(result.has_value());
  CHECK(result.error().code == ErrorCode::kCorrupt);
  CHECK_MESSAGE(result.error().message.find(words) != std::string::npos, result.error().message);
}

}  // namespace

TEST_CASE("tokenizer: bytes are their own tokens") {
  const Tokenizer tokenizer = Tokenizer::bytes();
  CHECK(tokenizer.kind() == TokenizerKind::kBytes);
  CHECK(tokenizer.vocabulary() == 256);
  CHECK(tokenizer.table().empty());
  CHECK(tokenizer.encode(std::string_view("A\0\xff", 3)) == Tokens{65, 0, 255});
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  CHECK(tokenizer.decode(tokenizer.encode(all)) == all);
  CHECK(tokenizer.bytes(200) == 1);
  CHECK(tokenizer.encode("").empty());
}

TEST_CASE("tokenizer: printable ASCII is numbered from the space on and the newline is 95") {
  const Tokenizer tokenizer = Tokenizer::ascii();
  CHECK(tokenizer.kind() == TokenizerKind::kAscii);
  CHECK(tokenizer.vocabulary() == 96);
  CHECK(tokenizer.encode(" !A~\n") == Tokens{0, 1, 33, 94, 95});
  CHECK(tokenizer.decode(Tokens{0, 1, 33, 94, 95}) == " !A~\n");
  CHECK(tokenizer.bytes(95) == 1);
}

TEST_CASE("tokenizer: what ASCII lacks becomes what looks like it, or one question mark") {
  const Tokenizer tokenizer = Tokenizer::ascii();
  const auto becomes = [&](const char* text) { return tokenizer.decode(tokenizer.encode(text)); };
  CHECK(becomes("a\tb\r\nc") == "a b \nc");
  CHECK(becomes("‘don’t’ “said” „he‟") == "'don't' \"said\" \"he\"");
  CHECK(becomes("1914–1918, ago—never… −1") == "1914-1918, ago--never... -1");
  CHECK(becomes("caf\u00e9 \u00a0\u20ac \U0001F40B \x01\x7f") == "caf?  ? ? ??");
  // Malformed: a lone continuation, a cut character, an overlong slash, a surrogate, above U+10FFFF.
  CHECK(becomes("x\x80y") == "x?y");
  CHECK(becomes("x\xe2\x80") == "x??");
  CHECK(becomes("\xc0\xaf") == "??");
  CHECK(becomes("\xed\xa0\x80") == "???");
  CHECK(becomes("\xf4\x90\x80\x80.") == "????.");
}

TEST_CASE("tokenizer: a word has the space before it, and letters, digits and the rest stay apart") {
  using Words = std::vector<std::string>;
  CHECK(words_of("The dog isn't 10 years old.") ==
        Words{"The", " dog", " isn't", " 10", " years", " old", "."});
  CHECK(words_of("a  b\n\n c \nd ") == Words{"a", " ", " b", "\n", "\n", " c", " ", "\n", "d", " "});
  CHECK(words_of("x2y'' 'z") == Words{"x", "2", "y", "''", " '", "z"});
  CHECK(words_of("na\xc3\xafve\t!") == Words{"na\xc3\xafve", "\t!"});
  CHECK(words_of(std::string(130, 'a')) ==
        Words{std::string(64, 'a'), std::string(64, 'a'), std::string(2, 'a')});
  CHECK(words_of(std::string(66, ' ') + "a") == Words{std::string(64, ' '), " ", " a"});
}

TEST_CASE("tokenizer: merges apply in the table's order, the leftmost first") {
  const auto tokenizer = Tokenizer::bpe("fedge-bpe 1 4\nb c\na b\nab c\na a\n");
  REQUIRE(tokenizer.has_value());
  CHECK(tokenizer->kind() == TokenizerKind::kBpe);
  CHECK(tokenizer->vocabulary() == 260);
  // "bc" is merged before "ab": "abc" becomes a, bc and never the token 258.
  CHECK(tokenizer->encode("abc") == Tokens{'a', 256});
  CHECK(tokenizer->encode("abab") == Tokens{257, 257});
  CHECK(tokenizer->encode("aaaaa") == Tokens{259, 259, 'a'});
  CHECK(tokenizer->encode("a\na") == Tokens{'a', '\n', 'a'});
  CHECK(tokenizer->bytes(258) == 3);
  CHECK(tokenizer->decode(Tokens{258, 10, 259, 'z'}) == "abc\naaz");
}

TEST_CASE("tokenizer: a table is kept as it was given and copies share it") {
  const std::string table = "fedge-bpe 1 3\n\\x20 t\n\\x20t h\n\\xc3 \\xa9\n";
  const auto tokenizer = Tokenizer::bpe(table);
  REQUIRE(tokenizer.has_value());
  const Tokenizer copy = *tokenizer;
  CHECK(copy.table() == table);
  CHECK(copy.table().data() == tokenizer->table().data());
  CHECK(copy.encode(" th\xc3\xa9") == Tokens{257, 258});
}

TEST_CASE("tokenizer: the fast BPE gives what the table applied merge by merge gives") {
  Rng rng = Rng(11).fork("tokenizer");
  for (int round = 0; round < 20; ++round) {
    const std::string text = random_text(rng, 3000);
    const auto table = train_bpe(text, 256 + 10U * static_cast<unsigned>(round));
    REQUIRE(table.has_value());
    const auto tokenizer = Tokenizer::bpe(*table);
    REQUIRE_MESSAGE(tokenizer.has_value(), tokenizer.error().message);
    const std::string other = random_text(rng, 2000);
    for (const std::string& sample : {text, other}) {
      const Tokens tokens = tokenizer->encode(sample);
      REQUIRE(tokens == slow_encode(*table, sample));
      REQUIRE(tokenizer->decode(tokens) == sample);
    }
  }
}

TEST_CASE("tokenizer: any bytes come back from BPE") {
  Rng rng = Rng(12).fork("tokenizer");
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += static_cast<char>(rng.below(256));
  const auto table = train_bpe(std::string_view(text).substr(0, 100'000), 600);
  REQUIRE(table.has_value());
  const auto tokenizer = Tokenizer::bpe(*table);
  REQUIRE(tokenizer.has_value());
  const Tokens tokens = tokenizer->encode(text);
  CHECK(tokens.size() < text.size());
  CHECK(tokenizer->decode(tokens) == text);
  std::size_t bytes = 0;
  for (const Token token : tokens) bytes += tokenizer->bytes(token);
  CHECK(bytes == text.size());
}

TEST_CASE("tokenizer: a text with more different words than are remembered is encoded right to its end") {
  std::string text;
  for (int i = 0; i < 70'000; ++i) text += " " + std::to_string(i);
  const auto tokenizer = Tokenizer::bpe("fedge-bpe 1 2\n\\x20 1\n6 9\n");
  REQUIRE(tokenizer.has_value());
  const Tokens tokens = tokenizer->encode(text + " 169999");
  CHECK(tokenizer->decode(tokens) == text + " 169999");
  CHECK(Tokens(tokens.end() - 5, tokens.end()) == Tokens{256, 257, '9', '9', '9'});
}

TEST_CASE("tokenizer: a table that could not have been written is refused with its line") {
  check_table_refused("", "line 1: not a BPE table");
  check_table_refused("fedge-bpe 2 0\n", "line 1: not a BPE table");
  check_table_refused("fedge-bpe 1 1", "line 1: not a BPE table");
  check_table_refused("fedge-bpe 1 01\na b\n", "line 1: \"01\" is not a number");
  check_table_refused("fedge-bpe 1 -1\n", "line 1: \"-1\" is not a number");
  check_table_refused("fedge-bpe 1 65280\n", "line 1: 65280 merges are too many; at most 65279");
  check_table_refused("fedge-bpe 1 99999999999999999999999\n", "is not a number");
  check_table_refused(
      "fedge-bpe 1 2\na b\n",
      "line 3: the table is truncated: it declares 2 merges, but has only 1 complete lines of merges");
  check_table_refused("fedge-bpe 1 2\na b\nc d", "line 3: the table is truncated");
  check_table_refused("fedge-bpe 1 1\na b\nc d\n", "line 3: an extra line");
  check_table_refused("fedge-bpe 1 1\nab\n", "line 2: \"ab\" is not a merge");
  check_table_refused("fedge-bpe 1 2\na b\na b\n", "line 3: \"a b\" duplicates token 256");
  check_table_refused("fedge-bpe 1 4\na b\nb c\nab c\na bc\n", "line 5: \"a bc\" duplicates token 258");
  check_table_refused("fedge-bpe 1 1\nab c\n",
                      "line 2: \"ab\" is neither a single byte nor a token of an earlier line");
  check_table_refused("fedge-bpe 1 1\na  b\n", "line 2: \" b\" is malformed");
  check_table_refused("fedge-bpe 1 1\n b\n",
                      "line 2: \"\" is neither a single byte nor a token of an earlier line");
  check_table_refused("fedge-bpe 1 1\na b\r\n", "line 2: \"b?\" is malformed");
  for (const char* token : {"\\", "\\x", "\\x0", "\\xg0", "\\x0G", "\\xE9", "\\x41", "\\n", "\\\\"})
    check_table_refused("fedge-bpe 1 1\n" + std::string(token) + " b\n", "is malformed");
}

TEST_CASE("tokenizer: a token longer than a word is refused before tables can grow by doubling") {
  std::string table = "fedge-bpe 1 7\n";
  for (std::size_t length = 1; length <= 64; length *= 2)
    table += std::string(length, 'a') + " " + std::string(length, 'a') + "\n";
  check_table_refused(table, "line 8: ");
  check_table_refused(table, "makes a token of 128 bytes; the maximum is 64");
}

TEST_CASE("tokenizer: the largest table leaves 65535 free") {
  std::string table = "fedge-bpe 1 65279\n";
  const auto escaped = [](int byte) {
    const char* digits = "0123456789abcdef";
    if (byte > 0x20 && byte < 0x7f && byte != '\\') return std::string(1, static_cast<char>(byte));
    return std::string("\\x") + digits[byte / 16] + digits[byte % 16];
  };
  for (int merge = 0; merge < 65279; ++merge)
    table += escaped(merge / 256) + " " + escaped(merge % 256) + "\n";
  const auto tokenizer = Tokenizer::bpe(table);
  REQUIRE_MESSAGE(tokenizer.has_value(), tokenizer.error().message);
  CHECK(tokenizer->vocabulary() == 65535);
  CHECK(tokenizer->encode("\xfe\xfe") == Tokens{65534});
}
