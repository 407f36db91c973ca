#include "learn/optimizers/optimizer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "core/check.h"
#include "learn/kernels/kernels.h"

namespace fedge::learn {
namespace {

// Other parameters' moments are not touched: the system gives memory to a page when it is written first.
void clear(AlignedBuffer<float>& buffer, std::size_t size, const Coverage& moved) {
  if (buffer.size() < size) buffer = AlignedBuffer<float>(size);
  for (const Range& range : moved.ranges())
    std::memset(buffer.data() + range.begin, 0, range.size() * sizeof(float));
}

}  // namespace

std::size_t Optimizer::moments() const {
  if (spec_.optimizer == OptimizerKind::kAdamW) return 2;
  return spec_.momentum != 0.0F ? 1 : 0;
}

void Optimizer::begin(std::size_t parameters, const Coverage& moved) {
  if (moments() > 0) clear(velocity_, parameters, moved);
  if (moments() > 1) clear(squares_, parameters, moved);
}

void Optimizer::move(const Range& range, const float* gradient, std::span<float> parameters,
                     const Step& step) {
  float* w = parameters.data() + range.begin;
  const std::size_t count = range.size();
  if (spec_.optimizer == OptimizerKind::kAdamW) {
    const auto t = static_cast<double>(step.moves);
    const AdamSpec& adam = spec_.adam;
    const AdamStep adamw{.learning_rate = step.rate,
                         .decay = spec_.weight_decay,
                         .beta1 = adam.beta1,
                         .beta2 = adam.beta2,
                         .epsilon = adam.epsilon,
                         .correction1 = static_cast<float>(1 - std::pow(static_cast<double>(adam.beta1), t)),
                         .correction2 = static_cast<float>(1 - std::pow(static_cast<double>(adam.beta2), t))};
    kernels().adam_step(adamw, gradient, w, velocity_.data() + range.begin, squares_.data() + range.begin,
                        count);
    return;
  }
  if (spec_.momentum == 0.0F) {
    for (std::size_t i = 0; i < count; ++i) w[i] -= step.rate * (gradient[i] + spec_.weight_decay * w[i]);
    return;
  }
  // PyTorch's SGD: v = momentum * v + gradient + weight_decay * w, w -= learning_rate * v.
  float* velocity = velocity_.data() + range.begin;
  for (std::size_t i = 0; i < count; ++i) {
    velocity[i] = spec_.momentum * velocity[i] + (gradient[i] + spec_.weight_decay * w[i]);
    w[i] -= step.rate * velocity[i];
  }
}

void Optimizer::save(const Coverage& coverage, std::span<float> out) const {
  FEDGE_CHECK(out.size() == moments() * coverage.count(), "room for the moments");
  const AlignedBuffer<float>* const all[] = {&velocity_, &squares_};
  float* next = out.data();
  for (std::size_t m = 0; m < moments(); ++m)
    for (const Range& range : coverage.ranges())
      next = std::copy_n(all[m]->data() + range.begin, range.size(), next);
}

void Optimizer::restore(const Coverage& coverage, std::span<const float> saved) {
  FEDGE_CHECK(saved.size() == moments() * coverage.count(), "the moments of these parameters");
  AlignedBuffer<float>* const all[] = {&velocity_, &squares_};
  const float* next = saved.data();
  for (std::size_t m = 0; m < moments(); ++m)
    for (const Range& range : coverage.ranges()) {
      std::copy_n(next, range.size(), all[m]->data() + range.begin);
      next += range.size();
    }
}

float learning_rate(const TrainingSpec& spec, const RoundNumber& round, std::uint64_t step,
                    std::uint64_t steps) {
  const RateSchedule& schedule = spec.schedule;
  if (!schedule.cosine) return spec.learning_rate;
  const auto progress = [&](std::uint64_t done) {
    const double within = static_cast<double>(done) / static_cast<double>(steps);
    const double over = static_cast<double>(round.value() - 1) + within;
    return std::min(1.0, over / static_cast<double>(schedule.rounds));
  };
  const auto rate = static_cast<double>(spec.learning_rate);
  // The warm-up counts the current step, so that the first step does not have rate 0.
  if (progress(step + 1) < schedule.warmup)
    return static_cast<float>(rate * progress(step + 1) / schedule.warmup);
  const double fallen =
      schedule.warmup < 1 ? std::max(0.0, progress(step) - schedule.warmup) / (1 - schedule.warmup) : 0;
  const double share = (1 + std::cos(std::numbers::pi * fallen)) / 2;
  return static_cast<float>(rate * (schedule.final + (1 - schedule.final) * share));
}

}  // namespace fedge::learn
