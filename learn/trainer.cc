#include "learn/trainer.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/check.h"
#include "learn/kernels/kernels.h"
#include "learn/models/adapters.h"
#include "learn/objectives/kinds.h"
#include "learn/split/split_model.h"

namespace fedge::learn {
namespace {

void reserve(AlignedBuffer<float>& buffer, std::size_t size) {
  if (buffer.size() < size) buffer = AlignedBuffer<float>(size);
}

}  // namespace

Trainer::Trainer(const Model& model, const TrainingSpec& spec)
    : model_(model),
      spec_(spec),
      submodels_(model, spec.batch_size),
      buffer_(model.input_size(), model.input().tokens, spec.batch_size),
      optimizer_(spec) {}

TrainingResult Trainer::train(std::span<float> parameters, const Dataset& data,
                              std::span<const std::uint32_t> samples, const Rng& rng,
                              const TrainingOptions& options) {
  TrainingResult result;
  result.samples = SampleCount(samples.size());
  if (samples.empty()) return result;
  if (!workspace_) {
    objective_ = objective_of(spec_.objective);
    workspace_ = model_.make_workspace(spec_.batch_size);
    workspace_->recompute = spec_.recompute;
  }
  Plan plan = make_plan(parameters, rng, options);
  make_contrast(parameters, data, samples, options);
  double loss = 0;
  double squares = 0;
  std::size_t seen = 0;
  const auto ended = [&] {
    return options.stop.stop_requested() || (plan.split != nullptr && plan.split->fault()) ||
           (options.finish.stop_requested() && result.steps > 0) ||
           (options.max_steps > 0 && result.steps == options.max_steps);
  };
  const std::uint64_t steps = options.epochs > 0
                                  ? ((samples.size() - 1) / spec_.batch_size + 1) * options.epochs
                                  : spec_.steps(samples.size());
  if (plan.split != nullptr) plan.split->begin({options.round, plan.split->cut(), steps});
  BatchOrder order(samples, spec_.batch_size, rng);
  while (result.steps < steps && !ended()) {
    plan.samples = order.next();
    const Batch batch = buffer_.read(data, plan.samples, options.flip_labels, options.normalisation);
    plan.rate = learning_rate(spec_, options.round, plan.step++, steps);
    plan.moves = plan.step;
    plan.workspace->draws = rng.fork("dropout", plan.step);
    if (plan.workspace->contrast != nullptr) contrast_.select(plan.samples, term_);
    const BatchLoss before = step(parameters, batch, options.correction, plan);
    if (plan.split != nullptr && plan.split->fault()) break;
    loss += static_cast<double>(before.mean);
    squares += before.squares;
    seen += plan.samples.size();
    ++result.steps;
    if (options.report) options.report(result.steps, before.mean);
  }
  if (plan.split != nullptr && !options.stop.stop_requested()) plan.split->end(result.steps);
  if (result.steps == 0) return result;
  result.mean_loss = loss / static_cast<double>(result.steps);
  result.rms_loss = std::sqrt(squares / static_cast<double>(seen));
  return result;
}

void Trainer::make_contrast(std::span<const float> parameters, const Dataset& data,
                            std::span<const std::uint32_t> samples, const TrainingOptions& options) {
  const bool contrasts = !options.previous.empty() && spec_.objective.mu != 0.0F;
  workspace_->contrast = contrasts ? &term_ : nullptr;
  if (!contrasts) return;
  FEDGE_CHECK(options.previous.size() == parameters.size() && model_.representation() > 0,
              "a last model of this size, with a representation");
  term_.mu = spec_.objective.mu;
  term_.temperature = spec_.objective.temperature;
  contrast_.prepare(model_, parameters, options.previous, data, samples, options.normalisation, buffer_,
                    spec_.batch_size, *workspace_);
}

Trainer::Plan Trainer::make_plan(std::span<const float> parameters, const Rng& rng,
                                 const TrainingOptions& options) {
  FEDGE_CHECK(options.correction.empty() || options.correction.size() == parameters.size(),
              "a correction for each parameter");
  FEDGE_CHECK(options.slice == nullptr || options.coverage == nullptr, "a slice is trained whole");
  Plan plan{.model = &model_,
            .workspace = workspace_.get(),
            .moved = Coverage::all(parameters.size()),
            .nested = {},
            .widths = rng.fork("width"),
            .truncations = {},
            .taken = {},
            .draws = rng.fork("nest"),
            .split = options.split,
            .anchor = options.anchor,
            .lambda = options.lambda,
            .in_place = false,
            .rate = spec_.learning_rate,
            .samples = {}};
  FEDGE_CHECK(plan.split == nullptr || (model_.split() != nullptr && options.coverage != nullptr),
              "a model that can be cut, and what is trained below");
  plan.in_place = model_.steps_in_place() && spec_.optimizer == OptimizerKind::kSgd &&
                  spec_.momentum == 0.0F && objective_ == nullptr && options.correction.empty() &&
                  options.anchor.empty();
  if (options.slice != nullptr) {
    submodels_.make_room(1 + options.nested.size());
    const Submodels::Entry& network = submodels_.find(*options.slice);
    plan.model = network.model.get();
    plan.workspace = network.workspace.get();
    for (const Widths& widths : options.nested) {
      Coverage slice = prefix_slice(*plan.model, widths);
      const std::size_t size = slice.count();
      plan.nested.push_back({&submodels_.find(widths), std::move(slice), size});
      plan.nested.back().network->workspace->loss = &spec_.loss;
    }
    if (!plan.nested.empty()) reserve(thin_, parameters.size());
  } else {
    if (options.coverage != nullptr) plan.moved = *options.coverage;
    workspace_->trained = trained_rows(*model_.layout(), plan.moved);
    plan.in_place = plan.in_place && workspace_->trained.whole;
  }
  FEDGE_CHECK(parameters.size() == plan.model->layout()->size(), "model size");
  plan.workspace->ranks = options.ranks;
  plan.workspace->frozen = options.frozen;
  plan.workspace->base = options.base;
  plan.workspace->loss = &spec_.loss;
  if (spec_.nesting != NestingKind::kNone && !options.truncations.empty()) {
    FEDGE_CHECK(options.truncations.back() < options.ranks, "truncations of fewer ranks");
    plan.truncations.assign(options.truncations.begin(), options.truncations.end());
    plan.truncations.push_back(options.ranks);
    plan.taken.assign(plan.truncations.size(), 0);
    reserve(mean_, parameters.size());
  }
  if (!plan.in_place) reserve(gradient_, parameters.size());
  optimizer_.begin(parameters.size(), plan.moved);
  if (objective_ != nullptr) {
    reserve(start_, parameters.size());
    for (const Range& range : plan.moved.ranges())
      std::copy_n(parameters.data() + range.begin, range.size(), start_.data() + range.begin);
  }
  return plan;
}

BatchLoss Trainer::step(std::span<float> parameters, const Batch& batch, std::span<const float> correction,
                        Plan& plan) {
  if (!plan.nested.empty()) return nested_step(parameters, batch, correction, plan);
  if (plan.in_place)
    return plan.model->sgd_step(parameters, batch, plan.rate, spec_.weight_decay, *plan.workspace);
  std::size_t highest = plan.workspace->ranks;  // the highest rank that this step moves
  const BatchLoss loss =
      plan.split != nullptr ? split_gradient(parameters, batch, plan)
      : plan.truncations.empty()
          ? plan.model->loss_and_gradient(parameters, batch, gradient_.span().first(parameters.size()),
                                          *plan.workspace)
          : nested_ranks_gradient(parameters, batch, plan, highest);
  if (plan.split != nullptr && plan.split->fault()) return loss;
  if (spec_.objective.kind == "rank_pruning")
    add_pruning_gradient(parameters, plan.workspace->ranks, highest);
  if (plan.truncations.empty()) {
    descend_within({0, parameters.size()}, parameters, correction, plan);
    return loss;
  }
  // Each segment of ranks counts only the steps that it took part in.
  std::size_t from = 0;
  for (std::size_t s = 0; s < plan.truncations.size() && plan.truncations[s] <= highest; ++s) {
    const std::size_t to = plan.model->adapters()->shape().prefix(plan.truncations[s]).end;
    plan.moves = ++plan.taken[s];
    descend_within({from, to}, parameters, correction, plan);
    from = to;
  }
  return loss;
}

BatchLoss Trainer::split_gradient(std::span<const float> parameters, const Batch& batch, const Plan& plan) {
  const SplitModel& model = *model_.split();
  const std::span<float> gradient = gradient_.span().first(parameters.size());
  model.clear_gradient(gradient);
  return plan.split->run(model, parameters, batch, {plan.step - 1, plan.samples}, gradient, *plan.workspace);
}

void Trainer::descend_within(const Range& part, std::span<float> parameters,
                             std::span<const float> correction, const Plan& plan) {
  for (const Range& range : plan.moved.ranges()) {
    const Range moved{std::max(range.begin, part.begin), std::min(range.end, part.end)};
    if (moved.begin < moved.end) descend(moved, gradient_.data() + moved.begin, parameters, correction, plan);
  }
}

BatchLoss Trainer::nested_ranks_gradient(std::span<const float> parameters, const Batch& batch, Plan& plan,
                                         std::size_t& highest) {
  const std::vector<std::size_t>& all = plan.truncations;
  std::vector<std::size_t> chosen = all;
  if (spec_.nesting == NestingKind::kSample) chosen = {all[plan.draws.below(all.size())]};
  if (spec_.nesting == NestingKind::kSandwich && all.size() > 3)
    chosen = {all.front(), all[1 + plan.draws.below(all.size() - 2)], all.back()};
  highest = chosen.back();
  Workspace& workspace = *plan.workspace;
  const std::span<float> gradient = gradient_.span().first(parameters.size());
  const Range adapters = plan.model->adapters()->shape().prefix(highest);
  const float share = 1.0F / static_cast<float>(chosen.size());
  if (chosen.size() > 1) std::fill_n(mean_.data() + adapters.begin, adapters.size(), 0.0F);
  BatchLoss loss;
  for (const std::size_t ranks : chosen) {
    workspace.ranks = ranks;
    const BatchLoss one = plan.model->loss_and_gradient(parameters, batch, gradient, workspace);
    loss.mean += share * one.mean;
    loss.squares += static_cast<double>(share) * one.squares;
    if (chosen.size() > 1)
      kernels().axpy(share, gradient.data() + adapters.begin, mean_.data() + adapters.begin, adapters.size());
  }
  workspace.ranks = all.back();
  if (chosen.size() > 1)
    std::copy_n(mean_.data() + adapters.begin, adapters.size(), gradient.data() + adapters.begin);
  return loss;
}

// Adds the gradient of the penalty, for each adapted matrix:
// d(lambda ||B'|| ||A'||) = lambda (||B'|| A' / ||A'||, ||A'|| B' / ||B'||).
void Trainer::add_pruning_gradient(std::span<const float> parameters, std::size_t ranks,
                                   std::size_t highest) {
  FEDGE_CHECK(model_.adapters() != nullptr && ranks <= model_.adapters()->rank(),
              "pruning of a client's ranks");
  const Adapters& adapters = *model_.adapters();
  const std::size_t first = kept_ranks(ranks, spec_.objective.gamma);
  for (const TailNorms& norms : tail_norms(adapters.shape(), parameters, {first, ranks})) {
    if (norms.a == 0 || norms.b == 0) continue;
    const auto lambda = static_cast<double>(spec_.objective.lambda);
    const auto add = [&](std::size_t place, std::size_t count, double factor) {
      for (std::size_t j = first; j < std::min(ranks, highest); ++j) {
        const std::size_t at = adapters.shape().prefix(j).end + place;
        kernels().axpy(static_cast<float>(factor), parameters.data() + at, gradient_.data() + at, count);
      }
    };
    add(norms.matrix->a, norms.matrix->in, lambda * norms.b / norms.a);
    add(norms.matrix->b, norms.matrix->out, lambda * norms.a / norms.b);
  }
}

BatchLoss Trainer::nested_step(std::span<float> parameters, const Batch& batch,
                               std::span<const float> correction, Plan& plan) {
  const Nested& drawn = plan.nested[plan.widths.below(plan.nested.size())];
  const Model& model = *drawn.network->model;
  Workspace& workspace = *drawn.network->workspace;
  const std::span<float> thin = thin_.span().first(drawn.size);
  gather(parameters, drawn.slice, thin);
  if (plan.in_place) {
    const BatchLoss loss = model.sgd_step(thin, batch, plan.rate, spec_.weight_decay, workspace);
    scatter(thin, drawn.slice, parameters);
    return loss;
  }
  const BatchLoss loss = model.loss_and_gradient(thin, batch, gradient_.span().first(drawn.size), workspace);
  float* gradient = gradient_.data();
  for (const Range& range : drawn.slice.ranges()) {
    descend(range, gradient, parameters, correction, plan);
    gradient += range.size();
  }
  return loss;
}

void Trainer::descend(const Range& range, float* gradient, std::span<float> parameters,
                      std::span<const float> correction, const Plan& plan) {
  float* w = parameters.data() + range.begin;
  const std::size_t count = range.size();
  if (!plan.anchor.empty()) {
    const float* anchor = plan.anchor.data() + range.begin;
    for (std::size_t i = 0; i < count; ++i) gradient[i] += plan.lambda * (w[i] - anchor[i]);
  } else if (objective_ != nullptr) {
    objective_->add_gradient({w, count}, {start_.data() + range.begin, count}, {gradient, count});
  }
  if (!correction.empty()) {
    const float* moved_by = correction.data() + range.begin;
    for (std::size_t i = 0; i < count; ++i) gradient[i] += moved_by[i];
  }
  optimizer_.move(range, gradient, parameters, {.rate = plan.rate, .moves = plan.moves});
}

UpperHalf& Trainer::upper_half() {
  if (!upper_) upper_ = std::make_unique<UpperHalf>(model_, spec_);
  return *upper_;
}

std::span<float> Trainer::scratch() {
  reserve(scratch_, model_.layout()->size());
  return scratch_.span();
}

}  // namespace fedge::learn
