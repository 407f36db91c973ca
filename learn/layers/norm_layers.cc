// Group norm (Wu and He, ECCV 2018) and layer norm (Ba, Kiros, Hinton 2016), with epsilon 1e-5 as in PyTorch.
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/aligned_buffer.h"
#include "learn/layers/operations.h"

namespace fedge::learn {
namespace {

constexpr float kEpsilon = 1e-5F;

struct Gain {
  std::size_t gain = 0;  // offsets
  std::size_t bias = 0;
};

Result<Gain> add_gain(const LayerContext& context) {
  FEDGE_TRY(gain, add_tensor(context, "weight", {context.from[0].channels}));
  FEDGE_TRY(bias, add_tensor(context, "bias", {context.from[0].channels}));
  return Gain{gain.offset, bias.offset};
}

void set_gain(const Gain& gain, std::size_t channels, std::span<float> parameters) {
  std::ranges::fill(parameters.subspan(gain.gain, channels), 1.0F);
  std::ranges::fill(parameters.subspan(gain.bias, channels), 0.0F);
}

// For each channel of each sample: the mean of its group, and 1 / the group's standard deviation.
struct GroupSpace final : OperationSpace {
  GroupSpace(std::size_t batch, std::size_t channels)
      : mean(batch * channels), scale(batch * channels), sums(2 * channels), factors(3 * channels) {}
  AlignedBuffer<float> mean;
  AlignedBuffer<float> scale;
  AlignedBuffer<float> sums;
  AlignedBuffer<float> factors;
};

class GroupNorm final : public Operation {
 public:
  GroupNorm(const LayerShape& shape, const Gain& gain, std::size_t groups) : gain_(gain), groups_(groups) {
    shape_ = shape;
  }

  bool has_parameters() const override { return true; }
  void initialise(std::span<float> parameters, Rng, Initialisation) const override {
    set_gain(gain_, shape_.channels, parameters);
  }
  std::unique_ptr<OperationSpace> make_space(std::size_t max_batch) const override {
    return std::make_unique<GroupSpace>(max_batch, shape_.channels);
  }

  void forward(const ForwardPass& pass, OperationSpace* space) const override {
    GroupSpace& s = *static_cast<GroupSpace*>(space);
    const std::size_t channels = shape_.channels;
    const float* gain = pass.parameters.data() + gain_.gain;
    const float* bias = pass.parameters.data() + gain_.bias;
    const NormShape columns{shape_.points(), channels};
    float* factor = s.factors.data();
    float* term = factor + channels;
    for (std::size_t r = 0; r < pass.rows; ++r) {
      const float* x = pass.x[0] + r * shape_.size();
      float* mean = s.mean.data() + r * channels;
      float* scale = s.scale.data() + r * channels;
      std::fill_n(s.sums.data(), channels, 0.0F);
      pass.kernels.column_sums(columns, x, s.sums.data());
      mean_of_groups(s.sums.data(), mean);
      std::fill_n(s.sums.data(), channels, 0.0F);
      pass.kernels.column_squares(columns, x, mean, s.sums.data());
      mean_of_groups(s.sums.data(), scale);
      for (std::size_t c = 0; c < channels; ++c) {
        scale[c] = 1.0F / std::sqrt(scale[c] + kEpsilon);
        factor[c] = gain[c] * scale[c];
        term[c] = bias[c] - mean[c] * factor[c];
      }
      pass.kernels.column_affine(columns, x, factor, term, pass.y + r * shape_.size());
    }
  }

  // With n the normalised x and h = gain dy: dx = scale (h - mean(h) - n mean(h n)), means over the group.
  Products backward(const BackwardPass& pass, OperationSpace* space) const override {
    GroupSpace& s = *static_cast<GroupSpace*>(space);
    const std::size_t channels = shape_.channels;
    if (pass.moves) std::fill_n(pass.gradient, 2 * channels, 0.0F);
    for (std::size_t r = 0; r < pass.rows; ++r) backward_sample(pass, r, s);
    if (pass.moves) {
      apply_gradient(pass, gain_.gain, channels, pass.gradient);
      apply_gradient(pass, gain_.bias, channels, pass.gradient + channels);
    }
    return {};
  }

 private:
  void backward_sample(const BackwardPass& pass, std::size_t r, GroupSpace& s) const {
    const std::size_t channels = shape_.channels;
    const NormShape columns{shape_.points(), channels};
    const float* gain = pass.parameters + gain_.gain;
    const float* x = pass.x[0] + r * shape_.size();
    const float* dy = pass.dy + r * shape_.size();
    const float* mean = s.mean.data() + r * channels;
    const float* scale = s.scale.data() + r * channels;
    float* plain = s.sums.data();
    float* weighted = plain + channels;
    std::fill_n(plain, 2 * channels, 0.0F);
    pass.kernels.column_sums(columns, dy, plain);
    pass.kernels.column_products(columns, x, mean, dy, weighted);
    for (std::size_t c = 0; c < channels; ++c) weighted[c] *= scale[c];
    if (pass.moves)
      for (std::size_t c = 0; c < channels; ++c) {
        pass.gradient[c] += weighted[c];
        pass.gradient[channels + c] += plain[c];
      }
    if (pass.dx[0] == nullptr) return;
    for (std::size_t c = 0; c < channels; ++c) plain[c] *= gain[c], weighted[c] *= gain[c];
    mean_of_groups(plain, plain);
    mean_of_groups(weighted, weighted);
    float* dy_factor = s.factors.data();
    float* x_factor = dy_factor + channels;
    float* term = x_factor + channels;
    for (std::size_t c = 0; c < channels; ++c) {
      dy_factor[c] = scale[c] * gain[c];
      x_factor[c] = -scale[c] * scale[c] * weighted[c];
      term[c] = -scale[c] * plain[c] - x_factor[c] * mean[c];
    }
    pass.kernels.column_combine(columns, x, x_factor, term, dy, dy_factor, pass.dx[0] + r * shape_.size());
  }

  // Replaces each channel's sum by the mean of its group.
  void mean_of_groups(const float* sums, float* means) const {
    const std::size_t width = shape_.channels / groups_;
    const float share = 1.0F / static_cast<float>(width * shape_.points());
    for (std::size_t first = 0; first < shape_.channels; first += width) {
      float total = 0;
      for (std::size_t c = first; c < first + width; ++c) total += sums[c];
      std::fill_n(means + first, width, total * share);
    }
  }

  Gain gain_;
  std::size_t groups_;
};

struct LayerNormSpace final : OperationSpace {
  explicit LayerNormSpace(std::size_t rows) : statistics(rows) {}
  std::vector<NormStatistics> statistics;
};

class LayerNorm final : public Operation {
 public:
  LayerNorm(const LayerShape& shape, const Gain& gain) : gain_(gain) { shape_ = shape; }

  bool has_parameters() const override { return true; }
  void initialise(std::span<float> parameters, Rng, Initialisation) const override {
    set_gain(gain_, shape_.channels, parameters);
  }
  std::unique_ptr<OperationSpace> make_space(std::size_t max_batch) const override {
    return std::make_unique<LayerNormSpace>(max_batch * shape_.points());
  }

  void forward(const ForwardPass& pass, OperationSpace* space) const override {
    pass.kernels.layer_norm({pass.rows * pass.points, shape_.channels}, pass.x[0],
                            pass.parameters.data() + gain_.gain, pass.parameters.data() + gain_.bias, pass.y,
                            static_cast<LayerNormSpace*>(space)->statistics.data());
  }

  Products backward(const BackwardPass& pass, OperationSpace* space) const override {
    const NormShape rows{pass.rows * pass.points, shape_.channels};
    const NormStatistics* statistics = static_cast<LayerNormSpace*>(space)->statistics.data();
    if (pass.dx[0] != nullptr) {
      std::fill_n(pass.dx[0], rows.rows * rows.width, 0.0F);
      pass.kernels.layer_norm_backward(rows, pass.x[0], pass.parameters + gain_.gain, statistics, pass.dy,
                                       pass.dx[0]);
    }
    if (!pass.moves) return {};
    std::fill_n(pass.gradient, 2 * rows.width, 0.0F);
    pass.kernels.layer_norm_gradient(rows, pass.x[0], statistics, pass.dy, pass.gradient,
                                     pass.gradient + rows.width);
    apply_gradient(pass, gain_.gain, rows.width, pass.gradient);
    apply_gradient(pass, gain_.bias, rows.width, pass.gradient + rows.width);
    return {};
  }

 private:
  Gain gain_;
};

}  // namespace

MadeOperation make_group_norm(const LayerContext& context) {
  const LayerShape& from = context.from[0];
  const std::size_t groups = context.spec.groups;
  if (context.text)
    return layer_error(context,
                       "a group_norm of a text would read tokens that it has to predict; use layer_norm");
  if (from.channels % groups != 0)
    return layer_error(context, "groups = " + std::to_string(groups) + " does not divide the " +
                                    std::to_string(from.channels) + " channels of its input");
  FEDGE_TRY(gain, add_gain(context));
  return make_operation<GroupNorm>(from, gain, groups);
}

MadeOperation make_layer_norm(const LayerContext& context) {
  FEDGE_TRY(gain, add_gain(context));
  return make_operation<LayerNorm>(context.from[0], gain);
}

}  // namespace fedge::learn
