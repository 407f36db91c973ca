// Models in GGUF files: the vocabulary from their keys, and the names of their tensors.
#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "core/text.h"
#include "learn/weights/gguf_file.h"
#include "learn/weights/published.h"

namespace fedge::learn {
namespace {

// Types of tokens as in llama.cpp.
constexpr double kNormalToken = 1;
constexpr double kByteToken = 6;

Result<Vocabulary> byte_level(const GgufKeys& keys, const std::vector<std::string>& tokens,
                              const std::vector<double>& types) {
  static const std::map<std::string, Splitter> kWords = {
      {"gpt-2", Splitter::kGpt2},    {"default", Splitter::kGpt2},     {"", Splitter::kGpt2},
      {"smollm", Splitter::kDigits}, {"llama-bpe", Splitter::kLlama3}, {"qwen2", Splitter::kQwen2}};
  const std::string words = keys.text("tokenizer.ggml.pre");
  const auto known = kWords.find(words);
  if (known == kWords.end())
    return keys.wrong("tokenizer.ggml.pre",
                      "is " + json_text(words.substr(0, 40)) + ", which is not supported");
  FEDGE_TRY(merges, keys.list<std::string>("tokenizer.ggml.merges"));
  Vocabulary vocabulary{.splitter = known->second, .whole_words = words == "llama-bpe"};
  std::map<std::string, Token> numbers;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    numbers.emplace(tokens[i], static_cast<Token>(i));
    const auto bytes = bytes_of_spelling(tokens[i]);
    if (types[i] == kNormalToken && bytes)
      vocabulary.add(*bytes, TokenKind::kText);
    else
      vocabulary.add(tokens[i].substr(0, kMaxTokenBytes), TokenKind::kControl);
  }
  for (const std::string& merge : merges) {
    const std::size_t space = std::min(merge.find(' '), merge.size());
    const std::string left = merge.substr(0, space);
    const std::string right = merge.substr(std::min(space + 1, merge.size()));
    const auto a = numbers.find(left);
    const auto b = numbers.find(right);
    const auto made = numbers.find(left + right);
    if (a == numbers.end() || b == numbers.end() || made == numbers.end())
      return keys.wrong("tokenizer.ggml.merges",
                        "has " + json_text(merge.substr(0, 40)) + ", which names no token");
    vocabulary.merges.push_back(
        {a->second, b->second, made->second, static_cast<std::uint32_t>(vocabulary.merges.size())});
  }
  return vocabulary;
}

Result<Vocabulary> scored(const GgufKeys& keys, const std::vector<std::string>& tokens,
                          const std::vector<double>& types) {
  FEDGE_TRY(scores, keys.list<double>("tokenizer.ggml.scores"));
  if (scores.size() != tokens.size())
    return keys.wrong("tokenizer.ggml.scores", "has another length than tokens");
  std::vector<ScoredPiece> pieces;
  for (std::size_t i = 0; i < tokens.size(); ++i)
    pieces.push_back({tokens[i], static_cast<float>(scores[i]),
                      types[i] == kByteToken     ? TokenKind::kByte
                      : types[i] == kNormalToken ? TokenKind::kText
                                                 : TokenKind::kControl});
  return sentencepiece_vocabulary(std::move(pieces), keys.flag("tokenizer.ggml.add_space_prefix", true));
}

Result<Vocabulary> gguf_vocabulary(const GgufKeys& keys) {
  const std::string method = keys.text("tokenizer.ggml.model");
  if (method != "gpt2" && method != "llama")
    return keys.wrong("tokenizer.ggml.model",
                      "is " + json_text(method.substr(0, 40)) + "; supported are \"llama\" and \"gpt2\"");
  FEDGE_TRY(tokens, keys.list<std::string>("tokenizer.ggml.tokens"));
  if (tokens.size() > kMaxTokens) return keys.wrong("tokenizer.ggml.tokens", "has too many tokens");
  std::vector<double> types(tokens.size(), kNormalToken);
  if (keys.has("tokenizer.ggml.token_type")) {
    FEDGE_TRY(given, keys.list<double>("tokenizer.ggml.token_type"));
    if (given.size() != tokens.size())
      return keys.wrong("tokenizer.ggml.token_type", "has another length than tokens");
    types = std::move(given);
  }
  FEDGE_TRY(vocabulary, method == "gpt2" ? byte_level(keys, tokens, types) : scored(keys, tokens, types));
  if (keys.flag("tokenizer.ggml.add_bos_token", method == "llama"))
    vocabulary.begin = keys.token("tokenizer.ggml.bos_token_id", tokens.size());
  vocabulary.end = keys.token("tokenizer.ggml.eos_token_id", tokens.size());
  if (method == "llama") vocabulary.unknown = keys.token("tokenizer.ggml.unknown_token_id", tokens.size());
  if (const auto sound = check_vocabulary(vocabulary); !sound)
    return keys.wrong("tokenizer.ggml.tokens", "cannot be used: " + sound.error().message);
  return vocabulary;
}

Result<RotarySpec> gguf_rotary(const GgufKeys& keys) {
  RotarySpec rotary;
  FEDGE_TRY(theta, keys.number(keys.of_family("rope.freq_base"), rotary.theta));
  rotary.theta = theta;
  const std::string scaling = keys.text(keys.of_family("rope.scaling.type"));
  if (scaling == "linear") {
    FEDGE_TRY(factor, keys.number(keys.of_family("rope.scaling.factor"), 1.0));
    rotary.scaling = RotaryScaling::kLinear;
    rotary.factor = factor;
  } else if (!scaling.empty() && scaling != "none") {
    return keys.wrong(keys.of_family("rope.scaling.type"),
                      "is " + json_text(scaling.substr(0, 40)) + ", which is not supported");
  }
  return rotary;
}

void add_gguf_parts(PublishedModel& model, bool llama, std::size_t heads, std::size_t shared) {
  const auto add = [&](const std::string& tensor, const std::string& stored, std::size_t first_row = 0) {
    model.parts.push_back({.tensor = tensor, .stored = stored, .first_row = first_row});
  };
  const auto both = [&](const std::string& tensor, const std::string& stored, std::size_t first_row = 0) {
    add(tensor + ".weight", stored + ".weight", first_row);
    if (!llama) add(tensor + ".bias", stored + ".bias", first_row);
  };
  const LanguageSpec& spec = model.spec.language;
  add("token_embedding", "token_embd.weight");
  if (!llama) add("position_embedding", "position_embd.weight");
  for (std::size_t i = 0; i < spec.layers; ++i) {
    const std::string to = "block" + std::to_string(i + 1) + ".";
    const std::string from = "blk." + std::to_string(i) + ".";
    both(to + "norm1", from + "attn_norm");
    std::size_t row = 0;
    for (const char* part : {"q", "k", "v"}) {
      if (!llama) {
        both(to + "attention." + part, from + "attn_qkv", row);
        row += spec.width;
        continue;
      }
      both(to + "attention." + part, from + "attn_" + part);
      if (*part == 'v') continue;
      model.parts.back().arrangement = Arrangement::kInterleaved;
      model.parts.back().heads = *part == 'q' ? heads : shared;
    }
    both(to + "attention.o", from + "attn_output");
    both(to + "norm2", from + "ffn_norm");
    if (llama) both(to + "mlp.gate", from + "ffn_gate");
    both(to + "mlp.up", from + "ffn_up");
    both(to + "mlp.down", from + "ffn_down");
  }
  both("norm", "output_norm");
  if (!spec.tied) add("head.weight", "output.weight");
}

}  // namespace

Result<PublishedModel> open_gguf(const std::filesystem::path& path, const std::filesystem::path& tokenizer) {
  const std::string name = path.string();
  FEDGE_TRY(file, ReadOnlyFile::open(path));
  FEDGE_TRY(header, read_gguf_header(file));
  const auto family = header.pairs.find("general.architecture");
  const auto* text = family == header.pairs.end() ? nullptr : std::get_if<std::string>(&family->second);
  if (text == nullptr || (*text != "llama" && *text != "gpt2"))
    return invalid(name + ": general.architecture is " +
                   (text == nullptr ? "missing" : json_text(text->substr(0, 40))) +
                   "; supported are \"llama\" and \"gpt2\"");
  const bool llama = *text == "llama";
  const GgufKeys keys(header.pairs, name, *text);
  FEDGE_TRY(weights, WeightFile::make(std::move(file), std::move(header.weights)));
  if (weights.find("rope_freqs.weight") != nullptr)
    return invalid(name +
                   ": scales rotary positions by rope_freqs.weight, which is not supported; import the "
                   "folder from which this file was made");
  PublishedModel model{.format = "GGUF file"};
  FEDGE_TRY(width, keys.size(keys.of_family("embedding_length")));
  FEDGE_TRY(layers, keys.size(keys.of_family("block_count")));
  if (layers > kMaxBlocks)
    return keys.wrong(keys.of_family("block_count"), "is above " + std::to_string(kMaxBlocks));
  FEDGE_TRY(heads, keys.size(keys.of_family("attention.head_count")));
  FEDGE_TRY(hidden, keys.size(keys.of_family("feed_forward_length")));
  FEDGE_TRY(positions, keys.size(keys.of_family("context_length")));
  FEDGE_TRY(shared, keys.size(keys.of_family("attention.head_count_kv"), static_cast<double>(heads)));
  LanguageSpec& spec = model.spec.language;
  model.spec.kind = llama ? "llama" : "transformer";
  spec = {.layers = layers, .width = width, .heads = heads, .tied = weights.find("output.weight") == nullptr};
  spec.positions = positions;
  if (llama) {
    FEDGE_TRY(epsilon, keys.number(keys.of_family("attention.layer_norm_rms_epsilon"), 1e-5));
    FEDGE_TRY(rotary, gguf_rotary(keys));
    FEDGE_TRY(turned, keys.size(keys.of_family("rope.dimension_count"), static_cast<double>(width / heads)));
    if (turned * heads != width)
      return keys.wrong(keys.of_family("rope.dimension_count"), "is not the size of a head");
    spec.kv_heads = shared;
    spec.mlp_width = hidden;
    spec.epsilon = static_cast<float>(epsilon);
    spec.rotary = rotary;
  } else {
    if (hidden != 4 * width)
      return keys.wrong(keys.of_family("feed_forward_length"), "is not 4 times the width");
  }
  const StoredWeight* embedding = weights.find("token_embd.weight");
  if (embedding == nullptr) return invalid(name + ": the tensor token_embd.weight is missing");
  FEDGE_TRY(vocabulary, tokenizer.empty() ? gguf_vocabulary(keys) : read_vocabulary_file(tokenizer));
  model.vocabulary = std::move(vocabulary);
  if (const auto filled = fill_vocabulary(model.vocabulary, embedding->shape[0]); !filled)
    return filled.error().with_prefix(name + ": ");
  add_gguf_parts(model, llama, heads, shared);
  model.files.push_back(std::move(weights));
  return model;
}

}  // namespace fedge::learn
