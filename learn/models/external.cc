#include "learn/models/external.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <string_view>
#include <utility>

#include "core/config/own_part.h"
#include "core/safetensors.h"
#include "learn/models/kinds.h"
#include "learn/objectives/kinds.h"

namespace fedge::learn {
namespace {

constexpr std::size_t kMostParameters = std::size_t{1} << 32;  // 16 GiB of float32
constexpr std::size_t kMostFileBytes = std::size_t{17} << 30;
constexpr std::size_t kLongestName = 512;
constexpr std::size_t kMostDimensions = 8;

class ExternalModel final : public Model {
 public:
  ExternalModel(std::shared_ptr<const ParameterLayout> layout, const ModelContext& context)
      : outputs_(context.input.tokens ? context.input.width : context.target.points) {
    layout_ = std::move(layout);
    input_size_ = context.input.tokens ? context.input.width : context.input.size();
    classes_ = context.outputs;
  }

  std::size_t outputs_per_sample() const override { return outputs_; }
  void initialise(std::span<float> parameters, const Rng&) const override {
    if (spec().base.empty()) fail("start without a file of its first weights; set model.base");
    std::ranges::fill(parameters, 0.0F);  // model.base replaces all of them
  }
  std::unique_ptr<Workspace> make_workspace(std::size_t) const override {
    return std::make_unique<Workspace>();
  }
  BatchLoss loss_and_gradient(std::span<const float>, const Batch&, std::span<float>,
                              Workspace&) const override {
    fail("be trained without its program; use --trainer");
  }
  void forward(std::span<const float>, const Batch&, std::span<float>, Workspace&) const override {
    fail("be evaluated without its program; use --trainer");
  }

 private:
  [[noreturn]] static void fail(const std::string& what) {
    throw config::PartFailure("model.kind: an external model cannot " + what);
  }
  std::size_t outputs_;
};

// "conv1.weight [16, 3, 3, 3]"; a single number has the shape [].
Result<NamedShape> parse_tensor(const std::string& text) {
  const std::string wrong =
      "\"" + text + "\" must be a name, a space and a shape, as in \"conv1.weight [16, 3, 3, 3]\"";
  const std::size_t open = text.rfind(" [");
  if (open == std::string::npos || open == 0 || text.back() != ']') return invalid(wrong);
  NamedShape tensor{.name = text.substr(0, open), .shape = {}};
  std::string_view rest = std::string_view(text).substr(open + 2, text.size() - open - 3);
  while (!rest.empty()) {
    std::size_t extent = 0;
    const auto [end, code] = std::from_chars(rest.data(), rest.data() + rest.size(), extent);
    if (code != std::errc() || extent == 0) return invalid(wrong);
    tensor.shape.push_back(extent);
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    if (rest.empty()) break;
    if (!rest.starts_with(", ") || rest.size() == 2) return invalid(wrong);
    rest.remove_prefix(2);
  }
  if (tensor.name.size() > kLongestName || tensor.shape.size() > kMostDimensions)
    return invalid("the tensor " + tensor.name.substr(0, 40) + " has a name of more than " +
                   std::to_string(kLongestName) + " bytes or more than " + std::to_string(kMostDimensions) +
                   " dimensions");
  return tensor;
}

std::string to_text(const TensorInfo& tensor) {
  std::string text = tensor.name + " [";
  for (std::size_t i = 0; i < tensor.shape.size(); ++i)
    text += (i > 0 ? ", " : "") + std::to_string(tensor.shape[i]);
  return text + "]";
}

// Nothing if the tensors together have too many numbers.
Result<void> check_size(const std::vector<NamedShape>& tensors) {
  std::size_t left = kMostParameters;
  std::set<std::string> names;
  for (const NamedShape& tensor : tensors) {
    std::size_t size = 1;
    for (const std::size_t extent : tensor.shape) {
      if (extent > left / size)
        return invalid("the model would have more than 2^32 parameters with the tensor " + tensor.name);
      size *= extent;
    }
    left -= size;
    if (!names.insert(tensor.name).second) return invalid("the tensor " + tensor.name + " is there twice");
  }
  return {};
}

// The tensors of one module of PyTorch, "conv1.weight" and "conv1.bias", form a layer, as planners see it.
std::shared_ptr<const ParameterLayout> layout_of(const std::vector<NamedShape>& tensors) {
  auto layout = std::make_shared<ParameterLayout>();
  std::vector<std::string> layers;
  for (const NamedShape& tensor : tensors) {
    const std::string layer = tensor.name.substr(0, tensor.name.rfind('.'));
    auto known = std::ranges::find(layers, layer);
    if (known == layers.end()) known = layers.insert(layers.end(), layer);
    layout->add(tensor.name, tensor.shape, {.layer = static_cast<std::uint32_t>(known - layers.begin())});
  }
  return layout;
}

Result<std::unique_ptr<Model>> make_external(const ModelContext& context) {
  const std::vector<NamedShape>& tensors = context.spec.tensors;
  if (tensors.empty())
    return invalid(
        "model.kind: the tensors of an external model are not known; set model.base to a .safetensors file "
        "of "
        "its first weights, or start fedge-sim with a --trainer whose first answer has them");
  FEDGE_TRY_VOID(check_size(tensors));
  return std::unique_ptr<Model>(std::make_unique<ExternalModel>(layout_of(tensors), context));
}

}  // namespace

ModelFactory read_external(config::Reader& section, ModelSpec& spec) {
  const std::vector<std::string> texts = section.texts(
      "tensors", std::vector<std::string>{},
      "names and shapes of the model's tensors, in the order of the file. Set automatically from base.");
  if (texts.size() > kMaxSafetensorsTensors) {
    section.fail("tensors", "lists " + std::to_string(texts.size()) + " tensors; at most " +
                                std::to_string(kMaxSafetensorsTensors) + " are allowed");
    return make_external;
  }
  for (const std::string& text : texts) {
    auto tensor = parse_tensor(text);
    if (!tensor) {
      section.fail("tensors", tensor.error().message);
      break;
    }
    spec.tensors.push_back(std::move(*tensor));
  }
  if (const auto fits = check_size(spec.tensors); !fits) section.fail("tensors", fits.error().message);
  return make_external;
}

bool is_external(const ModelSpec& spec) {
  const ModelKind* kind = find_model_kind(spec.kind);
  return kind != nullptr && kind->traits.external;
}

Result<void> check_program_trains(const TrainingSpec& spec) {
  if (spec.objective.remembers())
    return Error{
        ErrorCode::kUnsupported,
        "a client with a trainer program cannot take part in a run with training.objective.kind = \"" +
            spec.objective.kind + "\"; what it adds to each gradient needs the built-in trainer"};
  if (spec.start_loss)
    return Error{
        ErrorCode::kUnsupported,
        "a client with a trainer program cannot take part in a run with training.start_loss; measuring "
        "the loss before training needs the built-in trainer"};
  if (const auto* kind = find_objective_kind(spec.objective.kind); kind != nullptr && kind->own)
    return Error{
        ErrorCode::kUnsupported,
        "a client with a trainer program cannot take part in a run with training.objective.kind = \"" +
            spec.objective.kind + "\"; the objective of a program needs the built-in trainer"};
  if (spec.personal.on() && spec.personal.kind != PersonalKind::kFedPer)
    return Error{
        ErrorCode::kUnsupported,
        "a client with a trainer program cannot take part in a run with training.personal.kind = \"fedrep\" "
        "or \"ditto\"; they need the built-in trainer"};
  if (!spec.loss.usual())
    return Error{ErrorCode::kUnsupported,
                 "a client with a trainer program cannot take part in a run that chooses the loss "
                 "(training.loss); the program has its own"};
  if (spec.local_model != LocalModel::kWhole)
    return Error{ErrorCode::kUnsupported,
                 "a client with a trainer program cannot take part in a run that trains thinner networks "
                 "(training.local_model); they need the built-in trainer"};
  return {};
}

Result<std::vector<std::string>> tensor_texts(const std::filesystem::path& file) {
  FEDGE_TRY(opened, open_safetensors(file, kMostFileBytes));
  FEDGE_TRY(header, read_safetensors_header(opened));
  std::vector<std::string> texts;
  for (const TensorInfo& tensor : header.layout.tensors()) texts.push_back(to_text(tensor));
  return texts;
}

}  // namespace fedge::learn
