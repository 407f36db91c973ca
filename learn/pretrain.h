// Central training: one model learns from the whole data set, whatever its partition. It runs as a single
// round of one client with all samples, so that the learning-rate schedule spans it. Options that strategies
// add to a client's training (objective, nested ranks, sub-models) are switched off. Single-threaded.
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
  // Trains only on samples with these labels; empty: on all.
  std::vector<Label> labels;
  // Called after every step with the loss before the step and the current parameters.
  std::function<void(std::uint64_t steps, float loss, std::span<const float> parameters)> report;
  std::stop_token finish;  // ends training after the current step
};

struct Pretrained {
  std::unique_ptr<Model> model;
  ParameterVector values;
  std::uint64_t steps = 0;
};

// The samples of `data` that pretrain() trains on, ascending: those with a chosen label, without the
// validation samples. kInvalid if there are none.
Result<std::vector<std::uint32_t>> pretraining_samples(const TaskSpec& spec, std::uint64_t seed,
                                                       const Dataset& data, const PretrainOptions& options);
// Number of steps that pretrain() makes on this many samples.
std::uint64_t pretraining_steps(const TaskSpec& spec, std::size_t samples);
// Errors are those of make_model(), initial_parameters() and pretraining_samples().
Result<Pretrained> pretrain(const TaskSpec& spec, std::uint64_t seed, const Dataset& data,
                            const PretrainOptions& options);

}  // namespace fedge::learn
