#include "client/device/task_worker.h"

#include <thread>
#include <utility>
#include <vector>

#include "client/local/client_memory.h"
#include "client/node_status.h"
#include "client/tokenizer_files.h"
#include "core/platform/calendar.h"
#include "core/tracing/trace_id.h"
#include "dht/node_record.h"
#include "protocol/chunks/chunk_selection.h"

namespace fedge::client {
namespace {

// What the secure sums of this run depend on.
std::shared_ptr<const MaskedRun> masked_run(const PreparedRun& run, const privacy::SecureRules& own) {
  return std::make_shared<const MaskedRun>(MaskedRun{.name = run.name,
                                                     .seed = run.seed,
                                                     .terms = run.terms,
                                                     .parameters = run.task->model().layout()->size(),
                                                     .rules = privacy::stricter(run.masking->rules, own),
                                                     .noises_updates = run.local_privacy.has_value(),
                                                     .noise_in_sums = run.noise.in_sums});
}

std::map<std::string, std::shared_ptr<learn::SegmentStore>> streams_of(const DaemonContext& context) {
  std::map<std::string, std::shared_ptr<learn::SegmentStore>> stores;
  for (const auto& sensor : context.sensors) stores.emplace(sensor->name(), sensor->store());
  return stores;
}

}  // namespace

TaskWorker::TaskWorker(DaemonContext& context, CoordinatorLink& link, RoundExchange& exchange)
    : context_(context),
      link_(link),
      exchange_(exchange),
      tokenizers_([&link](const protocol::Message& message) { link.send(message); }),
      split_(std::make_shared<SplitLink>(context.io,
                                         [&link](const protocol::Message& message) { link.send(message); })),
      maker_(context, split_,
             [this](const PreparedRun& run, const protocol::TrainRequest& request, const Error& fault) {
               report_fault(run, request, fault);
             }),
      training_timer_(context.io) {}

void TaskWorker::prepare(const protocol::RunDescription& description) {
  DeviceRun& run = context_.runs[description.run];
  run.name = description.name;
  run.described = std::make_shared<const protocol::RunDescription>(description);
  // Register the program before it is started, so that it can be told to leave.
  if (context_.options.trainer) run.trainer = std::make_shared<ExternalTrainer>(trainer_of(description.name));
  const DaemonOptions& options = context_.options;
  const ClientSide side{.client = context_.membership.client,
                        .state_directory = options.state_directory,
                        .trainer = run.trainer,
                        .data_directories = options.data_directories,
                        .streams = streams_of(context_),
                        .in_directory = context_.directory != nullptr,
                        .evaluates = options.evaluates,
                        .counts = options.counts,
                        .only_secure = options.secure.required,
                        .splits = options.splits,
                        .shared_bases = options.shared_bases,
                        .max_epsilon = options.max_epsilon,
                        .max_delta = options.max_delta,
                        .require_noise = options.require_noise,
                        .rules = options.secure.rules};
  context_.worker.post([weak = context_.weak(this), described = run.described, side] {
    if (const auto self = weak.lock()) self->find_tokenizer(described, side);
  });
}

void TaskWorker::find_tokenizer(const std::shared_ptr<const protocol::RunDescription>& described,
                                const ClientSide& side) {
  const auto missing = missing_tokenizer(*described, side.state_directory);
  if (missing && !*missing) return build(described, side);
  protocol::post(context_.io, [self = context_.alive(this), described, side, missing] {
    if (!missing) return self->prepared(described, missing.error(), false);
    self->fetch_tokenizer(described, side, **missing);
  });
}

void TaskWorker::fetch_tokenizer(const std::shared_ptr<const protocol::RunDescription>& described,
                                 const ClientSide& side, const std::string& hash) {
  const auto found = context_.runs.find(described->run);
  if (found == context_.runs.end() || found->second.described != described) return;
  tokenizers_.fetch(described->run, hash, [this, described, side](Result<std::string> table) {
    if (!table) return prepared(described, table.error(), false);
    context_.worker.post([weak = context_.weak(this), described, side, table = std::move(*table)] {
      const auto self = weak.lock();
      if (!self) return;
      if (const auto kept = keep_tokenizer(side.state_directory, table); kept)
        self->build(described, side);
      else
        protocol::post(self->context_.io,
                       [self, described, error = kept.error()] { self->prepared(described, error, false); });
    });
  });
}

void TaskWorker::build(const std::shared_ptr<const protocol::RunDescription>& described,
                       const ClientSide& side) {
  if (waits_for_stream(*described, side))
    return protocol::post(context_.io, [self = context_.alive(this), described, side] {
      const auto found = self->context_.runs.find(described->run);
      if (found != self->context_.runs.end() && found->second.described == described)
        self->await_data(found->second, side);
    });
  auto built = prepare_run(*described, side);
  const bool quoted = !built && may_quote_data(*described, side, built.error());
  protocol::post(context_.io, [self = context_.alive(this), described, built = std::move(built), quoted] {
    self->prepared(described, built, quoted);
  });
}

// The coordinator gets no answer until there is data.
void TaskWorker::await_data(DeviceRun& run, const ClientSide& side) {
  run.waiting = side;
  context_.report(Event{Severity::kInfo, "data.waiting", {}}.with("run", run.name));
  // A segment may have come before the run was known to wait.
  if (!waits_for_stream(*run.described, side)) grown();
}

void TaskWorker::grown() {
  for (auto& [id, run] : context_.runs) {
    if (!run.waiting) continue;
    context_.worker.post([weak = context_.weak(this), described = run.described, side = *run.waiting] {
      if (const auto self = weak.lock()) self->build(described, side);
    });
    run.waiting.reset();
  }
}

// Events of the trainer program occur on the trainer thread; post them to the thread of all other events.
TrainerOptions TaskWorker::trainer_of(const std::string& run) {
  TrainerOptions options = *context_.options.trainer;
  options.on_event = [weak = context_.weak(this), run](Event event) {
    if (const auto self = weak.lock())
      protocol::post(self->context_.io, [self, told = event.with("run", run)] {
        if (self->context_.options.on_event) self->context_.options.on_event(told);
      });
  };
  return options;
}

void TaskWorker::prepared(const std::shared_ptr<const protocol::RunDescription>& described,
                          const Result<std::shared_ptr<PreparedRun>>& built, bool quoted) {
  const RunId run = described->run;
  const auto found = context_.runs.find(run);
  // The run has ended, or has ended and been described anew.
  if (found == context_.runs.end() || found->second.described != described) return;
  if (!built) return context_.step(ClientEngine::RunRejected{run, built.error(), quoted});
  found->second.prepared = *built;
  const PreparedRun& ready = **built;
  const auto answer = answer_for(run, ready);
  if (!ready.masking && !ready.aggregate) return context_.step(answer);
  context_.step(TaskConductor::Prepared{
      .name = ready.name,
      .masked = ready.masking ? masked_run(ready, context_.options.secure.rules) : nullptr,
      .serverless = ready.aggregate != nullptr,
      .run = answer});
}

ClientEngine::RunPrepared TaskWorker::answer_for(RunId run, const PreparedRun& ready) const {
  const double capability = ready.capability.value_or(context_.options.capability);
  // Hide the number of samples where only sums or noised updates may be known.
  const bool told = !ready.masking && !ready.local_privacy;
  const auto shown = [&](SampleCount count) { return told ? count : std::min(count, SampleCount(1)); };
  return {run,
          shown(ready.samples),
          capability,
          ready.status.every,
          ready.masking.has_value(),
          shown(ready.evaluates),
          ready.work.overlaps() && !context_.options.trainer,
          told && ready.status.power ? context_.options.power : nullptr};
}

void TaskWorker::forget(RunId id) {
  exchange_.end_model(id);
  tokenizers_.forget(id);
  split_->forget(id);
  DeviceRun run = std::move(context_.runs[id]);
  context_.runs.erase(id);
  if (run.trainer) run.trainer->leave();
  end_ahead(id);
  // Queued after the jobs for the run. The trainer thread also ends the program, because that takes time.
  context_.trainer.post([weak = context_.weak(this), id, trainer = std::move(run.trainer)] {
    if (trainer) trainer->shut_down();
    const auto self = weak.lock();
    if (!self) return;
    self->context_.worker.post([weak, id] {
      if (const auto at_work = weak.lock()) forget_run(at_work->context_.options.state_directory, id);
    });
  });
}

// The round trip of the connection's first exchange serves as the latency.
void TaskWorker::publish(const ClientEngine::Publish& publish) {
  const DeviceRun& run = context_.runs[publish.run];
  const protocol::StatusSpec& spec = run.prepared->status;
  const Time calendar = calendar_time();
  NodeRecord record = describe_node(publish,
                                    {.latency_ms = 1000 * to_seconds(link_.round_trip()),
                                     .utility = run.utility,
                                     .labels = run.prepared->labels,
                                     .battery = EnergyMeter().battery_level()},
                                    spec, context_.options.withheld);
  record.sequence = sequences_.next(calendar);
  if (spec.via == protocol::StatusSpec::Via::kDirectory)
    return publish_in_directory(publish.run, record, calendar + spec.lifetime());
  auto value = dht::encode_node_record(record);
  if (value)
    link_.send(protocol::PublishRecord{publish.run, publish.round, record.sequence, std::move(*value)});
}

void TaskWorker::publish_in_directory(RunId run, const NodeRecord& record, Time expires) {
  const auto say = [self = context_.alive(this)](const Error& error) {
    self->context_.report(
        Event{Severity::kWarning, "record.publish_failed", {}}.with("reason", error.message));
  };
  const auto made = dht::make_record(context_.key, {record.sequence, expires}, dht::NodeStatus{run, record});
  if (!made) return say(made.error());
  context_.directory->directory().publish(*made, [say](const Result<void>& kept) {
    if (!kept) say(kept.error());
  });
}

void TaskWorker::fetch(const ClientEngine::FetchModel& fetch) {
  in_hand_.emplace(InHand{fetch.run});
  context_.worker.post([weak = context_.weak(this), fetch, stop = in_hand_->stop.get_token(),
                        run = context_.runs[fetch.run].prepared,
                        trained = fetch.task.kind != TaskKind::kTraining
                                      ? std::nullopt
                                      : std::optional(context_.engine->task(fetch.run)->coverage),
                        present = context_.runs[fetch.run].exchanged] {
    const auto self = weak.lock();
    if (!self || stop.stop_requested()) return;
    TaskFiles& files = *self->context_.files;
    const bool aggregates = run->aggregate != nullptr;
    const ParameterLayout& layout = *run->task->model().layout();
    // Finds the chunks that are already in the cache.
    auto download = files.download(
        layout, {fetch.model, fetch.control,
                 aggregates || !trained ? Coverage::all(layout.size()) : run->task->needed(*trained),
                 run->task->frozen(), present});
    // Hold the model until the round's updates have been applied to it.
    if (download && aggregates)
      if (const auto held = files.hold(fetch.run, fetch.model, download->model); !held)
        download = held.error();
    protocol::post(self->context_.io, [self, fetch, stop, download = std::move(download)] {
      if (!stop.stop_requested()) self->fetched(fetch, download);
    });
  });
}

void TaskWorker::fetched(const ClientEngine::FetchModel& fetch, Result<TaskFiles::Download> download) {
  if (!download) return context_.step(ClientEngine::ModelFailed{fetch.run, fetch.task, download.error()});
  in_hand_->download = std::move(*download);
  const auto done = [self = context_.alive(this), fetch, begun = context_.now(),
                     before = context_.swarm->figures()](const Result<void>& all) {
    if (!all) return self->context_.step(ClientEngine::ModelFailed{fetch.run, fetch.task, all.error()});
    self->all_fetched(fetch, begun, before);
  };
  const auto here = [self = context_.alive(this), done](const Result<void>& model) {
    const auto control = self->in_hand_ ? self->in_hand_->download.control : nullptr;
    if (!model || !control) return done(model);
    self->link_.fetch(control->manifest(), control, done);
  };
  if (context_.engine->task(fetch.run)->swarm) return exchange_model(fetch.run, here);
  const auto& [model, wanted, control] = in_hand_->download;
  link_.fetch(model->manifest(), std::make_shared<protocol::SelectedChunks>(model, wanted), here);
}

void TaskWorker::all_fetched(const ClientEngine::FetchModel& fetch, Time begun,
                             const swarm::Peer::Figures& before) {
  const swarm::Peer::Figures& after = context_.swarm->figures();
  const auto since = [](std::uint64_t bytes, std::uint64_t earlier) {
    return static_cast<std::int64_t>(bytes - earlier);
  };
  const std::int64_t centre = since(after.from_coordinator, before.from_coordinator);
  context_.report(Event{Severity::kDebug, "model.fetched", {}}
                      .with("run", context_.runs[fetch.run].name)
                      .with("round", std::int64_t{fetch.task.round.value()})
                      .with("seconds", to_seconds(context_.now() - begun))
                      .with("swarm_from_coordinator", centre)
                      .with("swarm_from_clients", since(after.received, before.received) - centre)
                      .with("swarm_to_clients", since(after.sent, before.sent))
                      .with("trace", trace_of(fetch.run, fetch.task)));
  if (in_hand_) exchange_.fetched(fetch.run, fetch.task, in_hand_->download.model);
  context_.step(ClientEngine::ModelFetched{fetch.run, fetch.task});
}

void TaskWorker::exchange_model(RunId run, std::function<void(const Result<void>&)> done) {
  const auto& model = in_hand_->download.model;
  const protocol::Manifest& manifest = model->manifest();
  exchange_.exchange(run, manifest.id());
  context_.runs[run].exchanged = model;
  swarm::ChunkSet wanted(manifest.chunk_count());
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (in_hand_->download.wanted.empty() || in_hand_->download.wanted[i]) wanted.add(i);
  in_hand_->exchanging = true;
  // Open the swarm last: if all chunks are cached, it calls back at once.
  context_.swarm->open(
      {.manifest = manifest, .source = model, .sink = model, .wanted = std::move(wanted), .seeding = {}},
      [weak = context_.weak(this), stop = in_hand_->stop.get_token(),
       done = std::move(done)](const Result<void>& outcome) {
        const auto self = weak.lock();
        if (!self) return;
        protocol::post(self->context_.io, [self, stop, done, outcome] {
          if (stop.stop_requested()) return;
          self->in_hand_->exchanging = false;
          done(outcome);
        });
      });
}

void TaskWorker::abandon(RunId run, TaskId) {
  if (in_hand_ && in_hand_->run == run) {
    in_hand_->stop.request_stop();
    training_timer_.cancel();
    link_.cancel_fetch();
    if (in_hand_->exchanging) exchange_.end_model(run);
    in_hand_.reset();
  }
  unmasked_.erase(run);
  link_.stop_serving(run);
  context_.runs[run].update.reset();
  // Queued after the worker has kept this task's update, and before any job of the next task.
  context_.worker.post([weak = context_.weak(this), run] {
    if (const auto self = weak.lock()) self->context_.files->forget(run);
  });
}

void TaskWorker::stop() {
  if (in_hand_) in_hand_->stop.request_stop();
  for (const auto& [run, ahead] : ahead_) ahead->stop.request_stop();
  training_timer_.cancel();
}

void TaskWorker::leave_trainers() {
  for (auto& [id, run] : context_.runs)
    if (run.trainer) run.trainer->leave();
}

void TaskWorker::end_trainers() {
  std::vector<std::jthread> endings;
  for (auto& [id, run] : context_.runs)
    if (run.trainer) endings.emplace_back([&trainer = *run.trainer] { trainer.shut_down(); });
}

}  // namespace fedge::client
