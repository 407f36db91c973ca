// Pooling over windows or over all points, and upsampling.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "learn/layers/operations.h"

namespace fedge::learn {
namespace {

// The windows of a pooling without padding: the last lines or places may be left out, as in PyTorch.
struct Windows {
  LayerShape from;
  LayerShape to;
  std::size_t height;  // of a window
  std::size_t width;
  std::size_t stride;

  // Calls use(output pixel, first pixel of the window), numbers of points in a sample.
  template <class Use>
  void for_each(Use use) const {
    const std::size_t down = from.height == 1 ? 1 : stride;
    std::size_t point = 0;
    for (std::size_t y = 0; y < to.height; ++y)
      for (std::size_t x = 0; x < to.width; ++x) use(point++, y * down * from.width + x * stride);
  }
};

struct Winners final : OperationSpace {
  explicit Winners(std::size_t size) : points(size) {}
  std::vector<std::uint32_t> points;  // of each output: the point of its sample that it comes from
};

class MaxPool final : public Operation {
 public:
  explicit MaxPool(const Windows& windows) : windows_(windows) { shape_ = windows.to; }

  std::unique_ptr<OperationSpace> make_space(std::size_t max_batch) const override {
    return std::make_unique<Winners>(max_batch * shape_.size());
  }

  void forward(const ForwardPass& pass, OperationSpace* space) const override {
    const std::size_t channels = shape_.channels;
    for (std::size_t r = 0; r < pass.rows; ++r) {
      const float* x = pass.x[0] + r * windows_.from.size();
      float* y = pass.y + r * shape_.size();
      std::uint32_t* winners = static_cast<Winners*>(space)->points.data() + r * shape_.size();
      windows_.for_each([&](std::size_t point, std::size_t corner) {
        float* best = y + point * channels;
        std::uint32_t* winner = winners + point * channels;
        std::copy_n(x + corner * channels, channels, best);
        std::fill_n(winner, channels, static_cast<std::uint32_t>(corner));
        for (std::size_t line = 0; line < windows_.height; ++line)
          for (std::size_t place = line == 0 ? 1 : 0; place < windows_.width; ++place) {
            const std::size_t at = corner + line * windows_.from.width + place;
            const float* other = x + at * channels;
            for (std::size_t c = 0; c < channels; ++c) {
              winner[c] = other[c] > best[c] ? static_cast<std::uint32_t>(at) : winner[c];
              best[c] = other[c] > best[c] ? other[c] : best[c];
            }
          }
      });
    }
  }

  Products backward(const BackwardPass& pass, OperationSpace* space) const override {
    if (pass.dx[0] == nullptr) return {};
    std::fill_n(pass.dx[0], pass.rows * windows_.from.size(), 0.0F);
    const std::size_t channels = shape_.channels;
    for (std::size_t r = 0; r < pass.rows; ++r) {
      float* dx = pass.dx[0] + r * windows_.from.size();
      const float* dy = pass.dy + r * shape_.size();
      const std::uint32_t* winners = static_cast<Winners*>(space)->points.data() + r * shape_.size();
      for (std::size_t i = 0; i < shape_.size(); i += channels)
        for (std::size_t c = 0; c < channels; ++c) dx[winners[i + c] * channels + c] += dy[i + c];
    }
    return {};
  }

 private:
  Windows windows_;
};

class AveragePool final : public Operation {
 public:
  explicit AveragePool(const Windows& windows)
      : windows_(windows), share_(1.0F / static_cast<float>(windows.height * windows.width)) {
    shape_ = windows.to;
  }

  void forward(const ForwardPass& pass, OperationSpace*) const override {
    const std::size_t channels = shape_.channels;
    for (std::size_t r = 0; r < pass.rows; ++r) {
      const float* x = pass.x[0] + r * windows_.from.size();
      windows_.for_each([&](std::size_t point, std::size_t corner) {
        float* y = pass.y + r * shape_.size() + point * channels;
        std::fill_n(y, channels, 0.0F);
        for_each_pixel(corner, [&](std::size_t at) {
          for (std::size_t c = 0; c < channels; ++c) y[c] += x[at * channels + c];
        });
        for (std::size_t c = 0; c < channels; ++c) y[c] *= share_;
      });
    }
  }

  Products backward(const BackwardPass& pass, OperationSpace*) const override {
    if (pass.dx[0] == nullptr) return {};
    std::fill_n(pass.dx[0], pass.rows * windows_.from.size(), 0.0F);
    const std::size_t channels = shape_.channels;
    for (std::size_t r = 0; r < pass.rows; ++r) {
      float* dx = pass.dx[0] + r * windows_.from.size();
      windows_.for_each([&](std::size_t point, std::size_t corner) {
        const float* dy = pass.dy + r * shape_.size() + point * channels;
        for_each_pixel(corner, [&](std::size_t at) {
          for (std::size_t c = 0; c < channels; ++c) dx[at * channels + c] += share_ * dy[c];
        });
      });
    }
    return {};
  }

 private:
  template <class Use>
  void for_each_pixel(std::size_t corner, Use use) const {
    for (std::size_t line = 0; line < windows_.height; ++line)
      for (std::size_t place = 0; place < windows_.width; ++place)
        use(corner + line * windows_.from.width + place);
  }

  Windows windows_;
  float share_;
};

// Repeats each point `factor` times along each axis.
class Upsample final : public Operation {
 public:
  Upsample(const LayerShape& from, std::size_t factor)
      : from_(from), down_(from.rank == LayerShape::Rank::kImage ? factor : 1), across_(factor) {
    shape_ = from;
    shape_.height *= down_;
    shape_.width *= across_;
  }

  void forward(const ForwardPass& pass, OperationSpace*) const override {
    for_each_copy(pass.rows, [&](std::size_t from, std::size_t to) {
      std::copy_n(pass.x[0] + from, shape_.channels, pass.y + to);
    });
  }

  Products backward(const BackwardPass& pass, OperationSpace*) const override {
    if (pass.dx[0] == nullptr) return {};
    std::fill_n(pass.dx[0], pass.rows * from_.size(), 0.0F);
    for_each_copy(pass.rows, [&](std::size_t from, std::size_t to) {
      for (std::size_t c = 0; c < shape_.channels; ++c) pass.dx[0][from + c] += pass.dy[to + c];
    });
    return {};
  }

 private:
  template <class Use>
  void for_each_copy(std::size_t rows, Use use) const {
    std::size_t to = 0;
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t y = 0; y < shape_.height; ++y)
        for (std::size_t x = 0; x < shape_.width; ++x, to += shape_.channels)
          use(r * from_.size() + (y / down_ * from_.width + x / across_) * shape_.channels, to);
  }

  LayerShape from_;
  std::size_t down_;
  std::size_t across_;
};

// Two neighbouring points of an axis, and the weight of the second.
struct Between {
  std::size_t first = 0;
  std::size_t second = 0;
  float weight = 0;
};

// Returns the places between old points at which the points of an axis lie once it is `factor` times as long.
std::vector<Between> places_between(std::size_t length, std::size_t factor) {
  std::vector<Between> places;
  for (std::size_t i = 0; i < length * factor; ++i) {
    const double place = std::max((static_cast<double>(i) + 0.5) / static_cast<double>(factor) - 0.5, 0.0);
    const auto first = static_cast<std::size_t>(place);
    places.push_back(
        {first, std::min(first + 1, length - 1), static_cast<float>(place) - static_cast<float>(first)});
  }
  return places;
}

// Interpolates between the points along each axis.
class LinearUpsample final : public Operation {
 public:
  LinearUpsample(const LayerShape& from, std::size_t factor)
      : from_(from),
        down_(places_between(from.height, from.rank == LayerShape::Rank::kImage ? factor : 1)),
        across_(places_between(from.width, factor)) {
    shape_ = from;
    shape_.height = down_.size();
    shape_.width = across_.size();
  }

  void forward(const ForwardPass& pass, OperationSpace*) const override {
    std::fill_n(pass.y, pass.rows * shape_.size(), 0.0F);
    for_each_term(pass.rows, [&](std::size_t from, std::size_t to, float weight) {
      for (std::size_t c = 0; c < shape_.channels; ++c) pass.y[to + c] += weight * pass.x[0][from + c];
    });
  }

  Products backward(const BackwardPass& pass, OperationSpace*) const override {
    if (pass.dx[0] == nullptr) return {};
    std::fill_n(pass.dx[0], pass.rows * from_.size(), 0.0F);
    for_each_term(pass.rows, [&](std::size_t from, std::size_t to, float weight) {
      for (std::size_t c = 0; c < shape_.channels; ++c) pass.dx[0][from + c] += weight * pass.dy[to + c];
    });
    return {};
  }

 private:
  template <class Use>
  void for_each_term(std::size_t rows, Use use) const {
    std::size_t to = 0;
    for (std::size_t r = 0; r < rows; ++r)
      for (const Between& y : down_)
        for (const Between& x : across_) {
          const auto add = [&](std::size_t line, std::size_t place, float weight) {
            if (weight > 0)
              use(r * from_.size() + (line * from_.width + place) * shape_.channels, to, weight);
          };
          add(y.first, x.first, (1 - y.weight) * (1 - x.weight));
          add(y.first, x.second, (1 - y.weight) * x.weight);
          add(y.second, x.first, y.weight * (1 - x.weight));
          add(y.second, x.second, y.weight * x.weight);
          to += shape_.channels;
        }
  }

  LayerShape from_;
  std::vector<Between> down_;
  std::vector<Between> across_;
};

Result<LayerShape> points_of(const LayerContext& context) {
  const LayerShape from =
      context.from[0].rank == LayerShape::Rank::kImage ? context.from[0] : as_sequence(context.from[0]);
  if (context.text)
    return layer_error(context,
                       "a " + context.spec.kind + " of a text would read tokens that it has to predict");
  if (from.rank == LayerShape::Rank::kFlat)
    return layer_error(context,
                       "a " + context.spec.kind + " needs images or a sequence as input, not " + from.text());
  return from;
}

Result<Windows> windows_of(const LayerContext& context) {
  FEDGE_TRY(from, points_of(context));
  const std::size_t size = context.spec.window;
  const bool image = from.rank == LayerShape::Rank::kImage;
  if (from.width < size || (image && from.height < size))
    return layer_error(context, "its window of " + std::to_string(size) +
                                    " is larger than its input, which is " + from.text());
  const std::size_t stride = context.spec.stride;
  LayerShape to = from;
  to.width = (from.width - size) / stride + 1;
  if (image) to.height = (from.height - size) / stride + 1;
  return Windows{from, to, image ? size : 1, size, stride};
}

// One window over everything, whose result has no points.
Result<Windows> whole_window(const LayerContext& context) {
  FEDGE_TRY(from, points_of(context));
  return Windows{from, {.channels = from.channels}, from.height, from.width, 1};
}

}  // namespace

MadeOperation make_max_pool(const LayerContext& context) {
  FEDGE_TRY(windows, windows_of(context));
  return make_operation<MaxPool>(windows);
}

MadeOperation make_average_pool(const LayerContext& context) {
  FEDGE_TRY(windows, windows_of(context));
  return make_operation<AveragePool>(windows);
}

MadeOperation make_global_max_pool(const LayerContext& context) {
  FEDGE_TRY(windows, whole_window(context));
  return make_operation<MaxPool>(windows);
}

MadeOperation make_global_average_pool(const LayerContext& context) {
  FEDGE_TRY(windows, whole_window(context));
  return make_operation<AveragePool>(windows);
}

MadeOperation make_upsample(const LayerContext& context) {
  FEDGE_TRY(from, points_of(context));
  if (context.spec.linear) return make_operation<LinearUpsample>(from, context.spec.window);
  return make_operation<Upsample>(from, context.spec.window);
}

}  // namespace fedge::learn
