// Readers of the files in which vocabularies are published. Errors name the file.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "core/result.h"
#include "learn/text/vocabulary/vocabulary.h"

namespace fedge::learn {

// The regular expressions for words in a tokenizer.json (splitter.h).
inline constexpr std::string_view kLlama3Words =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
    R"(\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kQwen2Words =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
    R"(\s*[\r\n]+|\s+(?!\S)|\s+)";

// Any of the formats below, or a vocabulary's own text, told apart by content.
Result<Vocabulary> read_vocabulary_file(const std::filesystem::path& path);

// Hugging Face's tokenizer.json, if it is BPE: byte-level with the words of a known family, or over
// characters with single bytes as a fallback. Special tokens become control tokens.
Result<Vocabulary> parse_tokenizer_json(std::string_view text);
// Writes a tokenizer.json. kUnsupported for words that no published tokenizer has.
Result<std::string> tokenizer_json(const Vocabulary& vocabulary);

// SentencePiece's tokenizer.model (a protobuf message), if it is BPE.
Result<Vocabulary> parse_sentencepiece(std::string_view bytes);
// llama2.c's tokenizer.bin.
Result<Vocabulary> parse_llama2c_vocabulary(std::string_view bytes);

// The vocabulary of SentencePiece tokens: pieces in which U+2581 stands for a space, with their scores.
struct ScoredPiece {
  std::string text;
  float score = 0;
  TokenKind kind = TokenKind::kText;
};
Vocabulary sentencepiece_vocabulary(std::vector<ScoredPiece> pieces, bool leading_space);

// GPT-2's spelling of bytes as printable characters, inverted. Nothing for text that it cannot write.
std::optional<std::string> bytes_of_spelling(std::string_view text);

// Whether a token has a space after another character, so that merges reach over words.
bool spans_words(const Vocabulary& vocabulary);

}  // namespace fedge::learn
