#include "sim/clients/virtual_training.h"

#include <algorithm>

#include "core/aligned_buffer.h"
#include "core/check.h"

namespace fedge::sim {
namespace {

Result<Digest> digest_of(const TrainedUpdate& update) {
  if (!update.sums.empty()) return client::SummedUpdates::sums_of(update.task.kind, update.sums);
  if (const auto values = update.values->in_memory(); !values.empty())
    return client::SummedUpdates::update_of(values);
  AlignedBuffer<float> values(update.coverage.count());
  FEDGE_TRY_VOID(update.values->read(0, values.span()));
  return client::SummedUpdates::update_of(values.span());
}

}  // namespace

void VirtualTraining::assign(const server::RunEngine::Assign& work, const std::optional<TaskId>& in_hand,
                             const SharedState& global) {
  OnDevice& device = at(work.client);
  if (surroundings_.energy != nullptr && work.task.kind == TaskKind::kTraining &&
      find(device, work.task) == nullptr)
    surroundings_.energy->task_begins(work.client, surroundings_.world.now());
  std::erase_if(device.models, [&](const auto& held) {
    return held.task == work.task || (held.arrived && in_hand != held.task);
  });
  device.models.push_back({work.task, global});
  if (work.task.kind == TaskKind::kTraining) device.data_share = work.data_share;
  if (work.task.kind != TaskKind::kTraining) return;
  surroundings_.adversary.assigned(work.client, {.task = work.task,
                                                 .data_share = work.data_share,
                                                 .coverage = work.coverage,
                                                 .last_round = work.last_round,
                                                 .global = global,
                                                 .needed = surroundings_.world.now()});
}

VirtualTraining::OnDevice::Held* VirtualTraining::find(OnDevice& device, TaskId task) {
  const auto found = std::ranges::find(device.models, task, &OnDevice::Held::task);
  return found == device.models.end() ? nullptr : &*found;
}

void VirtualTraining::arrived(ClientId client, TaskId task) {
  if (auto* const held = find(at(client), task)) held->arrived = true;
  if (surroundings_.split != nullptr) surroundings_.split->asked_again(client, task);
}

void VirtualTraining::lost(ClientId client) {
  std::erase_if(at(client).models, [](const auto& held) { return !held.arrived; });
  if (surroundings_.on_arrival) surroundings_.pool.postpone(client);
}

void VirtualTraining::start(ClientId client, const client::ClientEngine::Train& start,
                            const protocol::TrainRequest& request) {
  const learn::Task& task = surroundings_.task;
  const learn::TrainingSpec& spec = task.spec().training;
  const Time now = surroundings_.world.now();
  const SampleCount samples = learn::trained_samples(task.sample_count(client), request.data_share);
  const auto ends = client::training_ends(spec, start.asked, start.time_left);
  const auto [device, watts] = paced(client, request, start.coverage);
  const Device::Training training =
      start.trained ? Device::Training{}
      : start.task.kind == TaskKind::kEvaluation
          ? Device::Training{device.evaluation_time(task.evaluation_samples(client)), 0}
      : start.task.kind == TaskKind::kStatistics
          ? Device::Training{device.evaluation_time(samples), 0}
          : device.training(samples, spec, ends ? *ends - now : Duration::max());
  const Time finish = now + training.time;
  at(client).ends = finish;
  at(client).early = start.trained;
  if (!start.trained) meter(client, Activity::kTraining, watts, finish);
  const auto* const held = find(at(client), start.task);
  FEDGE_CHECK(held != nullptr, "a task begins with the model that it was assigned with");
  // The offer of a task without samples depends on its result, whether its phase is still open or not.
  const SharedState global =
      samples.value() == 0 ? std::make_shared<GlobalState>(*held->global) : held->global;
  surroundings_.pool.enqueue(client, {.task = start.task,
                                      .data_share = request.data_share,
                                      .kept = request.effort.kept,
                                      .coverage = start.coverage,
                                      .last_round = request.last_round,
                                      .global = global,
                                      .needed = needed(client, start.task, start.coverage, finish),
                                      .max_steps = training.max_steps,
                                      .flip_labels = surroundings_.adversary.flips_labels(client)});
  if (surroundings_.split != nullptr && start.task.kind == TaskKind::kTraining && samples.value() > 0)
    return split(client, start, request.data_share);
  surroundings_.world.at(finish,
                         [this, client, run = start.run, id = start.task] { finished(client, run, id); });
}

void VirtualTraining::split(ClientId client, const client::ClientEngine::Train& start, double data_share) {
  at(client).ends = {};
  surroundings_.split->begin(client, {.run = start.run,
                                      .task = start.task,
                                      .cut = surroundings_.task.split_layout().cut_of(start.coverage),
                                      .data_share = data_share,
                                      .done = [this, client, run = start.run, task = start.task] {
                                        at(client).ends = surroundings_.world.now();
                                        finished(client, run, task);
                                      }});
}

void VirtualTraining::start_ahead(ClientId client, const client::ClientEngine::TrainAhead& ahead) {
  const learn::Task& task = surroundings_.task;
  const SampleCount samples = learn::trained_samples(task.sample_count(client), ahead.request.data_share);
  const auto [device, watts] = paced(client, ahead.request, ahead.request.coverage);
  const Time finish =
      surroundings_.world.now() + device.training(samples, task.spec().training, Duration::max()).time;
  at(client).ahead = finish;
  meter(client, Activity::kTrainingAhead, watts, finish);
  surroundings_.world.at(finish, [this, client, finish, run = ahead.run, id = ahead.request.task()] {
    if (at(client).ahead != finish) return;
    training_ended(client);
    abandon_ahead(client);
    surroundings_.step(client, client::ClientEngine::AheadEnded{run, id, true});
  });
}

// The offer, the request for the update and the update itself travel between the end of the training and that
// moment. An estimate is enough: it orders the work, and no result depends on it.
Time VirtualTraining::needed(ClientId client, const TaskId& task, const Coverage& coverage,
                             Time finish) const {
  if (!surroundings_.on_arrival || task.kind != TaskKind::kTraining) return finish;
  const Device& device = surroundings_.devices.of(client);
  return finish + 3 * surroundings_.devices.latency(client) +
         device.upload_time(Bytes(coverage.count() * sizeof(float)));
}

VirtualTraining::Paced VirtualTraining::paced(ClientId client, const protocol::TrainRequest& request,
                                              const Coverage& part) const {
  const Device device = surroundings_.devices.of(client);
  const DeviceEnergy* const energy = surroundings_.devices.energy();
  if (energy == nullptr) return {device, 0};
  const auto running = energy->running(client, request.task(), request.effort.hertz, part);
  return {device.at_speed(running.samples_per_second), running.watts};
}

void VirtualTraining::meter(ClientId client, Activity activity, double watts, Time until) {
  if (surroundings_.energy == nullptr) return;
  surroundings_.energy->training_begins(client, surroundings_.world.now());
  surroundings_.energy->begin(client, activity, watts, surroundings_.world.now(), until);
}

void VirtualTraining::stop(ClientId client, Activity activity) {
  if (surroundings_.energy != nullptr) surroundings_.energy->end(client, activity, surroundings_.world.now());
}

void VirtualTraining::training_ended(ClientId client) {
  if (surroundings_.energy != nullptr) surroundings_.energy->training_ends(client, surroundings_.world.now());
}

// Energy would reveal how many samples the client has, so it is reported only where that number is.
std::optional<double> VirtualTraining::reported_energy(ClientId client) {
  if (surroundings_.energy == nullptr || !surroundings_.reports_energy) return std::nullopt;
  return surroundings_.energy->training_energy(client);
}

void VirtualTraining::finished(ClientId client, RunId run, TaskId task) {
  // The engine may have dropped or restarted the task while the device was busy.
  if (!surroundings_.pool.has(client, task) || at(client).ends != surroundings_.world.now()) return;
  if (!at(client).early) training_ended(client);
  stop(client, Activity::kTraining);
  if (surroundings_.on_arrival)
    if (auto expected = surroundings_.pool.expected(client)) {
      expected->joules = reported_energy(client);
      expected->run = run;
      expected->round = task.round;
      expected->track = task.track;
      return kept(client, {run, task, std::move(*expected)});
    }
  const auto update = surroundings_.pool.result(client);
  if (!update) return surroundings_.world.fail(update.error());
  if ((*update)->failure)
    return surroundings_.step(client, client::ClientEngine::TrainingFailed{run, task, *(*update)->failure});
  if (surroundings_.adversary.hostile(client) && task.kind == TaskKind::kTraining)
    if (const auto corrupted = surroundings_.adversary.corrupt(client, task); !corrupted)
      return surroundings_.world.fail(corrupted.error());
  // No bytes are transferred, so chunks are not hashed.
  Trained trained{run, task, {.run = run, .round = task.round, .track = task.track, .kind = task.kind}};
  describe(**update, trained.offer);
  trained.offer.joules = reported_energy(client);
  if (surroundings_.exchange != nullptr) surroundings_.exchange->name(client, trained.offer);
  if (surroundings_.secrets == nullptr) return kept(client, trained);
  RunLog& log = surroundings_.log;
  const auto digest = log.replaying() ? log.take_digest() : digest_of(**update);
  if (!digest) return surroundings_.world.fail(digest.error());
  log.put_digest(*digest);
  at(client).unmasked = trained;
  surroundings_.step(client, client::TaskConductor::TrainedUnmasked{run, task, *digest});
}

void VirtualTraining::mask(ClientId client, TaskId task, privacy::Masking masking) {
  auto trained = std::exchange(at(client).unmasked, {});
  if (!trained || trained->task != task) return;
  surroundings_.secrets->mask(client, std::move(masking), trained->offer);
  kept(client, *trained);
}

void VirtualTraining::kept(ClientId client, const Trained& trained) {
  surroundings_.on_kept(client, trained.task);
  if (!surroundings_.on_arrival && trained.task.kind == TaskKind::kTraining)
    at(client).utility = static_cast<double>(trained.offer.samples.value()) * trained.offer.loss_rms;
  surroundings_.step(client, trained);
}

void VirtualTraining::add_live(LiveStates& states) const {
  for (const OnDevice& device : devices_)
    for (const auto& held : device.models)
      if (held.global->model) states.emplace(held.global->version, *held.global);
}

void VirtualTraining::go_on(const LiveStates& states) {
  for (const OnDevice& device : devices_)
    for (const auto& held : device.models) {
      const auto live = states.find(held.global->version);
      if (live == states.end()) continue;
      held.global->model = live->second.model;
      held.global->control = live->second.control;
    }
}

void VirtualTraining::abandon(ClientId client, TaskId task) {
  surroundings_.pool.drop(client);
  stop(client, Activity::kTraining);
  if (surroundings_.split != nullptr) surroundings_.split->drop(client);
  // The same task may be on its way again.
  std::erase_if(at(client).models, [&](const auto& held) { return held.task == task && held.arrived; });
  at(client).unmasked.reset();
  if (surroundings_.secrets != nullptr) surroundings_.secrets->forget_masks(client);
}

}  // namespace fedge::sim
