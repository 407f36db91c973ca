// Imports small published models and compares tokens and scores with what their own libraries compute
// (tests/reference/published/make.py).
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "core/platform/files.h"
#include "core/safetensors.h"
#include "learn/generate.h"
#include "learn/model_file.h"
#include "learn/text/text_data.h"
#include "learn/text_decoder.h"
#include "learn/weights/export.h"
#include "learn/weights/import.h"
#include "tests/support/skip.h"
#include "tests/unit/learn/idx_fixture.h"

using namespace fedge;
using namespace fedge::learn;
using learn::test::TemporaryDirectory;

namespace {

const std::filesystem::path kPublished =
    std::filesystem::path(FEDGE_SOURCE_DIR) / "tests" / "reference" / "published";
constexpr std::size_t kScoreStride = 97;

std::map<std::string, std::vector<double>> expected_numbers() {
  std::ifstream in(kPublished / "expected.txt");
  REQUIRE(in.good());
  std::map<std::string, std::vector<double>> blocks;
  std::string name;
  std::size_t count = 0;
  while (in >> name >> count) {
    blocks[name].resize(count);
    for (double& value : blocks[name]) in >> value;
  }
  return blocks;
}

// Models that are not part of the project: FEDGE_MODELS, or beside downloaded data sets.
std::filesystem::path models_directory() {
  if (const char* chosen = std::getenv("FEDGE_MODELS"); chosen != nullptr) return chosen;
  const auto user = user_data_directory();
  return user ? *user : std::filesystem::path();
}

std::string nasty_text() {
  const auto text = read_file(kPublished / "text.bin", 1 << 16);
  REQUIRE(text.has_value());
  return *text;
}

// Imports into a file, and reads that.
ModelFile imported(const std::filesystem::path& from, const std::filesystem::path& tokenizer = {}) {
  const TemporaryDirectory directory;
  auto made = import_model(from, {.tokenizer = tokenizer});
  REQUIRE_MESSAGE(made.has_value(), made.error().message);
  const auto path = directory.path() / "model.safetensors";
  REQUIRE(write_safetensors(path, made->values, made->metadata));
  auto file = read_model_file(path);
  REQUIRE_MESSAGE(file.has_value(), file.error().message);
  return std::move(*file);
}

Tokenizer tokenizer_of(const ModelFile& file) {
  auto tokenizer = make_tokenizer(file.task.data.tokenizer);
  REQUIRE_MESSAGE(tokenizer.has_value(), tokenizer.error().message);
  return std::move(*tokenizer);
}

// The scores after each of the tokens, by the forward pass and by the decoder.
void check_scores(const ModelFile& file, const std::vector<Token>& tokens, const std::string& name) {
  const std::vector<double> expected = expected_numbers().at(name);
  const std::size_t vocabulary = file.model->classes();
  std::vector<float> scores(tokens.size() * vocabulary);
  const auto workspace = file.model->make_workspace(1);
  file.model->forward(file.values.values(), {.tokens = tokens, .length = tokens.size()}, scores, *workspace);
  std::vector<float> one(vocabulary);
  std::vector<float> decoded;
  const auto decoder = file.model->make_decoder(file.values.values(), SIZE_MAX);
  for (const Token token : tokens) {
    decoder->read(std::span(&token, 1), one);
    decoded.insert(decoded.end(), one.begin(), one.end());
  }
  REQUIRE(expected.size() == (scores.size() + kScoreStride - 1) / kScoreStride);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(i);
    // Scores are about 10; rounding of float32 over a few layers.
    CHECK(static_cast<double>(scores[i * kScoreStride]) ==
          doctest::Approx(expected[i]).epsilon(1e-4).scale(1));
    CHECK(static_cast<double>(decoded[i * kScoreStride]) ==
          doctest::Approx(expected[i]).epsilon(1e-4).scale(1));
  }
}

std::vector<Token> tokens_in(const std::string& name) {
  const std::vector<double> numbers = expected_numbers().at(name);
  std::vector<Token> tokens;
  for (const double number : numbers) tokens.push_back(static_cast<Token>(number));
  return tokens;
}

std::vector<Token> every_seventh() {
  std::vector<Token> tokens;
  for (Token token = 3; token < 3 + 40 * 7; token += 7) tokens.push_back(token);
  return tokens;
}

}  // namespace

TEST_CASE("published: a folder of the Llama family has the tokens and scores of transformers") {
  const ModelFile file = imported(kPublished / "llama");
  CHECK(file.task.model.kind == "llama");
  CHECK(file.task.data.context == 64);
  const Tokenizer tokenizer = tokenizer_of(file);
  const std::vector<Token> tokens = tokens_in("llama_tokens");
  CHECK(tokenizer.prompt(nasty_text()) == tokens);
  CHECK(tokenizer.text(tokens) == nasty_text());
  CHECK(tokenizer.end() == Token{2});
  check_scores(file, {tokens.begin(), tokens.begin() + 40}, "llama_scores");
}

TEST_CASE("published: a folder of GPT-2 has the tokens and scores of transformers") {
  const ModelFile file = imported(kPublished / "gpt2");
  CHECK(file.task.model.kind == "transformer");
  const Tokenizer tokenizer = tokenizer_of(file);
  const std::vector<Token> tokens = tokens_in("gpt2_tokens");
  CHECK(tokenizer.encode(nasty_text()) == tokens);
  CHECK(tokenizer.prompt(nasty_text()) == tokens);  // nothing is put before a text
  CHECK(tokenizer.decode(tokens) == nasty_text());
  CHECK(tokenizer.end() == Token{0});
  // A text never becomes a control token.
  CHECK(tokenizer.encode("<|endoftext|>").size() > 1);
  check_scores(file, {tokens.begin(), tokens.begin() + 40}, "gpt2_scores");
}

TEST_CASE("published: a GGUF file with tensors of six types has the scores of its dequantised weights") {
  const ModelFile file = imported(kPublished / "llama.gguf");
  check_scores(file, every_seventh(), "gguf_scores");
  const std::vector<Token> tokens = tokens_in("sentencepiece_tokens");
  CHECK(tokenizer_of(file).encode(nasty_text()) == tokens);
  CHECK(tokenizer_of(file).begin() == Token{1});
}

TEST_CASE("published: a file of llama2.c has the scores of the model that it was made from") {
  const ModelFile file = imported(kPublished / "llama2c.bin", kPublished / "tokenizer.bin");
  check_scores(file, every_seventh(), "llama2c_scores");
  CHECK(tokenizer_of(file).encode(nasty_text()) == tokens_in("sentencepiece_tokens"));
  const auto missing = import_model(kPublished / "llama2c.bin", {});
  REQUIRE_FALSE(missing.has_value());
  CHECK(missing.error().message.find("needs its tokenizer.bin") != std::string::npos);
}

TEST_CASE("published: a SentencePiece model has the tokens of its library") {
  const auto vocabulary = read_vocabulary_file(kPublished / "tokenizer.model");
  REQUIRE_MESSAGE(vocabulary.has_value(), vocabulary.error().message);
  const auto tokenizer = Tokenizer::published(vocabulary_text(*vocabulary));
  REQUIRE(tokenizer.has_value());
  CHECK(tokenizer->encode(nasty_text()) == tokens_in("sentencepiece_tokens"));
  CHECK(tokenizer->text(tokens_in("sentencepiece_tokens")) == nasty_text());
}

TEST_CASE("published: the words of each family are those of its regular expression") {
  for (const auto& [name, splitter] : std::map<std::string, Splitter>{{"gpt2", Splitter::kGpt2},
                                                                      {"digits", Splitter::kDigits},
                                                                      {"llama3", Splitter::kLlama3},
                                                                      {"qwen2", Splitter::kQwen2}}) {
    CAPTURE(name);
    const std::string text = nasty_text();
    std::vector<double> sizes;
    for (std::string_view rest = text; !rest.empty();
         rest.remove_prefix(static_cast<std::size_t>(sizes.back())))
      sizes.push_back(static_cast<double>(split_word(splitter, rest).size()));
    CHECK(sizes == expected_numbers().at(name + "_words"));
  }
}

TEST_CASE("published: stories260K continues nothing with its published text") {
  const std::filesystem::path models = models_directory() / "stories260k";
  if (!std::filesystem::exists(models / "stories260K.bin"))
    return fedge::test::skip("model not found: " + (models / "stories260K.bin").string());
  const ModelFile file = imported(models / "stories260K.bin", models / "tok512.bin");
  const Tokenizer tokenizer = tokenizer_of(file);
  std::vector<Token> text = tokenizer.prompt("");
  const auto written = generate(*file.model, file.values.values(), text,
                                {.tokens = 200, .temperature = 0, .end = tokenizer.end()}, Rng(1));
  text.insert(text.end(), written.begin(), written.end());
  CHECK(tokenizer.text(text).starts_with(
      "Once upon a time, there was a little girl named Lily. She loved to play outside in the park. One day, "
      "she "
      "saw a big, red ball. She wanted to play with it, but it was too high."));
}

TEST_CASE("published: what is exported is imported again, bit for bit, with the same tokenizer") {
  for (const char* family : {"llama", "gpt2"}) {
    CAPTURE(family);
    const TemporaryDirectory directory;
    const ModelFile first = imported(kPublished / family);
    const auto left_out = export_folder(first, SIZE_MAX, directory.path() / "folder");
    REQUIRE_MESSAGE(left_out.has_value(), left_out.error().message);
    CHECK(left_out->empty());
    const ModelFile second = imported(directory.path() / "folder");
    CHECK(model_hash(second.values.values()) == model_hash(first.values.values()));
    CHECK(second.task.data.tokenizer.table == first.task.data.tokenizer.table);
    CHECK(second.task.model.language.rotary == first.task.model.language.rotary);
  }
}

TEST_CASE("published: adapters are written and read in PEFT's format, and compute the same") {
  for (const char* family : {"llama", "gpt2"}) {
    CAPTURE(family);
    const TemporaryDirectory directory;
    ModelFile base = imported(kPublished / family);
    const bool llama = base.task.model.kind == "llama";
    ModelFile adapted{base.task, {}, nullptr, {}};
    adapted.task.model.adapter = {.rank = 3, .scale = 1.5F, .targets = {"k", "v", "down"}};
    auto model = make_model(adapted.task.model, {1, base.task.data.context, 1, true}, base.model->classes());
    REQUIRE_MESSAGE(model.has_value(), model.error().message);
    adapted.model = std::move(*model);
    adapted.values = ParameterVector(adapted.model->layout());
    std::ranges::copy(base.values.values(), adapted.values.values().begin());
    Rng rng(3);
    for (float& value : adapted.values.values().subspan(base.values.size()))
      value = static_cast<float>(0.3 * rng.normal());
    REQUIRE(export_adapters(adapted, SIZE_MAX, "base", directory.path() / "adapters"));
    const auto read = read_adapters(directory.path() / "adapters", base.task.model, base.task.data.context,
                                    base.values, base.model->classes());
    REQUIRE_MESSAGE(read.has_value(), read.error().message);
    ModelSpec spec = base.task.model;
    spec.adapter = read->spec;
    // GPT-2's k and v share a matrix there, with an adapter of twice the rank.
    CHECK(spec.adapter.rank == (llama ? 3 : 6));
    const auto again = make_model(spec, {1, base.task.data.context, 1, true}, base.model->classes());
    REQUIRE(again.has_value());
    if (llama) CHECK(model_hash(read->values.values()) == model_hash(adapted.values.values()));
    const std::vector<Token> tokens = {5, 9, 200, 31, 7};
    const Batch batch{.tokens = tokens, .length = tokens.size()};
    std::vector<float> one(tokens.size() * base.model->classes()), other(one.size());
    adapted.model->forward(adapted.values.values(), batch, one, *adapted.model->make_workspace(1));
    (*again)->forward(read->values.values(), batch, other, *(*again)->make_workspace(1));
    for (std::size_t i = 0; i < one.size(); ++i)
      CHECK(one[i] == doctest::Approx(other[i]).epsilon(1e-4).scale(1));
  }
}
