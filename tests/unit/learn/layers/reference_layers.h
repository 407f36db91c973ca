// A slow, obvious interpreter of lists of layers in double precision: each layer by its definition, element
// by element. It shares with learn/layers/ only the order of the parameters.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "learn/layers/layer_spec.h"
#include "tests/unit/learn/layers/reference_shapes.h"

namespace fedge::learn::test {

class ReferenceNetwork {
 public:
  ReferenceNetwork(std::vector<LayerSpec> layers, std::size_t outputs)
      : layers_(std::move(layers)), outputs_(outputs) {}

  // `tokens` replace the input of a text.
  Doubles run(const Activation& input, std::span<const double> parameters,
              const std::vector<std::size_t>& tokens = {}) {
    rest_ = parameters;
    std::map<std::string, Activation> named{{"input", input}};
    std::map<std::string, std::size_t> numbers;
    Activation before = input;
    for (const LayerSpec& layer : layers_) {
      std::vector<Activation> from;
      for (const std::string& name : layer.from) from.push_back(named.at(name));
      if (from.empty()) from.push_back(before);
      before = curve(layer, apply(layer, from, tokens));
      std::string prefix = layer.kind.substr(0, 4) == "conv" ? "conv" : layer.kind;
      if (layer.kind.ends_with("_transpose")) prefix = "conv_transpose";
      const std::string name = layer.name.empty() ? prefix + std::to_string(++numbers[prefix]) : layer.name;
      named[name] = before;
    }
    if (!rest_.empty()) throw std::logic_error("parameters are left");
    return before.values;
  }

 private:
  std::span<const double> take(std::size_t count) {
    const auto front = rest_.first(count);
    rest_ = rest_.subspan(count);
    return front;
  }
  std::size_t units(const LayerSpec& layer) const { return layer.units > 0 ? layer.units : outputs_; }

  Activation apply(const LayerSpec& layer, const std::vector<Activation>& from,
                   const std::vector<std::size_t>& tokens) {
    const std::string& kind = layer.kind;
    const Activation& x = from[0];
    if (kind == "dense") return dense(layer, x);
    if (kind == "conv1d" || kind == "conv2d") return convolution(layer, kind == "conv1d" ? sequence(x) : x);
    if (kind.ends_with("_transpose")) return transposed(layer, kind == "conv1d_transpose" ? sequence(x) : x);
    if (kind.ends_with("max_pool") || kind.ends_with("average_pool"))
      return pool(layer, x.flat ? sequence(x) : x);
    if (kind == "upsample") return upsample(layer, x);
    if (kind == "group_norm") return group_norm(layer, x);
    if (kind == "layer_norm") return layer_norm(x);
    if (kind == "embedding") return embedding(layer, tokens);
    if (kind == "lstm") return lstm(layer, sequence(x));
    if (kind == "gru") return gru(layer, sequence(x));
    if (kind == "attention_gate") return gate(layer, from[0], from[1]);
    if (kind == "add" || kind == "multiply") return combine(kind == "add", from);
    if (kind == "concat") return concat(from);
    if (kind == "take") return selected(layer, x);
    if (kind == "flatten") return flatten(x);
    if (kind == "reverse") return reversed(sequence(x));
    return x;  // curves, and dropout outside training
  }

  Activation dense(const LayerSpec& layer, const Activation& x) {
    const std::size_t out = units(layer);
    const auto weight = take(out * x.channels);
    const auto bias = layer.bias ? take(out) : std::span<const double>();
    Activation y = x;
    y.channels = out;
    y.values.clear();
    for (std::size_t p = 0; p < x.points(); ++p)
      for (std::size_t o = 0; o < out; ++o) {
        double sum = layer.bias ? bias[o] : 0;
        for (std::size_t i = 0; i < x.channels; ++i)
          sum += weight[o * x.channels + i] * x.values[p * x.channels + i];
        y.values.push_back(sum);
      }
    return y;
  }

  Activation convolution(const LayerSpec& layer, const Activation& x) {
    const std::size_t out = units(layer), k = layer.window, kh = x.image ? k : 1;
    const std::size_t in = x.channels / layer.groups, group_out = out / layer.groups;
    const auto weight = take(out * in * kh * k);
    const auto bias = layer.bias ? take(out) : std::span<const double>();
    const auto length = [&](std::size_t n, std::size_t kernel) {
      return layer.same ? (n + layer.stride - 1) / layer.stride : (n - kernel) / layer.stride + 1;
    };
    Activation y{length(x.height, kh), length(x.width, k), out, {}, x.image};
    if (!x.image) y.height = 1;
    const std::size_t up = layer.same ? (kh - 1) / 2 : 0, left = layer.same ? (k - 1) / 2 : 0;
    for (std::size_t row = 0; row < y.height; ++row)
      for (std::size_t column = 0; column < y.width; ++column)
        for (std::size_t o = 0; o < out; ++o) {
          double sum = layer.bias ? bias[o] : 0;
          for (std::size_t i = 0; i < in; ++i)
            for (std::size_t a = 0; a < kh; ++a)
              for (std::size_t b = 0; b < k; ++b) {
                const std::size_t at_y = row * (x.image ? layer.stride : 1) + a;
                const std::size_t at_x = column * layer.stride + b;
                if (at_y < up || at_y - up >= x.height || at_x < left || at_x - left >= x.width) continue;
                sum += weight[((o * in + i) * kh + a) * k + b] *
                       x.at(at_y - up, at_x - left, o / group_out * in + i);
              }
          y.values.push_back(sum);
        }
    return y;
  }

  // Each input adds its multiple of the kernel around the place where it lies in the output.
  Activation transposed(const LayerSpec& layer, const Activation& x) {
    const std::size_t out = units(layer), k = layer.window, kh = x.image ? k : 1, s = layer.stride;
    const auto weight = take(x.channels * out * kh * k);
    const auto bias = layer.bias ? take(out) : std::span<const double>();
    Activation y{x.image ? x.height * s : 1, x.width * s, out, {}, x.image};
    for (std::size_t p = 0; p < y.points(); ++p)
      for (std::size_t o = 0; o < out; ++o) y.values.push_back(layer.bias ? bias[o] : 0);
    for (std::size_t row = 0; row < x.height; ++row)
      for (std::size_t column = 0; column < x.width; ++column)
        for (std::size_t a = 0; a < kh; ++a)
          for (std::size_t b = 0; b < k; ++b) {
            const std::size_t at_y = row * (x.image ? s : 1) + a, at_x = column * s + b;
            const std::size_t up = (kh - 1) / 2, left = (k - 1) / 2;
            if (at_y < up || at_y - up >= y.height || at_x < left || at_x - left >= y.width) continue;
            for (std::size_t i = 0; i < x.channels; ++i)
              for (std::size_t o = 0; o < out; ++o)
                y.values[((at_y - up) * y.width + at_x - left) * out + o] +=
                    weight[((i * out + o) * kh + a) * k + b] * x.at(row, column, i);
          }
    return y;
  }

  Activation scaled(Activation y) {
    const auto gain = take(y.channels), bias = take(y.channels);
    for (std::size_t i = 0; i < y.values.size(); ++i)
      y.values[i] = y.values[i] * gain[i % y.channels] + bias[i % y.channels];
    return y;
  }

  Activation group_norm(const LayerSpec& layer, const Activation& x) {
    Activation y = x;
    const std::size_t width = x.channels / layer.groups;
    for (std::size_t g = 0; g < layer.groups; ++g) {
      std::vector<std::size_t> places;
      for (std::size_t i = 0; i < x.values.size(); ++i)
        if (i % x.channels / width == g) places.push_back(i);
      normalise(y, places);
    }
    return scaled(std::move(y));
  }

  Activation layer_norm(const Activation& x) {
    Activation y = x;
    for (std::size_t p = 0; p < x.points(); ++p) {
      std::vector<std::size_t> places;
      for (std::size_t c = 0; c < x.channels; ++c) places.push_back(p * x.channels + c);
      normalise(y, places);
    }
    return scaled(std::move(y));
  }

  Activation embedding(const LayerSpec& layer, const std::vector<std::size_t>& tokens) {
    const auto table = take(outputs_ * layer.units);
    Activation y{1, tokens.size(), layer.units, {}};
    for (const std::size_t token : tokens)
      for (std::size_t u = 0; u < layer.units; ++u) y.values.push_back(table[token * layer.units + u]);
    return y;
  }

  Activation lstm(const LayerSpec& layer, const Activation& x) {
    const std::size_t h = units(layer);
    const auto w = take(4 * h * x.channels), u = take(4 * h * h), bw = take(4 * h), bu = take(4 * h);
    Doubles state(h), cell(h);
    Activation y{1, layer.last ? 1 : x.width, h, {}, false, layer.last};
    for (std::size_t t = 0; t < x.width; ++t) {
      const Doubles in(x.values.begin() + static_cast<std::ptrdiff_t>(t * x.channels),
                       x.values.begin() + static_cast<std::ptrdiff_t>((t + 1) * x.channels));
      const Doubles a = product(w, bw, in), b = product(u, bu, state);
      for (std::size_t j = 0; j < h; ++j) {
        const auto gate = [&](std::size_t g) { return a[g * h + j] + b[g * h + j]; };
        cell[j] = sigmoid(gate(1)) * cell[j] + sigmoid(gate(0)) * std::tanh(gate(2));
        state[j] = sigmoid(gate(3)) * std::tanh(cell[j]);
      }
      if (!layer.last || t + 1 == x.width) y.values.insert(y.values.end(), state.begin(), state.end());
    }
    return y;
  }

  Activation gru(const LayerSpec& layer, const Activation& x) {
    const std::size_t h = units(layer);
    const auto w = take(3 * h * x.channels), u = take(3 * h * h), bw = take(3 * h), bu = take(3 * h);
    Doubles state(h);
    Activation y{1, layer.last ? 1 : x.width, h, {}, false, layer.last};
    for (std::size_t t = 0; t < x.width; ++t) {
      const Doubles in(x.values.begin() + static_cast<std::ptrdiff_t>(t * x.channels),
                       x.values.begin() + static_cast<std::ptrdiff_t>((t + 1) * x.channels));
      const Doubles a = product(w, bw, in), b = product(u, bu, state);
      for (std::size_t j = 0; j < h; ++j) {
        const double r = sigmoid(a[j] + b[j]), z = sigmoid(a[h + j] + b[h + j]);
        const double n = std::tanh(a[2 * h + j] + r * b[2 * h + j]);
        state[j] = (1 - z) * n + z * state[j];
      }
      if (!layer.last || t + 1 == x.width) y.values.insert(y.values.end(), state.begin(), state.end());
    }
    return y;
  }

  Activation gate(const LayerSpec& layer, const Activation& x, const Activation& g) {
    const std::size_t n = layer.units;
    const auto w = take(n * x.channels), u = take(n * g.channels), b = take(n), psi = take(n), last = take(1);
    Activation y = x;
    for (std::size_t p = 0; p < x.points(); ++p) {
      double score = last[0];
      for (std::size_t j = 0; j < n; ++j) {
        double sum = b[j];
        for (std::size_t c = 0; c < x.channels; ++c)
          sum += w[j * x.channels + c] * x.values[p * x.channels + c];
        for (std::size_t c = 0; c < g.channels; ++c)
          sum += u[j * g.channels + c] * g.values[p * g.channels + c];
        score += psi[j] * std::max(sum, 0.0);
      }
      for (std::size_t c = 0; c < x.channels; ++c) y.values[p * x.channels + c] *= sigmoid(score);
    }
    return y;
  }

  std::vector<LayerSpec> layers_;
  std::size_t outputs_;
  std::span<const double> rest_{};
};

}  // namespace fedge::learn::test
