#include "learn/models/kinds.h"

#include <algorithm>
#include <string>
#include <vector>

#include "core/config/own_part.h"
#include "learn/layers/kinds.h"
#include "learn/layers/network.h"
#include "learn/models/adapters.h"
#include "learn/models/external.h"
#include "learn/models/language/kinds.h"
#include "learn/models/own_model.h"

namespace fedge::learn {
namespace {

constexpr std::int64_t kMaxUnits = 65'536;
constexpr std::int64_t kMaxChannels = 1024;
constexpr std::size_t kMaxHiddenLayers = 16;
constexpr std::size_t kDefaultKind = 1;  // mlp

using MadeModel = Result<std::unique_ptr<Model>>;

std::size_t as_size(std::int64_t value) { return static_cast<std::size_t>(value); }

std::vector<std::size_t> as_sizes(const std::vector<std::int64_t>& values) {
  return {values.begin(), values.end()};
}

std::vector<std::int64_t> as_integers(const std::vector<std::size_t>& values) {
  return {values.begin(), values.end()};
}

LayerSpec dense_layer(std::size_t units, Curve activation) {
  LayerSpec layer{.kind = "dense", .activation = activation};
  layer.units = units;
  return layer;
}

MadeModel make_cnn_model(const ModelContext& context) {
  const ModelSpec& spec = context.spec;
  const InputShape& input = context.input;
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
  const auto convolution = [](std::size_t units) {
    LayerSpec layer{.kind = "conv2d", .activation = Curve::kRelu};
    layer.units = units;
    layer.window = 5;
    return layer;
  };
  LayerSpec pool{.kind = "max_pool"};
  pool.window = pool.stride = 2;
  return make_network({{convolution(spec.channels[0]),
                        pool,
                        convolution(spec.channels[1]),
                        pool,
                        {.kind = "flatten"},
                        dense_layer(spec.dense, Curve::kRelu),
                        dense_layer(context.target.size(), Curve::kNone)},
                       layer_input(input)},
                      context);
}

MadeModel make_perceptron(const ModelContext& context) {
  const ModelSpec& spec = context.spec;
  std::vector<std::size_t> widths{context.input.size()};
  if (spec.kind == "mlp") widths.insert(widths.end(), spec.hidden.begin(), spec.hidden.end());
  widths.push_back(context.target.size());
  double parameters = 0;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i)
    parameters += static_cast<double>(widths[i]) * static_cast<double>(widths[i + 1]);
  FEDGE_TRY_VOID(bounded(parameters, "model.hidden"));
  NetworkSpec network{.layers = {}, .input = {.channels = widths.front()}};
  for (std::size_t i = 1; i < widths.size(); ++i)
    network.layers.push_back(dense_layer(widths[i], i + 1 < widths.size() ? Curve::kRelu : Curve::kNone));
  return make_network(network, context);
}

MadeModel make_listed(const ModelContext& context) {
  return make_network({context.spec.network, layer_input(context.input), context.spec.initialisation},
                      context);
}

ModelFactory read_softmax(config::Reader&, ModelSpec&) { return make_perceptron; }

ModelFactory read_mlp(config::Reader& section, ModelSpec& spec) {
  spec.hidden =
      as_sizes(section.integers("hidden", as_integers(spec.hidden), {1, kMaxUnits},
                                "number of units of each hidden layer; the first is next to the input."));
  if (spec.hidden.empty() || spec.hidden.size() > kMaxHiddenLayers)
    section.fail("hidden", "lists " + std::to_string(spec.hidden.size()) + " layers, expected 1 to " +
                               std::to_string(kMaxHiddenLayers) +
                               " (for a model without hidden layers, use kind = \"softmax\")");
  return make_perceptron;
}

ModelFactory read_cnn(config::Reader& section, ModelSpec& spec) {
  spec.channels = as_sizes(section.integers("channels", as_integers(spec.channels), {1, kMaxChannels},
                                            "output channels of the two 5x5 convolutions."));
  if (spec.channels.size() != 2)
    section.fail("channels", "lists " + std::to_string(spec.channels.size()) + " values, expected 2");
  spec.dense =
      as_size(section.integer("dense", static_cast<std::int64_t>(spec.dense), {1, kMaxUnits},
                              "number of units of the dense layer between the convolutions and the output."));
  return make_cnn_model;
}

ModelFactory read_list(config::Reader& section, ModelSpec& spec) {
  spec.network = read_layers(section);
  spec.initialisation =
      static_cast<Initialisation>(section.choice("initialisation", initialisation_names(), 0,
                                                 "how the weights of dense layers and convolutions begin. "
                                                 "uniform: in +-1/sqrt(inputs), like the biases, "
                                                 "as in PyTorch. glorot: uniform in +-sqrt(6 / (inputs + "
                                                 "outputs)), he: normal with variance 2 / inputs, "
                                                 "both with biases 0."));
  return make_listed;
}

std::vector<ModelKind>& model_table() {
  constexpr ModelTraits kLayers = {.adapters = true};
  static std::vector<ModelKind> kinds = {
      ModelKind{"softmax", "", "softmax regression", kLayers, read_softmax},
      ModelKind{"mlp", "", "multi-layer perceptron with ReLU", kLayers, read_mlp},
      ModelKind{"cnn", "McMahan et al. 2017", "convolutional network for images", {}, read_cnn},
      ModelKind{
          "layers", "", "list of layers in the run file", {.adapters = true, .either = true}, read_list},
      ModelKind{"transformer",
                "Radford et al. 2019",
                "decoder-only language model",
                {.texts = true, .adapters = true},
                read_transformer},
      ModelKind{"llama",
                "Touvron et al. 2023",
                "decoder-only language model of the Llama family",
                {.texts = true, .adapters = true},
                read_llama},
      ModelKind{"external",
                "",
                "model that only a trainer program can compute",
                {.either = true, .external = true},
                read_external},
  };
  return kinds;
}

// Reads an own kind's options. Its factory becomes one whose models are wrapped.
ModelFactory read_own(const ModelKind& kind, config::Reader& section, ModelSpec& spec) {
  const std::string part = std::string("the model ") + kind.name;
  try {
    return [part, make = config::guarded(part, [&] { return kind.read(section, spec); })](
               const ModelContext& context) -> MadeModel {
      auto made = config::failure_as_error([&]() -> MadeModel {
        FEDGE_TRY(model, config::guarded(part, [&] { return make(context); }));
        return wrap_own_model(part, std::move(model), context);
      });
      if (!made) return made.error().with_prefix("model.kind: ");
      return made;
    };
  } catch (const config::PartFailure& failure) {
    section.fail("kind", failure.what());
    return {};
  }
}

ModelFactory read_options(const ModelKind& kind, config::Reader& section, ModelSpec& spec) {
  return kind.own ? read_own(kind, section, spec) : kind.read(section, spec);
}

}  // namespace

Result<void> bounded(double count, const char* key, const char* what) {
  constexpr double kMost = 4294967296.0;
  if (count <= kMost) return {};
  return invalid(std::string(key) + ": the model would have more than 2^32 " + what +
                 "; use a smaller value");
}

std::span<const ModelKind> model_kinds() { return model_table(); }

std::string with_article(const ModelKind& kind) {
  if (std::string(kind.name) == "layers") return "a list of layers";
  if (std::string(kind.name) == "external") return "an external model";
  return (std::string("aeiou").find(kind.name[0]) == std::string::npos ? "a " : "an ") +
         std::string(kind.name);
}

const ModelKind* find_model_kind(const std::string& name) {
  const auto found = std::ranges::find(model_table(), name, &ModelKind::name);
  return found == model_table().end() ? nullptr : &*found;
}

void register_model(const ModelKind& kind) { config::register_kind(model_table(), kind, "model", "a model"); }

void choose_model_kind(config::Reader& section, ModelSpec& spec) {
  const std::vector<std::string> names = config::names_of(model_table());
  spec.kind =
      names[section.choice("kind", names, kDefaultKind,
                           "Kind of model: softmax regression, multi-layer perceptron (mlp), "
                           "convolutional network (cnn), language model of the GPT-2 family (transformer) or "
                           "of the Llama family (llama), a list of layers, or a model of your trainer "
                           "program (external).",
                           config::own_program_hint("a model", /*on_clients=*/true))];
}

void read_model_options(config::Reader& section, ModelSpec& spec) {
  const auto read = [&](const ModelKind& kind, ModelSpec& into) {
    section.keys_of("kind", kind.name, spec.kind,
                    [&](config::Reader& keys) { into.make = read_options(kind, keys, into); });
  };
  for (const ModelKind& kind : model_table())
    if (kind.name == spec.kind) read(kind, spec);
  ModelSpec other;
  for (const ModelKind& kind : model_table())
    if (kind.name != spec.kind) read(kind, other);
}

ModelFactory factory_of(const ModelKind& kind, const ModelSpec& spec) {
  if (spec.make) return spec.make;
  static const config::Table kNoOptions;
  config::Reader section(kNoOptions, "model", "");
  ModelSpec defaults;
  return read_options(kind, section, defaults);
}

}  // namespace fedge::learn
