#include "server/run_state.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/check.h"
#include "core/crypto/hkdf.h"
#include "learn/evaluation/evaluate.h"
#include "learn/models/adapters.h"
#include "protocol/limits.h"
#include "run/recipe.h"
#include "server/store/saved_state.h"

namespace fedge::server {
namespace {

// Updates are weighted by samples; this is the maximum that a client may claim.
constexpr std::uint64_t kMaxSamplesPerClient = 100'000'000;

// Sorts a track without a closed phase after all others.
constexpr std::size_t kNoTurn = SIZE_MAX;

}  // namespace

Result<RunState> RunState::create(const run::RunConfig& config, const learn::Model& model,
                                  const learn::Dataset* test, protocol::ChunkStore& store,
                                  Parallel& parallel) {
  RunState state(config, model, test, store, parallel);
  FEDGE_TRY_VOID(state.sums_.prepare(config));
  if (const auto& training = config.task.training; training.local_model == LocalModel::kSplit) {
    FEDGE_CHECK(model.adapters() != nullptr, "a model that can be cut, as the task requires");
    FEDGE_TRY(split, SplitLayout::of(*model.layout(), model.adapters()->shape(), training.split.cut_ranks));
    state.split_ = std::move(split);
  }
  FEDGE_TRY_VOID(state.start({TrackId(), std::nullopt, nullptr}));
  return state;
}

Result<void> RunState::start(const RunEngine::StartTrack& start) {
  const bool first = tracks_.empty();
  const bool build = !start.source && !initial_;
  auto made = build ? run::TrackModel::create(config_, *model_, *store_, *parallel_)
                    : tracks_.begin()->second.model.branch(start.source ? track(*start.source).beginning()
                                                                        : *initial_);
  if (!made) return made.error();
  if (build && !first) initial_ = made->beginning();
  tracks_.insert_or_assign(start.track, TrackEntry{std::move(*made), start.description, kNoTurn});
  return {};
}

std::vector<TrackId> RunState::tracks_to_remember() const {
  std::vector<TrackId> live;
  const bool remembered = config_->task.training.objective.remembers() ||
                          config_->compression.error_feedback || config_->task.training.personal.on();
  if (!remembered || tracks_.size() > protocol::kMaxLiveTracks) return live;
  for (const auto& [id, entry] : tracks_) live.push_back(id);
  return live;
}

void RunState::retire(TrackId track) {
  const auto retired = tracks_.extract(track);
  if (retired.empty()) return;
  const auto forget = [&](const std::shared_ptr<protocol::StoredObject>& object) {
    const bool shared = object && std::ranges::any_of(tracks_, [&](const auto& other) {
                          return other.second.model.object() == object;
                        });
    if (object && !shared) store_->remove(object->manifest().id());
  };
  forget(retired.mapped().model.object());
  forget(retired.mapped().model.control_object());
}

TrackView RunState::view(TrackId track) const {
  const run::TrackModel& model = tracks_.at(track).model;
  const auto& control = model.control_object();
  TrackView view{&model.object()->manifest(), control ? &control->manifest() : nullptr, tracks_to_remember()};
  sums_.add_view(view);
  return view;
}

RoundRules RunState::rules() const {
  const std::uint64_t share = config_->strategy.fixed_point.max_total_weight().value() /
                              std::max<std::size_t>(run::most_summed(*config_), 1);
  RoundRules rules{.run = config_->id,
                   .layout = model_->layout()->hash(),
                   .chunk_size = config_->chunk_size,
                   .parameters = model_->layout()->size(),
                   .rounds = config_->rounds,
                   .clients_per_round = config_->sampling.clients_per_round,
                   .over_selection = config_->sampling.over_selection,
                   .first_round_clients = config_->wait_for_clients,
                   .min_available = config_->sampling.min_available,
                   .deadline = config_->round_deadline,
                   .return_within = config_->return_within,
                   .max_samples = SampleCount(std::min(share, kMaxSamplesPerClient)),
                   .classes = labels_ > 0 ? labels_ : SIZE_MAX,
                   .uniform_weights = config_->strategy.traits.uniform_weights,
                   .local_epochs = config_->task.training.local_epochs,
                   .batch_size = config_->task.training.batch_size,
                   .local_steps = config_->task.training.local_steps,
                   .compression = config_->compression.format,
                   .masked = config_->secure.on ? std::optional(config_->secure.masking.codec) : std::nullopt,
                   .overlaps = config_->task.training.overlap != learn::OverlapKind::kNone};
  sums_.add_rules(*config_, model_->layout()->trainable().ranges().front().begin, rules);
  // With differential privacy, whether a client is drawn must not depend on others.
  if (!config_->privacy.on() && !config_->sampling.traits.independent)
    rules.quarantine = {config_->sampling.quarantine_after, config_->sampling.quarantine_rounds};
  rules.min_candidates = std::max<std::size_t>(
      config_->sampling.min_available, config_->secure.on ? config_->secure.masking.rules.min_survivors : 1);
  const run::DifferentialPrivacySpec& privacy = config_->privacy;
  if (privacy.on()) rules.releases = privacy.most_releases;
  if (privacy.sampling_rate < 1) {
    FEDGE_CHECK(noise_key_.has_value(), "a run whose sums are noised has a key for that");
    constexpr std::array<std::uint8_t, 11> kInfo{'f', 'e', 'd', 'g', 'e', ' ', 'd', 'r', 'a', 'w', 's'};
    rules.secret_draws = std::make_shared<const Secret>(derive_key(*noise_key_, {}, kInfo));
  }
  if (!privacy.bounds_participation()) return rules;
  rules.max_participations = privacy.max_participations;
  rules.min_separation = privacy.min_separation;
  return rules;
}

Result<std::vector<FinalModel>> RunState::load_models(Which which) const {
  std::vector<std::pair<TrackId, const TrackEntry*>> entries;
  for (const auto& [id, entry] : tracks_) entries.emplace_back(id, &entry);
  std::ranges::stable_sort(entries, {}, [](const auto& each) { return each.second->turn; });
  std::vector<FinalModel> models;
  for (const auto& [id, entry] : entries) {
    // A track that is younger than the best round has its last model.
    const auto best = which == Which::kBest ? best_.find(id) : best_.end();
    protocol::StoredObject& object = best == best_.end() ? *entry->complete : *best->second;
    ParameterVector values(model_->layout());
    FEDGE_TRY_VOID(object.read_bytes(0, std::as_writable_bytes(values.values())));
    models.push_back({entry->description, std::move(values)});
  }
  return models;
}

Result<void> RunState::fold(TrackId track, std::span<const aggregation::Update> updates) {
  for (const aggregation::Update& update : updates)
    if (update.values || update.elsewhere) contributors_.insert(update.client);
  return this->track(track).fold(updates);
}

void RunState::open_secure(std::vector<Range> cells, std::size_t task_sums) {
  secure_.emplace(config_->secure.masking, std::move(cells), task_sums);
  masked_.clear();
}

Result<void> RunState::fold_masked(ClientId client, const run::SecureSum::Masked& update) {
  FEDGE_CHECK(secure_.has_value(), "masked updates come once their session has begun");
  masked_.push_back(client);
  return secure_->add(update);
}

Result<RunState::Summed> RunState::sum_up(TaskId task, const privacy::Unmasking& unmasking) {
  FEDGE_CHECK(secure_.has_value(), "masks are taken away of a sum");
  run::SecureSum sum = std::move(*secure_);
  secure_.reset();
  FEDGE_TRY(recovered, unmasking.recover(*parallel_));
  FEDGE_TRY(plain, std::move(sum).unmask(recovered.masks, *parallel_));
  if (task.kind != TaskKind::kTraining) {
    FEDGE_TRY_VOID(sums_.take_masked(task.kind, plain.task_sums));
  } else {
    FEDGE_TRY_VOID(track(task.track).add_sum(plain.view()));
    contributors_.insert(masked_.begin(), masked_.end());
    note_left_out(plain.cells);
  }
  Summed summed{plain.loss, std::move(recovered.bad_shares), {}, nullptr};
  protocol::Manifest shape{.layout = model_->layout()->hash(),
                           .coverage = Coverage::of(plain.cells),
                           .codec = protocol::Codec::kMasked64,
                           .payload_size = plain.sums.size() * sizeof(std::int64_t),
                           .chunk_size = config_->chunk_size};
  const auto bytes = std::as_bytes(plain.sums.span());
  FEDGE_TRY(object, store_->build(shape, [&](std::size_t chunk, std::span<std::byte> out) -> Result<void> {
    std::memcpy(out.data(), bytes.data() + chunk * shape.chunk_size, out.size());
    return {};
  }));
  summed.object = std::move(object);
  summed.turn = {{.run = config_->id,
                  .round = task.round,
                  .update = summed.object->manifest(),
                  .samples = SampleCount(plain.updates),
                  .train_loss = plain.loss,
                  .track = task.track,
                  .kind = task.kind,
                  .masked_scalars = plain.weights,
                  .sums = plain.task_sums},
                 plain.cells,
                 masked_};
  return summed;
}

void RunState::note_left_out(std::span<const Range> cells) {
  const Coverage trainable = model_->layout()->trainable();
  const Coverage summed = Coverage::of({cells.begin(), cells.end()});
  metrics_.parameters_left_out =
      std::fmax(metrics_.parameters_left_out, static_cast<double>(trainable.subtract(summed).count()));
}

Result<void> RunState::take_up_sum(const SummedTurn& turn) {
  if (turn.offer.kind != TaskKind::kTraining) return sums_.take_masked(turn.offer.kind, turn.offer.sums);
  FEDGE_TRY(object, take_up(turn.offer.update));
  run::SecureSum::Plain plain{.cells = turn.cells,
                              .weights = turn.offer.masked_scalars,
                              .sums = AlignedBuffer<std::int64_t>(turn.offer.update.coverage.count()),
                              .updates = turn.offer.samples.value()};
  FEDGE_TRY_VOID(object->read_bytes(0, std::as_writable_bytes(plain.sums.span())));
  FEDGE_TRY_VOID(track(turn.offer.track).add_sum(plain.view()));
  contributors_.insert(turn.clients.begin(), turn.clients.end());
  note_left_out(turn.cells);
  store_->remove(object->manifest().id());
  return {};
}

// Charges the privacy budget once per phase, also if the close is retried after a full disk.
Result<void> RunState::close_model(const RunEngine::CloseRound& turn, run::TrackModel& model) {
  if (!config_->privacy.on()) return model.close();
  const TaskId task{turn.round, turn.track};
  if (charged_ != task) FEDGE_TRY_VOID(ledger_.charge(turn.chance));
  charged_ = task;
  if (!config_->privacy.of_sums()) return model.close();
  FEDGE_CHECK(noise_key_.has_value(), "a run whose sums are noised has a key for that");
  const run::PrivateSum::Noise noise{&*noise_key_, task};
  return model.close(&noise);
}

Result<void> RunState::close_sums(const RunEngine::CloseRound& turn) {
  if (!config_->privacy.on() || !sums_.releases(turn))
    return sums_.close(turn, metrics_, nullptr, *parallel_);
  const TaskId task{turn.round, turn.track, turn.kind};
  if (charged_ != task) FEDGE_TRY_VOID(ledger_.charge_statistics());
  charged_ = task;
  FEDGE_CHECK(noise_key_.has_value(), "a run whose sums are noised has a key for that");
  const run::PrivateSum::Noise noise{&*noise_key_, task};
  return sums_.close(turn, metrics_, &noise, *parallel_);
}

Result<void> RunState::close(const RunEngine::CloseRound& turn, const MadeByClients* made) {
  if (turn.kind != TaskKind::kTraining) {
    FEDGE_TRY_VOID(close_sums(turn));
    if (turn.ends_round)
      for (auto& [id, each] : tracks_) each.complete = each.model.object();
    return {};
  }
  TrackEntry& entry = tracks_.at(turn.track);
  if (made == nullptr) FEDGE_TRY_VOID(close_model(turn, entry.model));
  if (made != nullptr) FEDGE_TRY_VOID(entry.model.adopt(made->model));
  if (made != nullptr) contributors_.insert(made->contributors.begin(), made->contributors.end());
  entry.description = turn.description;
  entry.turn = turns_++;
  // Energy tells how many samples clients have, without noise.
  if (!config_->privacy.on()) metrics_.energy.add(turn.energy);
  std::optional<learn::Evaluation> evaluation;
  FEDGE_TRY(measured, measure(turn, entry.model, evaluation));
  count_clients(turn);
  if (entry.turn == 0) {
    metrics_.round = turn.round.value();
    metrics_.model_hash = measured.model_hash;
    metrics_.test_accuracy = measured.test_accuracy;
    metrics_.test_loss = measured.test_loss;
    if (evaluation) {
      metrics_.test = task_metrics(evaluation->metrics);
      metrics_.per_class_accuracy = std::move(evaluation->per_class_accuracy);
      metrics_.between_class_variance = evaluation->between_class_variance;
      metrics_.within_class_variance = evaluation->within_class_variance;
      if (evaluation->bits_per_byte > 0) {
        metrics_.bits_per_byte = evaluation->bits_per_byte;
        metrics_.group_bits_per_byte = evaluation->group_bits_per_byte;
      }
      FEDGE_TRY(ranks, measure_ranks(entry.model));
      metrics_.ranks = std::move(ranks);
    }
    metrics_.train_loss = measured.train_loss;
    if (turn.activation_correlation > 0) metrics_.activation_correlation = turn.activation_correlation;
  }
  if (turn.description) metrics_.tracks.push_back(std::move(measured));
  // A round whose models cannot be evaluated is not complete.
  if (turn.ends_round)
    for (auto& [id, each] : tracks_) each.complete = each.model.object();
  return {};
}

// A client that trains for several tracks counts once in the round.
void RunState::count_clients(const RunEngine::CloseRound& turn) {
  if (!turn.description) {
    metrics_.clients_selected += turn.selected;
    metrics_.clients_completed += turn.completed;
    return;
  }
  selected_.insert(turn.selected_clients.begin(), turn.selected_clients.end());
  completed_.insert(turn.completed_clients.begin(), turn.completed_clients.end());
  metrics_.clients_selected = selected_.size();
  metrics_.clients_completed = completed_.size();
}

Result<TrackMetrics> RunState::measure(const RunEngine::CloseRound& turn, const run::TrackModel& model,
                                       std::optional<learn::Evaluation>& evaluation) const {
  TrackMetrics metrics;
  if (turn.description) metrics.track = *turn.description;
  metrics.model_hash = to_hex(model.hash());
  // Omitted with differential privacy: the loss contains clients' losses without noise.
  if (turn.completed > 0 && !config_->privacy.on()) metrics.train_loss = turn.train_loss;
  metrics.clients_selected = turn.selected;
  metrics.clients_completed = turn.completed;
  const std::uint32_t round = turn.round.value();
  if (test_ == nullptr) return metrics;
  if (round % config_->evaluate_every != 0 && round != config_->rounds) return metrics;
  FEDGE_TRY(values, model.load());
  FEDGE_TRY(evaluated, evaluate_ ? evaluate_(values.values(), turn.round)
                                 : learn::evaluate(*model_, values.values(), *test_, *parallel_));
  evaluation = std::move(evaluated);
  metrics.test_accuracy = evaluation->accuracy;
  metrics.test_loss = evaluation->loss;
  return metrics;
}

Result<std::vector<RankMetrics>> RunState::measure_ranks(const run::TrackModel& model) const {
  std::vector<RankMetrics> metrics;
  if (config_->evaluate_ranks.empty() || test_ == nullptr) return metrics;
  FEDGE_TRY(values, model.load());
  for (const std::size_t rank : config_->evaluate_ranks) {
    FEDGE_TRY(one, learn::evaluate(*model_, values.values(), *test_, *parallel_, rank));
    metrics.push_back({.rank = rank,
                       .accuracy = one.accuracy,
                       .loss = one.loss,
                       .bits_per_byte = one.bits_per_byte > 0 ? one.bits_per_byte : kNotMeasured});
  }
  return metrics;
}

LabelFigures RunState::coverage() const {
  if (!labels_of_ || test_ == nullptr || test_->target().has_values()) return {};
  std::vector<std::uint64_t> counts(test_->classes, 0);
  std::vector<std::uint64_t> tests(test_->classes, 0);
  for (const ClientId client : contributors_) {
    const std::vector<std::uint64_t> held = labels_of_(client);
    for (std::size_t l = 0; l < counts.size(); ++l) counts[l] += held[l];
  }
  for (const learn::Label label : test_->labels) ++tests[label];
  return label_figures(counts, metrics_.per_class_accuracy, tests);
}

RoundMetrics RunState::end_round(const Circumstances& circumstances) {
  metrics_.labels = coverage();
  for (const ClientId client : std::exchange(contributors_, {})) participation_.add(client);
  turns_ = 0;
  selected_.clear();
  completed_.clear();
  RoundMetrics metrics = std::exchange(metrics_, {});
  metrics.participation = participation_.figures();
  metrics.bytes_up = circumstances.traffic.up.value();
  metrics.bytes_down = circumstances.traffic.down.value();
  metrics.activation_bytes_up = circumstances.traffic.activations_up.value();
  metrics.activation_bytes_down = circumstances.traffic.activations_down.value();
  metrics.virtual_seconds = circumstances.virtual_seconds;
  metrics.wall_seconds = circumstances.wall_seconds;
  if (circumstances.energy) {
    const EnergyFigures reported = std::exchange(metrics.energy, *circumstances.energy);
    metrics.energy.reported_joules = reported.reported_joules;
    metrics.energy.reporting_clients = reported.reporting_clients;
  }
  if (config_->privacy.on()) {
    if (const auto epsilon = ledger_.epsilon()) metrics.epsilon = *epsilon;
    metrics.clipping_norm =
        tracks_.begin()->second.model.clipping_norm().value_or(config_->privacy.clipping_norm);
  }
  if (!progress_.add(metrics)) return metrics;
  best_.clear();
  for (const auto& [id, entry] : tracks_) best_.emplace(id, entry.complete);
  return metrics;
}

}  // namespace fedge::server
