// Writes a vocabulary as Hugging Face's tokenizer.json.
#include <array>
#include <utility>

#include "core/detail/json.h"
#include "learn/text/vocabulary/files.h"

namespace fedge::learn {
namespace {

using Ordered = nlohmann::ordered_json;

constexpr const char* kSpaceSign = "\xe2\x96\x81";  // U+2581

void append_code(std::string& out, std::uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
    return;
  }
  out += static_cast<char>(0xc0U | code >> 6U);  // all are below U+0800
  out += static_cast<char>(0x80U | (code & 0x3fU));
}

// GPT-2's spelling of bytes as printable characters.
std::string spelling_of(std::string_view bytes) {
  static const std::array<std::uint32_t, 256> kCodes = [] {
    std::array<std::uint32_t, 256> codes{};
    std::uint32_t next = 0x100;
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
      const bool printable = (byte > 32 && byte < 127) || (byte > 160 && byte != 173);
      codes.at(byte) = printable ? byte : next++;
    }
    return codes;
  }();
  std::string out;
  for (const char c : bytes) append_code(out, kCodes.at(static_cast<unsigned char>(c)));
  return out;
}

std::string piece_of(const Vocabulary& vocabulary, Token token) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  const std::string& bytes = vocabulary.tokens[token];
  if (vocabulary.kinds[token] == TokenKind::kControl) return bytes;
  if (!vocabulary.characters) return spelling_of(bytes);
  if (vocabulary.kinds[token] == TokenKind::kByte) {
    const auto byte = static_cast<unsigned char>(bytes[0]);
    return std::string("<0x") + kDigits[byte >> 4U] + kDigits[byte & 15U] + ">";
  }
  std::string out;
  for (const char c : bytes) out += c == ' ' ? std::string(kSpaceSign) : std::string(1, c);
  return out;
}

Ordered sequence(const char* list, std::vector<Ordered> components) {
  return {{"type", "Sequence"}, {list, std::move(components)}};
}

Ordered byte_level_words(const Vocabulary& vocabulary) {
  const bool expression = vocabulary.splitter == Splitter::kLlama3 || vocabulary.splitter == Splitter::kQwen2;
  Ordered bytes = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", !expression}};
  if (vocabulary.splitter == Splitter::kDigits)
    return sequence("pretokenizers", {{{"type", "Digits"}, {"individual_digits", true}}, std::move(bytes)});
  if (!expression) return bytes;
  const std::string_view words = vocabulary.splitter == Splitter::kLlama3 ? kLlama3Words : kQwen2Words;
  return sequence("pretokenizers", {{{"type", "Split"},
                                     {"pattern", {{"Regex", std::string(words)}}},
                                     {"behavior", "Isolated"},
                                     {"invert", false}},
                                    std::move(bytes)});
}

void add_character_rules(const Vocabulary& vocabulary, Ordered& root) {
  Ordered spaces = {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", kSpaceSign}};
  std::vector<Ordered> rules;
  if (vocabulary.leading_space) rules.push_back({{"type", "Prepend"}, {"prepend", kSpaceSign}});
  rules.push_back(std::move(spaces));
  root["normalizer"] = sequence("normalizers", std::move(rules));
  root["pre_tokenizer"] = nullptr;
  std::vector<Ordered> back = {{{"type", "Replace"}, {"pattern", {{"String", kSpaceSign}}}, {"content", " "}},
                               {{"type", "ByteFallback"}},
                               {{"type", "Fuse"}}};
  if (vocabulary.leading_space)
    back.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  root["decoder"] = sequence("decoders", std::move(back));
}

Ordered template_of(const Vocabulary& vocabulary) {
  if (!vocabulary.begin) return nullptr;
  const std::string name = vocabulary.tokens[*vocabulary.begin];
  const Ordered token = {{"SpecialToken", {{"id", name}, {"type_id", 0}}}};
  const auto text = [](const char* id, int type) {
    return Ordered{{"Sequence", {{"id", id}, {"type_id", type}}}};
  };
  return {{"type", "TemplateProcessing"},
          {"single", {token, text("A", 0)}},
          {"pair", {token, text("A", 0), text("B", 1)}},
          {"special_tokens", {{name, {{"id", name}, {"ids", {*vocabulary.begin}}, {"tokens", {name}}}}}}};
}

}  // namespace

Result<std::string> tokenizer_json(const Vocabulary& vocabulary) {
  if (vocabulary.splitter == Splitter::kFedge)
    return Error{ErrorCode::kUnsupported,
                 "no published tokenizer divides a text into words as this one does"};
  Ordered root = {{"version", "1.0"}, {"truncation", nullptr}, {"padding", nullptr}};
  Ordered added = Ordered::array();
  Ordered tokens = Ordered::object();
  bool bytes = false;
  for (Token token = 0; token < vocabulary.tokens.size(); ++token) {
    const std::string piece = piece_of(vocabulary, token);
    bytes = bytes || vocabulary.kinds[token] == TokenKind::kByte;
    if (piece.empty()) continue;  // an id without a token
    tokens[piece] = token;
    if (vocabulary.kinds[token] == TokenKind::kControl)
      added.push_back({{"id", token},
                       {"content", piece},
                       {"single_word", false},
                       {"lstrip", false},
                       {"rstrip", false},
                       {"normalized", false},
                       {"special", true}});
  }
  root["added_tokens"] = std::move(added);
  root["normalizer"] = nullptr;
  if (vocabulary.characters) {
    add_character_rules(vocabulary, root);
  } else {
    root["pre_tokenizer"] = byte_level_words(vocabulary);
    root["decoder"] = {
        {"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", true}, {"use_regex", true}};
  }
  root["post_processor"] = template_of(vocabulary);
  Ordered merges = Ordered::array();
  for (const VocabularyMerge& merge : vocabulary.merges)
    merges.push_back({piece_of(vocabulary, merge.left), piece_of(vocabulary, merge.right)});
  root["model"] = {
      {"type", "BPE"},
      {"dropout", nullptr},
      {"unk_token", vocabulary.unknown ? Ordered(vocabulary.tokens[*vocabulary.unknown]) : Ordered()},
      {"fuse_unk", vocabulary.characters},
      {"byte_fallback", vocabulary.characters && bytes},
      {"ignore_merges", vocabulary.whole_words},
      {"vocab", std::move(tokens)},
      {"merges", std::move(merges)}};
  return json_text(root);
}

}  // namespace fedge::learn
