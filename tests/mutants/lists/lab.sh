# shellcheck shell=bash
# Mutants of lab/.

mutant short-lag 'a serverless round: a client sends a slot before its lag has passed'
file lab/swarm/swarm_round.cc
old 'slot_ >= result_.lags[peer]'
new 'slot_ + 1 >= result_.lags[peer]'
caught_by unit_lab 'invariant 5'

mutant silent-fallback 'a serverless round: owners that had to help are not counted'
file lab/swarm/swarm_round.cc
old '++result_.fallbacks'
new 'result_.fallbacks += 0'
caught_by unit_lab 'owners help after a stall'

mutant fewer-neighbours-count 'gossip: weights go by the smaller of two degrees, and rows may go below zero'
file lab/gossip/mixing.cc
old 'const std::size_t degree = std::max(neighbours.size()'
new 'const std::size_t degree = std::min(neighbours.size()'
caught_by unit_lab 'mixing: weights are'

mutant own-degree-alone 'gossip: a client weighs its neighbours by its own degree, so that the mean moves'
file lab/gossip/mixing.cc
old '1.0 / static_cast<double>(1 + degree)'
new '1.0 / static_cast<double>(1 + std::min(degree, neighbours.size()))'
caught_by unit_lab 'mixing, invariant: the mean'

mutant mixed-with-the-mixed 'gossip: a client mixes with models that have been mixed already'
file lab/gossip/mixing.cc
old '    for (swarm::Pseudonym client = 0; client < models.size(); ++client) {
      std::ranges::fill(sum, 0.0);'
new '    for (swarm::Pseudonym client = 0; client < models.size(); ++client) {
      for (std::size_t i = 0; i < client; ++i)
        std::ranges::copy(models[i].subspan(first, count), before.data() + i * count);
      std::ranges::fill(sum, 0.0);'
caught_by unit_lab 'mixing: a hand-computed path'

mutant one-model-for-all 'gossip: everybody trains the first client'"'"'s model'
file lab/gossip/gossip.cc
old 'sim::GlobalState{.model = models_[client]'
new 'sim::GlobalState{.model = models_[client / task_.clients()]'
caught_by unit_lab 'gossip: two rounds are those'
