#include "sim/clients/dropouts.h"

#include <array>

#include <variant>

namespace fedge::sim {
namespace {

constexpr std::array<const char*, 3> kDraws = {"dropout", "evaluation-dropout", "statistics-dropout"};

}  // namespace

void Dropouts::plan(const server::RunEngine::Assign& work, Bytes model) {
  const Devices& devices = surroundings_.devices;
  const learn::Task& task = surroundings_.task;
  ClientLinks& links = surroundings_.links;
  Client& client = clients_[work.client.value()];
  // Counts only this task: a client's dropouts in another track's phase must not affect this one.
  client.times = client.task == work.task ? client.times + 1 : 1;
  client.task = work.task;
  client.over = false;
  Rng draws = surroundings_.world.root()
                  .fork(kDraws.at(static_cast<std::size_t>(work.task.kind)), work.task.round.value(),
                        work.client.value())
                  .fork("session", client.times, work.task.track.value());
  if (draws.uniform() >= surroundings_.probability) return;
  const SampleCount samples = learn::trained_samples(task.sample_count(work.client), work.data_share);
  const Duration expected = devices.of(work.client).task_time(samples, task.spec().training, model);
  const Duration after = seconds(draws.uniform() * to_seconds(expected + 4 * devices.latency(work.client)));
  links.while_connected(work.client, surroundings_.world.now() + after,
                        [this, id = work.client, task_id = work.task] { drop(id, task_id); });
}

void Dropouts::note(ClientId client, const protocol::Message& message) {
  Client& self = clients_[client.value()];
  const auto* verdict = std::get_if<protocol::UpdateVerdict>(&message);
  const auto* cancelled = std::get_if<protocol::CancelTask>(&message);
  if ((verdict != nullptr && verdict->task() == self.task) ||
      (cancelled != nullptr && cancelled->task() == self.task))
    self.over = true;
}

void Dropouts::drop(ClientId client, TaskId task) {
  Client& self = clients_[client.value()];
  if (self.task != task || self.over) return;
  self.offline_until = surroundings_.world.now() + surroundings_.offline;
  surroundings_.on_dropout(client);
}

}  // namespace fedge::sim
