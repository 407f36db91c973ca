// Kinds of models and data sets as a user's program registers them, with faults to choose from.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "learn/data/kinds.h"
#include "learn/models/kinds.h"

namespace fedge::test {

// One bias for each output; of a text, the same for each position. Its gradient is 1 everywhere.
class BiasModel final : public learn::Model {
 public:
  BiasModel(const learn::ModelContext& context, std::string fault)
      : text_(context.input.tokens), fault_(std::move(fault)) {
    if (fault_ == "make") throw std::runtime_error("no table");
    auto layout = std::make_shared<ParameterLayout>();
    if (fault_ != "empty") layout->add("bias", {context.outputs});
    layout_ = std::move(layout);
    input_size_ = context.input.size() + (fault_ == "size" ? 1 : 0);
    classes_ = context.outputs;
  }
  std::size_t outputs_per_sample() const override {
    return fault_ == "outputs" ? 2 : text_ && fault_ != "one output" ? input_size_ : 1;
  }
  void initialise(std::span<float> parameters, const Rng&) const override {
    if (fault_ == "initialise") throw std::out_of_range("index 7");
    std::ranges::fill(parameters, 0.5F);
    if (fault_ == "initial nan") parameters[1] = std::numeric_limits<float>::quiet_NaN();
  }
  std::unique_ptr<learn::Workspace> make_workspace(std::size_t) const override {
    if (fault_ == "workspace") throw std::out_of_range("index 7");
    return fault_ == "no workspace" ? nullptr : std::make_unique<learn::Workspace>();
  }
  learn::BatchLoss loss_and_gradient(std::span<const float>, const learn::Batch&, std::span<float> gradient,
                                     learn::Workspace&) const override {
    if (fault_ == "train") throw std::out_of_range("index 7");
    std::ranges::fill(gradient, 1.0F);
    return {};
  }
  void forward(std::span<const float> parameters, const learn::Batch&, std::span<float> logits,
               learn::Workspace&) const override {
    if (fault_ == "forward") throw std::out_of_range("index 7");
    for (std::size_t i = 0; i < logits.size(); ++i) logits[i] = parameters[i % classes_];
  }

 private:
  bool text_;
  std::string fault_;
};

// Sample i has the inputs i and -i and the label i % 2.
class CountedSamples : public learn::DataSource {
 public:
  explicit CountedSamples(std::string fault) : fault_(std::move(fault)) {}

  Result<learn::DatasetInfo> describe(const learn::DataSpec&) const override {
    if (fault_ == "describe") throw std::out_of_range("index 7");
    return learn::DatasetInfo{
        {1, 2, 1, fault_ == "tokens"}, 2, fault_ == "described" ? 3U : 2U, {"even", "odd"}};
  }
  Result<learn::Dataset> load(const learn::DataSpec&, learn::Split split) const override {
    ++loads;
    if (fault_ == "throws") throw std::runtime_error("no such table");
    if (fault_ == "error") return Error{ErrorCode::kNotFound, "there is no file"};
    std::vector<std::uint32_t> all(split == learn::Split::kTrain ? 10 : 4);
    for (std::uint32_t i = 0; i < all.size(); ++i) all[i] = i;
    learn::Dataset data = samples(all);
    if (fault_ == "label") data.labels.assign(all.size(), 2);
    if (fault_ == "shape") data.shape.width = 1;
    if (fault_ == "nan") data.floats.data()[3] = std::numeric_limits<float>::quiet_NaN();
    if (fault_ == "fewer") data.labels.pop_back();
    return data;
  }

  static inline int loads = 0;  // calls of load()

 protected:
  static learn::Dataset samples(std::span<const std::uint32_t> numbers) {
    learn::Dataset data{
        .shape = {1, 2, 1}, .classes = 2, .floats = AlignedBuffer<float>(2 * numbers.size()), .labels = {}};
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      data.floats.data()[2 * i] = static_cast<float>(numbers[i]);
      data.floats.data()[2 * i + 1] = -static_cast<float>(numbers[i]);
      data.labels.push_back(static_cast<learn::Label>(numbers[i] % 2));
    }
    return data;
  }
  std::string fault_;
};

// The same samples, of which labels and parts can be loaded alone.
class DivisibleSamples final : public CountedSamples {
 public:
  using CountedSamples::CountedSamples;
  Result<learn::SampleLabels> labels(const learn::DataSpec&) const override {
    std::vector<learn::Label> values(10);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<learn::Label>(i % 2);
    if (fault_ == "labels") values[4] = 2;
    return learn::SampleLabels{std::move(values), fault_ == "classes" ? 3U : 2U};
  }
  Result<learn::Dataset> load_chosen(const learn::DataSpec& spec,
                                     const learn::ChooseSamples& choose) const override {
    FEDGE_TRY(all, labels(spec));
    FEDGE_TRY(chosen, choose(all.values, all.classes));
    if (fault_ == "one less") chosen.pop_back();
    if (fault_ == "others")
      for (std::uint32_t& sample : chosen) ++sample;
    return samples(chosen);
  }
};

// Two groups of a text with the tokens 0 to 3; each sample has one target less than its width.
class OwnText final : public learn::DataSource {
 public:
  explicit OwnText(std::string fault) : fault_(std::move(fault)) {}
  Result<learn::DatasetInfo> describe(const learn::DataSpec& spec) const override {
    return learn::DatasetInfo{{1, spec.context, 1, true}, 0, 4, {}};
  }
  Result<learn::Dataset> load(const learn::DataSpec& spec, learn::Split) const override {
    learn::Dataset data{.shape = {1, spec.context, 1, true}, .classes = 2, .floats = {}, .labels = {0, 1}};
    const auto width = static_cast<std::uint32_t>(spec.context);
    learn::TextInputs& text = data.text;
    for (std::uint32_t i = 0; i < 2 * width; ++i) text.tokens.push_back(static_cast<learn::Token>(i % 4));
    text.windows = {{0, width - 1}, {width, width - 1}};
    text.vocabulary = 4;
    text.bytes = {1, 1, 1, 1};
    if (fault_ == "wide") text.windows[0].targets = width + 1;
    if (fault_ == "no target") text.windows[0].targets = 0;
    if (fault_ == "beyond") text.windows[1].start += 1;
    if (fault_ == "far") text.windows[1].start = std::numeric_limits<std::uint32_t>::max();
    if (fault_ == "token") text.tokens[3] = 4;
    if (fault_ == "bytes") text.bytes.pop_back();
    if (fault_ == "windows") text.windows.pop_back();
    return data;
  }
  std::vector<std::string> class_names(const learn::DataSpec&) const override { return {"first", "second"}; }

 private:
  std::string fault_;
};

template <class Source>
std::shared_ptr<const learn::DataSource> read_own_source(config::Reader& section) {
  const std::string fault = section.text("fault", "", "Where it fails.");
  if (fault == "null") return nullptr;
  return std::make_shared<Source>(fault);
}

inline learn::ModelFactory read_own_bias(config::Reader& section, learn::ModelSpec&) {
  (void)section.integer("layers", 1, {1, 9}, "Shares its name with a transformer's.");
  (void)section.number("slope", 1, {0, 2}, "No other kind has it.");
  const std::string fault = section.text("fault", "", "Where it fails.");
  if (fault == "read") throw std::runtime_error("no option");
  return [fault](const learn::ModelContext& context) -> std::unique_ptr<learn::Model> {
    if (fault == "null") return nullptr;
    return std::make_unique<BiasModel>(context, fault);
  };
}

// Registers, once: the models own_bias, own_adapted and own_text_bias, and the data sets own_samples,
// own_divisible and own_text.
inline void register_own_kinds() {
  static const bool registered = [] {
    const auto model = [](const char* name, learn::ModelTraits traits) {
      learn::register_model(
          {.name = name, .paper = "", .summary = "", .traits = traits, .read = read_own_bias});
    };
    model("own_bias", {});
    model("own_adapted", {.adapters = true});
    model("own_text_bias", {.texts = true});
    const auto data = [](const char* name, learn::DatasetTraits traits, auto read) {
      learn::register_dataset({.name = name, .paper = "", .summary = "", .traits = traits, .read = read});
    };
    data("own_samples", {}, read_own_source<CountedSamples>);
    data("own_divisible", {}, read_own_source<DivisibleSamples>);
    data("own_text", {.text = true}, read_own_source<OwnText>);
    return true;
  }();
  REQUIRE(registered);
}

}  // namespace fedge::test
