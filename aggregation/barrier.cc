#include "aggregation/barrier.h"

#include <algorithm>
#include <set>

#include "core/check.h"

namespace fedge::aggregation {

Progress::Progress(std::vector<std::uint64_t> steps) : steps_(std::move(steps)) {
  if (!steps_.empty()) least_ = *std::min_element(steps_.begin(), steps_.end());
}

Barrier::Barrier(const BarrierSpec& spec) : kind_(spec.kind), beta_(spec.sample), theta_(0) {
  if (kind_ == BarrierSpec::Kind::kSsp || kind_ == BarrierSpec::Kind::kPssp) theta_ = spec.staleness;
}

bool Barrier::may_begin(std::size_t worker, const Progress& progress, Rng rng) const {
  FEDGE_CHECK(worker < progress.steps().size(), "a worker of this progress");
  if (never_waits()) return true;
  const auto far_behind = [&](std::uint64_t other) {
    return other < progress.steps()[worker] && progress.steps()[worker] - other > theta_;
  };
  // If the slowest worker is not far behind, no drawn worker is.
  if (!far_behind(progress.least())) return true;
  const std::size_t others = progress.steps().size() - 1;
  if (!samples() || beta_ >= others) return false;
  // Draws beta distinct other workers (R. W. Floyd's method; Bentley, Communications of the ACM 30, 1987).
  std::set<std::size_t> drawn;
  for (std::size_t last = others - beta_; last < others; ++last) {
    std::size_t place = rng.below(last + 1);
    if (!drawn.insert(place).second) drawn.insert(place = last);
    if (far_behind(progress.steps()[place < worker ? place : place + 1])) return false;
  }
  return true;
}

}  // namespace fedge::aggregation
