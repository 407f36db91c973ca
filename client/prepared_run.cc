#include "client/prepared_run.h"

#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>

#include "client/local/client_memory.h"
#include "client/membership.h"
#include "client/node_status.h"
#include "client/tokenizer_files.h"
#include "core/crypto/hkdf.h"
#include "core/text.h"
#include "learn/evaluation/evaluate.h"
#include "learn/models/external.h"

namespace fedge::client {
namespace {

// Derives the noise from this client's key, the counts and epsilon, so that every run gets the same noise.
// The mean of several draws would reveal the counts.
Result<std::vector<double>> labels_of(const learn::Task& task, ClientId client,
                                      const protocol::StatusSpec& status,
                                      const std::filesystem::path& state_directory) {
  if (status.labels != protocol::LabelReport::kDpHistogram)
    return published_labels(task, client, status, Rng(0));
  FEDGE_TRY(root, open_noise_key(state_directory));
  std::string counted = "fedge labels 1 " + number_text(status.epsilon);
  for (const std::uint64_t count : task.label_counts(client)) counted += " " + std::to_string(count);
  const Digest what = sha256(counted);
  const Secret key = derive_key(root, what, {});
  std::uint64_t seed = 0;
  std::memcpy(&seed, key.bytes().data(), sizeof seed);
  return published_labels(task, client, status, Rng(seed));
}

struct Outside {
  const WorkSpec& spec;
  std::shared_ptr<const learn::Task> task;
  std::filesystem::path memory;
};

// Prepares a run with the user's program, which holds the samples.
Result<std::shared_ptr<PreparedRun>> prepare_outside(const protocol::RunDescription& description,
                                                     const ClientSide& side, const Outside& outside) {
  if (outside.spec.status.labels != protocol::LabelReport::kNone)
    return Error{ErrorCode::kUnsupported,
                 "the run asks clients for the labels of their samples (status.labels), but a client with a "
                 "trainer program does not know them"};
  FEDGE_TRY(data, learn::describe(outside.spec.task.data));
  FEDGE_TRY(ready, side.trainer->begin({.client = side.client,
                                        .name = description.name,
                                        .seed = description.seed,
                                        .task = outside.spec.task,
                                        .data = data,
                                        .layout = outside.task->model().layout(),
                                        .sums = learn::sums_shape(outside.task->model())}));
  Elsewhere elsewhere{.train = [trainer = side.trainer](
                                   const WorkOrder& order, std::span<const float> model,
                                   std::span<float> update) { return trainer->train(order, model, update); },
                      .evaluate =
                          [trainer = side.trainer](const WorkOrder& order, std::span<const float> model) {
                            return trainer->evaluate(order, model);
                          }};
  return std::make_shared<PreparedRun>(PreparedRun{
      .name = description.name,
      .task = outside.task,
      .work = LocalWork(*outside.task, outside.spec.compression, description.seed, std::move(elsewhere)),
      .memory = outside.memory,
      .status = outside.spec.status,
      .samples = ready.samples,
      .capability = ready.capability,
      .evaluates = outside.spec.evaluates && side.evaluates ? ready.evaluates : SampleCount()});
}

// The parsed run description. In serverless runs it is the whole run file.
struct Described {
  WorkSpec work;
  std::shared_ptr<const run::RunConfig> whole;  // null unless serverless
};

Result<Described> read_description(const protocol::RunDescription& description,
                                   const std::filesystem::path& state_directory) {
  FEDGE_TRY(document,
            config::parse_toml(description.task, "run " + description.name, config::PlaceStyle::kStored));
  if (document.root.contains("dissemination")) {
    FEDGE_TRY(whole,
              run::read_described_run(document, kept_tokenizer(state_directory, tokenizer_hash(document))));
    if (!whole.dissemination.serverless)
      return invalid(
          "run " + description.name +
          ": the run description for clients contains [dissemination], which only serverless runs may send");
    whole.id = description.run;
    return Described{{.task = whole.task,
                      .compression = whole.compression,
                      .status = whole.status,
                      .evaluates = whole.evaluation.on_clients()},
                     std::make_shared<const run::RunConfig>(std::move(whole))};
  }
  config::Reader root(document.root, "", document.name);
  WorkSpec work = read_work(root);
  FEDGE_TRY_VOID(root.finish());
  learn::TokenizerSpec& tokenizer = work.task.data.tokenizer;
  if (!tokenizer.table_hash.empty()) tokenizer.table = kept_tokenizer(state_directory, tokenizer.table_hash);
  return Described{std::move(work), nullptr};
}

// In split training, each client has other matrices: those of its part of the model.
bool shares_base(const learn::Task& task, const WorkSpec& spec) {
  return task.model().reads_apart() && spec.task.training.local_model != LocalModel::kSplit;
}

// The segments of the stream that is this run's data; null: it is not.
std::shared_ptr<learn::SegmentStore> stream_of(const learn::DataSpec& data, const ClientSide& side) {
  const auto found = side.streams.find(learn::data_name(data));
  return found == side.streams.end() || !learn::is_own(data) ? nullptr : found->second;
}

Result<std::shared_ptr<PreparedRun>> prepare_work(const protocol::RunDescription& description,
                                                  const ClientSide& side, WorkSpec spec) {
  const bool publishes = spec.status.every > Duration::zero();
  if (publishes && spec.status.via == protocol::StatusSpec::Via::kDirectory && !side.in_directory)
    return Error{
        ErrorCode::kUnsupported,
        "in this run clients publish their node records in the directory (status.via), but this client is "
        "not connected to it; start the client with: fedge-client run --bootstrap HOST:PORT"};
  if (!side.trainer && learn::is_external(spec.task.model))
    return Error{
        ErrorCode::kUnsupported,
        "only a trainer program can compute the model of this run (model.kind = \"external\"); start the "
        "client with --trainer"};
  const auto chosen = learn::choose_directory(side.data_directories, spec.task.data);
  if (!chosen && !side.trainer) return chosen.error();  // a trainer program has its own data
  const auto stream = side.trainer ? nullptr : stream_of(spec.task.data, side);
  const std::uint64_t generation = stream ? stream->generation() : 0;
  const auto held = stream ? stream->hold() : std::unique_lock<std::mutex>();
  FEDGE_TRY(task, side.trainer ? learn::Task::build_without_data(spec.task, description.seed, side.client)
                               : learn::Task::build_for(spec.task, description.seed, side.client,
                                                        spec.evaluates && side.evaluates));
  if (task->model().layout()->hash() != description.layout)
    return Error{ErrorCode::kUnsupported,
                 "this client and the coordinator build different models from the run file; update the older "
                 "program of the two"};
  const auto memory = memory_of(side.state_directory, description.run);
  if (side.trainer) return prepare_outside(description, side, {spec, task, memory});
  if (task->sample_count(side.client).value() == 0 && task->evaluation_samples(side.client).value() == 0)
    return invalid("this client has no training samples in this run");
  FEDGE_TRY(labels, labels_of(*task, side.client, spec.status, side.state_directory));
  return std::make_shared<PreparedRun>(
      PreparedRun{.name = description.name,
                  .task = task,
                  .work = LocalWork(*task, spec.compression, description.seed),
                  .memory = memory,
                  .status = spec.status,
                  .labels = std::move(labels),
                  .samples = task->sample_count(side.client),
                  .evaluates = task->evaluation_samples(side.client),
                  .base = {.dtype = spec.task.model.base_dtype,
                           .shared = shares_base(*task, spec) ? side.shared_bases : ""},
                  .stream = stream,
                  .stream_generation = generation});
}

// The noise on this client's updates in a run; counts the noise of the guaranteed honest clients only.
PrivateReleases::Noise noise_in(const WorkSpec& work, const privacy::SecureRules& own) {
  if (work.local_privacy) return {work.local_privacy->noise_multiplier, work.local_privacy->noise_multiplier};
  if (!work.masking) return {};
  const std::uint32_t honest = privacy::stricter(work.masking->rules, own).honest_survivors();
  return {.own = 0, .in_sums = work.masking->noise_multiplier * std::sqrt(honest)};
}

// Checks that the updates of this run and of all earlier runs together stay below --max-epsilon.
Result<void> check_privacy(const protocol::RunDescription& description, const ClientSide& side,
                           const std::optional<privacy::LocalPrivacySpec>& spec) {
  if (!side.max_epsilon) return {};
  const std::string wanted = "this client was started with --max-epsilon " + number_text(*side.max_epsilon);
  if (!spec)
    return Error{ErrorCode::kRefused, wanted +
                                          ", but the clients of this run add no noise to their own updates; "
                                          "set differential_privacy.kind = \"local\" in the run file"};
  FEDGE_TRY(releases, PrivateReleases::read(side.state_directory));
  // Use this client's delta: a run with a larger delta costs more epsilon here.
  const PrivateReleases::Noise noise = {spec->noise_multiplier, spec->noise_multiplier};
  FEDGE_TRY(epsilon, releases.epsilon({description.run, noise, spec->max_participations}, side.max_delta));
  if (epsilon <= *side.max_epsilon) return {};
  return Error{
      ErrorCode::kRefused,
      wanted +
          ", but the updates of this client in this run and in earlier runs may together reach epsilon = " +
          number_text(epsilon) + " at delta = " + number_text(side.max_delta) +
          "; use more noise or fewer updates per client in the run file"};
}

// Checks that clients' noise hides this client's updates, also those of earlier runs, as --require-noise
// demands.
Result<void> check_noise(const PrivateReleases::Planned& planned, const ClientSide& side) {
  if (!side.require_noise) return {};
  const std::string wanted =
      "this client was started with --require-noise " + number_text(*side.require_noise);
  if (!(planned.noise.in_sums > 0))
    return Error{ErrorCode::kRefused,
                 wanted +
                     ", but no client of this run adds noise; set differential_privacy.kind = "
                     "\"distributed\" or \"local\" in the run file"};
  FEDGE_TRY(releases, PrivateReleases::read(side.state_directory));
  FEDGE_TRY(epsilon, releases.epsilon_in_sums(planned, side.max_delta));
  if (epsilon <= *side.require_noise) return {};
  return Error{ErrorCode::kRefused,
               wanted +
                   ", but even with the noise that other clients add, the updates of this client in this run "
                   "and in earlier runs may together reach epsilon = " +
                   number_text(epsilon) + " at delta = " + number_text(side.max_delta) +
                   "; use more noise or fewer updates per client in the run file"};
}

// Refuses runs that protect updates but ask for labels: the published counts are not protected.
Result<void> check_labels(const WorkSpec& work) {
  if (!(work.local_privacy || work.masking) || work.status.labels == protocol::LabelReport::kNone) return {};
  return Error{ErrorCode::kRefused,
               "the run protects its clients' updates with masks or noise, but asks clients for the labels "
               "of their samples; remove status.labels and sampling.labels from the run file"};
}

// Refuses own noise that is too small to hide an update. SummedUpdates does not recognise an update with
// such noise in a second sum, and two sums would reveal it.
Result<void> check_second_sums(const WorkSpec& work) {
  if (!work.masking || !work.local_privacy || work.local_privacy->noise_multiplier >= privacy::kHidingNoise)
    return {};
  return Error{ErrorCode::kRefused,
               "with secure_aggregation the noise that each client adds must be at least " +
                   number_text(privacy::kHidingNoise) +
                   " (differential_privacy.noise_multiplier), but this run uses " +
                   number_text(work.local_privacy->noise_multiplier) +
                   "; with less noise, a second sum over the same update could reveal the update"};
}

}  // namespace

Result<std::shared_ptr<PreparedRun>> prepare_run(const protocol::RunDescription& description,
                                                 const ClientSide& side) {
  FEDGE_TRY(described, read_description(description, side.state_directory));
  const auto masking = described.work.masking;
  const auto local = described.work.local_privacy;
  FEDGE_TRY_VOID(check_privacy(description, side, local));
  const PrivateReleases::Noise noise = noise_in(described.work, side.rules);
  const std::uint32_t most = local ? local->max_participations : masking ? masking->max_participations : 0;
  FEDGE_TRY_VOID(check_noise({description.run, noise, most}, side));
  FEDGE_TRY_VOID(check_labels(described.work));
  FEDGE_TRY_VOID(check_second_sums(described.work));
  if (side.only_secure && !masking)
    return Error{ErrorCode::kRefused,
                 "this client was started with --only-secure, but in this run the coordinator would see its "
                 "individual updates; set secure_aggregation.kind in the run file"};
  if (described.work.task.training.local_model == LocalModel::kSplit) {
    if (!side.splits)
      return Error{
          ErrorCode::kRefused,
          "in this run the coordinator trains a part of the model and sees activations, from which samples "
          "of this client can be reconstructed; start it with --allow-split if it may"};
    if (masking || local)
      return Error{
          ErrorCode::kRefused,
          "the run promises to hide this client's updates, but in split training the coordinator sees "
          "activations of its samples"};
    if (side.trainer)
      return Error{ErrorCode::kUnsupported,
                   "a trainer program cannot train a part of the model (split training)"};
  }
  // Evaluations and statistics of a client have no noise: whatever the coordinator asks for, they do not
  // leave a device that trains in a run whose updates have noise. Where the coordinator adds the noise,
  // statistics are shares.
  const bool by_clients = local || (masking && masking->noise_multiplier > 0);
  const bool noised = by_clients || (masking && masking->clipping_norm > 0);
  const std::int64_t whole = described.work.statistics_whole;
  const bool counts = side.counts && !by_clients && (!noised || whole > 0);
  FEDGE_TRY(prepared, prepare_work(description, side, std::move(described.work)));
  prepared->work.count_in_shares(whole);
  if ((noised || whole > 0) && prepared->samples.value() > 0) prepared->evaluates = SampleCount(0);
  prepared->masking = masking;
  prepared->counts = counts;
  prepared->local_privacy = local;
  prepared->noise = noise;
  if (local) prepared->work.make_private(*local);
  if (masking) prepared->work.hide_failures();
  prepared->terms = sha256(description.task);
  prepared->seed = description.seed;
  if (prepared->stream) prepared->renew = [description, side] { return prepare_run(description, side); };
  if (described.whole) prepared->aggregate = std::make_shared<OwnAggregate>(described.whole, prepared->task);
  return prepared;
}

bool waits_for_stream(const protocol::RunDescription& description, const ClientSide& side) {
  if (side.streams.empty() || side.trainer) return false;
  const auto described = read_description(description, side.state_directory);
  const auto stream = described ? stream_of(described->work.task.data, side) : nullptr;
  return stream && stream->may_train() && stream->for_training() == 0;
}

bool may_quote_data(const protocol::RunDescription& description, const ClientSide& side, const Error& error) {
  if (error.code == ErrorCode::kRefused || error.code == ErrorCode::kUnsupported) return false;
  if (!side.data_directories.empty()) return true;
  const auto described = read_description(description, side.state_directory);
  return described && (is_own(described->work.task.data) || in_own_files(described->work.task.data));
}

std::optional<std::uint32_t> PreparedRun::most_updates() const {
  if (local_privacy) return local_privacy->max_participations;
  if (masking && masking->noise_multiplier > 0) return masking->max_participations;
  return std::nullopt;
}

Result<WorkResult> work_on(PreparedRun& run, const TaskInHand& task) {
  const LoadedModel& loaded = task.loaded;
  const learn::CompactWeights* base = loaded.base ? &*loaded.base : nullptr;
  const bool counts = task.request.kind == TaskKind::kStatistics;
  const std::span<const float> numbers = task.request.statistics;
  const learn::Normalisation normalisation =
      counts ? learn::Normalisation() : learn::normalisation_of(numbers);
  if (counts && !run.counts) return Error{ErrorCode::kRefused, "this client sends no statistics of its data"};
  if (counts) FEDGE_TRY_VOID(admit_count(run.memory, task.request.round, numbers));
  ClientMemory memory;
  FileMemory store(run.memory, task.request.track);
  if (run.work.remembers_in(task.request.kind)) {
    if (!task.request.live_tracks.empty() && !task.ahead) keep_only(run.memory, task.request.live_tracks);
    FEDGE_TRY(kept, task.ahead ? store.read(task.request.last_round) : store.load(task.request.last_round));
    if (!kept && run.work.corrects())
      return Error{ErrorCode::kNotFound, "this client has lost the correction of its task " +
                                             std::to_string(task.request.last_round.value())};
    if (kept) memory = std::move(*kept);
  }
  if (task.request.kind != TaskKind::kTraining)
    return run.work.answer({.client = task.client,
                            .round = task.request.round,
                            .coverage = task.request.coverage,
                            .stop = task.stop,
                            .kind = task.request.kind,
                            .edges = numbers,
                            .normalisation = &normalisation,
                            .base = base},
                           loaded.model.values(), memory);
  const WorkOrder order{.client = task.client,
                        .round = task.request.round,
                        .data_share = task.request.data_share,
                        .coverage = task.request.coverage,
                        .control = loaded.control ? loaded.control->values() : std::span<const float>(),
                        .max_steps = 0,
                        .flip_labels = false,
                        .stop = task.stop,
                        .finish = task.finish,
                        .track = task.request.track,
                        .normalisation = &normalisation,
                        .base = base,
                        .time_left = task.request.time_left,
                        .noise = task.noise,
                        .kept = task.request.effort.kept,
                        .upper = task.upper};
  FEDGE_TRY(result, run.work.run(order, loaded.model.values(), memory));
  if (run.work.remembers() && !task.stop.stop_requested()) FEDGE_TRY_VOID(store.save(std::move(memory)));
  return result;
}

}  // namespace fedge::client
