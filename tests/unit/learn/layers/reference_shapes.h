// The layers without parameters of reference_layers.h, and its activations.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <span>
#include <vector>

#include "learn/layers/layer_spec.h"

namespace fedge::learn::test {

using Doubles = std::vector<double>;

// An activation of one sample; a vector has one point, a sequence is one line.
struct Activation {
  std::size_t height = 1;
  std::size_t width = 1;
  std::size_t channels = 1;
  Doubles values{};
  bool image = false;
  bool flat = false;

  double at(std::size_t y, std::size_t x, std::size_t c) const {
    return values[(y * width + x) * channels + c];
  }
  std::size_t points() const { return height * width; }
};

inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

inline Activation curve(const LayerSpec& layer, Activation a) {
  for (double& x : a.values) {
    switch (layer.activation) {
      case Curve::kNone:
        break;
      case Curve::kRelu:
        x = std::max(x, 0.0);
        break;
      case Curve::kLeakyRelu:
        x = x > 0 ? x : layer.slope * x;
        break;
      case Curve::kGelu:
        x = x / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
        break;
      case Curve::kSilu:
        x = x * sigmoid(x);
        break;
      case Curve::kSigmoid:
        x = sigmoid(x);
        break;
      case Curve::kTanh:
        x = std::tanh(x);
        break;
    }
  }
  return a;
}

inline Activation sequence(const Activation& x) {
  Activation y = x;
  if (x.flat) y.width = x.channels, y.channels = 1;
  if (x.image && x.channels == 1) y.channels = x.width, y.width = x.height, y.height = 1;
  y.flat = y.image = false;
  return y;
}

inline Activation pool(const LayerSpec& layer, const Activation& x) {
  const bool whole = layer.kind.starts_with("global"), most = layer.kind.ends_with("max_pool");
  const std::size_t height = whole ? x.height : x.image ? layer.window : 1;
  const std::size_t width = whole ? x.width : layer.window;
  const std::size_t s = whole ? 1 : layer.stride;
  Activation y{
      (x.height - height) / s + 1, (x.width - width) / s + 1, x.channels, {}, x.image && !whole, whole};
  for (std::size_t row = 0; row < y.height; ++row)
    for (std::size_t column = 0; column < y.width; ++column)
      for (std::size_t c = 0; c < x.channels; ++c) {
        double best = x.at(row * s, column * s, c), sum = 0;
        for (std::size_t a = 0; a < height; ++a)
          for (std::size_t b = 0; b < width; ++b) {
            const double value = x.at(row * s + a, column * s + b, c);
            best = std::max(best, value);
            sum += value;
          }
        y.values.push_back(most ? best : sum / static_cast<double>(height * width));
      }
  return y;
}

// The value of a line between whole places, which ends at its ends.
template <class At>
double between(double place, std::size_t length, At at) {
  const double inside = std::clamp(place, 0.0, static_cast<double>(length - 1));
  const auto before = static_cast<std::size_t>(std::floor(inside));
  const double share = inside - static_cast<double>(before);
  return share == 0 ? at(before) : (1 - share) * at(before) + share * at(before + 1);
}

inline Activation upsample(const LayerSpec& layer, const Activation& x) {
  const std::size_t f = layer.window, down = x.image ? f : 1;
  Activation y{x.height * down, x.width * f, x.channels, {}, x.image};
  const auto source = [](std::size_t i, std::size_t factor) {
    return (static_cast<double>(i) + 0.5) / static_cast<double>(factor) - 0.5;
  };
  if (layer.linear) {
    for (std::size_t row = 0; row < y.height; ++row)
      for (std::size_t column = 0; column < y.width; ++column)
        for (std::size_t c = 0; c < x.channels; ++c)
          y.values.push_back(between(source(row, down), x.height, [&](std::size_t line) {
            return between(source(column, f), x.width,
                           [&](std::size_t place) { return x.at(line, place, c); });
          }));
    return y;
  }
  for (std::size_t row = 0; row < y.height; ++row)
    for (std::size_t column = 0; column < y.width; ++column)
      for (std::size_t c = 0; c < x.channels; ++c) y.values.push_back(x.at(row / down, column / f, c));
  return y;
}

// Normalises the values at these places to mean 0 and variance 1.
inline void normalise(Activation& y, const std::vector<std::size_t>& places) {
  const auto count = static_cast<double>(places.size());
  double mean = 0, variance = 0;
  for (const std::size_t i : places) mean += y.values[i] / count;
  for (const std::size_t i : places) variance += (y.values[i] - mean) * (y.values[i] - mean) / count;
  for (const std::size_t i : places) y.values[i] = (y.values[i] - mean) / std::sqrt(variance + 1e-5);
}

inline Activation combine(bool add, const std::vector<Activation>& from) {
  Activation y = from[0];
  for (std::size_t f = 1; f < from.size(); ++f)
    for (std::size_t i = 0; i < y.values.size(); ++i) {
      const double other = from[f].values[from[f].channels == y.channels ? i : i / y.channels];
      y.values[i] = add ? y.values[i] + other : y.values[i] * other;
    }
  return y;
}

inline Activation concat(const std::vector<Activation>& from) {
  Activation y = from[0];
  y.channels = 0;
  y.values.clear();
  for (const Activation& x : from) y.channels += x.channels;
  for (std::size_t p = 0; p < y.points(); ++p)
    for (const Activation& x : from)
      for (std::size_t c = 0; c < x.channels; ++c) y.values.push_back(x.values[p * x.channels + c]);
  return y;
}

inline Activation selected(const LayerSpec& layer, const Activation& x) {
  Activation y = x;
  y.channels = layer.count;
  y.values.clear();
  for (std::size_t p = 0; p < x.points(); ++p)
    for (std::size_t c = 0; c < layer.count; ++c)
      y.values.push_back(x.values[p * x.channels + layer.first + c]);
  return y;
}

inline Activation flatten(const Activation& x) {
  Activation y{1, 1, x.values.size(), {}, false, true};
  for (std::size_t c = 0; c < x.channels; ++c)
    for (std::size_t p = 0; p < x.points(); ++p) y.values.push_back(x.values[p * x.channels + c]);
  return y;
}

// bias + matrix x.
inline Activation reversed(const Activation& x) {
  Activation y = x;
  for (std::size_t p = 0; p < x.points(); ++p)
    for (std::size_t c = 0; c < x.channels; ++c)
      y.values[p * x.channels + c] = x.values[(x.points() - 1 - p) * x.channels + c];
  return y;
}

inline Doubles product(std::span<const double> matrix, std::span<const double> bias, const Doubles& x) {
  Doubles y(bias.begin(), bias.end());
  for (std::size_t o = 0; o < y.size(); ++o)
    for (std::size_t i = 0; i < x.size(); ++i) y[o] += matrix[o * x.size() + i] * x[i];
  return y;
}

}  // namespace fedge::learn::test
