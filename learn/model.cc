#include "learn/model.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "core/check.h"
#include "learn/models/cnn.h"
#include "learn/models/dense.h"
#include "learn/models/transformer.h"

namespace fedge::learn {
namespace {

// 16 GiB of float32: a mistake in a run file must not exhaust the machine's memory.
constexpr double kMaxCount = 4294967296.0;

Result<void> bounded(double count, const char* key, const char* what = "parameters") {
  if (count <= kMaxCount) return {};
  return invalid(std::string(key) + ": the model would have more than 2^32 " + what +
                 "; use a smaller value");
}

Result<std::unique_ptr<Model>> make_cnn_model(const ModelSpec& spec, const InputShape& input,
                                              std::size_t classes) {
  if (input.height % 4 != 0 || input.width % 4 != 0 || input.height < 4 || input.width < 4)
    return invalid(
        "model.kind: a cnn needs images whose height and width are multiples of 4, because it pools twice by "
        "2; these images are " +
        std::to_string(input.height) + "x" + std::to_string(input.width));
  if (spec.channels.size() != 2)
    return invalid("model.channels: a cnn has two convolutions and needs two values, not " +
                   std::to_string(spec.channels.size()));
  // Offsets in a convolution's scratch are 32-bit. They span its weights, with each kernel row padded to 16
  // floats, and an image with a border of two pixels.
  const auto first = static_cast<double>(spec.channels[0]);
  const auto second = static_cast<double>(spec.channels[1]);
  const auto border = static_cast<double>((input.height + 4) * (input.width + 4));
  const double widest = std::max(static_cast<double>(input.channels), first);
  FEDGE_TRY_VOID(bounded(5 * (5 * static_cast<double>(input.channels) + 15) * first, "model.channels"));
  FEDGE_TRY_VOID(bounded(5 * (5 * first + 15) * second, "model.channels"));
  FEDGE_TRY_VOID(bounded(border * widest, "model.channels"));
  const double flat =
      static_cast<double>(input.height * input.width / 16) * static_cast<double>(spec.channels[1]);
  FEDGE_TRY_VOID(bounded(flat * static_cast<double>(spec.dense), "model.dense"));
  return make_cnn({input, spec.channels[0], spec.channels[1], spec.dense, classes});
}

Result<void> check_targets(const AdapterSpec& adapter, const std::vector<std::string>& known) {
  std::string list;
  for (const std::string& name : known) list += (list.empty() ? "" : ", ") + name;
  std::set<std::string> seen;
  for (const std::string& target : adapter.targets) {
    if (std::ranges::find(known, target) == known.end())
      return invalid("model.adapter.targets: the model has no layer \"" + target + "\"; its layers are " +
                     list);
    if (!seen.insert(target).second)
      return invalid("model.adapter.targets: \"" + target + "\" is listed twice");
  }
  return {};
}

std::vector<std::string> dense_targets(std::size_t layers) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < layers; ++i) names.push_back("dense" + std::to_string(i + 1));
  return names;
}

Result<std::unique_ptr<Model>> make_any_dense_model(const ModelSpec& spec, const InputShape& input,
                                                    std::size_t classes) {
  std::vector<std::size_t> widths{input.size()};
  if (spec.kind == ModelKind::kMlp) widths.insert(widths.end(), spec.hidden.begin(), spec.hidden.end());
  widths.push_back(classes);
  double parameters = 0;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i)
    parameters += static_cast<double>(widths[i]) * static_cast<double>(widths[i + 1]);
  FEDGE_TRY_VOID(bounded(parameters, "model.hidden"));
  FEDGE_TRY_VOID(check_targets(spec.adapter, dense_targets(widths.size() - 1)));
  return make_dense_model(widths, spec.adapter);
}

Result<std::unique_ptr<Model>> make_language_model(const ModelSpec& spec, const InputShape& input,
                                                   std::size_t vocabulary) {
  if (spec.heads == 0 || spec.width % spec.heads != 0)
    return invalid("model.width: " + std::to_string(spec.width) +
                   " is not a multiple of model.heads, which is " + std::to_string(spec.heads));
  const auto width = static_cast<double>(spec.width);
  const double block = 12 * width * width + 13 * width;
  const double parameters = block * static_cast<double>(spec.layers) +
                            width * static_cast<double>(2 * vocabulary + input.width + 2);
  FEDGE_TRY_VOID(bounded(parameters, "model.width"));
  const auto context = static_cast<double>(input.width);
  FEDGE_TRY_VOID(bounded(static_cast<double>(spec.layers * spec.heads) * context * context, "data.context",
                         "attention weights per sample"));
  FEDGE_TRY_VOID(check_targets(spec.adapter, {"q", "k", "v", "o", "up", "down"}));
  return make_transformer({.vocabulary = vocabulary,
                           .context = input.width,
                           .layers = spec.layers,
                           .width = spec.width,
                           .heads = spec.heads,
                           .tied = spec.tied},
                          spec.adapter);
}

Result<std::unique_ptr<Model>> make_any_model(const ModelSpec& spec, const InputShape& input,
                                              std::size_t classes) {
  const bool language = spec.kind == ModelKind::kTransformer;
  if (language != input.tokens)
    return invalid(language ? "model.kind: a transformer needs a text data set; choose a text in "
                              "data.dataset, or another kind of model"
                            : "model.kind: data.dataset is a text; use kind = \"transformer\"");
  if (language) return make_language_model(spec, input, classes);
  if (spec.kind != ModelKind::kCnn) return make_any_dense_model(spec, input, classes);
  if (spec.adapter.rank > 0)
    return invalid("model.adapter: a cnn cannot have adapters; use kind = \"mlp\" or \"transformer\"");
  return make_cnn_model(spec, input, classes);
}

}  // namespace

BatchLoss Model::sgd_step(std::span<float>, const Batch&, float, float, Workspace&) const {
  FEDGE_CHECK(false, "this model makes no steps in place");
  return {};
}

Result<std::unique_ptr<Model>> make_model(const ModelSpec& spec, const InputShape& input,
                                          std::size_t classes) {
  FEDGE_TRY(model, make_any_model(spec, input, classes));
  model->spec_ = spec;
  model->input_ = input;
  return model;
}

}  // namespace fedge::learn
