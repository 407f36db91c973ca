#include "client/local/local_work.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "aggregation/control_variate.h"
#include "aggregation/value_check.h"
#include "core/check.h"
#include "protocol/codecs/raw_size.h"
#include "run/evaluation.h"
#include "run/privacy/private_update.h"
#include "run/secure_update.h"

namespace fedge::client {
namespace {

// Calls visit(parameter, position, count) for each range of the coverage; `position` is the place in the
// packed update.
template <class Visit>
void for_each_range(const Coverage& coverage, const Visit& visit) {
  std::size_t position = 0;
  for (const Range& range : coverage.ranges()) {
    visit(range.begin, position, range.size());
    position += range.size();
  }
}

// The training metrics to report if nothing but the update may be known.
learn::TrainingResult nothing_told() {
  learn::TrainingResult training;
  training.samples = SampleCount(1);
  training.steps = 1;
  return training;
}

// The reason why this training gives no update, if there is one.
std::optional<Error> fault_of(const Result<learn::TrainingResult>& training, std::span<const float> values) {
  if (!training) return training.error();
  if (std::isfinite(training->mean_loss) && std::isfinite(training->rms_loss) && protocol::all_finite(values))
    return std::nullopt;
  return invalid("the training loss is not finite; lower training.optimizer.learning_rate");
}

// Turns the result into zeros that change no sum.
void count_for_nothing(WorkResult& result, const Error& fault) {
  std::ranges::fill(result.values.span(), 0.0F);
  result.training = nothing_told();
  result.training.samples = SampleCount(0);
  result.fault = fault;
}

}  // namespace

WorkSpec read_work(config::Reader& root) {
  WorkSpec spec;
  spec.task = learn::read_task(root);
  spec.compression = protocol::read_compression(root);
  spec.status = protocol::read_status(root);
  spec.evaluates = fedge::run::read_evaluation(root, spec.task.data).on_clients();
  spec.masking = privacy::read_masking(root);
  spec.local_privacy = privacy::read_local_privacy(root);
  if (root.has("statistics")) {
    config::Reader section = root.section("statistics");
    spec.statistics_whole = section.integer("whole", {}, {1, 1 << 20}, "");
    root.adopt(section);
  }
  return spec;
}

std::optional<Time> training_ends(const learn::TrainingSpec& spec, Time asked, Duration time_left) {
  if (!(spec.partial_work > 0)) return std::nullopt;
  return asked + seconds(spec.partial_work * to_seconds(time_left));
}

Result<WorkResult> LocalWork::run(const WorkOrder& order, std::span<const float> model, ClientMemory& memory,
                                  AlignedBuffer<float> values) {
  WorkResult result;
  result.values = std::move(values);
  if (result.values.size() != order.coverage.count())
    result.values = AlignedBuffer<float>(order.coverage.count());
  if (!own_.intersect(order.coverage).empty())
    return Error{ErrorCode::kRefused,
                 "the task asks for parameters that stay on this client (model.personal)"};
  FEDGE_TRY(begun, with_part(order, model, memory));
  std::vector<float> own;
  above_.clear();
  const auto training = train_all(order, begun, memory, result.values.span(), own);
  result.above = std::exchange(above_, {});
  // A diverged model is a failure of this client, not an update.
  auto fault = fault_of(training, result.values.span());
  if (!fault) fault = fault_of(training, result.above);
  if (fault) {
    if (!hides(training, *fault)) return *fault;
    count_for_nothing(result, *fault);
  } else {
    result.training = *training;
    if (personal_.on()) memory.personal = std::move(own);
  }
  if (privacy_) FEDGE_TRY_VOID(add_noise(order, result));
  result.norm = std::sqrt(aggregation::sum_of_squares(result.values.span()));
  if (contrastive() && !result.fault) remember_model(order, model, memory, result);
  encode(order, memory, result);
  if (scaffold()) remember_control(order, memory, result);
  if (dynamic()) remember_updates(order, memory, result);
  if (overlaps()) remember_part(order, model, memory, result);
  memory.round = order.round;
  return result;
}

std::optional<protocol::UpdateOffer> LocalWork::expected(const WorkOrder& order, const Digest& layout,
                                                         std::uint32_t chunk_size) const {
  const protocol::Compression& format = compression_.format;
  const auto bounds = protocol::raw_size_bounds(format.codec, format.levels, order.coverage.count());
  if (order.kind != TaskKind::kTraining || elsewhere_.train || personal_.on()) return std::nullopt;
  if (objective().kind == "rank_pruning") return std::nullopt;  // the ranks that it wants next
  if (format.zstd || bounds.min != bounds.max) return std::nullopt;
  learn::TrainingResult training = nothing_told();
  if (!privacy_) {
    const learn::TrainingSpec& spec = task_.spec().training;
    training.samples = learn::trained_samples(task_.sample_count(order.client), order.data_share);
    if (training.samples.value() == 0) return std::nullopt;
    training.steps = spec.steps(training.samples.value());
    if (order.max_steps > 0) training.steps = std::min(training.steps, order.max_steps);
  }
  protocol::UpdateOffer offer;
  offer.samples = training.samples;
  offer.steps = training.steps;
  // Not 0, which would make the message shorter.
  offer.norm = 1;
  if (!privacy_) offer.train_loss = offer.loss_rms = 1;
  if (splits()) offer.activation_correlation = 1;
  offer.update.layout = layout;
  offer.update.coverage = order.coverage;
  offer.update.codec = format.codec;
  offer.update.levels = format.codec == protocol::Codec::kQsgd ? format.levels : 0;
  offer.update.payload_size = bounds.max;
  offer.update.chunk_size = chunk_size;
  offer.update.chunks.resize((bounds.max + chunk_size - 1) / chunk_size);
  return offer;
}

Result<learn::EvaluationSums> LocalWork::evaluate(const WorkOrder& order,
                                                  std::span<const float> model) const {
  FEDGE_CHECK(order.base == nullptr || !elsewhere_.evaluate, "a whole model for work elsewhere");
  if (elsewhere_.evaluate) return elsewhere_.evaluate(order, model);
  return task_.evaluate(order.client, model,
                        {.stop = order.stop, .normalisation = order.normalisation, .base = order.base});
}

Result<WorkResult> LocalWork::answer(const WorkOrder& order, std::span<const float> model,
                                     const ClientMemory& memory) const {
  WorkResult result;
  if (order.kind == TaskKind::kStatistics) {
    FEDGE_TRY(sums, task_.count_values(order.client, order.edges, statistics_whole_));
    result.sums = std::move(sums);
  } else {
    FEDGE_TRY(sums, personal_.on() ? evaluate_own(order, model, memory) : evaluate(order, model));
    result.sums.assign(sums.values().begin(), sums.values().end());
  }
  result.training = nothing_told();
  result.values = AlignedBuffer<float>(order.coverage.count());
  std::ranges::fill(result.values.span(), 0.0F);
  if (!compression_.none()) {
    const Rng rng =
        rng_.fork(order.kind == TaskKind::kStatistics ? "compress-statistics" : "compress-evaluation",
                  order.round.value(), order.client.value());
    result.encoded =
        protocol::encode_payload(compression_.format, result.values.span(), result.values.span(), rng);
  }
  return result;
}

// Whether a failure must be hidden because it may depend on the data. Of the errors of learn/ only
// divergence does, and failures of a model or objective that a program registers. Of a trainer program's
// errors only those about the program itself are reported, not those about what it sent.
bool LocalWork::hides(const Result<learn::TrainingResult>& training, const Error& fault) const {
  const bool of_the_user = elsewhere_.train || task_.has_own_parts();
  return hides_failures_ && (training || (of_the_user && fault.code == ErrorCode::kInvalid));
}

Result<void> LocalWork::add_noise(const WorkOrder& order, WorkResult& result) const {
  FEDGE_CHECK(order.noise.has_value(), "a client that adds noise has some");
  auto release = fedge::run::make_private(result.values.span(), *privacy_, *order.noise);
  if (!release && release.error().code == ErrorCode::kInvalid) {
    count_for_nothing(result, release.error());
    release = fedge::run::make_private(result.values.span(), *privacy_, *order.noise);
  }
  if (!release) return release.error();
  result.release = *release;
  result.training = nothing_told();
  return {};
}

Result<learn::TrainingResult> LocalWork::train(const WorkOrder& order, std::span<const float> model,
                                               const ClientMemory& memory, std::span<float> update) {
  FEDGE_CHECK(order.base == nullptr || !elsewhere_.train, "a whole model for work elsewhere");
  if (elsewhere_.train) return elsewhere_.train(order, model, update);
  FEDGE_TRY_VOID(recall(order, model, memory));
  learn::Assignment assignment = assignment_of(order);
  if (splits() && order.upper == nullptr) assignment.above = &above_;
  return task_.train(assignment, model, update, *trainer_);
}

Result<void> LocalWork::recall(const WorkOrder& order, std::span<const float> model,
                               const ClientMemory& memory) {
  const auto check = [&](std::size_t size, const char* what) -> Result<void> {
    if (size == 0 || size == model.size()) return {};
    return Error{ErrorCode::kCorrupt, std::string("this client has kept ") + what + " of " +
                                          std::to_string(size) + " numbers for this run, expected " +
                                          std::to_string(model.size())};
  };
  if (scaffold() || dynamic()) FEDGE_TRY_VOID(check(memory.control.size(), "a correction"));
  if (contrastive()) FEDGE_TRY_VOID(check(memory.personal.size(), "a model"));
  if (contrastive()) previous_ = memory.personal;
  if (dynamic()) {
    const double scale = static_cast<double>(objective().alpha) * aggregation::kControlUnit;
    correction_.resize(memory.control.size());
    for (std::size_t i = 0; i < correction_.size(); ++i)
      correction_[i] = static_cast<float>(static_cast<double>(memory.control[i]) * scale);
  }
  if (!scaffold()) return {};
  if (order.control.size() != model.size())
    return invalid("the coordinator sent no control variate; the objective \"scaffold\" needs one");
  correction_.assign(order.control.begin(), order.control.end());
  for (std::size_t i = 0; i < memory.control.size(); ++i)
    correction_[i] = static_cast<float>(static_cast<double>(order.control[i]) -
                                        static_cast<double>(memory.control[i]) * aggregation::kControlUnit);
  // Drop a correction of zeros: training without it gives the same bits as plain training, as it must
  // while no control variate has changed.
  if (std::all_of(correction_.begin(), correction_.end(), [](float value) { return value == 0; }))
    correction_.clear();
  return {};
}

learn::Assignment LocalWork::assignment_of(const WorkOrder& order) const {
  const learn::TrainingSpec& spec = task_.spec().training;
  return {.client = order.client,
          .round = order.round,
          .coverage = &order.coverage,
          .local = spec.local_model,
          .shares = spec.widths,
          .correction = correction_,
          .flip_labels = order.flip_labels,
          .previous = previous_,
          .normalisation = order.normalisation,
          .base = order.base,
          .upper = order.upper,
          .data_share = order.data_share,
          .max_steps = order.max_steps,
          .stop = order.stop,
          .finish = order.finish};
}

// c_k+ = c_k - c - delta / (steps * eta), from the update as the coordinator sees it, so that both sides
// compute the same change.
void LocalWork::remember_control(const WorkOrder& order, ClientMemory& memory,
                                 const WorkResult& result) const {
  memory.control.resize(order.control.size());
  const double scale = 1.0 / (static_cast<double>(result.training.steps) *
                              static_cast<double>(task_.spec().training.learning_rate));
  for (std::size_t i = 0; i < memory.control.size(); ++i)
    memory.control[i] += aggregation::control_change(order.control[i], result.values.data()[i], scale);
}

// FedDyn: the sum of the client's updates as the coordinator sees them, so that the coordinator's sum is the
// mean of the clients' sums.
void LocalWork::remember_updates(const WorkOrder& order, ClientMemory& memory,
                                 const WorkResult& result) const {
  memory.control.resize(task_.model().layout()->size());
  for_each_range(order.coverage, [&](std::size_t parameter, std::size_t position, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
      memory.control[parameter + i] +=
          aggregation::control_units(static_cast<double>(result.values.data()[position + i]));
  });
}

// MOON: the model that the training ended with.
void LocalWork::remember_model(const WorkOrder& order, std::span<const float> model, ClientMemory& memory,
                               const WorkResult& result) const {
  memory.personal.assign(model.begin(), model.end());
  for_each_range(order.coverage, [&](std::size_t parameter, std::size_t position, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
      memory.personal[parameter + i] += result.values.data()[position + i];
  });
}

void LocalWork::encode(const WorkOrder& order, ClientMemory& memory, WorkResult& result) const {
  if (compression_.none()) return;
  const Rng rng = rng_.fork("compress", order.round.value(), order.client.value());
  const std::span<float> values = result.values.span();
  protocol::Compression format = compression_.format;
  if (order.kept > 0) format.fraction = order.kept;
  if (!compression_.error_feedback) {
    result.encoded = protocol::encode_payload(format, values, values, rng);
    return;
  }
  memory.residual.resize(task_.model().layout()->size());
  AlignedBuffer<float> residual(values.size());
  for_each_range(order.coverage, [&](std::size_t parameter, std::size_t position, std::size_t count) {
    std::copy_n(memory.residual.data() + parameter, count, residual.data() + position);
  });
  result.encoded = protocol::encode_with_feedback(format, values, residual.span(), rng);
  for_each_range(order.coverage, [&](std::size_t parameter, std::size_t position, std::size_t count) {
    std::copy_n(residual.data() + position, count, memory.residual.data() + parameter);
  });
}

Result<OutgoingUpdate> LocalWork::mask(const WorkOrder& order, const privacy::MaskingSpec& spec,
                                       const privacy::Masking& masking, WorkResult result) const {
  Sequential here;
  // Sums of other tasks have no update to be hidden.
  privacy::MaskingSpec own = spec;
  if (order.kind != TaskKind::kTraining) own.noise_multiplier = 0;
  const fedge::run::PlainUpdate plain{
      .coverage = &order.coverage,
      .values = result.values.span(),
      .samples = result.training.samples,
      .loss = result.training.mean_loss,
      .rounding = rng_.fork("rounding", order.round.value(), order.client.value()),
      .noise = order.noise,
      .task_sums = result.sums};
  FEDGE_TRY(masked, fedge::run::mask_update(plain, own, masking, here));
  OutgoingUpdate update(WorkResult{
      .training = nothing_told(),
      .norm = 0,
      .values = {},
      .encoded = {.bytes = std::move(masked.words), .codec = spec.codec, .raw_size = 0, .levels = 0},
      .release = masked.release ? masked.release : result.release,
      .fault = masked.fault ? masked.fault : result.fault});
  update.coverage_ = std::move(masked.coverage);
  update.scalars_ = std::move(masked.scalars);
  return update;
}

}  // namespace fedge::client
