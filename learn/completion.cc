#include "learn/completion.h"

#include <string_view>

#include "core/check.h"
#include "learn/generate.h"

namespace fedge::learn {
namespace {

constexpr std::string_view kCut = ": ";

RougeScore score_line(const Model& model, std::span<const float> parameters, const Tokenizer& tokenizer,
                      const Completion& line, std::size_t ranks) {
  const auto ends_line = [&](Token token) {
    return tokenizer.decode(std::span(&token, 1)).find('\n') != std::string::npos;
  };
  const std::vector<Token> written = generate(model, parameters, tokenizer.encode(line.prompt),
                                              {.tokens = model.input_size(),
                                               .temperature = 0,
                                               .ranks = ranks,
                                               .written = [&](Token token) { return !ends_line(token); }},
                                              Rng(0));
  const std::string said = tokenizer.decode(written);
  return rouge_l(std::string_view(said).substr(0, said.find('\n')),
                 tokenizer.decode(tokenizer.encode(line.reference)));
}

}  // namespace

std::vector<Completion> completions(std::span<const TextGroup> groups, std::size_t per_group) {
  std::vector<Completion> found;
  for (const TextGroup& group : groups) {
    std::string_view text = group.held_out;
    std::size_t taken = 0;
    for (std::size_t end = text.find('\n'); taken < per_group && end != std::string_view::npos;
         end = text.find('\n')) {
      const std::string_view line = text.substr(0, end);
      text.remove_prefix(end + 1);
      const std::size_t cut = line.find(kCut);
      if (cut == std::string_view::npos || cut == 0 || cut + kCut.size() == line.size()) continue;
      const std::size_t rest = cut + kCut.size();
      found.push_back({std::string(line.substr(0, rest)), std::string(line.substr(rest))});
      ++taken;
    }
  }
  return found;
}

RougeScore score_completions(const Model& model, std::span<const float> parameters,
                             const Tokenizer& tokenizer, std::span<const Completion> lines,
                             Parallel& parallel, std::size_t ranks) {
  FEDGE_CHECK(!lines.empty(), "a mean of something");
  std::vector<RougeScore> scores(lines.size());
  parallel.for_each(lines.size(), [&](std::size_t i) {
    scores[i] = score_line(model, parameters, tokenizer, lines[i], ranks);
  });
  RougeScore mean;
  const auto count = static_cast<double>(lines.size());
  for (const RougeScore& score : scores) {
    mean.recall += score.recall / count;
    mean.precision += score.precision / count;
    mean.f += score.f / count;
  }
  return mean;
}

}  // namespace fedge::learn
