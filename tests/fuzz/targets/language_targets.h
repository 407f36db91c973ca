// Fuzz targets of published language models: vocabularies in Fedge's own text, files of other tokenizers, and
// the headers of files with weights.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "core/check.h"
#include "learn/model.h"
#include "learn/text/tokenizer.h"
#include "learn/text/vocabulary/files.h"
#include "learn/weights/import.h"
#include "tests/fuzz/targets/memory_file.h"

namespace fedge::fuzz {

// Whether an error is one that a person can read.
inline void check_error(const Error& error) {
  FEDGE_CHECK(!error.message.empty() && error.message.size() < 10'000, "an error says what is wrong");
}

// A vocabulary has one text, and its tokenizer loses nothing that it can represent.
inline void check_vocabulary_kept(const learn::Vocabulary& vocabulary, const std::string& sample) {
  const std::string text = learn::vocabulary_text(vocabulary);
  const auto again = learn::parse_vocabulary(text);
  FEDGE_CHECK(again.has_value(), again ? "" : again.error().message);
  FEDGE_CHECK(*again == vocabulary && learn::vocabulary_text(*again) == text, "a vocabulary changes");
  const auto tokenizer = learn::Tokenizer::published(text);
  FEDGE_CHECK(tokenizer.has_value(), tokenizer ? "" : tokenizer.error().message);
  const std::vector<learn::Token> tokens = tokenizer->encode(sample);
  for (const learn::Token token : tokens) {
    FEDGE_CHECK(token < tokenizer->vocabulary(), "a token of the vocabulary");
    const bool unknown = token == vocabulary.unknown && token != vocabulary.begin && token != vocabulary.end;
    FEDGE_CHECK(vocabulary.kinds[token] != learn::TokenKind::kControl || unknown,
                "a text becomes a control token");
  }
  if (learn::has_all_bytes(vocabulary))
    FEDGE_CHECK(
        tokenizer->decode(tokens) == (vocabulary.leading_space && !sample.empty() ? " " : "") + sample,
        "the tokenizer loses text");
}

inline std::string characters_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline void feed_vocabulary(std::span<const std::byte> bytes) {
  const std::string text = characters_of(bytes);
  const auto vocabulary = learn::parse_vocabulary(text);
  if (!vocabulary) return check_error(vocabulary.error());
  FEDGE_CHECK(learn::vocabulary_text(*vocabulary) == text, "a vocabulary has two texts");
  check_vocabulary_kept(*vocabulary, text);
}

inline void feed_tokenizer_file(std::span<const std::byte> bytes) {
  const MemoryFile file(bytes);
  const auto vocabulary = learn::read_vocabulary_file(file.path());
  if (!vocabulary) return check_error(vocabulary.error());
  check_vocabulary_kept(*vocabulary, characters_of(bytes));
}

// A model that is accepted has a number for every parameter, and a vocabulary that its model file keeps.
inline void feed_gguf(std::span<const std::byte> bytes) {
  const MemoryFile file(bytes);
  const auto published = learn::open_gguf(file.path(), {});
  if (!published) return check_error(published.error());
  const auto made = learn::make_model(published->spec, {1, 2, 1, true}, published->vocabulary.tokens.size());
  if (!made) return check_error(made.error());
  if ((*made)->layout()->size() > 1 << 20) return;
  check_vocabulary_kept(published->vocabulary, "The sea, 12 !");
  const auto values = learn::read_weights(*published, (*made)->layout());
  if (!values) return check_error(values.error());
  for (const float value : values->values()) FEDGE_CHECK(std::isfinite(value), "a weight is no number");
}

// Tensors that are accepted lie in the file and can be read.
inline void feed_tensor_table(std::span<const std::byte> bytes) {
  const MemoryFile file(bytes);
  const auto weights = learn::open_safetensors_weights(file.path());
  if (!weights) return check_error(weights.error());
  for (const auto& [name, weight] : weights->weights()) {
    FEDGE_CHECK(weight.elements() <= bytes.size(), "a tensor is larger than the file");
    std::vector<float> values(weight.elements());
    if (const auto read = weights->read(weight, values); !read) check_error(read.error());
  }
}

}  // namespace fedge::fuzz
