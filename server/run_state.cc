#include "server/run_state.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "learn/evaluate.h"

namespace fedge::server {
namespace {

// Updates weigh their samples; one client may claim at most this many.
constexpr std::uint64_t kMaxSamplesPerClient = 100'000'000;

std::span<float> as_floats(std::span<std::byte> bytes) {
  return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
}

std::span<const float> as_floats(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)};
}

}  // namespace

RunState::RunState(const RunConfig& config, const learn::Model& model, const learn::Dataset& test,
                   protocol::ChunkStore& store, Parallel& parallel)
    : config_(config),
      model_(&model),
      test_(&test),
      store_(&store),
      parallel_(&parallel),
      accumulator_(model.layout(), config.strategy.fixed_point) {}

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
  return state;
}

RoundRules RunState::rules() const {
  const std::size_t contributors =
      std::min(config_.sampling.clients_per_round, config_.task.data.partition.clients);
  const std::uint64_t share =
      config_.strategy.fixed_point.max_total_weight().value() / std::max<std::size_t>(contributors, 1);
  return {.run = config_.id,
          .layout = model_->layout()->hash(),
          .parameters = model_->layout()->size(),
          .rounds = config_.rounds,
          .clients_per_round = config_.sampling.clients_per_round,
          .over_selection = config_.sampling.over_selection,
          .first_round_clients = config_.wait_for_clients,
          .min_available = config_.sampling.min_available,
          .deadline = config_.round_deadline,
          .max_samples = SampleCount(std::min(share, kMaxSamplesPerClient))};
}

Result<ParameterVector> RunState::load_model() const {
  ParameterVector model(model_->layout());
  const std::span<std::byte> bytes = std::as_writable_bytes(model.values());
  const protocol::Manifest& manifest = object_->manifest();
  for (std::size_t chunk = 0; chunk < manifest.chunk_count(); ++chunk)
    FEDGE_TRY_VOID(
        object_->read(chunk, bytes.subspan(chunk * manifest.chunk_size, manifest.chunk_length(chunk))));
  return model;
}

Result<void> RunState::check(const Coverage& coverage, std::size_t first,
                             std::span<const float> values) const {
  return accumulator_.check(coverage, first, values);
}

Result<void> RunState::fold(std::span<const aggregation::UpdateView> updates) {
  if (updates.empty()) return {};
  return accumulator_.fold(updates, *parallel_);
}

Result<void> RunState::fold(protocol::StoredObject& update, SampleCount weight) {
  const protocol::Manifest& manifest = update.manifest();
  FEDGE_TRY_VOID(accumulator_.open(manifest.coverage, weight));
  AlignedBuffer<std::byte> buffer(manifest.chunk_size);
  for (std::size_t chunk = 0; chunk < manifest.chunk_count(); ++chunk) {
    const auto bytes = buffer.span().first(manifest.chunk_length(chunk));
    FEDGE_TRY_VOID(update.read(chunk, bytes));
    accumulator_.add(manifest.coverage, weight, manifest.first_value(chunk),
                     as_floats(std::span<const std::byte>(bytes)));
  }
  return {};
}

Result<void> RunState::replace_model(
    const std::function<Result<void>(std::size_t, std::span<std::byte>)>& fill) {
  protocol::Manifest shape;
  shape.layout = model_->layout()->hash();
  shape.coverage = Coverage::all(model_->layout()->size());
  shape.payload_size = model_->layout()->size_bytes();
  shape.chunk_size = config_.chunk_size;
  Sha256 hash;
  FEDGE_TRY(object, store_->build(shape, [&](std::size_t chunk, std::span<std::byte> out) -> Result<void> {
    FEDGE_TRY_VOID(fill(chunk, out));
    hash.add(out);
    return {};
  }));
  hash_ = hash.finish();
  const auto old = std::exchange(object_, std::move(object));
  if (old && old->manifest().id() != object_->manifest().id()) store_->remove(old->manifest().id());
  return {};
}

Result<RoundMetrics> RunState::close(const RoundEngine::CloseRound& round,
                                     const Circumstances& circumstances) {
  if (accumulator_.updates() > 0) {
    const std::shared_ptr<protocol::StoredObject> old = object_;
    const double learning_rate = config_.strategy.server_learning_rate;
    FEDGE_TRY_VOID(replace_model([&](std::size_t chunk, std::span<std::byte> out) -> Result<void> {
      FEDGE_TRY_VOID(old->read(chunk, out));
      accumulator_.apply(old->manifest().first_value(chunk), as_floats(out), learning_rate);
      return {};
    }));
  }
  accumulator_.clear();
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
