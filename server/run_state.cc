#include "server/run_state.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "aggregation/value_check.h"
#include "core/aligned_buffer.h"
#include "learn/evaluate.h"

namespace fedge::server {
namespace {

// Updates weigh their samples; one client may claim at most this many.
constexpr std::uint64_t kMaxSamplesPerClient = 100'000'000;

std::span<float> as_floats(std::span<std::byte> bytes) {
  return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
}

// Values of an update in memory at a time while it is looked at.
constexpr std::size_t kPiece = std::size_t{1} << 16;

// Most updates that can make one step of the model.
std::size_t contributors(const RunConfig& config) {
  if (config.strategy.schedule.buffered) return config.strategy.schedule.buffer_size;
  // Where uploads are drawn, everybody who was selected counts, at least as zeros.
  const double selected =
      std::ceil(static_cast<double>(config.sampling.clients_per_round) * config.sampling.over_selection);
  return static_cast<std::size_t>(
      std::min(selected, static_cast<double>(config.task.data.partition.clients)));
}

}  // namespace

RunState::RunState(const RunConfig& config, const learn::Model& model, const learn::Dataset& test,
                   protocol::ChunkStore& store, Parallel& parallel)
    : config_(config),
      model_(&model),
      test_(&test),
      store_(&store),
      parallel_(&parallel),
      aggregator_(config.strategy.aggregator.make(
          {.layout = model.layout(),
           .fixed_point = config.strategy.fixed_point,
           .max_updates = contributors(config),
           .local_momentum = static_cast<double>(config.task.training.momentum),
           .local_proximal = static_cast<double>(config.task.training.learning_rate) *
                             static_cast<double>(config.task.training.objective.mu),
           .seed = config.seed})),
      optimizer_(config.strategy.server_optimizer(model.layout()->size())) {}

Result<RunState> RunState::create(const RunConfig& config, const learn::Model& model,
                                  const learn::Dataset& test, protocol::ChunkStore& store,
                                  Parallel& parallel) {
  RunState state(config, model, test, store, parallel);
  ParameterVector initial(model.layout());
  model.initialise(initial.values(), Rng(config.seed).fork("model"));
  const auto bytes = initial.bytes();
  FEDGE_TRY_VOID(state.replace_model([&](std::size_t chunk, std::span<std::byte> out) -> Result<void> {
    std::memcpy(out.data(), bytes.data() + chunk * config.chunk_size, out.size());
    return {};
  }));
  if (config.control_variates) {
    state.control_ = std::make_unique<aggregation::ControlVariate>(
        model.layout()->size(), config.task.data.partition.clients,
        static_cast<double>(config.task.training.learning_rate));
    FEDGE_TRY_VOID(state.replace_control());
  }
  return state;
}

RoundRules RunState::rules() const {
  const std::uint64_t share = config_.strategy.fixed_point.max_total_weight().value() /
                              std::max<std::size_t>(contributors(config_), 1);
  return {.run = config_.id,
          .layout = model_->layout()->hash(),
          .parameters = model_->layout()->size(),
          .rounds = config_.rounds,
          .clients_per_round = config_.sampling.clients_per_round,
          .over_selection = config_.sampling.over_selection,
          .first_round_clients = config_.wait_for_clients,
          .min_available = config_.sampling.min_available,
          .deadline = config_.round_deadline,
          .max_samples = SampleCount(std::min(share, kMaxSamplesPerClient)),
          .uniform_weights = config_.strategy.aggregator_kind == "uniform_mean",
          .local_epochs = config_.task.training.local_epochs,
          .batch_size = config_.task.training.batch_size,
          .compression = config_.compression.format};
}

Result<ParameterVector> RunState::load(protocol::StoredObject& object) const {
  ParameterVector vector(model_->layout());
  FEDGE_TRY_VOID(object.read_bytes(0, std::as_writable_bytes(vector.values())));
  return vector;
}

Result<ParameterVector> RunState::load_model() const { return load(*object_); }
Result<ParameterVector> RunState::load_control() const { return load(*control_object_); }

Result<double> RunState::inspect(const Coverage& coverage, const aggregation::UpdateValues& values) const {
  AlignedBuffer<float> buffer(values.in_memory().empty() ? kPiece : 0);
  const std::size_t count = coverage.count();
  double squares = 0;
  for (std::size_t first = 0; first < count; first += kPiece) {
    const std::size_t size = std::min(kPiece, count - first);
    std::span<const float> piece;
    if (buffer.size() == 0) {
      piece = values.in_memory().subspan(first, size);
    } else {
      FEDGE_TRY_VOID(values.read(first, buffer.span().first(size)));
      piece = buffer.span().first(size);
    }
    FEDGE_TRY_VOID(aggregation::check_values(*model_->layout(), config_.strategy.fixed_point,
                                             {&coverage, first, piece}));
    squares += aggregation::sum_of_squares(piece);
  }
  return std::sqrt(squares);
}

Result<void> RunState::fold(std::span<const aggregation::Update> updates) {
  if (updates.empty()) return {};
  updates_ += updates.size();
  FEDGE_TRY_VOID(aggregator_->add(updates, *parallel_));
  if (!control_) return {};
  for (const aggregation::Update& update : updates) FEDGE_TRY_VOID(control_->add(update));
  return {};
}

Result<void> RunState::replace(std::shared_ptr<protocol::StoredObject>& object, const Fill& fill) {
  protocol::Manifest shape;
  shape.layout = model_->layout()->hash();
  shape.coverage = Coverage::all(model_->layout()->size());
  shape.payload_size = model_->layout()->size_bytes();
  shape.chunk_size = config_.chunk_size;
  FEDGE_TRY(made, store_->build(shape, fill));
  const auto old = std::exchange(object, std::move(made));
  if (old && old->manifest().id() != object->manifest().id()) store_->remove(old->manifest().id());
  return {};
}

Result<void> RunState::replace_model(const Fill& fill) {
  Sha256 hash;
  FEDGE_TRY_VOID(replace(object_, [&](std::size_t chunk, std::span<std::byte> out) -> Result<void> {
    FEDGE_TRY_VOID(fill(chunk, out));
    hash.add(out);
    return {};
  }));
  hash_ = hash.finish();
  return {};
}

Result<void> RunState::replace_control() {
  return replace(control_object_, [&](std::size_t chunk, std::span<std::byte> out) -> Result<void> {
    control_->read(chunk * config_.chunk_size / sizeof(float), as_floats(out));
    return {};
  });
}

Result<void> RunState::move_model() {
  not_aggregated_.reset();
  if (updates_ == 0) return {};
  if (const auto prepared = aggregator_->prepare(*parallel_); !prepared) {
    if (prepared.error().code != ErrorCode::kUnavailable) return prepared.error();
    not_aggregated_ = prepared.error();
    return {};
  }
  const std::shared_ptr<protocol::StoredObject> old = object_;
  return replace_model([&](std::size_t chunk, std::span<std::byte> out) -> Result<void> {
    FEDGE_TRY_VOID(old->read(chunk, out));
    return aggregation::step_model(*aggregator_, *optimizer_, old->manifest().first_value(chunk),
                                   as_floats(out), *parallel_);
  });
}

Result<RoundMetrics> RunState::close(const RunEngine::CloseRound& round, const Circumstances& circumstances) {
  FEDGE_TRY_VOID(move_model());
  aggregator_->clear();
  updates_ = 0;
  if (control_) {
    control_->close();
    FEDGE_TRY_VOID(replace_control());
  }
  RoundMetrics metrics;
  metrics.round = round.round.value();
  metrics.clients_selected = round.selected;
  metrics.clients_completed = round.completed;
  metrics.train_loss = round.completed > 0 ? round.train_loss : kNotMeasured;
  metrics.bytes_up = circumstances.up.value();
  metrics.bytes_down = circumstances.down.value();
  metrics.model_hash = to_hex(hash_);
  const bool due = metrics.round % config_.evaluate_every == 0 || metrics.round == config_.rounds;
  if (due) FEDGE_TRY_VOID(evaluate(metrics));
  metrics.virtual_seconds = circumstances.virtual_seconds;
  metrics.wall_seconds = circumstances.wall_seconds;
  return metrics;
}

Result<void> RunState::evaluate(RoundMetrics& metrics) {
  FEDGE_TRY(model, load_model());
  const learn::Evaluation evaluation = learn::evaluate(*model_, model.values(), *test_, *parallel_);
  metrics.test_accuracy = evaluation.accuracy;
  metrics.test_loss = evaluation.loss;
  metrics.per_class_accuracy = evaluation.per_class_accuracy;
  return {};
}

}  // namespace fedge::server
