// LocalWork's part for training.overlap: a client trains for the next round before the aggregate of this one
// exists (ParaBlock; Wang, Cao, Chen, arXiv:2511.19959; reconstructed from the abstract).
//
// Round t trains part b_t of the model x^t and gives the update D_i of client i. The model x^(t+1) differs
// from x^t in b_t alone. So a client that begins round t + 1 early begins with x^(t+1), except for b_t, which
// has
//   local   x^t[b_t] + D_i, what the coordinator computes if this update is the only one, in the same fixed
//   point stale   x^t[b_t]
// These values are the client's memory of round t. Whether a device really trained early does not matter: it
// computes the same update later, from x^(t+1) and its memory.
#include <algorithm>

#include "aggregation/accumulator.h"
#include "client/local/local_work.h"

namespace fedge::client {
namespace {

struct KeptPart {
  std::vector<Range> ranges;
  std::size_t count = 0;
};

// Nothing if these numbers are not the ranges of a part of a model of this size.
std::optional<KeptPart> kept_part(std::span<const std::int64_t> numbers, std::size_t size) {
  KeptPart part;
  std::size_t from = 0;
  for (std::size_t i = 0; i + 1 < numbers.size(); i += 2) {
    if (numbers[i] < 0 || numbers[i + 1] <= numbers[i]) return std::nullopt;
    const Range range{static_cast<std::size_t>(numbers[i]), static_cast<std::size_t>(numbers[i + 1])};
    if (range.begin < from || range.end > size) return std::nullopt;
    from = range.end;
    part.count += range.size();
    part.ranges.push_back(range);
  }
  return numbers.size() % 2 == 0 ? std::optional(part) : std::nullopt;
}

}  // namespace

Result<std::span<const float>> LocalWork::with_part(const WorkOrder& order, std::span<const float> model,
                                                    const ClientMemory& memory) {
  if (!overlaps() || memory.personal.empty() || memory.round.value() + 1 != order.round.value()) return model;
  const auto part = kept_part(memory.control, model.size());
  if (!part || part->count != memory.personal.size())
    return Error{ErrorCode::kCorrupt, "what this client has kept of round " +
                                          std::to_string(memory.round.value()) +
                                          " is not a part of the model"};
  begun_.assign(model.begin(), model.end());
  const float* from = memory.personal.data();
  for (const Range& range : part->ranges) {
    std::copy_n(from, range.size(), begun_.data() + range.begin);
    from += range.size();
  }
  return std::span<const float>(begun_);
}

void LocalWork::remember_part(const WorkOrder& order, std::span<const float> model, ClientMemory& memory,
                              const WorkResult& result) const {
  memory.control.clear();
  memory.personal.clear();
  for (const Range& range : order.coverage.ranges()) {
    memory.control.push_back(static_cast<std::int64_t>(range.begin));
    memory.control.push_back(static_cast<std::int64_t>(range.end));
    const auto values = model.subspan(range.begin, range.size());
    memory.personal.insert(memory.personal.end(), values.begin(), values.end());
  }
  if (task_.spec().training.overlap == learn::OverlapKind::kLocal)
    aggregation::move_by_one({}, result.training.samples, result.values.span(), memory.personal);
}

}  // namespace fedge::client
