// LSTM (Hochreiter and Schmidhuber 1997, with forget gates) and GRU (Cho et al., EMNLP 2014), with PyTorch's
// gates, order and two biases. A sequence begins with zeros. The inputs' products are computed for all steps
// at once, as one product; the recurrent weights are packed once for all steps.
#include <algorithm>
#include <cmath>

#include "core/aligned_buffer.h"
#include "learn/layers/operations.h"
#include "learn/layers/packed_linear.h"

namespace fedge::learn {
namespace {

struct Recurrent {
  std::size_t in = 0;
  std::size_t units = 0;
  std::size_t gates = 4;      // 4: LSTM, 3: GRU
  std::size_t weight_ih = 0;  // offsets
  std::size_t weight_hh = 0;
  std::size_t bias_ih = 0;
  std::size_t bias_hh = 0;
  bool last = false;  // whether only the last step's output is the layer's
  std::size_t width() const { return gates * units; }
  // Distances of a step's rows: if they were a power of two, the rows would displace each other from the
  // cache.
  std::size_t state_row() const { return units + 16; }
  std::size_t step_row() const { return width() + 16; }
};

// The buffers hold all steps of a batch: samples x steps x numbers, except those of one step.
struct RecurrentSpace final : OperationSpace {
  RecurrentSpace(const Recurrent& r, std::size_t batch, std::size_t steps)
      : states(kernels(), r.units, r.width()),
        gates(batch * steps * r.width()),
        recurrent(r.gates == 3 ? gates.size() : 0),
        state(batch * steps * r.units),
        cell(r.gates == 4 ? state.size() : 0),
        before(batch * steps * r.units),
        dy(batch * r.units),
        dcell(batch * r.units),
        former(batch * r.state_row()),
        step(batch * r.step_row()),
        bias(r.width()),
        zeros(r.width()) {}

  PackedLinear states;
  AlignedBuffer<float> gates;
  AlignedBuffer<float> recurrent;  // GRU: recurrent sums
  AlignedBuffer<float> state;      // the outputs of all steps
  AlignedBuffer<float> cell;       // LSTM
  AlignedBuffer<float> before;     // the output before each step
  AlignedBuffer<float> dy;         // of one step: gradient with respect to its output
  AlignedBuffer<float> dcell;      // of one step; GRU: the part of dy that the cell passes on
  AlignedBuffer<float> former;     // of one step: the output before it; rows of state_row()
  AlignedBuffer<float> step;       // of one step: gradient of the recurrent sums; rows of step_row()
  AlignedBuffer<float> bias;
  AlignedBuffer<float> zeros;
};

class RecurrentLayer final : public Operation {
 public:
  RecurrentLayer(const LayerShape& from, const Recurrent& r) : r_(r), steps_(from.width) {
    shape_ = from;
    shape_.channels = r.units;
    if (r.last) shape_ = {.channels = r.units};
  }

  bool has_parameters() const override { return true; }
  bool needs_scratch() const override { return true; }
  double uses() const override { return static_cast<double>(steps_); }
  // All tensors uniform in +-1/sqrt(units), as in PyTorch.
  void initialise(std::span<float> parameters, Rng rng, Initialisation) const override {
    const double bound = 1.0 / std::sqrt(static_cast<double>(r_.units));
    const std::size_t count = r_.width() * (r_.in + r_.units + 2);
    for (float& value : parameters.subspan(r_.weight_ih, count))
      value = static_cast<float>((2.0 * rng.uniform() - 1.0) * bound);
  }

  std::unique_ptr<OperationSpace> make_space(std::size_t max_batch) const override {
    return std::make_unique<RecurrentSpace>(r_, max_batch, steps_);
  }

  void forward(const ForwardPass& pass, OperationSpace* space) const override {
    auto& s = *static_cast<RecurrentSpace*>(space);
    const std::size_t steps = steps_of(pass.points);
    const std::size_t width = r_.width();
    const float* w = pass.parameters.data();
    const bool lstm = r_.gates == 4;
    for (std::size_t g = 0; g < width; ++g)
      s.bias.data()[g] = w[r_.bias_ih + g] + (lstm ? w[r_.bias_hh + g] : 0.0F);
    s.states.pack_forward(pass.kernels, w + r_.weight_hh);
    pass.kernels.product({pass.rows * steps, r_.in, width}, {pass.x[0], r_.in, 1},
                         {w + r_.weight_ih, 1, r_.in},
                         {.data = s.gates.data(), .row = width, .bias = s.bias.data()}, pass.scratch);
    const std::size_t state_row = steps * r_.units;
    const std::size_t gate_row = steps * width;
    for (std::size_t t = 0; t < steps; ++t) {
      float* gates = s.gates.data() + t * width;
      float* sums = lstm ? gates : s.recurrent.data() + t * width;
      const PatchTarget target{sums, gate_row, lstm ? gates : w + r_.bias_hh, lstm ? gate_row : 0};
      if (t > 0)
        s.states.forward(pass.kernels, {pass.rows, r_.state_row()}, s.former.data(), target);
      else if (!lstm)
        for (std::size_t b = 0; b < pass.rows; ++b) std::copy_n(w + r_.bias_hh, width, sums + b * gate_row);
      for (std::size_t b = 0; b < pass.rows; ++b) {
        const std::size_t at = b * state_row + t * r_.units;
        float* y = s.state.data() + at;
        const float* state = t > 0 ? y - r_.units : s.zeros.data();
        std::copy_n(state, r_.units, s.before.data() + at);
        if (lstm)
          pass.kernels.lstm_cell(r_.units, gates + b * gate_row,
                                 t > 0 ? s.cell.data() + at - r_.units : s.zeros.data(), s.cell.data() + at,
                                 y);
        else
          pass.kernels.gru_cell(r_.units, gates + b * gate_row, sums + b * gate_row, state, y);
        std::copy_n(y, r_.units, s.former.data() + b * r_.state_row());
      }
    }
    for (std::size_t b = 0; b < pass.rows; ++b)
      std::copy_n(s.state.data() + b * state_row + (r_.last ? state_row - r_.units : 0),
                  r_.last ? r_.units : state_row, pass.y + b * (r_.last ? r_.units : state_row));
  }

  Products backward(const BackwardPass& pass, OperationSpace* space) const override {
    auto& s = *static_cast<RecurrentSpace*>(space);
    const std::size_t steps = steps_of(pass.points);
    s.states.pack_backward(pass.kernels, pass.parameters + r_.weight_hh);
    std::fill_n(s.dy.data(), pass.rows * r_.units, 0.0F);
    std::fill_n(s.dcell.data(), pass.rows * r_.units, 0.0F);
    for (std::size_t t = steps; t-- > 0;) backward_step(pass, t, steps, s);
    const std::size_t rows = pass.rows * steps;
    Products products;
    products.inputs += rows * r_.units * r_.width();
    if (pass.dx[0] != nullptr) {
      pass.kernels.product({rows, r_.width(), r_.in}, {s.gates.data(), r_.width(), 1},
                           {pass.parameters + r_.weight_ih, r_.in, 1}, {.data = pass.dx[0], .row = r_.in},
                           pass.scratch);
      products.inputs += rows * r_.in * r_.width();
    }
    if (!pass.moves) return products;
    const float* recurrent = r_.gates == 4 ? s.gates.data() : s.recurrent.data();
    apply_matrix(pass, rows, pass.x[0], s.gates.data(), r_.weight_ih, r_.in);
    apply_matrix(pass, rows, s.before.data(), recurrent, r_.weight_hh, r_.units);
    sum_biases(pass, rows, s.gates.data());
    apply_gradient(pass, r_.bias_ih, r_.width(), pass.gradient);
    if (r_.gates == 3) sum_biases(pass, rows, recurrent);  // an LSTM's biases have the same gradient
    apply_gradient(pass, r_.bias_hh, r_.width(), pass.gradient);
    products.weights += rows * (r_.in + r_.units) * r_.width();
    return products;
  }

 private:
  // Steps of the input of a pass whose output has this number of points.
  std::size_t steps_of(std::size_t points) const { return r_.last ? steps_ : points; }

  // On entry s.dy is the gradient of step t's output through the later steps.
  void backward_step(const BackwardPass& pass, std::size_t t, std::size_t steps, RecurrentSpace& s) const {
    const std::size_t width = r_.width();
    const bool lstm = r_.gates == 4;
    for (std::size_t b = 0; b < pass.rows; ++b) {
      const std::size_t row = b * steps + t;
      float* dy = s.dy.data() + b * r_.units;
      if (!r_.last || t + 1 == steps)
        pass.kernels.axpy(1.0F, pass.dy + (r_.last ? b : row) * r_.units, dy, r_.units);
      float* gates = s.gates.data() + row * width;
      float* carried = s.dcell.data() + b * r_.units;
      const float* sums = gates;
      if (lstm) {
        const float* cell = s.cell.data() + row * r_.units;
        pass.kernels.lstm_cell_backward(r_.units, gates, t > 0 ? cell - r_.units : s.zeros.data(), cell, dy,
                                        carried);
      } else {
        float* recurrent = s.recurrent.data() + row * width;
        pass.kernels.gru_cell_backward(r_.units, gates, recurrent, s.before.data() + row * r_.units, dy,
                                       carried);
        sums = recurrent;
      }
      std::copy_n(sums, width, s.step.data() + b * r_.step_row());
    }
    if (t == 0) return;
    s.states.backward(pass.kernels, {pass.rows, r_.step_row()}, s.step.data(),
                      {s.dy.data(), r_.units, lstm ? nullptr : s.dcell.data(), r_.units});
  }

  void apply_matrix(const BackwardPass& pass, std::size_t rows, const float* x, const float* dy,
                    std::size_t offset, std::size_t in) const {
    pass.kernels.product({r_.width(), rows, in}, {dy, 1, r_.width()}, {x, in, 1},
                         {.data = pass.gradient, .row = in}, pass.scratch);
    apply_gradient(pass, offset, in * r_.width(), pass.gradient);
  }

  // pass.gradient = the sum of the rows of dy.
  void sum_biases(const BackwardPass& pass, std::size_t rows, const float* dy) const {
    pass.kernels.bias_update({rows, 0, r_.width()}, {0, r_.width()}, dy, 0.0F, pass.gradient);
  }

  Recurrent r_;
  std::size_t steps_;
};

MadeOperation make_recurrent(const LayerContext& context, std::size_t gates) {
  const LayerShape from = as_sequence(context.from[0]);
  if (from.rank != LayerShape::Rank::kSequence || from.tokens)
    return layer_error(context, "a " + context.spec.kind + " needs a sequence as input, not " + from.text() +
                                    (from.tokens ? "; put an embedding before it" : ""));
  if (context.text && context.spec.last)
    return layer_error(context, "returns = \"last\" has one output for a text, but each token needs one");
  Recurrent r{.in = from.channels, .units = context.units(), .gates = gates, .last = context.spec.last};
  const auto add = [&](const char* name, std::vector<std::size_t> shape,
                       std::size_t& offset) -> Result<void> {
    FEDGE_TRY(tensor, add_tensor(context, name, std::move(shape)));
    offset = tensor.offset;
    return {};
  };
  FEDGE_TRY_VOID(add("weight_ih", {r.width(), r.in}, r.weight_ih));
  FEDGE_TRY_VOID(add("weight_hh", {r.width(), r.units}, r.weight_hh));
  FEDGE_TRY_VOID(add("bias_ih", {r.width()}, r.bias_ih));
  FEDGE_TRY_VOID(add("bias_hh", {r.width()}, r.bias_hh));
  return make_operation<RecurrentLayer>(from, r);
}

}  // namespace

MadeOperation make_lstm(const LayerContext& context) { return make_recurrent(context, 4); }
MadeOperation make_gru(const LayerContext& context) { return make_recurrent(context, 3); }

}  // namespace fedge::learn
