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
old '    if (2 * below < known) continue;'
new '    if (below < known) continue;'
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

mutant absence-is-failure 'aw_psp: a client that was away is on probation'
file aggregation/samplers/awpsp/aw_psp.cc
old '      if ((undelivered(state.past) & probation) != 0) unit.weight = 0;'
new '      if ((state.past.failed & probation) != 0) unit.weight = 0;'
caught_by unit_aggregation 'aw_psp: absence is no failure'

mutant probation-excludes 'aw_psp: the only holder of a label is passed over because it is on probation'
file aggregation/samplers/awpsp/selection.cc
old '      if (limit > 0 && used != counts.end() && used->second >= limit) continue;'
new '      if (units[*at].weight == 0 || (limit > 0 && used != counts.end() && used->second >= limit)) continue;'
caught_by unit_aggregation 'aw_psp selection: a unit of the second tier|aw_psp: a rare label on probation'

mutant common-failures-by-chance 'aw_psp: failures in common count without what chance explains'
file aggregation/samplers/awpsp/correlation.cc
old '  const int covariance = n * both - x * y;'
new '  const int covariance = n * both;'
caught_by unit_aggregation 'aw_psp correlation: independent clients'

mutant fresh-once-asked 'aw_psp: a client is fresh once it was asked, whether it delivers or not'
file aggregation/samplers/awpsp/aw_psp.cc
old '    state.past.asked = 1;
'
new '    state.past.asked = 1;
    state.fresh_since = request.round;
'
caught_by unit_aggregation 'aw_psp: an undelivered task'

mutant never-fresh 'aw_psp: a client that never delivers comes before all others for ever'
file aggregation/samplers/awpsp/aw_psp.cc
old '  if (feedback.delivered || has_failed_often(state.past)) state.fresh_since = round_;'
new '  if (feedback.delivered || (has_failed_often(state.past) && round_ == RoundNumber())) state.fresh_since = round_;'
caught_by unit_aggregation 'aw_psp: an undelivered task'

mutant labels-not-balanced 'aw_psp: told labels change the weights, and nobody balances the draw'
file aggregation/samplers/awpsp/aw_psp.cc
old '    return uses_labels() ? draw_labelled(candidates, sample, rng) : guarded_sample(sample, rng);'
new '    return guarded_sample(sample, rng);'
caught_by unit_aggregation 'aw_psp: the weighted selector with told labels'

mutant open-tasks-uncovered 'aw_psp: a substitute covers labels that others are still working on'
file aggregation/samplers/awpsp/aw_psp.cc
old '    if (round == round_) covered |= labels_[client];'
new '    if (round > round_) covered |= labels_[client];'
caught_by unit_aggregation 'aw_psp: who takes a failed client'

mutant cube-biased 'a balanced sample draws units more or less often than stated'
file aggregation/samplers/balanced.cc
old '< backward.length;'
new '< forward.length;'
caught_by unit_aggregation 'balanced sample: each unit|aw_psp labels: a labelled sample'

mutant invented-label 'aw_psp: a label that one client alone claims raises its weight'
file aggregation/samplers/awpsp/selection.cc
old '    if (!request.contested.holds(label)) weight[label] = 0;'
new '    if (request.contested.count() > 128) weight[label] = 0;'
caught_by unit_aggregation 'aw_psp labels: the factor'

mutant stale-task-covers 'aw_psp: a cancelled task covers its labels until it is forgotten'
file aggregation/samplers/awpsp/aw_psp.cc
old '    if (round == round_) covered |= labels_[client];'
new '    if (round <= round_) covered |= labels_[client];'
caught_by unit_aggregation 'aw_psp: a task that nobody ended'

mutant rare-label-for-ever 'aw_psp: a client that never delivers has a place in every round for its rare label'
file aggregation/samplers/awpsp/aw_psp.cc
old 'const bool counts = uses_labels() && !has_failed_often(clients_[candidate.client.value()].past);'
new 'const bool counts = uses_labels();'
caught_by unit_aggregation 'aw_psp: after five failures'

mutant label-factor-unbounded 'aw_psp: rare labels and large exponents make a weight infinite'
file aggregation/samplers/awpsp/selection.h
old 'kMaxLabelFactor = 1e6;'
new 'kMaxLabelFactor = 1e66;'
caught_by unit_aggregation 'aw_psp: the largest exponents'

mutant thinned-blindly 'aw_psp: a label is missing because its holders were thinned out'
file aggregation/samplers/awpsp/selection.cc
old '  const SystematicBlocks blocks = by_rarest(labels, rarest);'
new '  const SystematicBlocks blocks = by_rarest(labels, {});'
caught_by unit_aggregation 'aw_psp labels: a label stays balanced'
