# shellcheck shell=bash
# Mutants of aggregation/.

mutant adapters-count-twice 'N4: what has joined the frozen weights stays in the adapters too'
file aggregation/aggregators/adapters/rules.cc
old '    set(layout.prefix(layout.rank), fresh());
'
new '    if (products_.mean(0).size() == 0) set(layout.prefix(layout.rank), fresh());
'
caught_by unit_aggregation 'FLoRA adds the mean of products'

mutant control-variate-clamped 'one client moves the control variate further than any honest one'
file aggregation/control_variate.cc
old 'constexpr double kMaxChange = 0x1p14;'
new 'constexpr double kMaxChange = 0x1p15;'
caught_by unit_aggregation 'control variate: however large'

mutant novelty-unbounded 'who claims every label wins a greedy selection'
file aggregation/samplers/awpsp/selection.cc
old 'const int fresh = std::min(request.labels[*at].count_without(covered), request.most_new);'
new 'const int fresh = std::max(request.labels[*at].count_without(covered), 0 * request.most_new);'
caught_by unit_aggregation 'who claims every label'

mutant novelty-of-the-most 'a minority that claims every label says how much new labels win'
file aggregation/samplers/awpsp/aw_psp.cc
old '    if (2 * below >= known) return static_cast<int>(count);'
new '    if (below >= known) return static_cast<int>(count);'
caught_by unit_aggregation 'who claims every label'

mutant rotation-of-every-second-client 'a part that rotates leaves some sub-layers with more clients than others'
file aggregation/planners/fedplt.cc
old 'const std::uint64_t moved = rotate_ ? request.round.value() % sub_layers_ : 0;'
new 'const std::uint64_t moved = rotate_ && request.client.value() % 2 == 0 ? request.round.value() % sub_layers_ : 0;'
caught_by property_aggregation 'with rotate, every round is balanced'

mutant damping-by-one-parameter 'damping compares with the weight of one parameter, not with that of all updates'
file aggregation/accumulator.cc
old 'const auto total = static_cast<double>(total_weight_.value());'
new 'const auto total = static_cast<double>(weights_.at(first).value());'
caught_by unit_aggregation 'damping: by hand'
