#include "learn/pretrain.h"

#include <algorithm>
#include <utility>

#include "core/config/own_part.h"
#include "core/coverage.h"
#include "learn/data/validation.h"
#include "learn/model_file.h"

namespace fedge::learn {
namespace {

Coverage trainable(const ParameterLayout& layout) {
  std::vector<Range> ranges;
  for (const TensorInfo& tensor : layout.tensors())
    if (tensor.trainable) ranges.push_back({tensor.offset, tensor.offset + tensor.size});
  return Coverage::of(std::move(ranges));
}

}  // namespace

std::uint64_t pretraining_steps(const TaskSpec& spec, std::size_t samples) {
  return samples == 0 ? 0 : spec.training.steps(samples);
}

Result<std::vector<std::uint32_t>> pretraining_samples(const TaskSpec& spec, std::uint64_t seed,
                                                       const Dataset& data, const PretrainOptions& options) {
  FEDGE_TRY(validation, validation_samples(spec.data, data.labels, data.classes, Rng(seed)));
  std::vector<std::uint32_t> samples = samples_without(validation, data.size());
  std::erase_if(samples, [&](std::uint32_t sample) {
    return !options.labels.empty() &&
           std::ranges::find(options.labels, data.labels[sample]) == options.labels.end();
  });
  if (samples.empty())
    return invalid("no sample of the data set has one of the chosen labels, so there is nothing to train on");
  return samples;
}

Result<Pretrained> pretrain(const TaskSpec& spec, std::uint64_t seed, const Dataset& data,
                            const PretrainOptions& options) {
  FEDGE_TRY(samples, pretraining_samples(spec, seed, data, options));
  FEDGE_TRY(model, make_model(spec.model, data.shape, data.target()));
  const Rng rng(seed);
  FEDGE_TRY(values, initial_parameters(*model, spec.data, rng.fork("model")));
  TrainingSpec training = spec.training;
  training.schedule.rounds = 1;
  training.local_model = LocalModel::kWhole;
  training.objective = {};
  training.nesting = NestingKind::kNone;
  const Coverage moved =
      spec.model.personal.empty() ? trainable(*model->layout()) : Coverage::all(model->layout()->size());
  TrainingOptions how{.coverage = &moved, .finish = options.finish};
  how.report = [&](std::uint64_t steps, float loss) {
    if (options.report) options.report(steps, loss, values.values());
  };
  FEDGE_TRY(
      result, config::failure_as_error([&]() -> Result<TrainingResult> {
        return Trainer(*model, training).train(values.values(), data, samples, rng.fork("train", 1), how);
      }));
  return Pretrained{std::move(model), std::move(values), result.steps};
}

}  // namespace fedge::learn
