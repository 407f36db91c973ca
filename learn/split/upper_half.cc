#include "learn/split/upper_half.h"

#include "core/check.h"
#include "learn/submodel.h"

namespace fedge::learn {

UpperHalf::UpperHalf(const Model& model, const TrainingSpec& spec)
    : model_(model),
      split_(*model.split()),
      spec_(spec),
      optimizer_(spec),
      workspace_(model.make_workspace(spec.batch_size)),
      gradient_(model.layout()->size()),
      codec_(spec.split.codec, model.split()->width()) {
  workspace_->recompute = spec.recompute;
  optimizer_.begin(model.layout()->size(), {});
}

SplitState UpperHalf::begin(const SplitStart& start, const SplitLayout& layout,
                            std::span<const float> parameters) const {
  SplitState state{.start = start, .held = layout.read_above(start.cut), .trained = layout.above(start.cut)};
  state.values.resize(state.held.count());
  gather(parameters, state.held, state.values);
  state.moments.assign(optimizer_.moments() * state.trained.count(), 0.0F);
  return state;
}

void UpperHalf::enter(SplitState& state, std::span<float> parameters, const float* frozen) {
  FEDGE_CHECK(parameters.size() == model_.layout()->size(), "model size");
  parameters_ = parameters;
  workspace_->frozen = frozen;
  state_ = &state;
  steps_ = state.steps;
  scatter(state.values, state.held, parameters_);
  optimizer_.restore(state.trained, state.moments);
  within_batch_ = !state.gradient.empty();
  if (within_batch_) scatter(state.gradient, state.trained, gradient_.span());
}

void UpperHalf::leave(SplitState& state) const {
  FEDGE_CHECK(&state == state_, "the training that was entered");
  state.steps = steps_;
  gather(parameters_, state.held, state.values);
  optimizer_.save(state.trained, state.moments);
  state.gradient.resize(within_batch_ ? state.trained.count() : 0);
  if (within_batch_) gather(gradient_.span(), state.trained, state.gradient);
}

std::span<float> UpperHalf::room(const ExchangedPiece& piece) {
  const std::size_t floats = piece.place.rows * split_.width();
  if (values_.size() < floats) values_ = AlignedBuffer<float>(floats);
  return values_.span().first(floats);
}

Result<void> UpperHalf::run_forward(const ExchangedPiece& piece, std::span<const std::byte> values) {
  FEDGE_CHECK(state_ != nullptr && piece.step == steps_ && piece.place.cut == state_->start.cut,
              "the pieces of a training in their order");
  const std::span<float> decoded = room(piece);
  FEDGE_TRY_VOID(codec_.decode(values, piece.sent, decoded));
  if (piece.place.first == 0) split_.clear_gradient(gradient_.span());
  split_.upper_forward(parameters_, piece.place, decoded, decoded, *workspace_);
  return {};
}

void UpperHalf::run_backward(const ExchangedPiece& piece, std::vector<std::byte>& values) {
  const std::span<float> own = room(piece);
  split_.upper_backward(parameters_, piece.place, own, own, gradient_.span(), *workspace_);
  if (spec_.split.feedback)
    state_->feedback.encode(codec_, own, piece.sent, piece.samples, values);
  else
    codec_.encode(own, piece.sent, values);
  if (piece.last) move();
  within_batch_ = !piece.last;
}

// One step of the optimizer.
void UpperHalf::move() {
  const Optimizer::Step step{.rate = learning_rate(spec_, state_->start.round, steps_, state_->start.steps),
                             .moves = steps_ + 1};
  for (const Range& range : state_->trained.ranges())
    optimizer_.move(range, gradient_.data() + range.begin, parameters_, step);
  ++steps_;
}

Result<void> UpperHalf::exchange(const ExchangedPiece& piece, std::vector<std::byte>& values,
                                 std::span<double> losses) {
  FEDGE_TRY_VOID(run_forward(piece, values));
  split_.head(parameters_, piece.place, piece.targets, piece.total, room(piece), losses, *workspace_);
  run_backward(piece, values);
  return {};
}

Result<void> UpperHalf::forward(const ExchangedPiece& piece, std::vector<std::byte>& values) {
  FEDGE_TRY_VOID(run_forward(piece, values));
  codec_.encode(room(piece), piece.sent, values);
  return {};
}

Result<void> UpperHalf::backward(const ExchangedPiece& piece, std::vector<std::byte>& values) {
  FEDGE_TRY_VOID(codec_.decode(values, piece.sent, room(piece)));
  run_backward(piece, values);
  return {};
}

}  // namespace fedge::learn
