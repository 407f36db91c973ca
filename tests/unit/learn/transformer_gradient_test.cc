// Compares the transformer with a slow one in double precision that follows the formulas: scores directly,
// every derivative by central differences of its loss.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
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
constexpr std::size_t kWidth = 6;
constexpr std::size_t kHeads = 2;

// A model's parameters in double, looked up by name; adds adapters of `ranks` to their weights.
class Slow {
 public:
  Slow(const Model& model, std::vector<double> values, std::size_t ranks)
      : model_(model), values_(std::move(values)), ranks_(ranks) {}

  Rows scores(const std::vector<Token>& tokens) const {
    Rows x;
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      Row sum(kWidth);
      for (std::size_t i = 0; i < kWidth; ++i)
        sum[i] = at("token_embedding", tokens[t], i) + at("position_embedding", t, i);
      x.push_back(sum);
    }
    for (std::size_t b = 1; b <= model_.spec().layers; ++b) {
      const std::string block = "block" + std::to_string(b);
      add(x, attention(block + ".attention", norm(block + ".norm1", x)));
      Rows raised = linear(block + ".mlp.up", norm(block + ".norm2", x));
      for (Row& row : raised)
        for (double& v : row)
          v = v / 2 * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (v + 0.044715 * v * v * v)));
      add(x, linear(block + ".mlp.down", raised));
    }
    Rows result;
    for (const Row& row : norm("norm", x)) {
      Row scores(kVocabulary);
      for (std::size_t v = 0; v < kVocabulary; ++v)
        for (std::size_t i = 0; i < kWidth; ++i)
          scores[v] += row[i] * at(model_.spec().tied ? "token_embedding" : "head.weight", v, i);
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
    const TensorInfo& tensor = *model_.layout()->find(name);
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
  double bias(const std::string& name, std::size_t i) const {
    return values_[model_.layout()->find(name)->offset + i];
  }
  static void add(Rows& x, const Rows& more) {
    for (std::size_t t = 0; t < x.size(); ++t)
      for (std::size_t i = 0; i < x[t].size(); ++i) x[t][i] += more[t][i];
  }
  Rows linear(const std::string& name, const Rows& x) const {
    const std::size_t out = model_.layout()->find(name + ".weight")->shape[0];
    Rows y;
    for (const Row& row : x) {
      Row sum(out);
      for (std::size_t o = 0; o < out; ++o) {
        sum[o] = bias(name + ".bias", o);
        for (std::size_t i = 0; i < row.size(); ++i) sum[o] += row[i] * at(name + ".weight", o, i);
      }
      y.push_back(sum);
    }
    return y;
  }
  Rows norm(const std::string& name, const Rows& x) const {
    Rows y;
    for (const Row& row : x) {
      double mean = 0, squares = 0;
      for (const double v : row) mean += v / kWidth;
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
    const Rows q = linear(name + ".q", x), k = linear(name + ".k", x), v = linear(name + ".v", x);
    const std::size_t size = kWidth / kHeads;
    Rows y(x.size(), Row(kWidth));
    for (std::size_t h = 0; h < kHeads; ++h)
      for (std::size_t t = 0; t < x.size(); ++t) {
        Row weights;
        double total = 0;
        for (std::size_t s = 0; s <= t; ++s) {
          double score = 0;
          for (std::size_t i = h * size; i < (h + 1) * size; ++i) score += q[t][i] * k[s][i];
          weights.push_back(std::exp(score / std::sqrt(static_cast<double>(size))));
          total += weights.back();
        }
        for (std::size_t s = 0; s <= t; ++s)
          for (std::size_t i = h * size; i < (h + 1) * size; ++i) y[t][i] += weights[s] / total * v[s][i];
      }
    return linear(name + ".o", y);
  }

  const Model& model_;
  std::vector<double> values_;
  std::size_t ranks_;
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
  for (std::size_t i = adapters != nullptr ? adapters->offset() : 0; i < values.size(); ++i) {
    CAPTURE((*model)->layout()->describe(i));
    const double kept = values[i];
    const double step = 1e-4;
    values[i] = kept + step;
    const double above = Slow(**model, values, ranks).loss(tokens, targets);
    values[i] = kept - step;
    const double below = Slow(**model, values, ranks).loss(tokens, targets);
    values[i] = kept;
    CHECK(static_cast<double>(gradient[i]) ==
          doctest::Approx((above - below) / (2 * step)).epsilon(1e-4).scale(0.1));
  }
}

ModelSpec transformer() { return {.kind = "transformer", .layers = 2, .width = kWidth, .heads = kHeads}; }

}  // namespace

TEST_CASE("transformer: scores are a slow one's, and every derivative is its central difference") {
  ModelSpec spec = transformer();
  SUBCASE("tied") {}
  SUBCASE("head of its own") { spec.tied = false; }
  check(spec, 0);
}

TEST_CASE(
    "transformer: with adapters every derivative is a central difference too, and zero beyond a prefix") {
  ModelSpec spec = transformer();
  spec.adapter.rank = 3;
  std::size_t ranks = 3;
  SUBCASE("all of them") {}
  SUBCASE("a prefix") { ranks = 2; }
  SUBCASE("of some layers") { spec.adapter.targets = {"k", "down"}; }
  check(spec, ranks);
}
