#include "learn/generate.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/check.h"
#include "learn/text_decoder.h"

namespace fedge::learn {
namespace {

Token draw(std::span<const float> scores, const GenerateOptions& options, Rng& rng) {
  if (options.temperature <= 0) return static_cast<Token>(std::ranges::max_element(scores) - scores.begin());
  std::vector<Token> order(scores.size());
  std::iota(order.begin(), order.end(), Token{0});
  const std::size_t top = options.top == 0 ? order.size() : std::min(options.top, order.size());
  const auto likelier = [&](Token a, Token b) {
    return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
  };
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(top), order.end(), likelier);
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

// The scores of the token after a text that grows.
class Reader {
 public:
  Reader(const Model& model, std::span<const float> parameters, std::size_t ranks)
      : model_(model),
        parameters_(parameters),
        ranks_(ranks),
        decoder_(model.make_decoder(parameters, ranks)) {}

  std::span<const float> scores_after(std::span<const Token> text) {
    if (decoder_ != nullptr && text.size() <= decoder_->capacity()) {
      scores_.resize(model_.classes());
      decoder_->read(text.subspan(decoder_->length()), scores_);
      return scores_;
    }
    const std::size_t length = std::min(model_.input_size(), text.size());
    if (workspace_ == nullptr) {
      workspace_ = model_.make_workspace(1);
      workspace_->ranks = ranks_;
      scores_.resize(model_.input_size() * model_.classes());
    }
    const auto logits = std::span(scores_).first(length * model_.classes());
    model_.forward(parameters_, {.tokens = text.last(length), .length = length}, logits, *workspace_);
    return logits.last(model_.classes());
  }

 private:
  const Model& model_;
  std::span<const float> parameters_;
  std::size_t ranks_;
  std::unique_ptr<TextDecoder> decoder_;
  std::unique_ptr<Workspace> workspace_;
  std::vector<float> scores_;
};

}  // namespace

std::vector<Token> generate(const Model& model, std::span<const float> parameters,
                            std::span<const Token> prompt, const GenerateOptions& options, Rng rng) {
  FEDGE_CHECK(model.input().tokens && !prompt.empty(), "a language model and something to go on from");
  Reader reader(model, parameters, options.ranks);
  std::vector<Token> text(prompt.begin(), prompt.end());
  while (text.size() < prompt.size() + options.tokens) {
    const Token next = draw(reader.scores_after(text), options, rng);
    if (next == options.end) break;
    text.push_back(next);
    if (options.written && !options.written(next)) break;
  }
  return {text.begin() + static_cast<std::ptrdiff_t>(prompt.size()), text.end()};
}

}  // namespace fedge::learn
