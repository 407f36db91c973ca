// The part of Task that is about split training.
#include <optional>
#include <utility>

#include "learn/models/adapters.h"
#include "learn/split/local_peer.h"
#include "learn/split/lower_half.h"
#include "learn/task.h"

namespace fedge::learn {

Result<void> Task::find_cuts() {
  if (spec_.training.local_model != LocalModel::kSplit) return {};
  const SplitTrainingSpec& spec = spec_.training.split;
  auto layout = SplitLayout::of(*model_->layout(), model_->adapters()->shape(), spec.cut_ranks);
  if (!layout) return invalid("training.split.cut_ranks: " + layout.error().message);
  split_ = std::move(*layout);
  return {};
}

Result<TrainingResult> Task::train_split(const Assignment& assignment, std::span<const float> global,
                                         std::span<float> update, Trainer& trainer) const {
  const std::size_t cut = split_ && assignment.coverage != nullptr ? split_->cut_of(*assignment.coverage) : 0;
  if (cut == 0)
    return invalid("the coverage of the task is not that of the first blocks of the model up to a cut");
  std::optional<LocalPeer> here;
  if (assignment.upper == nullptr)
    here.emplace(trainer.upper_half(), *split_, trainer.scratch(), global.data());
  LowerHalf half(here ? *here : *assignment.upper, cut, spec_.training.split);
  TrainingResult result = train_part(assignment, global, update, {.split = &half}, trainer);
  if (half.fault()) return *half.fault();
  result.activation_correlation = half.correlation();
  if (assignment.above == nullptr) return result;
  const Coverage above = split_->above(cut);
  assignment.above->resize(above.count());
  float* difference = assignment.above->data();
  for (const Range& range : above.ranges())
    for (std::size_t i = range.begin; i < range.end; ++i) *difference++ = trainer.scratch()[i] - global[i];
  return result;
}

}  // namespace fedge::learn
