// Slow, obvious networks in double precision, as references for the models of learn/. They follow the
// definitions and share only the order of the parameters with the models.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace fedge::learn::test {

using Values = std::vector<double>;

struct Image {
  std::size_t height = 0;
  std::size_t width = 0;
  std::size_t channels = 0;
  Values pixels;  // height x width x channels
  double at(std::size_t y, std::size_t x, std::size_t c) const {
    return pixels[(y * width + x) * channels + c];
  }
};

inline Values relu(Values values) {
  for (double& value : values) value = std::max(value, 0.0);
  return values;
}

// Reads the parameters of one layer after another from a flat vector.
class LayerReader {
 public:
  explicit LayerReader(std::span<const double> parameters) : rest_(parameters) {}

  // weight [out, in], bias [out]
  Values dense(const Values& x, std::size_t out) {
    const auto weight = take(out * x.size());
    const auto bias = take(out);
    Values y(bias.begin(), bias.end());
    for (std::size_t o = 0; o < out; ++o)
      for (std::size_t i = 0; i < x.size(); ++i) y[o] += weight[o * x.size() + i] * x[i];
    return y;
  }

  // weight [out, in, kernel, kernel], bias [out]; the border of zeros is as wide as half the kernel
  Image convolution(const Image& x, std::size_t out, std::size_t kernel = 5, bool same = true) {
    const auto weight = take(out * kernel * kernel * x.channels);
    const auto bias = take(out);
    const std::size_t border = same ? kernel / 2 : 0;
    Image y{x.height + 2 * border - kernel + 1, x.width + 2 * border - kernel + 1, out, {}};
    for (std::size_t row = 0; row < y.height; ++row)
      for (std::size_t column = 0; column < y.width; ++column)
        for (std::size_t o = 0; o < out; ++o) {
          double sum = bias[o];
          for (std::size_t i = 0; i < kernel; ++i)
            for (std::size_t j = 0; j < kernel; ++j) {
              if (row + i < border || row + i - border >= x.height || column + j < border ||
                  column + j - border >= x.width)
                continue;
              for (std::size_t c = 0; c < x.channels; ++c)
                sum += weight[((o * x.channels + c) * kernel + i) * kernel + j] *
                       x.at(row + i - border, column + j - border, c);
            }
          y.pixels.push_back(sum);
        }
    return y;
  }

  bool empty() const { return rest_.empty(); }

 private:
  std::span<const double> take(std::size_t count) {
    const auto front = rest_.first(count);
    rest_ = rest_.subspan(count);
    return front;
  }
  std::span<const double> rest_;
};

inline Image max_pool(const Image& x) {
  Image y{x.height / 2, x.width / 2, x.channels, {}};
  for (std::size_t row = 0; row < y.height; ++row)
    for (std::size_t column = 0; column < y.width; ++column)
      for (std::size_t c = 0; c < x.channels; ++c)
        y.pixels.push_back(
            std::max({x.at(2 * row, 2 * column, c), x.at(2 * row, 2 * column + 1, c),
                      x.at(2 * row + 1, 2 * column, c), x.at(2 * row + 1, 2 * column + 1, c)}));
  return y;
}

// channels x height x width
inline Values flatten(const Image& x) {
  Values flat;
  for (std::size_t c = 0; c < x.channels; ++c)
    for (std::size_t row = 0; row < x.height; ++row)
      for (std::size_t column = 0; column < x.width; ++column) flat.push_back(x.at(row, column, c));
  return flat;
}

// -log softmax(logits)[label]
inline double cross_entropy(const Values& logits, std::size_t label) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double total = 0;
  for (const double logit : logits) total += std::exp(logit - largest);
  return std::log(total) + largest - logits[label];
}

}  // namespace fedge::learn::test
