#include "learn/models/language/kinds.h"

#include <string>

#include "learn/model.h"
#include "learn/models/adapters.h"
#include "learn/models/kinds.h"
#include "learn/models/language/transformer.h"

namespace fedge::learn {
namespace {

constexpr std::int64_t kMaxWidth = 65'536;
constexpr std::int64_t kMaxPositions = 1 << 20;
const std::vector<std::string> kScalingNames = {"none", "linear", "llama3"};

std::size_t default_mlp_width(std::size_t width) { return (width * 8 / 3 + 7) / 8 * 8; }

TransformerShape shape_of(const ModelContext& context) {
  const LanguageSpec& spec = context.spec.language;
  const bool llama = context.spec.kind == "llama";
  TransformerShape shape{.vocabulary = context.target.outputs,
                         .context = context.input.width,
                         .layers = spec.layers,
                         .width = spec.width,
                         .heads = spec.heads,
                         .shared = spec.heads,
                         .hidden = 4 * spec.width,
                         .tied = spec.tied,
                         .llama = llama,
                         .epsilon = spec.epsilon,
                         .rotary = spec.rotary};
  if (llama) {
    if (spec.kv_heads > 0) shape.shared = spec.kv_heads;
    shape.hidden = spec.mlp_width > 0 ? spec.mlp_width : default_mlp_width(spec.width);
  }
  shape.positions = spec.positions > 0 ? spec.positions : context.input.width;
  return shape;
}

Result<void> check_heads(const TransformerShape& shape) {
  const auto number = [](std::size_t value) { return std::to_string(value); };
  if (shape.heads == 0 || shape.width % shape.heads != 0)
    return invalid("model.width: " + number(shape.width) + " is not a multiple of model.heads, which is " +
                   number(shape.heads));
  if (shape.shared == 0 || shape.heads % shape.shared != 0)
    return invalid("model.heads: " + number(shape.heads) + " is not a multiple of model.kv_heads, which is " +
                   number(shape.shared));
  if (shape.llama && shape.head_size() % 2 != 0)
    return invalid("model.width: a head has " + number(shape.head_size()) +
                   " floats; rotary positions need an even number");
  if (shape.positions < shape.context)
    return invalid("data.context: " + number(shape.context) +
                   " tokens are more than model.positions, which is " + number(shape.positions));
  return {};
}

Result<std::unique_ptr<Model>> make_language_model(const ModelContext& context) {
  const TransformerShape shape = shape_of(context);
  FEDGE_TRY_VOID(check_heads(shape));
  const auto width = static_cast<double>(shape.width);
  const double block =
      width * static_cast<double>(shape.width + shape.qkv() + shape.raised() + shape.hidden) + 13 * width;
  const double parameters =
      block * static_cast<double>(shape.layers) +
      width * static_cast<double>((shape.tied ? 1 : 2) * shape.vocabulary + shape.positions + 2);
  FEDGE_TRY_VOID(bounded(parameters, "model.width"));
  const auto length = static_cast<double>(shape.context);
  FEDGE_TRY_VOID(bounded(static_cast<double>(shape.layers * shape.heads) * length * length, "data.context",
                         "attention weights per sample"));
  FEDGE_TRY_VOID(check_targets(context.spec.adapter, adapter_targets(shape.llama)));
  return make_transformer(shape, context.spec.adapter);
}

std::size_t read_size(config::Reader& section, const char* key, std::size_t fallback,
                      config::IntegerBounds bounds, const char* doc) {
  return static_cast<std::size_t>(section.integer(key, static_cast<std::int64_t>(fallback), bounds, doc));
}

void read_common(config::Reader& section, LanguageSpec& spec) {
  spec.layers = read_size(section, "layers", spec.layers, {1, std::int64_t{kMaxBlocks}}, "number of blocks.");
  spec.width = read_size(section, "width", spec.width, {1, kMaxWidth},
                         "size of the embedding of a token. It must be a multiple of heads.");
  spec.heads =
      read_size(section, "heads", spec.heads, {1, kMaxWidth}, "number of attention heads of a block.");
  spec.positions =
      read_size(section, "positions", 0, {0, kMaxPositions},
                "longest context of the model; at least data.context. For a transformer it is the "
                "number of positions that have an embedding. 0: data.context.");
  spec.tied =
      section.boolean("tied", spec.tied, "whether the output layer uses the weights of the token embedding.");
}

RotarySpec read_rotary(config::Reader& section) {
  RotarySpec spec;
  spec.theta = section.number("rope_theta", spec.theta, {1.0, 1e12}, "base of the rotary positions' angles.");
  spec.scaling = static_cast<RotaryScaling>(section.choice(
      "rope_scaling", kScalingNames, 0,
      "how rotary positions are stretched for long contexts. linear: all angles are divided by rope_factor. "
      "llama3: slow rotations are divided by rope_factor, fast ones are kept (Llama 3.1)."));
  const bool scaled = spec.scaling != RotaryScaling::kNone;
  const bool llama3 = spec.scaling == RotaryScaling::kLlama3;
  if (section.has("rope_factor") && !scaled)
    section.fail("rope_factor", "has no effect without rope_scaling", {"model.rope_scaling"});
  for (const char* key : {"rope_low", "rope_high", "rope_original"})
    if (section.has(key) && !llama3)
      section.fail(key, "has no effect without rope_scaling = \"llama3\"", {"model.rope_scaling"});
  spec.factor = section.number("rope_factor", 1.0, {1e-3, 1e6}, "linear, llama3: divisor of the angles.");
  spec.low = section.number("rope_low", spec.low, {1e-3, 1e6},
                            "llama3: rotations of at most this many turns in rope_original tokens are slow.");
  spec.high =
      section.number("rope_high", spec.high, {1e-3, 1e6},
                     "llama3: rotations of at least this many turns in rope_original tokens are fast.");
  spec.original = section.number("rope_original", spec.original, {1.0, 1e9},
                                 "llama3: context length of the pre-training.");
  if (spec.high <= spec.low) section.fail("rope_high", "must be above rope_low", {"model.rope_low"});
  return spec;
}

}  // namespace

const std::string& name_of(RotaryScaling scaling) {
  return kScalingNames.at(static_cast<std::size_t>(scaling));
}

const std::vector<std::string>& adapter_targets(bool llama) {
  static const std::vector<std::string> kLlama = {"q", "k", "v", "o", "gate", "up", "down"};
  static const std::vector<std::string> kOther = {"q", "k", "v", "o", "up", "down"};
  return llama ? kLlama : kOther;
}

ModelFactory read_transformer(config::Reader& section, ModelSpec& spec) {
  read_common(section, spec.language);
  return make_language_model;
}

ModelFactory read_llama(config::Reader& section, ModelSpec& spec) {
  LanguageSpec& language = spec.language;
  read_common(section, language);
  const std::size_t kv_heads =
      read_size(section, "kv_heads", 0, {0, kMaxWidth},
                "number of heads with keys and values of their own; heads must be a multiple "
                "of it. 0: as many as heads.");
  const std::size_t mlp_width =
      read_size(section, "mlp_width", 0, {0, kMaxWidth},
                "units of the hidden layer of the MLP. 0: 8/3 of width, rounded up to a "
                "multiple of 8.");
  language.kv_heads = kv_heads > 0 ? kv_heads : language.heads;
  language.mlp_width = mlp_width > 0 ? mlp_width : default_mlp_width(language.width);
  language.epsilon = static_cast<float>(
      section.number("norm_epsilon", 1e-5, {0.0, 1.0}, "number added to the mean square in a norm."));
  language.rotary = read_rotary(section);
  return make_language_model;
}

}  // namespace fedge::learn
