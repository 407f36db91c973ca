// Compares the transformers of both families with a slow one in double precision that follows the formulas:
// scores directly, every derivative by central differences of its loss.
#include <doctest/doctest.h>

#include <cmath>
#include <complex>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/rng.h"
#include "learn/model.h"
#include "learn/models/adapters.h"

using namespace fedge;
using namespace fedge::learn;

namespace {

using Row = std::vector<double>;
using Rows = std::vector<Row>;

constexpr std::size_t kVocabulary = 5;
constexpr std::size_t kContext = 4;
constexpr std::size_t kWidth = 8;
constexpr std::size_t kHeads = 2;

// A model's parameters in double, looked up by name; adds adapters of `ranks` to their weights.
class Slow {
 public:
  Slow(const Model& model, const std::vector<double>& values, std::size_t ranks)
      : model_(model), values_(values), ranks_(ranks), llama_(model.spec().kind == "llama") {
    for (const TensorInfo& tensor : model.layout()->tensors()) tensors_.emplace(tensor.name, &tensor);
  }

  Rows scores(const std::vector<Token>& tokens) const {
    Rows x;
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      Row sum(kWidth);
      for (std::size_t i = 0; i < kWidth; ++i)
        sum[i] = at("token_embedding", tokens[t], i) + (llama_ ? 0 : at("position_embedding", t, i));
      x.push_back(sum);
    }
    for (std::size_t b = 1; b <= model_.spec().language.layers; ++b) {
      const std::string block = "block" + std::to_string(b);
      add(x, attention(block + ".attention", norm(block + ".norm1", x)));
      add(x, linear(block + ".mlp.down", bent(block + ".mlp", norm(block + ".norm2", x))));
    }
    Rows result;
    for (const Row& row : norm("norm", x)) {
      Row scores(kVocabulary);
      for (std::size_t v = 0; v < kVocabulary; ++v)
        for (std::size_t i = 0; i < kWidth; ++i)
          scores[v] += row[i] * at(model_.spec().language.tied ? "token_embedding" : "head.weight", v, i);
      result.push_back(scores);
    }
    return result;
  }

  double loss(const std::vector<Token>& tokens, const std::vector<Token>& targets) const {
    double sum = 0, count = 0;
    for (std::size_t first = 0; first < tokens.size(); first += kContext) {
      const auto begin = tokens.begin() + static_cast<std::ptrdiff_t>(first);
      const Rows rows = scores({begin, begin + kContext});
      for (std::size_t t = 0; t < kContext; ++t) {
        if (targets[first + t] == kNoToken) continue;
        double total = 0;
        for (const double score : rows[t]) total += std::exp(score);
        sum += std::log(total) - rows[t][targets[first + t]];
        count += 1;
      }
    }
    return sum / count;
  }

 private:
  double at(const std::string& name, std::size_t row, std::size_t column) const {
    const TensorInfo& tensor = *tensors_.at(name);
    double value = values_[tensor.offset + row * (tensor.size / tensor.shape[0]) + column];
    const Adapters* adapters = model_.adapters();
    if (adapters == nullptr || adapters->find(tensor.offset) == adapters->matrices().size()) return value;
    const AdaptedMatrix& m = adapters->matrices()[adapters->find(tensor.offset)];
    for (std::size_t j = 0; j < ranks_; ++j) {
      const std::size_t rank = adapters->shape().prefix(j).end;
      value += static_cast<double>(adapters->shape().scale) * values_[rank + m.b + row] *
               values_[rank + m.a + column];
    }
    return value;
  }
  // 0 without such a tensor.
  double bias(const std::string& name, std::size_t i) const {
    const auto tensor = tensors_.find(name);
    return tensor == tensors_.end() ? 0 : values_[tensor->second->offset + i];
  }
  Rows bent(const std::string& name, const Rows& x) const {
    Rows raised = linear(name + ".up", x);
    if (llama_) {
      const Rows gates = linear(name + ".gate", x);
      for (std::size_t t = 0; t < x.size(); ++t)
        for (std::size_t i = 0; i < raised[t].size(); ++i)
          raised[t][i] *= gates[t][i] / (1 + std::exp(-gates[t][i]));
      return raised;
    }
    for (Row& row : raised)
      for (double& v : row)
        v = v / 2 * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (v + 0.044715 * v * v * v)));
    return raised;
  }
  // Turns each pair of coordinates of each head, with complex numbers.
  Rows turned(Rows x) const {
    if (!llama_) return x;
    const std::size_t size = kWidth / kHeads;
    for (std::size_t t = 0; t < x.size(); ++t)
      for (std::size_t h = 0; h < x[t].size() / size; ++h)
        for (std::size_t i = 0; i < size / 2; ++i) {
          const double power = 2.0 * static_cast<double>(i) / static_cast<double>(size);
          const double angle = static_cast<double>(t) / std::pow(model_.spec().language.rotary.theta, power);
          double& real = x[t][h * size + i];
          double& imaginary = x[t][h * size + i + size / 2];
          const auto point = std::complex<double>(real, imaginary) * std::polar(1.0, angle);
          real = point.real();
          imaginary = point.imag();
        }
    return x;
  }
  static void add(Rows& x, const Rows& more) {
    for (std::size_t t = 0; t < x.size(); ++t)
      for (std::size_t i = 0; i < x[t].size(); ++i) x[t][i] += more[t][i];
  }
  Rows linear(const std::string& name, const Rows& x) const {
    const std::string weight = name + ".weight";
    const std::string constant = name + ".bias";
    const std::size_t out = tensors_.at(weight)->shape[0];
    Rows y;
    for (const Row& row : x) {
      Row sum(out);
      for (std::size_t o = 0; o < out; ++o) {
        sum[o] = bias(constant, o);
        for (std::size_t i = 0; i < row.size(); ++i) sum[o] += row[i] * at(weight, o, i);
      }
      y.push_back(sum);
    }
    return y;
  }
  Rows norm(const std::string& name, const Rows& x) const {
    Rows y;
    for (const Row& row : x) {
      double mean = 0, squares = 0;
      for (const double v : row) mean += llama_ ? 0 : v / kWidth;
      for (const double v : row) squares += (v - mean) * (v - mean) / kWidth;
      Row scaled(kWidth);
      for (std::size_t i = 0; i < kWidth; ++i)
        scaled[i] =
            (row[i] - mean) / std::sqrt(squares + 1e-5) * bias(name + ".weight", i) + bias(name + ".bias", i);
      y.push_back(scaled);
    }
    return y;
  }
  Rows attention(const std::string& name, const Rows& x) const {
    const Rows q = turned(linear(name + ".q", x)), k = turned(linear(name + ".k", x));
    const Rows v = linear(name + ".v", x);
    const std::size_t size = kWidth / kHeads;
    const std::size_t group = kWidth / k[0].size();
    Rows y(x.size(), Row(kWidth));
    for (std::size_t h = 0; h < kHeads; ++h)
      for (std::size_t t = 0; t < x.size(); ++t) {
        Row weights;
        double total = 0;
        for (std::size_t s = 0; s <= t; ++s) {
          double score = 0;
          for (std::size_t i = 0; i < size; ++i) score += q[t][h * size + i] * k[s][h / group * size + i];
          weights.push_back(std::exp(score / std::sqrt(static_cast<double>(size))));
          total += weights.back();
        }
        for (std::size_t s = 0; s <= t; ++s)
          for (std::size_t i = 0; i < size; ++i)
            y[t][h * size + i] += weights[s] / total * v[s][h / group * size + i];
      }
    return linear(name + ".o", y);
  }

  const Model& model_;
  const std::vector<double>& values_;
  std::size_t ranks_;
  std::unordered_map<std::string, const TensorInfo*> tensors_;  // never iterated
  bool llama_;
};

void check(const ModelSpec& spec, std::size_t ranks) {
  const auto model = make_model(spec, {1, kContext, 1, true}, kVocabulary);
  REQUIRE(model);
  std::vector<float> parameters((*model)->layout()->size());
  Rng rng(4);
  for (float& value : parameters) value = static_cast<float>(0.4 * rng.normal());
  const std::vector<Token> tokens = {0, 3, 1, 4, 2, 2, 0, 0};
  const std::vector<Token> targets = {3, 1, 4, 2, 2, 0, kNoToken, kNoToken};
  const auto workspace = (*model)->make_workspace(2);
  workspace->ranks = ranks;
  std::vector<float> scores(8 * kVocabulary), gradient(parameters.size());
  (*model)->forward(parameters, {.tokens = tokens}, scores, *workspace);
  std::vector<double> values(parameters.begin(), parameters.end());
  for (std::size_t first = 0; first < 8; first += kContext) {
    const auto begin = tokens.begin() + static_cast<std::ptrdiff_t>(first);
    const Rows slow = Slow(**model, values, ranks).scores({begin, begin + kContext});
    for (std::size_t t = 0; t < kContext; ++t)
      for (std::size_t v = 0; v < kVocabulary; ++v)
        CHECK(static_cast<double>(scores[(first + t) * kVocabulary + v]) ==
              doctest::Approx(slow[t][v]).epsilon(1e-5).scale(1));
  }
  const float loss =
      (*model)
          ->loss_and_gradient(parameters, {.tokens = tokens, .targets = targets}, gradient, *workspace)
          .mean;
  CHECK(static_cast<double>(loss) ==
        doctest::Approx(Slow(**model, values, ranks).loss(tokens, targets)).epsilon(1e-5));
  const Adapters* adapters = (*model)->adapters();
  const Slow slow(**model, values, ranks);  // sees what changes in `values`
  for (std::size_t i = adapters != nullptr ? adapters->offset() : 0; i < values.size(); ++i) {
    CAPTURE((*model)->layout()->describe(i));
    const double kept = values[i];
    const double step = 1e-4;
    values[i] = kept + step;
    const double above = slow.loss(tokens, targets);
    values[i] = kept - step;
    const double below = slow.loss(tokens, targets);
    values[i] = kept;
    CHECK(static_cast<double>(gradient[i]) ==
          doctest::Approx((above - below) / (2 * step)).epsilon(1e-4).scale(0.1));
  }
}

ModelSpec language(const char* kind) {
  return {.kind = kind, .language = {.layers = 2, .width = kWidth, .heads = kHeads}};
}

ModelSpec llama() {
  ModelSpec spec = language("llama");
  spec.language.kv_heads = 1;
  spec.language.mlp_width = 5;
  spec.language.rotary.theta = 50;
  return spec;
}

}  // namespace

TEST_CASE("transformer: scores are a slow one's, and every derivative is its central difference") {
  ModelSpec spec = language("transformer");
  SUBCASE("tied") {}
  SUBCASE("head of its own") { spec.language.tied = false; }
  SUBCASE("more positions than the context has") { spec.language.positions = kContext + 3; }
  SUBCASE("llama") { spec = llama(); }
  SUBCASE("llama, head of its own, each head with its keys") {
    spec = llama();
    spec.language.tied = false;
    spec.language.kv_heads = 0;
  }
  check(spec, 0);
}

TEST_CASE(
    "transformer: with adapters every derivative is a central difference too, and zero beyond a prefix") {
  ModelSpec spec = language("transformer");
  std::size_t ranks = 3;
  SUBCASE("all of them") {}
  SUBCASE("a prefix") { ranks = 2; }
  SUBCASE("of some layers") { spec.adapter.targets = {"k", "down"}; }
  SUBCASE("llama") { spec = llama(); }
  SUBCASE("llama, of some layers") {
    spec = llama();
    spec.adapter.targets = {"v", "gate"};
    ranks = 2;
  }
  spec.adapter.rank = 3;
  check(spec, ranks);
}

TEST_CASE("transformer: training some layers computes their gradients as training of all, and no others") {
  ModelSpec spec = language("transformer");
  SUBCASE("GPT-2") {}
  SUBCASE("llama") { spec = llama(); }
  const auto model = make_model(spec, {1, kContext, 1, true}, kVocabulary);
  REQUIRE(model);
  const ParameterLayout& layout = *(*model)->layout();
  std::vector<float> parameters(layout.size());
  Rng rng(4);
  for (float& value : parameters) value = static_cast<float>(0.4 * rng.normal());
  const std::vector<Token> tokens = {0, 3, 1, 4}, targets = {3, 1, 4, 2};
  const Batch batch{.tokens = tokens, .targets = targets};
  const auto workspace = (*model)->make_workspace(1);
  std::vector<float> whole(layout.size());
  const float loss = (*model)->loss_and_gradient(parameters, batch, whole, *workspace).mean;
  const Products all = workspace->products;
  for (std::uint32_t layer = 0; layer <= 3; ++layer) {
    CAPTURE(layer);
    Coverage covered;
    for (const TensorInfo& tensor : layout.tensors())
      if (tensor.layer == layer)
        covered = covered.unite(Coverage::of({{tensor.offset, tensor.offset + tensor.size}}));
    workspace->trained = trained_rows(layout, covered);
    workspace->products = {};
    constexpr float kUntouched = 7;
    std::vector<float> part(layout.size(), kUntouched);
    CHECK((*model)->loss_and_gradient(parameters, batch, part, *workspace).mean == loss);
    for (std::size_t i = 0; i < part.size(); ++i) {
      const bool inside =
          covered.count() > 0 && covered.unite(Coverage::of({{i, i + 1}})).count() == covered.count();
      if (part[i] != (inside ? whole[i] : kUntouched)) FAIL(layout.describe(i));
    }
    CHECK(workspace->products.weights < all.weights);
    // Blocks below the trained one need no gradient.
    if (layer > 1) CHECK(workspace->products.inputs < all.inputs);
  }
}

TEST_CASE(
    "transformer: activations that are computed again give the same bits, also between forward passes") {
  ModelSpec spec = language("transformer");
  spec.language.layers = 3;
  SUBCASE("GPT-2") {}
  SUBCASE("llama") {
    spec = llama();
    spec.language.layers = 3;
  }
  SUBCASE("adapters") { spec.adapter.rank = 2; }
  const auto model = make_model(spec, {1, kContext, 1, true}, kVocabulary);
  REQUIRE(model);
  std::vector<float> parameters((*model)->layout()->size());
  Rng rng(4);
  for (float& value : parameters) value = static_cast<float>(0.4 * rng.normal());
  const std::vector<Token> tokens = {0, 3, 1, 4, 2, 2, 0, 0}, targets = {3, 1, 4, 2, 2, 0, 1, 3};
  const Batch batch{.tokens = tokens, .targets = targets};
  const auto kept = (*model)->make_workspace(2), again = (*model)->make_workspace(2);
  again->recompute = true;
  std::vector<float> one(parameters.size()), other(parameters.size()), scores(8 * kVocabulary),
      later(8 * kVocabulary);
  for (int step = 0; step < 2; ++step) {
    (*model)->forward(parameters, batch, scores, *kept);
    (*model)->forward(parameters, batch, later, *again);
    CHECK(scores == later);
    const BatchLoss loss = (*model)->loss_and_gradient(parameters, batch, one, *kept);
    CHECK((*model)->loss_and_gradient(parameters, batch, other, *again) == loss);
    CHECK(one == other);
  }
}
