// Generation: a decoder gives the scores of the forward pass, whatever the model and however a text is read.
#include "learn/generate.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "learn/model.h"
#include "learn/models/adapters.h"
#include "learn/models/language/transformer.h"
#include "learn/text_decoder.h"

using namespace fedge;
using namespace fedge::learn;

namespace {

constexpr std::size_t kWords = 11;
constexpr std::size_t kWindow = 80;

struct Writer {
  std::unique_ptr<Model> model;
  std::vector<float> values;
};

Writer writer_of(const ModelSpec& spec, std::size_t window = kWindow) {
  auto made = make_model(spec, {1, window, 1, true}, kWords);
  REQUIRE_MESSAGE(made.has_value(), made.error().message);
  Writer writer{std::move(*made), {}};
  writer.values.resize(writer.model->layout()->size());
  Rng rng(8);
  for (float& value : writer.values) value = static_cast<float>(0.4 * rng.normal());
  return writer;
}

std::vector<ModelSpec> writers() {
  const LanguageSpec sizes{.layers = 2, .width = 24, .heads = 4};
  ModelSpec gpt2{.kind = "transformer", .language = sizes};
  ModelSpec llama{.kind = "llama", .language = sizes};
  llama.language.kv_heads = 2;
  ModelSpec adapted = llama;
  adapted.adapter.rank = 3;
  return {gpt2, llama, adapted};
}

std::vector<Token> some_text(std::size_t size) {
  Rng rng(9);
  std::vector<Token> text(size);
  for (Token& token : text) token = static_cast<Token>(rng.below(kWords));
  return text;
}

// The scores after a text by the forward pass.
std::vector<float> slow_scores(const Writer& writer, std::span<const Token> text, std::size_t ranks) {
  const auto workspace = writer.model->make_workspace(1);
  workspace->ranks = ranks;
  std::vector<float> scores(text.size() * kWords);
  writer.model->forward(writer.values, {.tokens = text, .length = text.size()}, scores, *workspace);
  return {scores.end() - static_cast<std::ptrdiff_t>(kWords), scores.end()};
}

}  // namespace

TEST_CASE("generate: a decoder's scores are the forward pass's, however the text is cut") {
  const std::vector<Token> text = some_text(kWindow);
  for (const ModelSpec& spec : writers())
    for (const std::size_t ranks : spec.adapter.rank > 0 ? std::vector<std::size_t>{0, 2, SIZE_MAX}
                                                         : std::vector<std::size_t>{SIZE_MAX}) {
      CAPTURE(spec.kind);
      CAPTURE(ranks);
      const Writer writer = writer_of(spec);
      // Pieces of one row, of a few that are multiplied directly, of many, and of more than one prompt's
      // rows.
      for (const std::vector<std::size_t>& pieces :
           {std::vector<std::size_t>{1, 1, 1, 3}, {9, 1, 30}, {70, 2, 1}, {80}}) {
        const auto decoder = writer.model->make_decoder(writer.values, ranks);
        REQUIRE(decoder != nullptr);
        CHECK(decoder->capacity() == kWindow);
        std::vector<float> scores(kWords);
        for (const std::size_t piece : pieces) {
          const std::size_t before = decoder->length();
          decoder->read(std::span(text).subspan(before, piece), scores);
          CHECK(decoder->length() == before + piece);
          const std::vector<float> slow = slow_scores(writer, std::span(text).first(before + piece), ranks);
          for (std::size_t i = 0; i < kWords; ++i)
            CHECK(scores[i] == doctest::Approx(slow[i]).epsilon(1e-4).scale(1));
        }
      }
    }
}

TEST_CASE(
    "generate: sequences longer than a piece of a batch are computed one by one, and read as a text is") {
  const std::size_t length = kBlockTokens + 190;
  const std::vector<Token> text = some_text(2 * length + 1);
  const auto tokens = std::span(text).first(2 * length);
  const auto targets = std::span(text).last(2 * length);
  for (const ModelSpec& spec : writers()) {
    CAPTURE(spec.kind);
    const Writer writer = writer_of(spec, length);
    const auto gradient_of = [&](std::size_t first, std::size_t count) {
      const auto workspace = writer.model->make_workspace(2);
      std::vector<float> gradient(writer.values.size());
      writer.model->loss_and_gradient(writer.values,
                                      {.tokens = tokens.subspan(first, count),
                                       .targets = targets.subspan(first, count),
                                       .length = length},
                                      gradient, *workspace);
      return gradient;
    };
    const auto both = gradient_of(0, 2 * length);
    const auto one = gradient_of(0, length);
    const auto other = gradient_of(length, length);
    const std::size_t begin = spec.adapter.rank > 0 ? writer.model->adapters()->offset() : 0;
    float most = 0;
    for (const float value : both) most = std::max(most, std::abs(value));
    REQUIRE(most > 0);
    for (std::size_t i = begin; i < both.size(); ++i)
      CHECK(std::abs(both[i] - (one[i] + other[i]) / 2) <= 1e-5F * most);
    const auto decoder = writer.model->make_decoder(writer.values, SIZE_MAX);
    std::vector<float> scores(kWords);
    decoder->read(tokens.first(length), scores);
    const auto slow = slow_scores(writer, tokens.first(length), SIZE_MAX);
    for (std::size_t i = 0; i < kWords; ++i) CHECK(scores[i] == doctest::Approx(slow[i]).epsilon(1e-3));
  }
}

TEST_CASE("generate: past the context the model sees the last tokens, as without a decoder") {
  const Writer writer = writer_of(writers()[1]);
  const std::vector<Token> prompt = some_text(kWindow - 5);
  std::vector<Token> text = prompt;
  const std::vector<Token> written =
      generate(*writer.model, writer.values, prompt, {.tokens = 30, .temperature = 0}, Rng(1));
  REQUIRE(written.size() == 30);
  for (const Token next : written) {
    const std::vector<float> slow =
        slow_scores(writer, std::span(text).last(std::min(kWindow, text.size())), SIZE_MAX);
    CHECK(slow[next] >= *std::ranges::max_element(slow) - 1e-4F);
    text.push_back(next);
  }
  // A prompt that is longer than the context.
  CHECK(
      generate(*writer.model, writer.values, some_text(kWindow + 20), {.tokens = 3, .temperature = 0}, Rng(1))
          .size() == 3);
}

TEST_CASE("generate: the end token ends a text and is not part of it") {
  const Writer writer = writer_of(writers()[1]);
  const std::vector<Token> prompt = {1};
  const std::vector<Token> whole =
      generate(*writer.model, writer.values, prompt, {.tokens = 30, .temperature = 0}, Rng(1));
  const Token end = whole[4];
  const auto first = std::ranges::find(whole, end);
  const std::vector<Token> cut =
      generate(*writer.model, writer.values, prompt, {.tokens = 30, .temperature = 0, .end = end}, Rng(1));
  CHECK(cut == std::vector<Token>(whole.begin(), first));
}

TEST_CASE("generate: the same seed draws the same text, from the likeliest tokens only") {
  const Writer writer = writer_of(writers()[0]);
  const std::vector<Token> prompt = {2, 3};
  const auto text = [&](std::uint64_t seed, std::size_t top) {
    return generate(*writer.model, writer.values, prompt, {.tokens = 40, .temperature = 5, .top = top},
                    Rng(seed));
  };
  CHECK(text(1, 0) == text(1, 0));
  CHECK(text(1, 0) != text(2, 0));
  CHECK(text(1, 1) == text(2, 1));  // only the likeliest
}
