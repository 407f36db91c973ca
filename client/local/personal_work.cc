// The part of LocalWork for runs in which clients keep parameters for themselves
// (learn/objectives/personal_spec.h).
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "client/local/local_work.h"
#include "learn/submodel.h"

namespace fedge::client {
namespace {

// Turns the result into that of a training that diverged if these values are not finite.
void judge(std::span<const float> values, learn::TrainingResult& result) {
  if (!std::ranges::all_of(values, [](float value) { return std::isfinite(value); }))
    result.mean_loss = std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

// Returns the model with the client's own parameters in place of the run's.
std::vector<float> LocalWork::with_own(std::span<const float> model, const ClientMemory& memory) const {
  std::vector<float> values(model.begin(), model.end());
  if (memory.personal.empty()) return values;
  if (personal_.kind == learn::PersonalKind::kDitto) return memory.personal;
  learn::scatter(memory.personal, own_, values);
  return values;
}

Result<void> LocalWork::check_own(const ClientMemory& memory) const {
  const std::size_t size =
      personal_.kind == learn::PersonalKind::kDitto ? task_.model().layout()->size() : own_.count();
  if (memory.personal.empty() || memory.personal.size() == size) return {};
  return Error{ErrorCode::kCorrupt, "this client has kept " + std::to_string(memory.personal.size()) +
                                        " parameters of its own for this run, expected " +
                                        std::to_string(size)};
}

Result<learn::TrainingResult> LocalWork::train_all(const WorkOrder& order, std::span<const float> model,
                                                   const ClientMemory& memory, std::span<float> update,
                                                   std::vector<float>& own) {
  if (!personal_.on()) return train(order, model, memory, update);
  FEDGE_TRY_VOID(check_own(memory));
  if (personal_.kind == learn::PersonalKind::kDitto) return train_ditto(order, model, memory, update, own);
  std::vector<float> start = with_own(model, memory);
  auto result = personal_.kind == learn::PersonalKind::kFedRep ? train_in_turn(order, start, update, own)
                                                               : train_together(order, start, update, own);
  if (result) judge(own, *result);
  return result;
}

// FedPer: one training of both parts, whose update is then divided.
Result<learn::TrainingResult> LocalWork::train_together(const WorkOrder& order, std::span<const float> model,
                                                        std::span<float> update, std::vector<float>& own) {
  WorkOrder both = order;
  both.coverage = order.coverage.unite(own_);
  AlignedBuffer<float> moved(both.coverage.count());
  FEDGE_TRY(result, train(both, model, {}, moved.span()));
  std::vector<float> all(model.size());
  learn::scatter(moved.span(), both.coverage, all);
  learn::gather(all, order.coverage, update);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] += model[i];
  own.resize(own_.count());
  learn::gather(all, own_, own);
  return result;
}

// FedRep: first the own part, then the shared one.
Result<learn::TrainingResult> LocalWork::train_in_turn(const WorkOrder& order, std::vector<float>& model,
                                                       std::span<float> update, std::vector<float>& own) {
  WorkOrder head = order;
  head.coverage = own_;
  learn::Assignment assignment = assignment_of(head);
  assignment.epochs = personal_.head_epochs;
  assignment.max_steps = 0;
  assignment.personal = true;
  std::vector<float> moved(own_.count());
  FEDGE_TRY(of_head, task_.train(assignment, model, moved, *trainer_));
  static_cast<void>(of_head);
  own.resize(own_.count());
  learn::gather(model, own_, own);
  for (std::size_t i = 0; i < own.size(); ++i) own[i] += moved[i];
  learn::scatter(own, own_, model);
  return train(order, model, {}, update);
}

// Ditto: the shared model as usual, and the client's own one beside it.
Result<learn::TrainingResult> LocalWork::train_ditto(const WorkOrder& order, std::span<const float> model,
                                                     const ClientMemory& memory, std::span<float> update,
                                                     std::vector<float>& own) {
  FEDGE_TRY(result, train(order, model, memory, update));
  own = with_own(model, memory);
  learn::Assignment assignment = assignment_of(order);
  assignment.coverage = nullptr;
  assignment.max_steps = 0;
  assignment.anchor = model;
  assignment.epochs = personal_.personal_epochs;  // 0: as many epochs or steps as the shared model
  assignment.personal = true;
  AlignedBuffer<float> moved(own.size());
  FEDGE_TRY(of_own, task_.train(assignment, own, moved.span(), *trainer_));
  static_cast<void>(of_own);
  for (std::size_t i = 0; i < own.size(); ++i) own[i] += moved.data()[i];
  judge(own, result);
  return result;
}

Result<learn::EvaluationSums> LocalWork::evaluate_own(const WorkOrder& order, std::span<const float> model,
                                                      const ClientMemory& memory) const {
  FEDGE_TRY_VOID(check_own(memory));
  FEDGE_TRY(shared, evaluate(order, model));
  if (memory.personal.empty()) {
    const learn::EvaluationSums same = shared;
    shared.add_shared(same);
    return shared;
  }
  FEDGE_TRY(sums, evaluate(order, with_own(model, memory)));
  sums.add_shared(shared);
  return sums;
}

}  // namespace fedge::client
