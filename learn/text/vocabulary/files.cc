#include "learn/text/vocabulary/files.h"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <utility>

#include "core/platform/files.h"
#include "core/text.h"

namespace fedge::learn {
namespace {

constexpr std::string_view kSpacePiece = "\xe2\x96\x81";  // U+2581

// "<0x0A>" as a byte.
std::optional<std::string> byte_piece(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return std::nullopt;
  const std::size_t high = kDigits.find(text[3]);
  const std::size_t low = kDigits.find(text[4]);
  if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
  return std::string(1, static_cast<char>(high * 16 + low));
}

std::string with_spaces(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t at = std::min(text.find(kSpacePiece), text.size());
    out += text.substr(0, at);
    text.remove_prefix(at);
    if (text.empty()) break;
    out += ' ';
    text.remove_prefix(kSpacePiece.size());
  }
  return out;
}

// Reads fields of a byte string; what is missing reads as zero and is noticed at the end.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  bool done() const { return rest_.empty() || failed_; }
  bool failed() const { return failed_; }
  std::string_view take(std::uint64_t size) {
    if (failed_ || size > rest_.size()) {
      failed_ = true;
      return {};
    }
    const std::string_view part = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return part;
  }
  std::uint32_t fixed32() {
    const std::string_view part = take(4);
    std::uint32_t value = 0;
    for (std::size_t i = part.size(); i-- > 0;) value = value << 8U | static_cast<unsigned char>(part[i]);
    return value;
  }
  float number() { return std::bit_cast<float>(fixed32()); }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const std::string_view part = take(1);
      if (part.empty()) return 0;
      const auto byte = static_cast<unsigned char>(part[0]);
      value |= std::uint64_t{byte & 127U} << shift;
      if (byte < 128) return value;
    }
    failed_ = true;
    return 0;
  }
  // The bytes of a field with a length.
  std::string_view field() { return take(varint()); }
  // Skips the value of a field of this wire type.
  void skip(std::uint64_t type) {
    if (type == 0)
      varint();
    else if (type == 1)
      take(8);
    else if (type == 2)
      field();
    else if (type == 5)
      take(4);
    else
      failed_ = true;
  }

 private:
  std::string_view rest_;
  bool failed_ = false;
};

// Calls each(number, type, reader) for the fields of a protobuf message; it must read or skip the value.
template <class Each>
bool for_each_field(std::string_view message, const Each& each) {
  ByteReader reader(message);
  while (!reader.done()) {
    const std::uint64_t key = reader.varint();
    if (!reader.failed()) each(key >> 3U, key & 7U, reader);
  }
  return !reader.failed();
}

Error broken_model(const std::string& what) {
  return {ErrorCode::kCorrupt, "not a SentencePiece model: " + what};
}

// The types of SentencePiece's pieces.
constexpr std::uint64_t kNormal = 1;
constexpr std::uint64_t kUnknown = 2;
constexpr std::uint64_t kControl = 3;
constexpr std::uint64_t kUnused = 5;
constexpr std::uint64_t kBytePiece = 6;

struct SentencePieceModel {
  std::vector<ScoredPiece> pieces;
  std::uint64_t method = 1;  // 1: unigram, 2: BPE
  std::optional<Token> unknown;
  std::uint64_t begin = 1;
  std::uint64_t end = 2;
  bool leading_space = true;
  bool joins_spaces = true;
};

bool read_piece(std::string_view message, SentencePieceModel& model) {
  ScoredPiece piece;
  std::uint64_t type = kNormal;
  const bool sound =
      for_each_field(message, [&](std::uint64_t field, std::uint64_t wire, ByteReader& reader) {
        if (field == 1 && wire == 2)
          piece.text = reader.field();
        else if (field == 2 && wire == 5)
          piece.score = reader.number();
        else if (field == 3 && wire == 0)
          type = reader.varint();
        else
          reader.skip(wire);
      });
  if (type == kUnknown) model.unknown = static_cast<Token>(model.pieces.size());
  if (type == kUnknown || type == kControl || type == kUnused) piece.kind = TokenKind::kControl;
  if (type == kBytePiece) piece.kind = TokenKind::kByte;
  model.pieces.push_back(std::move(piece));
  return sound && model.pieces.size() <= kMaxTokens;
}

bool read_trainer(std::string_view message, SentencePieceModel& model) {
  return for_each_field(message, [&](std::uint64_t field, std::uint64_t wire, ByteReader& reader) {
    if (wire != 0) return reader.skip(wire);
    const std::uint64_t value = reader.varint();
    if (field == 3) model.method = value;
    if (field == 41) model.begin = value;
    if (field == 42) model.end = value;
  });
}

bool read_normalizer(std::string_view message, SentencePieceModel& model) {
  return for_each_field(message, [&](std::uint64_t field, std::uint64_t wire, ByteReader& reader) {
    if (wire != 0) return reader.skip(wire);
    const std::uint64_t value = reader.varint();
    if (field == 3) model.leading_space = value != 0;
    if (field == 4) model.joins_spaces = value != 0;
  });
}

// The token of this number, if there is one; -1 stands for none.
std::optional<Token> named_token(std::uint64_t number, const Vocabulary& vocabulary) {
  if (number >= vocabulary.tokens.size()) return std::nullopt;
  return static_cast<Token>(number);
}

}  // namespace

Vocabulary sentencepiece_vocabulary(std::vector<ScoredPiece> pieces, bool leading_space) {
  Vocabulary vocabulary{.characters = true, .leading_space = leading_space};
  std::vector<float> scores;
  for (ScoredPiece& piece : pieces) {
    scores.push_back(piece.score);
    const auto byte = byte_piece(piece.text);
    if (piece.kind == TokenKind::kByte && byte)
      vocabulary.add(*byte, TokenKind::kByte);
    else
      vocabulary.add(piece.kind == TokenKind::kControl ? piece.text : with_spaces(piece.text), piece.kind);
  }
  vocabulary.splitter = spans_words(vocabulary) ? Splitter::kWhole : Splitter::kSpaces;
  vocabulary.merges = merges_by_score(vocabulary, scores);
  return vocabulary;
}

bool spans_words(const Vocabulary& vocabulary) {
  for (std::size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    const std::string& token = vocabulary.tokens[i];
    const std::size_t word = token.find_first_not_of(' ');
    if (vocabulary.kinds[i] == TokenKind::kText && word != std::string::npos &&
        token.find(' ', word) != std::string::npos)
      return true;
  }
  return false;
}

std::optional<std::string> bytes_of_spelling(std::string_view text) {
  // Printable bytes of Latin-1 stand for themselves; the others, in order, for U+0100, U+0101 ...
  static const std::array<std::uint16_t, 0x144> kBytes = [] {
    std::array<std::uint16_t, 0x144> bytes{};
    bytes.fill(256);
    std::size_t next = 0x100;
    for (std::uint16_t byte = 0; byte < 256; ++byte) {
      const bool printable = (byte > 32 && byte < 127) || (byte > 160 && byte != 173);
      bytes.at(printable ? byte : next++) = byte;
    }
    return bytes;
  }();
  std::string out;
  while (!text.empty()) {
    std::uint32_t code = 0;
    const std::size_t size = take_character(text, code);
    if (size == 0 || code >= kBytes.size() || kBytes.at(code) > 255) return std::nullopt;
    out += static_cast<char>(kBytes.at(code));
    text.remove_prefix(size);
  }
  return out;
}

Result<Vocabulary> parse_sentencepiece(std::string_view bytes) {
  SentencePieceModel model;
  bool sound = true;
  sound = for_each_field(bytes,
                         [&](std::uint64_t field, std::uint64_t wire, ByteReader& reader) {
                           if (wire != 2) return reader.skip(wire);
                           const std::string_view message = reader.field();
                           if (field == 1) sound = sound && read_piece(message, model);
                           if (field == 2) sound = sound && read_trainer(message, model);
                           if (field == 3) sound = sound && read_normalizer(message, model);
                         }) &&
          sound;
  if (!sound || model.pieces.empty()) return broken_model("its fields end before the file does");
  if (model.method != 2)
    return Error{ErrorCode::kUnsupported, "the SentencePiece model is no BPE (model type " +
                                              std::to_string(model.method) + "); only BPE is supported"};
  if (model.joins_spaces)
    return Error{ErrorCode::kUnsupported,
                 "the SentencePiece model removes extra spaces from a text, which is not supported"};
  Vocabulary vocabulary = sentencepiece_vocabulary(std::move(model.pieces), model.leading_space);
  vocabulary.unknown = model.unknown;
  vocabulary.begin = named_token(model.begin, vocabulary);
  vocabulary.end = named_token(model.end, vocabulary);
  if (const auto checked = check_vocabulary(vocabulary); !checked)
    return broken_model(checked.error().message);
  return vocabulary;
}

// An int32 length of the longest token; then for each token a float32 score, an int32 length and its bytes.
Result<Vocabulary> parse_llama2c_vocabulary(std::string_view bytes) {
  constexpr Token kFirstText = 3;  // after unknown, begin and end
  ByteReader reader(bytes);
  reader.fixed32();
  std::vector<ScoredPiece> pieces;
  while (!reader.done() && pieces.size() < kMaxTokens) {
    ScoredPiece piece{.score = reader.number()};
    piece.text = reader.take(reader.fixed32());
    if (pieces.size() < kFirstText) piece.kind = TokenKind::kControl;
    if (byte_piece(piece.text)) piece.kind = TokenKind::kByte;
    pieces.push_back(std::move(piece));
  }
  const auto broken = [](const std::string& what) {
    return Error{ErrorCode::kCorrupt, "not a tokenizer.bin of llama2.c: " + what};
  };
  if (reader.failed()) return broken("a token ends after the file does");
  if (pieces.size() <= kFirstText) return broken("it has no tokens");
  Vocabulary vocabulary = sentencepiece_vocabulary(std::move(pieces), true);
  vocabulary.unknown = 0;
  vocabulary.begin = 1;
  vocabulary.end = 2;
  if (const auto checked = check_vocabulary(vocabulary); !checked) return broken(checked.error().message);
  return vocabulary;
}

Result<Vocabulary> read_vocabulary_file(const std::filesystem::path& path) {
  FEDGE_TRY(text, read_file(path, kMaxVocabularyText));
  auto read = [&]() -> Result<Vocabulary> {
    const std::size_t begin = text.find_first_not_of(" \t\r\n");
    if (text.starts_with("fedge-vocabulary")) return parse_vocabulary(text);
    if (begin != std::string::npos && text[begin] == '{') return parse_tokenizer_json(text);
    // A SentencePiece model begins with its first piece: field 1, a message that is not empty.
    if (text.size() > 1 && text[0] == '\n' && text[1] != '\0') return parse_sentencepiece(text);
    return parse_llama2c_vocabulary(text);
  }();
  if (!read) return read.error().with_prefix(path.string() + ": ");
  return read;
}

}  // namespace fedge::learn
