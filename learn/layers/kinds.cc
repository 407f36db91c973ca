#include "learn/layers/kinds.h"

#include <algorithm>
#include <set>

#include "core/config/own_part.h"
#include "learn/layers/operations.h"

namespace fedge::learn {
namespace {

constexpr std::int64_t kMostUnits = 65'536;
constexpr std::int64_t kMostWindow = 1024;
constexpr std::size_t kMostLayers = 1024;

std::size_t positive(config::Reader& section, const char* key, std::optional<std::int64_t> fallback,
                     std::int64_t most, const char* doc) {
  return static_cast<std::size_t>(section.integer(key, fallback, {1, most}, doc));
}

void read_units(config::Reader& section, LayerSpec& spec) {
  spec.units = static_cast<std::size_t>(
      section.integer("units", 0, {0, kMostUnits},
                      "number of outputs: of a sample, or of each step or pixel. 0: as many as the data has "
                      "classes, labels, values or tokens, as the last layer needs."));
}

void read_bias(config::Reader& section, LayerSpec& spec) {
  spec.bias = section.boolean("bias", true, "whether it adds a bias.");
}

void read_dense(config::Reader& section, LayerSpec& spec) {
  read_units(section, spec);
  read_bias(section, spec);
}

void read_kernel(config::Reader& section, LayerSpec& spec) {
  read_units(section, spec);
  spec.window = positive(section, "kernel", 3, kMostWindow, "length of the kernel along each axis.");
  spec.stride = positive(section, "stride", 1, kMostWindow, "distance between neighbouring outputs.");
  read_bias(section, spec);
}

void read_convolution(config::Reader& section, LayerSpec& spec) {
  read_kernel(section, spec);
  spec.same = section.choice("padding", {"same", "valid"}, 0,
                             "same: zeros around the input keep its height and width (divided by stride). "
                             "valid: none.") == 0;
  spec.groups = positive(section, "groups", 1, kMostUnits,
                         "parts into which the channels are divided; an output reads the inputs of its part. "
                         "As many as the input has channels: a depthwise convolution.");
}

void read_transposed(config::Reader& section, LayerSpec& spec) {
  read_units(section, spec);
  spec.window = positive(section, "kernel", 2, kMostWindow, "length of the kernel along each axis.");
  spec.stride = positive(section, "stride", 2, kMostWindow, "factor by which height and width grow.");
  read_bias(section, spec);
}

void read_pool(config::Reader& section, LayerSpec& spec) {
  spec.window = positive(section, "size", 2, kMostWindow, "length of the window along each axis.");
  spec.stride = positive(section, "stride", static_cast<std::int64_t>(spec.window), kMostWindow,
                         "distance between neighbouring windows. Default: size.");
}

void read_upsample(config::Reader& section, LayerSpec& spec) {
  spec.window =
      positive(section, "factor", 2, 64, "how often each step or pixel is repeated, along each axis.");
  spec.linear =
      section.choice("method", {"nearest", "linear"}, 0,
                     "nearest: repeats each step or pixel. linear: interpolates between the centres "
                     "of neighbours, as PyTorch does with align_corners = False.") == 1;
}

void read_group_norm(config::Reader& section, LayerSpec& spec) {
  spec.groups =
      positive(section, "groups", 1, kMostUnits, "groups of channels that are normalised together.");
}

void read_dropout(config::Reader& section, LayerSpec& spec) {
  spec.rate = section.number("rate", 0.5, {0.0, 0.99}, "fraction of the numbers that training sets to zero.");
}

void read_leaky(config::Reader& section, LayerSpec& spec) {
  spec.slope = section.number("slope", 0.01, {1e-6, 1.0}, "factor of numbers below zero.");
  spec.activation = Curve::kLeakyRelu;
}

void read_recurrent(config::Reader& section, LayerSpec& spec) {
  read_units(section, spec);
  spec.last = section.choice("returns", {"sequence", "last"}, 0,
                             "sequence: its output after each step. last: only after the last step.") == 1;
}

void read_embedding(config::Reader& section, LayerSpec& spec) {
  spec.units = positive(section, "units", std::nullopt, kMostUnits, "numbers of each token.");
}

void read_take(config::Reader& section, LayerSpec& spec) {
  spec.first = static_cast<std::size_t>(section.integer(
      "first", 0, {0, 1'000'000'000}, "first channel; of a table, first column of features."));
  spec.count = positive(section, "count", std::nullopt, 1'000'000'000, "number of channels.");
}

void read_gate(config::Reader& section, LayerSpec& spec) {
  spec.units =
      positive(section, "units", std::nullopt, kMostUnits, "channels between its inputs and the gate.");
}

template <Curve kCurve>
void read_curve(config::Reader&, LayerSpec& spec) {
  spec.activation = kCurve;
}

const std::vector<LayerKind>& layer_table() {
  static const std::vector<LayerKind> kinds = {
      {"dense", "dense", "weighted sums; of a sequence, of each step by itself", read_dense, make_dense},
      {"conv1d", "conv", "convolution over the steps of a sequence", read_convolution, make_convolution},
      {"conv2d", "conv", "convolution over images", read_convolution, make_convolution},
      {"conv1d_transpose", "conv_transpose", "transposed convolution over a sequence, which becomes longer",
       read_transposed, make_transposed_convolution},
      {"conv2d_transpose", "conv_transpose", "transposed convolution over images, which become larger",
       read_transposed, make_transposed_convolution},
      {"max_pool", "max_pool", "maximum of each window of steps or pixels", read_pool, make_max_pool},
      {"average_pool", "average_pool", "mean of each window", read_pool, make_average_pool},
      {"global_max_pool", "global_max_pool", "maximum over all steps or pixels", nullptr,
       make_global_max_pool},
      {"global_average_pool", "global_average_pool", "mean over all steps or pixels", nullptr,
       make_global_average_pool},
      {"upsample", "upsample", "repeats each step or pixel, or interpolates between them", read_upsample,
       make_upsample},
      {"group_norm", "group_norm", "normalises groups of channels (Wu and He 2018)", read_group_norm,
       make_group_norm},
      {"layer_norm", "layer_norm", "normalises the channels of each step or pixel (Ba et al. 2016)", nullptr,
       make_layer_norm},
      {"dropout", "dropout", "sets numbers to zero in training (Srivastava et al. 2014)", read_dropout,
       make_dropout},
      {"embedding", "embedding", "a row of trained numbers for each token of a text", read_embedding,
       make_embedding},
      {"lstm", "lstm", "long short-term memory (Hochreiter and Schmidhuber 1997)", read_recurrent, make_lstm},
      {"gru", "gru", "gated recurrent unit (Cho et al. 2014)", read_recurrent, make_gru},
      {"attention_gate", "attention_gate",
       "multiplies its first input by weights from both inputs (Oktay et al. 2018)", read_gate, nullptr},
      {"add", "add", "sum of its inputs: the end of a residual block", nullptr, make_add},
      {"multiply", "multiply", "product of its two inputs", nullptr, make_multiply},
      {"concat", "concat", "channels of its inputs side by side", nullptr, make_concat},
      {"take", "take", "some channels of its input", read_take, make_take},
      {"flatten", "flatten", "all numbers as one vector, channel by channel, as in PyTorch", nullptr,
       make_flatten},
      {"reverse", "reverse", "the steps of a sequence, the last one first", nullptr, make_reverse},
      {"relu", "relu", "max(x, 0)", read_curve<Curve::kRelu>, make_curve},
      {"leaky_relu", "leaky_relu", "x, times `slope` below zero", read_leaky, make_curve},
      {"gelu", "gelu", "x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))", read_curve<Curve::kGelu>, make_curve},
      {"silu", "silu", "x / (1 + e^-x)", read_curve<Curve::kSilu>, make_curve},
      {"sigmoid", "sigmoid", "1 / (1 + e^-x)", read_curve<Curve::kSigmoid>, make_curve},
      {"tanh", "tanh", "hyperbolic tangent", read_curve<Curve::kTanh>, make_curve},
  };
  return kinds;
}

bool is_name(const std::string& name) {
  return !name.empty() && name.size() <= 64 && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

LayerSpec read_layer(config::Reader& layer) {
  LayerSpec spec;
  const std::vector<std::string> names = config::names_of(layer_table());
  spec.kind = names[layer.choice("kind", names, std::nullopt, "What the layer does.")];
  spec.name = layer.text("name", "", "Name for `from` and of its parameters. Empty: its kind and a number.");
  if (!spec.name.empty() && (!is_name(spec.name) || spec.name == "input"))
    layer.fail("name", "is \"" + spec.name +
                           "\"; use letters, digits, _ and -, and not \"input\", which is the data");
  spec.from = layer.texts("from", std::vector<std::string>{},
                          "Names of the layers that it reads, or \"input\". Empty: the layer before it.");
  const std::size_t curve = layer.choice("activation", curve_names(), 0,
                                         "Curve that is applied to its outputs, as by a layer of that kind.");
  const auto read = [&](const LayerKind& kind, LayerSpec& into) {
    if (kind.read == nullptr) return;
    layer.keys_of("kind", kind.name, spec.kind, [&](config::Reader& keys) { kind.read(keys, into); });
  };
  for (const LayerKind& kind : layer_table())
    if (kind.name == spec.kind) read(kind, spec);
  LayerSpec other;
  for (const LayerKind& kind : layer_table())
    if (kind.name != spec.kind) read(kind, other);
  if (spec.activation != Curve::kNone && curve != 0)
    layer.fail("activation", "has no meaning for a layer that is itself a curve; add another layer");
  else if (curve != 0)
    spec.activation = static_cast<Curve>(curve);
  return spec;
}

}  // namespace

std::span<const LayerKind> layer_kinds() { return layer_table(); }

const LayerKind* find_layer_kind(const std::string& name) {
  const auto found = std::ranges::find(layer_table(), name, &LayerKind::name);
  return found == layer_table().end() ? nullptr : &*found;
}

std::vector<LayerSpec> read_layers(config::Reader& section) {
  std::vector<LayerSpec> layers;
  for (config::Reader& layer : section.tables("layer", "The layers, in order.")) {
    layers.push_back(read_layer(layer));
    section.adopt(layer);
  }
  if (layers.empty()) section.fail("layer", "lists no layer");
  if (layers.size() > kMostLayers)
    section.fail("layer", "lists " + std::to_string(layers.size()) + " layers, expected at most " +
                              std::to_string(kMostLayers));
  return layers;
}

}  // namespace fedge::learn
