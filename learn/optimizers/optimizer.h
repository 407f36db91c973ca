// Optimizer: a client's SGD, SGD with momentum, or AdamW, over ranges of a parameter vector, with its
// moments. Memory: with momentum 4 bytes a parameter that moves, with AdamW 8.
#pragma once

#include <cstdint>
#include <span>

#include "core/aligned_buffer.h"
#include "core/coverage.h"
#include "core/ids.h"
#include "learn/spec.h"

namespace fedge::learn {

class Optimizer {
 public:
  explicit Optimizer(const TrainingSpec& spec) : spec_(spec) {}

  // Sets the moments of these parameters, of a vector of this size, to 0. Only they may move.
  void begin(std::size_t parameters, const Coverage& moved);
  struct Step {
    float rate = 0;           // learning rate
    std::uint64_t moves = 0;  // number of steps that moved these parameters, with this one
  };
  // Moves the parameters of this range along `gradient`, which has as many floats.
  void move(const Range& range, const float* gradient, std::span<float> parameters, const Step& step);

  // Number of moments of a parameter.
  std::size_t moments() const;
  // Copies the moments of these parameters, one moment after the other: moments() * coverage.count() floats.
  void save(const Coverage& coverage, std::span<float> out) const;
  void restore(const Coverage& coverage, std::span<const float> saved);

 private:
  TrainingSpec spec_;
  AlignedBuffer<float>
      velocity_;                  // momentum, or Adam's first moment; allocated only as needed, like the next
  AlignedBuffer<float> squares_;  // Adam's second moment
};

// The learning rate of step `step`, counted from 0, of the `steps` steps of a training in this round.
float learning_rate(const TrainingSpec& spec, const RoundNumber& round, std::uint64_t step,
                    std::uint64_t steps);

}  // namespace fedge::learn
