#include "server/track_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace fedge::server {
namespace {

std::span<float> as_floats(std::span<std::byte> bytes) {
  return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
}

}  // namespace

std::size_t TrackModel::contributors(const RunConfig& config) {
  if (config.strategy.schedule.buffered) return config.strategy.schedule.buffer_size;
  // Where uploads are drawn, everybody who was selected counts, at least as zeros.
  const double selected =
      std::ceil(static_cast<double>(config.sampling.clients_per_round) * config.sampling.over_selection);
  return static_cast<std::size_t>(
      std::min(selected, static_cast<double>(config.task.data.partition.clients)));
}

TrackModel::TrackModel(std::shared_ptr<const RunConfig> config, const learn::Model& model,
                       protocol::ChunkStore& store, Parallel& parallel)
    : config_(std::move(config)),
      model_(&model),
      store_(&store),
      parallel_(&parallel),
      aggregator_(config_->strategy.aggregator.make(
          {.layout = model.layout(),
           .fixed_point = config_->strategy.fixed_point,
           .max_updates = contributors(*config_),
           .local_momentum = static_cast<double>(config_->task.training.momentum),
           .local_proximal = static_cast<double>(config_->task.training.learning_rate) *
                             static_cast<double>(config_->task.training.objective.mu),
           .seed = config_->seed})),
      optimizer_(config_->strategy.server_optimizer(model.layout()->size())) {}

Result<TrackModel> TrackModel::create(std::shared_ptr<const RunConfig> config, const learn::Model& model,
                                      protocol::ChunkStore& store, Parallel& parallel) {
  TrackModel track(std::move(config), model, store, parallel);
  ParameterVector initial(model.layout());
  model.initialise(initial.values(), Rng(track.config_->seed).fork("model"));
  const auto bytes = initial.bytes();
  FEDGE_TRY_VOID(track.replace_model([&](std::size_t chunk, std::span<std::byte> out) -> Result<void> {
    std::memcpy(out.data(), bytes.data() + chunk * track.config_->chunk_size, out.size());
    return {};
  }));
  FEDGE_TRY_VOID(track.start_control());
  return track;
}

Result<TrackModel> TrackModel::branch(const Beginning& beginning) const {
  TrackModel track(config_, *model_, *store_, *parallel_);
  track.object_ = beginning.object;
  track.hash_ = beginning.hash;
  FEDGE_TRY_VOID(track.start_control());
  return track;
}

Result<void> TrackModel::start_control() {
  if (!config_->control_variates) return {};
  control_ = std::make_unique<aggregation::ControlVariate>(
      model_->layout()->size(), config_->task.data.partition.clients,
      static_cast<double>(config_->task.training.learning_rate));
  return replace_control();
}

Result<ParameterVector> TrackModel::load(protocol::StoredObject& object) const {
  ParameterVector vector(model_->layout());
  FEDGE_TRY_VOID(object.read_bytes(0, std::as_writable_bytes(vector.values())));
  return vector;
}

Result<void> TrackModel::fold(std::span<const aggregation::Update> updates) {
  if (updates.empty()) return {};
  updates_ += updates.size();
  FEDGE_TRY_VOID(aggregator_->add(updates, *parallel_));
  if (!control_) return {};
  for (const aggregation::Update& update : updates) FEDGE_TRY_VOID(control_->add(update));
  return {};
}

// Another track that began as this object holds it still: the store forgets it, its user does not.
Result<void> TrackModel::replace(std::shared_ptr<protocol::StoredObject>& object, const Fill& fill) {
  protocol::Manifest shape;
  shape.layout = model_->layout()->hash();
  shape.coverage = Coverage::all(model_->layout()->size());
  shape.payload_size = model_->layout()->size_bytes();
  shape.chunk_size = config_->chunk_size;
  FEDGE_TRY(made, store_->build(shape, fill));
  const auto old = std::exchange(object, std::move(made));
  if (old && old->manifest().id() != object->manifest().id()) store_->remove(old->manifest().id());
  return {};
}

Result<void> TrackModel::replace_model(const Fill& fill) {
  Sha256 hash;
  FEDGE_TRY_VOID(replace(object_, [&](std::size_t chunk, std::span<std::byte> out) -> Result<void> {
    FEDGE_TRY_VOID(fill(chunk, out));
    hash.add(out);
    return {};
  }));
  hash_ = hash.finish();
  return {};
}

Result<void> TrackModel::replace_control() {
  return replace(control_object_, [&](std::size_t chunk, std::span<std::byte> out) -> Result<void> {
    control_->read(chunk * config_->chunk_size / sizeof(float), as_floats(out));
    return {};
  });
}

Result<void> TrackModel::move_model() {
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

Result<void> TrackModel::close() {
  FEDGE_TRY_VOID(move_model());
  aggregator_->clear();
  updates_ = 0;
  if (!control_) return {};
  control_->close();
  return replace_control();
}

}  // namespace fedge::server
