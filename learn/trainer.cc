#include "learn/trainer.h"

#include <algorithm>
#include <cstring>

namespace fedge::learn {

Trainer::Trainer(const Model& model, const TrainingSpec& spec)
    : model_(model),
      spec_(spec),
      workspace_(model.make_workspace(spec.batch_size)),
      batch_inputs_(spec.batch_size * model.input_size()),
      batch_labels_(spec.batch_size) {
  if (spec.momentum == 0.0F) return;
  gradient_ = AlignedBuffer<float>(model.layout()->size());
  velocity_ = AlignedBuffer<float>(model.layout()->size());
}

TrainingResult Trainer::train(std::span<float> parameters, const Dataset& data,
                              std::span<const std::uint32_t> samples, const Rng& rng,
                              const std::stop_token& stop) {
  TrainingResult result;
  result.samples = SampleCount(samples.size());
  if (samples.empty()) return result;
  if (velocity_.size() > 0) std::memset(velocity_.data(), 0, velocity_.size() * sizeof(float));
  order_.assign(samples.begin(), samples.end());
  double loss = 0;
  for (std::size_t epoch = 0; epoch < spec_.local_epochs && !stop.stop_requested(); ++epoch) {
    Rng shuffle = rng.fork("epoch", epoch);
    shuffle.shuffle(std::span(order_));
    for (std::size_t first = 0; first < order_.size() && !stop.stop_requested(); first += spec_.batch_size) {
      const std::size_t count = std::min(spec_.batch_size, order_.size() - first);
      loss += static_cast<double>(step(parameters, data, std::span(order_).subspan(first, count)));
      ++result.steps;
    }
  }
  if (result.steps > 0) result.mean_loss = loss / static_cast<double>(result.steps);
  return result;
}

float Trainer::step(std::span<float> parameters, const Dataset& data,
                    std::span<const std::uint32_t> samples) {
  const std::size_t width = model_.input_size();
  for (std::size_t i = 0; i < samples.size(); ++i) {
    data.read_inputs(samples[i], batch_inputs_.span().subspan(i * width, width));
    batch_labels_[i] = data.labels[samples[i]];
  }
  const Batch batch{batch_inputs_.span().first(samples.size() * width),
                    std::span(batch_labels_).first(samples.size())};
  if (velocity_.size() == 0)
    return model_.sgd_step(parameters, batch, spec_.learning_rate, spec_.weight_decay, *workspace_);
  // PyTorch's SGD: v = momentum * v + gradient + weight_decay * w, w -= learning_rate * v.
  const float loss = model_.loss_and_gradient(parameters, batch, gradient_.span(), *workspace_);
  float* velocity = velocity_.data();
  const float* gradient = gradient_.data();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    velocity[i] = spec_.momentum * velocity[i] + (gradient[i] + spec_.weight_decay * parameters[i]);
    parameters[i] -= spec_.learning_rate * velocity[i];
  }
  return loss;
}

}  // namespace fedge::learn
