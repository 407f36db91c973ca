#include "run/track_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "aggregation/planners/layers.h"
#include "aggregation/planners/unit_order.h"
#include "core/check.h"
#include "learn/model_file.h"
#include "learn/models/adapters.h"
#include "run/recipe.h"

namespace fedge::run {
namespace {

std::span<float> as_floats(std::span<std::byte> bytes) {
  return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
}

// Several stretches of memory as one payload, padded with zeros to a whole number of floats.
class Memory {
 public:
  explicit Memory(std::vector<std::span<std::byte>> spans) : spans_(std::move(spans)) {
    for (const auto span : spans_) size_ += span.size();
  }
  std::size_t size() const { return size_; }
  std::size_t padded_size() const { return (size_ + sizeof(float) - 1) / sizeof(float) * sizeof(float); }
  protocol::Manifest shape(std::uint32_t chunk_size) const {
    return {.layout = {},
            .coverage = Coverage::all(padded_size() / sizeof(float)),
            .payload_size = padded_size(),
            .chunk_size = chunk_size};
  }
  void read(std::size_t offset, std::span<std::byte> out) const {
    for (const auto span : spans_) {
      const std::size_t skipped = std::min(offset, span.size());
      const std::size_t count = std::min(span.size() - skipped, out.size());
      std::copy_n(span.begin() + static_cast<std::ptrdiff_t>(skipped), count, out.begin());
      out = out.subspan(count);
      offset -= skipped;
    }
    std::ranges::fill(out, std::byte{});
  }

 private:
  std::vector<std::span<std::byte>> spans_;
  std::size_t size_ = 0;
};

// Lets a rule read the stored model.
class StoredModel final : public aggregation::UpdateValues {
 public:
  explicit StoredModel(std::shared_ptr<protocol::StoredObject> object) : object_(std::move(object)) {}
  Result<void> read(std::size_t first, std::span<float> out) const override {
    return object_->read_bytes(first * sizeof(float), std::as_writable_bytes(out));
  }

 private:
  std::shared_ptr<protocol::StoredObject> object_;
};

}  // namespace

std::shared_ptr<const AdapterLayout> shared_adapters(const learn::Model& model) {
  if (model.adapters() == nullptr) return nullptr;
  return std::make_shared<const AdapterLayout>(model.adapters()->shape());
}

std::size_t TrackModel::contributors(const RunConfig& config) {
  if (config.strategy.schedule.buffered) return config.strategy.schedule.buffer_size;
  // If uploads are drawn, every selected client counts, at least as zeros.
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
           .max_updates = most_summed(*config_),
           .local_rate = static_cast<double>(config_->task.training.learning_rate),
           .local_momentum = static_cast<double>(config_->task.training.momentum),
           .local_proximal = static_cast<double>(config_->task.training.learning_rate) *
                             static_cast<double>(config_->task.training.objective.mu),
           .adapters = shared_adapters(model),
           .seed = config_->seed})),
      optimizer_(config_->strategy.server_optimizer(model.layout()->size())) {
  if (config_->privacy.of_sums())
    private_.emplace(config_->privacy, config_->strategy.fixed_point, model.layout());
}

Result<TrackModel> TrackModel::create(std::shared_ptr<const RunConfig> config, const learn::Model& model,
                                      protocol::ChunkStore& store, Parallel& parallel) {
  TrackModel track(std::move(config), model, store, parallel);
  const bool remembers =
      std::ranges::any_of(track.aggregator_->memory(), [](const auto span) { return !span.empty(); });
  if (track.config_->dissemination.serverless && remembers)
    return invalid(
        "dissemination.kind: in a serverless run clients aggregate, and the state of the aggregator " +
        track.config_->strategy.aggregator_kind +
        " is not available to clients that join later; use another dissemination.kind");
  if (track.config_->strategy.planner.sorts_units && !track.memory().empty())
    return invalid("strategy.planner: the planner " + track.config_->strategy.planner_kind +
                   " sorts the units of the model in every round, but the aggregator " +
                   track.config_->strategy.aggregator_kind +
                   " keeps numbers for each parameter; use another aggregator");
  FEDGE_TRY(initial, learn::initial_parameters(model, track.config_->task.data,
                                               Rng(track.config_->seed).fork("model")));
  const auto bytes = initial.bytes();
  FEDGE_TRY_VOID(track.replace_model([&](std::size_t chunk, std::span<std::byte> out) -> Result<void> {
    std::memcpy(out.data(), bytes.data() + chunk * track.config_->chunk_size, out.size());
    return {};
  }));
  FEDGE_TRY_VOID(track.sort_units());
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

void TrackModel::make_control() {
  if (!config_->control_variates) return;
  control_ = std::make_unique<aggregation::ControlVariate>(
      model_->layout()->size(), config_->task.data.partition.clients,
      static_cast<double>(config_->task.training.learning_rate));
}

Result<void> TrackModel::start_control() {
  make_control();
  return control_ ? replace_control() : Result<void>();
}

std::vector<std::span<std::byte>> TrackModel::memory() {
  std::vector<std::span<std::byte>> all = aggregator_->memory();
  for (const auto span : optimizer_->memory()) all.push_back(span);
  if (control_) all.push_back(control_->memory());
  if (private_) all.push_back(private_->memory());
  std::erase_if(all, [](const auto span) { return span.empty(); });
  return all;
}

Result<TrackModel::Saved> TrackModel::save() {
  Saved saved{.model = object_, .control = control_object_, .memory = nullptr, .hash = hash_};
  const Memory remembered(memory());
  if (remembered.size() > 0) {
    FEDGE_TRY(made, store_->build(remembered.shape(config_->chunk_size),
                                  [&](std::size_t chunk, std::span<std::byte> out) -> Result<void> {
                                    remembered.read(chunk * config_->chunk_size, out);
                                    return {};
                                  }));
    saved.memory = std::move(made);
  }
  for (const auto& object : {saved.model, saved.control, saved.memory})
    if (object) FEDGE_TRY_VOID(object->sync());
  return saved;
}

Result<TrackModel> TrackModel::restored(const Saved& saved) const {
  TrackModel track(config_, *model_, *store_, *parallel_);
  track.object_ = saved.model;
  track.hash_ = saved.hash;
  track.control_object_ = saved.control;
  track.make_control();
  const auto spans = track.memory();
  const std::uint64_t size = saved.memory ? saved.memory->manifest().payload_size : 0;
  if (Memory(spans).padded_size() != size || (saved.control != nullptr) != (track.control_ != nullptr))
    return Error{ErrorCode::kCorrupt, "the stored state of this run belongs to another strategy"};
  std::uint64_t offset = 0;
  for (const auto span : spans) {
    if (span.empty()) continue;  // an empty state has no saved object
    FEDGE_TRY_VOID(saved.memory->read_bytes(offset, span));
    offset += span.size();
  }
  FEDGE_TRY(values, track.load());
  if (model_hash(values.values()) != saved.hash)
    return Error{ErrorCode::kCorrupt, "the stored model of this run does not match its hash"};
  return track;
}

Result<TrackModel> TrackModel::at(std::shared_ptr<const RunConfig> config, const learn::Model& model,
                                  protocol::ChunkStore& store, Parallel& parallel,
                                  std::shared_ptr<protocol::StoredObject> object) {
  TrackModel track(std::move(config), model, store, parallel);
  if (!track.memory().empty() || track.config_->control_variates)
    return Error{
        ErrorCode::kCorrupt,
        "the strategy of this run keeps state besides the model, so the model file alone cannot restore it"};
  track.object_ = std::move(object);
  FEDGE_TRY(values, track.load());
  track.hash_ = model_hash(values.values());
  return track;
}

Result<ParameterVector> TrackModel::load(protocol::StoredObject& object) const {
  ParameterVector vector(model_->layout());
  FEDGE_TRY_VOID(object.read_bytes(0, std::as_writable_bytes(vector.values())));
  return vector;
}

Result<void> TrackModel::fold(std::span<const aggregation::Update> updates) {
  if (updates.empty()) return {};
  updates_ += updates.size();
  std::vector<aggregation::Update> clipped;
  if (private_) {
    for (const aggregation::Update& update : updates) {
      FEDGE_TRY(cut, private_->clip(update));
      clipped.push_back(std::move(cut));
    }
    updates = clipped;
  }
  FEDGE_TRY_VOID(aggregator_->add(updates, *parallel_));
  if (!control_) return {};
  for (const aggregation::Update& update : updates)
    if (!update.elsewhere) FEDGE_TRY_VOID(control_->add(update));
  return {};
}

std::vector<std::span<std::int64_t>> TrackModel::round_sums() {
  std::vector<std::span<std::int64_t>> sums;
  if (updates_ == 0) return sums;
  sums.push_back(aggregator_->sums());
  if (control_) sums.push_back(control_->changes());
  return sums;
}

Result<void> TrackModel::add_sum(const aggregation::ExactSum& sum) {
  FEDGE_TRY_VOID(aggregator_->add_sum(sum));
  updates_ += sum.updates;
  return {};
}

// Other tracks may still hold the old object; it then stays readable although the store removes its id.
Result<void> TrackModel::replace(std::shared_ptr<protocol::StoredObject>& object, const Fill& fill) {
  protocol::Manifest shape;
  shape.layout = model_->layout()->hash();
  shape.coverage = Coverage::all(model_->layout()->size());
  shape.payload_size = model_->layout()->size_bytes();
  shape.chunk_size = config_->chunk_size;
  FEDGE_TRY(made, store_->build(shape, fill));
  take(object, std::move(made));
  return {};
}

void TrackModel::take(std::shared_ptr<protocol::StoredObject>& object,
                      std::shared_ptr<protocol::StoredObject> made) {
  const auto old = std::exchange(object, std::move(made));
  if (old && old->manifest().id() != object->manifest().id()) store_->remove(old->manifest().id());
}

Result<void> TrackModel::adopt(std::shared_ptr<protocol::StoredObject> made) {
  FEDGE_TRY(values, load(*made));
  if (!protocol::all_finite(values.values())) return invalid("the model has values that are not finite");
  not_aggregated_.reset();
  hash_ = model_hash(values.values());
  take(object_, std::move(made));
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

Result<void> TrackModel::prepare(const PrivateSum::Noise* noise) {
  if (private_) {
    FEDGE_CHECK(noise != nullptr, "a private run has noise");
    FEDGE_TRY_VOID(private_->release(*aggregator_, *noise, *parallel_));
  }
  const StoredModel model(object_);
  aggregator_->see_model(model);
  return aggregator_->prepare(*parallel_);
}

// With differential privacy a round without updates also adds noise, to hide that no client took part. If the
// noise comes with the updates (kDistributed), there is none.
Result<void> TrackModel::move_model(const PrivateSum::Noise* noise) {
  not_aggregated_.reset();
  const bool noise_is_here =
      config_->privacy.of_sums() && config_->privacy.kind != DifferentialPrivacySpec::Kind::kDistributed;
  if (updates_ == 0 && !noise_is_here) return {};
  // prepare() runs once a round, because it also advances the rule's state.
  if (const auto prepared = prepared_ ? Result<void>() : prepare(noise); !prepared) {
    if (prepared.error().code != ErrorCode::kUnavailable) return prepared.error();
    not_aggregated_ = prepared.error();
    return {};
  }
  prepared_ = true;
  optimizer_->begin(static_cast<double>(updates_) /
                    static_cast<double>(config_->task.data.partition.clients));
  const std::shared_ptr<protocol::StoredObject> old = object_;
  return replace_model([&](std::size_t chunk, std::span<std::byte> out) -> Result<void> {
    FEDGE_TRY_VOID(old->read(chunk, out));
    return aggregation::step_model(*aggregator_, *optimizer_, old->manifest().first_value(chunk),
                                   as_floats(out), *parallel_);
  });
}

Result<void> TrackModel::sort_units() {
  if (!config_->strategy.planner.sorts_units) return {};
  FEDGE_TRY(layers, aggregation::read_layers(*model_->layout()));
  FEDGE_TRY(model, load());
  if (!aggregation::sort_units(layers, model.values())) return {};
  const auto bytes = model.bytes();
  return replace_model([&](std::size_t chunk, std::span<std::byte> out) -> Result<void> {
    std::memcpy(out.data(), bytes.data() + chunk * config_->chunk_size, out.size());
    return {};
  });
}

Result<void> TrackModel::close(const PrivateSum::Noise* noise) {
  if (!moved_) FEDGE_TRY_VOID(move_model(noise));
  moved_ = true;
  FEDGE_TRY_VOID(sort_units());
  moved_ = false;
  aggregator_->clear();
  if (private_) private_->close();
  updates_ = 0;
  prepared_ = false;
  if (!control_) return {};
  control_->close();
  return replace_control();
}

}  // namespace fedge::run
