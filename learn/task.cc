#include "learn/task.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "core/check.h"

namespace fedge::learn {

Result<std::shared_ptr<const Task>> Task::build(const TaskSpec& spec, std::uint64_t seed) {
  FEDGE_TRY(data, load_train(spec.data));
  FEDGE_TRY(parts, learn::partition(spec.data.partition, data->labels, data->classes, Rng(seed)));
  FEDGE_TRY(model, make_model(spec.model, data->shape, data->classes));
  return std::shared_ptr<const Task>(
      new Task(spec, seed, std::move(data), std::move(parts), std::move(model)));
}

Result<std::shared_ptr<const Task>> Task::build_for(const TaskSpec& spec, std::uint64_t seed,
                                                    ClientId client) {
  if (client.value() >= spec.data.partition.clients)
    return invalid("client " + std::to_string(client.value()) +
                   " has no part of the run's data: data.partition.clients is " +
                   std::to_string(spec.data.partition.clients));
  FEDGE_TRY(data, load_part(spec.data, client.value(), Rng(seed)));
  FEDGE_TRY(model, make_model(spec.model, data->shape, data->classes));
  std::vector<std::uint32_t> everything(data->size());
  std::iota(everything.begin(), everything.end(), 0U);
  Partition part(std::move(everything), {0, data->size()});
  std::shared_ptr<Task> task(new Task(spec, seed, std::move(data), std::move(part), std::move(model)));
  task->only_ = client;
  return std::shared_ptr<const Task>(std::move(task));
}

std::span<const std::uint32_t> Task::samples_of(ClientId client) const {
  FEDGE_CHECK(only_ ? client == *only_ : client.value() < clients(), "a client this task was not built for");
  return partition_.of(only_ ? 0 : client.value());
}

TrainingResult Task::train(ClientId client, RoundNumber round, std::span<const float> global,
                           std::span<float> update, Trainer& trainer, const std::stop_token& stop) const {
  FEDGE_CHECK(global.size() == model_->layout()->size() && update.size() == global.size(), "model size");
  std::copy(global.begin(), global.end(), update.begin());
  const TrainingResult result = trainer.train(update, *data_, samples_of(client),
                                              rng_.fork("train", round.value(), client.value()), stop);
  for (std::size_t i = 0; i < update.size(); ++i) update[i] -= global[i];
  return result;
}

}  // namespace fedge::learn
