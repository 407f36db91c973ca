# shellcheck shell=bash
# Mutants of sim/.

mutant ids-unbound 'A6: in the simulated overlay a contact claims an id that is not its own'
file sim/overlays/kademlia.h
old '    return !protections_.bound_ids || identities_.genuine(contact);'
new '    return !protections_.bound_ids || identities_.genuine(contact) || contact.known();'
caught_by unit_sim 'bound ids'

mutant no-token-needed 'A6: in the simulated overlay a stranger gets more than it has sent'
file sim/overlays/node.cc
old '  if (options_.protections.tokens && request.token != token_of(request.from.address)) {
'
new '  if (options_.protections.tokens && request.token + 1 == token_of(request.from.address)) {
'
caught_by unit_sim 'tokens'

mutant paths-meet 'A6: disjoint paths of a look-up share nodes'
file sim/overlays/disjoint_search.cc
old '        if (path_of(contact->address) != nullptr || crowded(*contact)) {
'
new '        if (crowded(*contact)) {
'
caught_by unit_sim 'disjoint paths'

mutant answer-in-anothers-place 'A6: a look-up waits for ever for an answer that came from somebody else'
file sim/overlays/node.cc
old '  if (message.retry || message.from != pending.to) return silent(pending);'
new '  if (message.retry) return silent(pending);'
caught_by unit_sim 'row 61: a node that is not who was asked for|row 61: bound ids'

mutant short-lag 'a serverless round: a client sends a slot before its lag has passed'
file sim/swarm/swarm_round.cc
old 'slot_ >= result_.lags[peer]'
new 'slot_ + 1 >= result_.lags[peer]'
caught_by unit_sim 'invariant 5'

mutant silent-fallback 'a serverless round: owners that had to help are not counted'
file sim/swarm/swarm_round.cc
old '++result_.fallbacks'
new 'result_.fallbacks += 0'
caught_by unit_sim 'owners help after a stall'

mutant fewer-neighbours-count 'gossip: weights go by the smaller of two degrees, and rows may go below zero'
file sim/gossip/mixing.cc
old 'const std::size_t degree = std::max(neighbours.size()'
new 'const std::size_t degree = std::min(neighbours.size()'
caught_by unit_sim 'mixing: weights are'

mutant own-degree-alone 'gossip: a client weighs its neighbours by its own degree, so that the mean moves'
file sim/gossip/mixing.cc
old '1.0 / static_cast<double>(1 + degree)'
new '1.0 / static_cast<double>(1 + std::min(degree, neighbours.size()))'
caught_by unit_sim 'mixing, invariant: the mean'

mutant mixed-with-the-mixed 'gossip: a client mixes with models that have been mixed already'
file sim/gossip/mixing.cc
old '    for (swarm::Pseudonym client = 0; client < models.size(); ++client) {
      std::ranges::fill(sum, 0.0);'
new '    for (swarm::Pseudonym client = 0; client < models.size(); ++client) {
      for (std::size_t i = 0; i < client; ++i)
        std::ranges::copy(models[i].subspan(first, count), before.data() + i * count);
      std::ranges::fill(sum, 0.0);'
caught_by unit_sim 'mixing: a hand-computed path'

mutant one-model-for-all 'gossip: everybody trains the first client'"'"'s model'
file sim/gossip/gossip.cc
old '.global = {.model = models_[client]'
new '.global = {.model = models_[client / task_.clients()]'
caught_by unit_sim 'gossip: two rounds are those'

mutant late-model-taken 'a round waits for the model of its clients longer than its deadline'
file server/conductor/serverless_route.cc
old '  if (!late_ && (fetching_ || !round_.hopeless())) return;'
new '  if (fetching_ || !round_.hopeless()) return;'
caught_by unit_sim 'takes longer to come than its deadline'

mutant sums-kept 'a simulation keeps every secure sum'
file sim/coordinator/virtual_aggregate.cc
old '  surroundings_.state.remove(*sum);
'
new ''
caught_by unit_sim 'a sum is not kept'

mutant nothing-drawn 'a simulated round with secure sums in which nobody is drawn has no true end'
file server/engine/secure_round.cc
old 'turn.selected == 0'
new 'turn.selected == 1'
caught_by unit_sim 'a round in which nobody is drawn sums nothing'

mutant discarded-goes-on 'in the simulator a discarded upload goes on'
file sim/simulation_server.cc
old '    simulation_.end_upload(client, simulation_.now_, simulation_.now_);
'
new ''
caught_by unit_sim 'an upload that is discarded goes no further'

mutant cancelled-goes-on 'in the simulator the model of a cancelled task is downloaded to its end'
file sim/simulation_server.cc
old '    if (download && download->task == task) release(client);
'
new ''
caught_by unit_sim 'a download whose task is cancelled'

mutant nothing-comes-to-something 'a replay folds the updates of a serverless round of which nothing has come'
file sim/replay/retraining.cc
old '  if (!waiting.counts) return {};
'
new ''
caught_by integration_replay 'a serverless round of which nothing has come'

mutant dropouts-by-session 'who drops out of one track decides who drops out of another'
file sim/simulation_server.cc
old '.fork("session", client.times_assigned, work.task.track.value());'
new '.fork("session", client.session, work.task.track.value());'
caught_by unit_sim 'who drops out of one track'
