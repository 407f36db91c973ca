// Layers that join several others or rearrange one, and the embedding of tokens.
#include <algorithm>
#include <numeric>

#include "learn/layers/operations.h"

namespace fedge::learn {
namespace {

class Add final : public Operation {
 public:
  explicit Add(const LayerShape& shape) { shape_ = shape; }

  void forward(const ForwardPass& pass, OperationSpace*) const override {
    const std::size_t count = pass.rows * pass.points * shape_.channels;
    std::copy_n(pass.x[0], count, pass.y);
    for (const float* x : pass.x.subspan(1)) pass.kernels.axpy(1.0F, x, pass.y, count);
  }

  Products backward(const BackwardPass& pass, OperationSpace*) const override {
    for (float* dx : pass.dx)
      if (dx != nullptr) std::copy_n(pass.dy, pass.rows * pass.points * shape_.channels, dx);
    return {};
  }
};

// The product of two inputs; the second may have one channel, which then multiplies all channels of the
// first.
class Multiply final : public Operation {
 public:
  Multiply(const LayerShape& shape, bool one_channel) : one_channel_(one_channel) { shape_ = shape; }

  void forward(const ForwardPass& pass, OperationSpace*) const override {
    for_each_point(pass.rows * pass.points, [&](std::size_t at, std::size_t by, std::size_t c) {
      pass.y[at] = pass.x[0][at] * pass.x[1][by + (one_channel_ ? 0 : c)];
    });
  }

  Products backward(const BackwardPass& pass, OperationSpace*) const override {
    const std::size_t points = pass.rows * pass.points;
    if (pass.dx[0] != nullptr)
      for_each_point(points, [&](std::size_t at, std::size_t by, std::size_t c) {
        pass.dx[0][at] = pass.dy[at] * pass.x[1][by + (one_channel_ ? 0 : c)];
      });
    if (pass.dx[1] == nullptr) return {};
    std::fill_n(pass.dx[1], points * (one_channel_ ? 1 : shape_.channels), 0.0F);
    for_each_point(points, [&](std::size_t at, std::size_t by, std::size_t c) {
      pass.dx[1][by + (one_channel_ ? 0 : c)] += pass.dy[at] * pass.x[0][at];
    });
    return {};
  }

 private:
  template <class Use>
  void for_each_point(std::size_t points, Use use) const {
    for (std::size_t p = 0; p < points; ++p)
      for (std::size_t c = 0; c < shape_.channels; ++c)
        use(p * shape_.channels + c, one_channel_ ? p : p * shape_.channels, c);
  }

  bool one_channel_;
};

// Channels first .. first + count of an input's points, in order of the inputs.
struct Part {
  std::size_t channels;  // of the input
  std::size_t first;
  std::size_t count;
};

// Concatenation, and the selection of some channels.
class Select final : public Operation {
 public:
  Select(const LayerShape& shape, std::vector<Part> parts) : parts_(std::move(parts)) {
    shape_ = shape;
    shape_.channels = 0;
    for (const Part& part : parts_) shape_.channels += part.count;
  }

  void forward(const ForwardPass& pass, OperationSpace*) const override {
    std::size_t at = 0;
    for (std::size_t i = 0; i < parts_.size(); at += parts_[i++].count)
      for (std::size_t p = 0; p < pass.rows * pass.points; ++p)
        std::copy_n(pass.x[i] + p * parts_[i].channels + parts_[i].first, parts_[i].count,
                    pass.y + p * shape_.channels + at);
  }

  Products backward(const BackwardPass& pass, OperationSpace*) const override {
    const std::size_t points = pass.rows * pass.points;
    std::size_t at = 0;
    for (std::size_t i = 0; i < parts_.size(); at += parts_[i++].count) {
      if (pass.dx[i] == nullptr) continue;
      if (parts_[i].count < parts_[i].channels) std::fill_n(pass.dx[i], points * parts_[i].channels, 0.0F);
      for (std::size_t p = 0; p < points; ++p)
        std::copy_n(pass.dy + p * shape_.channels + at, parts_[i].count,
                    pass.dx[i] + p * parts_[i].channels + parts_[i].first);
    }
    return {};
  }

 private:
  std::vector<Part> parts_;
};

// Images and sequences as vectors in PyTorch's order: channel after channel.
class Flatten final : public Operation {
 public:
  Flatten(const LayerShape& from, bool channels_first) : from_(from), channels_first_(channels_first) {
    shape_ = {.channels = from.size()};
  }

  void forward(const ForwardPass& pass, OperationSpace*) const override {
    transpose(pass.x[0], pass.rows, from_.points(), from_.channels, pass.y);
  }

  Products backward(const BackwardPass& pass, OperationSpace*) const override {
    if (pass.dx[0] != nullptr) transpose(pass.dy, pass.rows, from_.channels, from_.points(), pass.dx[0]);
    return {};
  }

 private:
  // Transposes each of `count` matrices of rows x columns.
  void transpose(const float* from, std::size_t count, std::size_t rows, std::size_t columns,
                 float* to) const {
    if (!channels_first_) {
      std::copy_n(from, count * rows * columns, to);
      return;
    }
    for (std::size_t matrix = 0; matrix < count; ++matrix, from += rows * columns, to += rows * columns)
      for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t c = 0; c < columns; ++c) to[c * rows + r] = from[r * columns + c];
  }

  LayerShape from_;
  bool channels_first_;
};

class Reverse final : public Operation {
 public:
  explicit Reverse(const LayerShape& shape) { shape_ = shape; }

  void forward(const ForwardPass& pass, OperationSpace*) const override {
    reverse(pass.x[0], pass.rows, pass.y);
  }

  Products backward(const BackwardPass& pass, OperationSpace*) const override {
    if (pass.dx[0] != nullptr) reverse(pass.dy, pass.rows, pass.dx[0]);
    return {};
  }

 private:
  void reverse(const float* from, std::size_t rows, float* to) const {
    const std::size_t steps = shape_.points();
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t t = 0; t < steps; ++t)
        std::copy_n(from + (r * steps + t) * shape_.channels, shape_.channels,
                    to + (r * steps + steps - 1 - t) * shape_.channels);
  }
};

class Embedding final : public Operation {
 public:
  Embedding(const LayerShape& from, std::size_t offset, std::size_t vocabulary, std::size_t units)
      : offset_(offset), vocabulary_(vocabulary) {
    shape_ = from;
    shape_.tokens = false;
    shape_.channels = units;
  }

  bool has_parameters() const override { return true; }
  double uses() const override { return 0; }  // it looks rows up
  // PyTorch's default for embeddings: standard normal.
  void initialise(std::span<float> parameters, Rng rng, Initialisation) const override {
    for (float& value : parameters.subspan(offset_, vocabulary_ * shape_.channels))
      value = static_cast<float>(rng.normal());
  }

  void forward(const ForwardPass& pass, OperationSpace*) const override {
    const float* table = pass.parameters.data() + offset_;
    for (std::size_t i = 0; i < pass.rows * pass.points; ++i)
      std::copy_n(table + pass.tokens[i] * shape_.channels, shape_.channels, pass.y + i * shape_.channels);
  }

  Products backward(const BackwardPass& pass, OperationSpace*) const override {
    if (!pass.moves) return {};
    const std::size_t units = shape_.channels;
    std::fill_n(pass.gradient, vocabulary_ * units, 0.0F);
    for (std::size_t i = 0; i < pass.rows * pass.points; ++i)
      for (std::size_t u = 0; u < units; ++u)
        pass.gradient[pass.tokens[i] * units + u] += pass.dy[i * units + u];
    apply_gradient(pass, offset_, vocabulary_ * units, pass.gradient);
    return {};
  }

 private:
  std::size_t offset_;
  std::size_t vocabulary_;
};

std::string listed(std::span<const LayerShape> shapes) {
  std::string text;
  for (const LayerShape& shape : shapes) text += (text.empty() ? "" : " and ") + shape.text();
  return text;
}

Result<void> check_count(const LayerContext& context, std::size_t least, std::size_t most) {
  if (context.from.size() >= least && context.from.size() <= most) return {};
  return layer_error(context,
                     context.spec.kind + " needs " +
                         (least == most ? std::to_string(least) : std::to_string(least) + " or more") +
                         " layers in `from`, not " + std::to_string(context.from.size()));
}

bool same_points(const LayerShape& a, const LayerShape& b) {
  return a.rank == b.rank && a.height == b.height && a.width == b.width;
}

}  // namespace

MadeOperation make_add(const LayerContext& context) {
  FEDGE_TRY_VOID(check_count(context, 2, SIZE_MAX));
  for (const LayerShape& shape : context.from)
    if (shape != context.from[0])
      return layer_error(context, "add needs inputs of the same shape, not " + listed(context.from));
  return make_operation<Add>(context.from[0]);
}

MadeOperation make_multiply(const LayerContext& context) {
  FEDGE_TRY_VOID(check_count(context, 2, 2));
  const LayerShape& a = context.from[0];
  const LayerShape& b = context.from[1];
  if (!same_points(a, b) || (b.channels != 1 && b.channels != a.channels))
    return layer_error(context,
                       "multiply needs two inputs of the same shape, or one channel in the second, not " +
                           listed(context.from));
  return make_operation<Multiply>(a, b.channels == 1 && a.channels != 1);
}

MadeOperation make_concat(const LayerContext& context) {
  FEDGE_TRY_VOID(check_count(context, 2, SIZE_MAX));
  std::vector<Part> parts;
  for (const LayerShape& shape : context.from) {
    if (!same_points(shape, context.from[0]))
      return layer_error(
          context, "concat joins channels; its inputs must have as many points, not " + listed(context.from));
    parts.push_back({shape.channels, 0, shape.channels});
  }
  return make_operation<Select>(context.from[0], std::move(parts));
}

MadeOperation make_take(const LayerContext& context) {
  const LayerShape& from = context.from[0];
  const LayerSpec& spec = context.spec;
  if (spec.first >= from.channels || spec.count > from.channels - spec.first)
    return layer_error(context, "it takes channels " + std::to_string(spec.first) + " to " +
                                    std::to_string(spec.first + spec.count - 1) + ", but its input has " +
                                    std::to_string(from.channels));
  return make_operation<Select>(from, std::vector<Part>{{from.channels, spec.first, spec.count}});
}

MadeOperation make_flatten(const LayerContext& context) {
  const LayerShape& from = context.from[0];
  if (context.text)
    return layer_error(context, "a flatten of a text would read tokens that it has to predict");
  return make_operation<Flatten>(from, from.points() > 1 && from.channels > 1);
}

MadeOperation make_reverse(const LayerContext& context) {
  const LayerShape from = as_sequence(context.from[0]);
  if (context.text)
    return layer_error(context, "a reverse of a text would read tokens that it has to predict");
  if (from.rank != LayerShape::Rank::kSequence)
    return layer_error(context, "a reverse needs a sequence as input, not " + from.text());
  return make_operation<Reverse>(from);
}

MadeOperation make_embedding(const LayerContext& context) {
  const LayerShape& from = context.from[0];
  if (!from.tokens)
    return layer_error(context,
                       "an embedding reads the tokens of a text, not " + from.text() +
                           "; for one-hot columns of a table, use take and a dense layer without bias");
  if (context.spec.units == 0) return layer_error(context, "set `units`, the numbers of each token");
  FEDGE_TRY(weight, add_tensor(context, "weight", {context.outputs, context.spec.units}));
  return make_operation<Embedding>(from, weight.offset, context.outputs, context.spec.units);
}

}  // namespace fedge::learn
