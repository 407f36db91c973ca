#include "learn/objectives/personal_spec.h"

#include <algorithm>

#include "learn/data/data_section.h"

namespace fedge::learn {
namespace {

const std::vector<std::string> kPersonalNames = {"none", "fedper", "fedrep", "ditto"};

bool is_of(const TensorInfo& tensor, const std::string& name) {
  return tensor.name == name || tensor.name.starts_with(name + ".");
}

}  // namespace

PersonalSpec read_personal(config::Reader& section, const std::vector<std::string>& layers) {
  PersonalSpec spec;
  const bool keeps = !layers.empty();
  spec.kind = static_cast<PersonalKind>(section.choice(
      "kind", kPersonalNames, keeps ? 1 : 0,
      "How clients train parameters that they keep for themselves. The default is none, or fedper with "
      "model.personal.\nnone: they keep none.\nfedper: the layers in model.personal together with the shared "
      "ones.\nfedrep: first only these layers, then only the shared ones.\nditto: a second model of each "
      "client, "
      "held near the shared one."));
  if (keeps && !spec.keeps_layers())
    section.fail("kind",
                 std::string("must be \"fedper\" or \"fedrep\" if layers stay on the clients "
                             "(model.personal), not \"") +
                     kPersonalNames[static_cast<std::size_t>(spec.kind)] + "\"",
                 {"model.personal"});
  if (!keeps && spec.keeps_layers())
    section.fail("kind", "needs layers that stay on the clients; list them in model.personal",
                 {"model.personal"});
  const bool fedrep = spec.kind == PersonalKind::kFedRep;
  const bool ditto = spec.kind == PersonalKind::kDitto;
  require_kind(section, "head_epochs", fedrep, "has no effect without kind = \"fedrep\"");
  for (const char* key : {"personal_epochs", "lambda"})
    require_kind(section, key, ditto, "has no effect without kind = \"ditto\"");
  spec.head_epochs = static_cast<std::size_t>(section.integer(
      "head_epochs", 10, {1, 10'000},
      "fedrep: passes of a client over its samples with its own layers, before those with the "
      "shared layers (training.local_epochs)."));
  spec.personal_epochs =
      static_cast<std::size_t>(section.integer("personal_epochs", 0, {0, 10'000},
                                               "ditto: passes of a client over its samples with its own "
                                               "model. 0: as many epochs or steps as with the shared one."));
  spec.lambda = static_cast<float>(
      section.number("lambda", 0.1, {0.0, 1000.0},
                     "ditto: strength of the pull of a client's own model towards the shared one. 0: none."));
  return spec;
}

Result<ParameterLayout> with_personal(const ParameterLayout& layout, const std::vector<std::string>& names) {
  ParameterLayout marked;
  bool shared = false;
  for (const TensorInfo& tensor : layout.tensors()) {
    const bool personal = std::ranges::any_of(names, [&](const auto& name) { return is_of(tensor, name); });
    shared = shared || !personal;
    marked.add(tensor.name, tensor.shape,
               {.layer = tensor.layer, .trainable = tensor.trainable && !personal, .order = tensor.order});
  }
  for (const std::string& name : names)
    if (std::ranges::none_of(layout.tensors(), [&](const auto& tensor) { return is_of(tensor, name); })) {
      const std::string& last = layout.tensors().back().name;
      return invalid("model.personal: the model has no layer " + name + "; its last layer is " +
                     last.substr(0, last.rfind('.')));
    }
  if (!shared) return invalid("model.personal: no layer is left that the clients could share");
  return marked;
}

}  // namespace fedge::learn
