// Central training: a model learns from all of a data set in one place, whatever its partition says. It is a
// round of one client that has everything, so that a learning rate's schedule spans it; what strategies add
// to a client's training (objective, nested ranks, thinner networks) is left out. Single-threaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/parameters.h"
#include "core/result.h"
#include "learn/data/dataset.h"
#include "learn/model.h"
#include "learn/spec.h"
#include "learn/trainer.h"

namespace fedge::learn {

struct PretrainOptions {
  // Only samples of these labels; empty: all.
  std::vector<std::uint8_t> labels;
  // Called after every step with the loss before it and what has been learned so far.
  std::function<void(std::uint64_t steps, float loss, std::span<const float> parameters)> report;
  std::stop_token finish;  // ends training after the step in hand
};

struct Pretrained {
  std::unique_ptr<Model> model;
  ParameterVector values;
  std::uint64_t steps = 0;
};

// How many steps it will make.
std::uint64_t pretraining_steps(const TaskSpec& spec, std::size_t samples);
// Errors are make_model's and initial_parameters', and kInvalid if no sample has such a label.
Result<Pretrained> pretrain(const TaskSpec& spec, std::uint64_t seed, const Dataset& data,
                            const PretrainOptions& options);

}  // namespace fedge::learn
