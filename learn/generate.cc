#include "learn/generate.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/check.h"

namespace fedge::learn {
namespace {

Token draw(std::span<const float> scores, const GenerateOptions& options, Rng& rng) {
  std::vector<Token> order(scores.size());
  std::iota(order.begin(), order.end(), Token{0});
  const std::size_t top = options.top == 0 ? order.size() : std::min(options.top, order.size());
  const auto likelier = [&](Token a, Token b) {
    return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
  };
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(top), order.end(), likelier);
  if (options.temperature <= 0) return order.front();
  std::vector<double> weights(top);
  for (std::size_t i = 0; i < top; ++i)
    weights[i] = std::exp(static_cast<double>(scores[order[i]] - scores[order[0]]) / options.temperature);
  double left = rng.uniform() * std::accumulate(weights.begin(), weights.end(), 0.0);
  for (std::size_t i = 0; i < top; ++i) {
    left -= weights[i];
    if (left < 0) return order[i];
  }
  return order[top - 1];
}

}  // namespace

std::vector<Token> generate(const Model& model, std::span<const float> parameters,
                            std::span<const Token> prompt, const GenerateOptions& options, Rng rng) {
  FEDGE_CHECK(model.input().tokens && !prompt.empty(), "a language model and something to go on from");
  const auto workspace = model.make_workspace(1);
  workspace->ranks = options.ranks;
  const std::size_t context = model.input_size();
  std::vector<Token> text(prompt.begin(), prompt.end());
  std::vector<float> scores(context * model.classes());
  while (text.size() < prompt.size() + options.tokens) {
    const std::size_t length = std::min(context, text.size());
    const auto seen = std::span(text).last(length);
    const auto logits = std::span(scores).first(length * model.classes());
    model.forward(parameters, {.tokens = seen, .length = length}, logits, *workspace);
    text.push_back(draw(logits.last(model.classes()), options, rng));
    if (options.written && !options.written(text.back())) break;
  }
  return {text.begin() + static_cast<std::ptrdiff_t>(prompt.size()), text.end()};
}

}  // namespace fedge::learn
