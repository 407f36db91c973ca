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
