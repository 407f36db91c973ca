# shellcheck shell=bash
# Mutants of server/.

mutant fast-models 'N6: a model is published for every round, however fast'
file server/directory/announcer.cc
old '  if (model.said && now >= model.when && now - model.when < kModelEvery) return;'
new ''
caught_by unit_server 'models of fast rounds'

mutant waits-for-ever 'N6: a round without a server waits for whoever is silent'
file server/engine/shared_round.cc
old '    if (!all && !(late && most) && !lost) continue;'
new '    if (!all && !(late && most && false) && !lost) continue;'
caught_by unit_server 'shared round: when it is late'
caught_by integration_federation 'serverless, N6'

mutant orphans 'invariant 8: an update goes with its client although the others hold all of it'
file server/engine/shared_round.cc
old '    const bool lost = !all && !present && !obtainable(offer.object);'
new '    const bool lost = !all && !present && (true || !obtainable(offer.object));'
caught_by unit_server 'shared round, invariant 8'

mutant few-decide 'A2: fewer than half of the clients make the model'
file server/engine/shared_round.cc
old '  const bool most = 2 * best->second.size() > participants_.size();'
new '  const bool most = 3 * best->second.size() > participants_.size() - 1;'
caught_by unit_server 'shared round: the model is that of more than half'

mutant in-the-order-of-clients 'what is aggregated tells whose update is whose'
file server/engine/shared_round.cc
old '  std::ranges::sort(order.parts, {},'
new '  if (order.parts.empty()) std::ranges::sort(order.parts, {},'
caught_by unit_server 'shared round: what is to be aggregated does not tell'

mutant warmup-voided 'a warm-up: that it failed is not told'
file server/engine/shared_warmup.cc
old '  failure_ = tracker_->failure();'
new '  if (!over_) failure_ = tracker_->failure();'
caught_by unit_server 'is over in time'

mutant chunks-of-any-size 'an update in chunks of another size is taken'
file server/engine/offer_check.cc
old 'if (offer.update.chunk_size != rules.chunk_size)'
new 'if (offer.update.chunk_size < rules.chunk_size)'
caught_by unit_server 'updates nobody asked for'

mutant announces-anywhere 'A6: a client has others connect to a third party'
file server/coordinator/seeder.cc
old '  if (!said.host.empty() && !protocol::same_host(said.host, seen.host))'
new '  if (!said.host.empty() && !protocol::same_host(said.host, seen.host) && said.port == 0)'
caught_by integration_federation 'third party'
