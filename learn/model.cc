#include "learn/model.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "learn/models/kinds.h"
#include "learn/text_decoder.h"

namespace fedge::learn {
namespace {

// Checks that this kind of model can be made for these inputs.
Result<void> check_kind(const ModelKind& kind, const ModelSpec& spec, const InputShape& input) {
  const std::string a_kind = with_article(kind);
  if (kind.traits.texts && !kind.traits.either && !input.tokens)
    return invalid("model.kind: " + a_kind +
                   " needs a text data set; choose a text in data.dataset, or another kind of model");
  if (!kind.traits.texts && !kind.traits.either && input.tokens)
    return invalid("model.kind: data.dataset is a text; use kind = \"transformer\" or \"layers\"");
  if (spec.adapter.rank > 0 && !kind.traits.adapters)
    return invalid("model.adapter: " + a_kind +
                   " cannot have adapters; use kind = \"mlp\", \"transformer\" or \"llama\"");
  return {};
}

}  // namespace

BatchLoss Model::sgd_step(std::span<float>, const Batch&, float, float, Workspace&) const {
  throw std::logic_error("steps_in_place() is true, but there is no sgd_step()");
}

std::vector<double> Model::weight_uses() const {
  std::size_t layers = 0;
  for (const TensorInfo& tensor : layout_->tensors())
    layers = std::max<std::size_t>(layers, tensor.layer + std::size_t{1});
  return std::vector<double>(layers, 1.0);
}

std::unique_ptr<TextDecoder> Model::make_decoder(std::span<const float>, std::size_t) const {
  return nullptr;
}

void Model::represent(std::span<const float>, const Batch&, std::span<float>, Workspace&) const {
  throw std::logic_error("representation() is not 0, but there is no represent()");
}

Result<std::unique_ptr<Model>> make_model(const ModelSpec& spec, const InputShape& input,
                                          std::size_t classes) {
  return make_model(spec, input, TargetShape{.outputs = classes});
}

Result<std::unique_ptr<Model>> make_model(const ModelSpec& spec, const InputShape& input,
                                          const TargetShape& target) {
  const ModelKind* kind = find_model_kind(spec.kind);
  if (kind == nullptr) return invalid("model.kind: \"" + spec.kind + "\" is not a known kind of model");
  FEDGE_TRY_VOID(check_kind(*kind, spec, input));
  const ModelFactory make = factory_of(*kind, spec);
  if (!make) return invalid("model.kind: " + spec.kind + " cannot be made with its default options");
  FEDGE_TRY(model, make({spec, input, target.outputs, target}));
  if (spec.base_dtype != BaseDtype::kFloat32 && !model->reads_apart())
    return invalid(
        "model.base_dtype: only the language models transformer and llama, and only with adapters, keep "
        "frozen "
        "weights in another type than float32; remove it");
  model->spec_ = spec;
  model->input_ = input;
  model->target_ = target.kind;
  if (spec.personal.empty()) return model;
  if (model->adapters() != nullptr)
    return invalid("model.personal: a model with adapters trains only these; remove model.adapter");
  FEDGE_TRY(layout, with_personal(*model->layout_, spec.personal));
  model->layout_ = std::make_shared<const ParameterLayout>(std::move(layout));
  return model;
}

}  // namespace fedge::learn
