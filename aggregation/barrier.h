// Barrier: decides when a worker of an asynchronous run may begin its next step, from the steps that the
// others have finished (probabilistic synchronous parallel; Wang, Catterall, Mortier, "Probabilistic
// synchronous parallel", 2017, arXiv:1709.07772). A worker with t_i finished steps checks beta others, drawn
// uniformly without replacement. It may begin if each of them has t_j >= t_i - theta:
//
//   asp   beta 0                      never waits
//   bsp   all others, theta 0         steps differ by 1 at most
//   ssp   all others, theta           steps differ by theta + 1 at most
//   pbsp  beta, theta 0
//   pssp  beta, theta
//
// Liveness: a worker with the fewest steps of all may always begin. Pure. Cost: O(beta log beta) for a worker
// that is ahead of the slowest, else O(1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/rng.h"

namespace fedge::aggregation {

struct BarrierSpec {
  enum class Kind { kAsp, kBsp, kSsp, kPbsp, kPssp };
  Kind kind = Kind::kAsp;
  std::size_t sample = 10;      // beta; pbsp and pssp
  std::uint64_t staleness = 4;  // theta; ssp and pssp
};

// The steps that each worker has finished.
class Progress {
 public:
  explicit Progress(std::vector<std::uint64_t> steps);
  const std::vector<std::uint64_t>& steps() const { return steps_; }
  std::uint64_t least() const { return least_; }  // 0 without workers

 private:
  std::vector<std::uint64_t> steps_;
  std::uint64_t least_ = 0;
};

class Barrier {
 public:
  explicit Barrier(const BarrierSpec& spec);

  bool never_waits() const { return kind_ == BarrierSpec::Kind::kAsp; }
  // `worker` is an index in progress.steps(). If there are at most beta others, all of them are checked.
  bool may_begin(std::size_t worker, const Progress& progress, Rng rng) const;

 private:
  bool samples() const { return kind_ == BarrierSpec::Kind::kPbsp || kind_ == BarrierSpec::Kind::kPssp; }

  BarrierSpec::Kind kind_;
  std::size_t beta_;
  std::uint64_t theta_;
};

}  // namespace fedge::aggregation
