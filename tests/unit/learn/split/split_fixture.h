// A small language model with adapters and its data, for tests of split training.
#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/split/split_layout.h"
#include "learn/model.h"
#include "learn/models/adapters.h"
#include "learn/split/local_peer.h"
#include "learn/trainer.h"

namespace fedge::learn::test {

inline constexpr std::size_t kSplitBlocks = 4;
inline constexpr std::size_t kSplitRank = 5;
inline constexpr std::size_t kSplitContext = 96;  // so that a batch of 12 has three pieces
inline constexpr std::size_t kSplitVocabulary = 23;

inline ModelSpec split_model(bool llama) {
  ModelSpec spec;
  spec.kind = llama ? "llama" : "transformer";
  spec.language.layers = kSplitBlocks;
  spec.language.width = 24;
  spec.language.heads = 3;
  spec.language.tied = !llama;
  if (llama) spec.language.mlp_width = 40;
  spec.adapter.rank = kSplitRank;
  return spec;
}

// Parameters whose adapters are not zero, and 30 sequences, some of them short.
struct SplitProblem {
  explicit SplitProblem(bool llama) {
    auto made = make_model(split_model(llama), {1, kSplitContext, 1, true}, kSplitVocabulary);
    REQUIRE(made.has_value());
    model = std::move(*made);
    parameters.resize(model->layout()->size());
    model->initialise(parameters, Rng(3));
    Rng rng(8);
    for (float& value : std::span(parameters).subspan(model->adapters()->offset()))
      value = static_cast<float>(0.1 * rng.normal());
    data.shape = {1, kSplitContext, 1, true};
    data.classes = 1;
    data.text.vocabulary = kSplitVocabulary;
    for (std::uint32_t sample = 0; sample < 30; ++sample) {
      samples.push_back(sample);
      data.labels.push_back(0);
      const std::uint32_t length = sample % 3 == 0 ? kSplitContext / 2 : kSplitContext;
      data.text.windows.push_back({static_cast<std::uint32_t>(data.text.tokens.size()), length});
      for (std::uint32_t i = 0; i <= length; ++i)
        data.text.tokens.push_back(static_cast<Token>(rng.below(kSplitVocabulary)));
    }
  }

  SplitLayout layout(std::size_t cut_ranks = 0) const {
    auto layout = SplitLayout::of(*model->layout(), model->adapters()->shape(), cut_ranks);
    REQUIRE(layout.has_value());
    return *layout;
  }
  Coverage adapters() const { return Coverage::of({model->adapters()->shape().prefix(kSplitRank)}); }
  std::unique_ptr<Model> model;
  std::vector<float> parameters;
  Dataset data;
  std::vector<std::uint32_t> samples;
};

}  // namespace fedge::learn::test
