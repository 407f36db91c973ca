# shellcheck shell=bash
# The coordinator's shell of the conductor: each mutant is a difference to the simulator's.

mutant shell-forgets-zeros 'the coordinator does not count an update that was not fetched'
file server/coordinator/ports/run_aggregate.cc
old '  fold(zeros.task.track,
       {.client = zeros.client,
        .weight = zeros.weight,
        .coverage = state().changed_by(zeros.coverage),
        .values = nullptr},
       {});'
new '  (void)zeros;'
caught_by property_sim 'two shells'

mutant shell-says-made 'the coordinator says that a round was aggregated although it came to nothing'
file server/coordinator/ports/run_aggregate.cc
old '  if (const auto* reason = std::get_if<NotMade>(&made)) closing->not_made = reason->reason;'
new ''
caught_by property_sim 'two shells'

mutant shell-commits-twice 'after a restart the coordinator tells its engine again of phases that it had committed'
file server/coordinator/recovery.cc
old '    result_.closed.erase(result_.closed.begin());'
new '    {}'
caught_by property_sim 'two shells'

mutant shell-revokes-softly 'the engine is not told that a client was revoked'
file server/coordinator/run_host.cc
old '  if (goes_on()) conductor_.left(client, for_good, now());'
new '  if (goes_on()) conductor_.left(client, for_good && false, now());'
caught_by property_sim 'two shells'

mutant shell-sleeps 'the coordinator is not woken at the deadline of its conductor'
file server/coordinator/run_host.cc
old '  if (deadline)
    house_.clock->wake_at('
new '  if (deadline && !stepped)
    house_.clock->wake_at('
caught_by property_sim 'two shells'

mutant shell-forgets-restart 'after a restart the engine is not told of it'
file server/coordinator/run_host.cc
old '  if (parts_.recovered.entries > 0) conductor_.resume(now());'
new ''
caught_by property_sim 'two shells'

mutant shell-serves-on 'a client whose task is over may still fetch its model'
file server/coordinator/ports/client_lines.cc
old '  if (served == serving_.end() || served->second.task != task) return;'
new '  if (served == serving_.end() || served->second.task == task) return;'
caught_by property_sim 'two shells'

mutant shell-keeps-partial 'an update that was lost on the way is taken for one that arrived'
file server/coordinator/uploads.cc
old '  discard(client);
  callbacks_.on_outcome(client, from.fetch.offer.task(), upload.error());'
new '  callbacks_.on_outcome(client, from.fetch.offer.task(), {});'
caught_by property_sim 'two shells'

mutant shell-blames-nobody 'a transfer that fails is not reported'
file server/coordinator/uploads.cc
old '                callbacks_.on_outcome(sender, from.fetch.offer.task(), done.error());'
new ''
caught_by property_sim 'two shells'

mutant shell-folds-masked-once 'only the first masked update is added to the sum'
file server/coordinator/ports/run_aggregate.cc
old '  const auto object = surroundings_.uploads.take(accepted.client).arrived;
  folded_.push_back(object);'
new '  const auto object = surroundings_.uploads.take(accepted.client).arrived;
  if (!folded_.empty()) return folded_.push_back(object);
  folded_.push_back(object);'
caught_by property_sim 'two shells'

mutant shell-old-model 'a restart continues from the model before the last checkpoint'
file server/coordinator/recovery.cc
old 'step([&] { return parts_.state.restore(checkpoint_->state, descriptions_); });'
new 'step([&] { return parts_.state.start({turn.track, std::nullopt, turn.description}); });'
caught_by property_sim 'two shells'

mutant shell-keeps-after-failure 'a restart with a full disk keeps a round that it could not close'
file server/coordinator/recovery.cc
old '  if (turn.ends_round) step([&] { return keep(turn); });'
new '  if (turn.ends_round) (void)keep(turn);'
caught_by property_sim 'two shells'

mutant shell-waits-forever 'a run that was stopped while its model was made does not end after a restart'
file server/coordinator/run_host.cc
old '  if (aggregate_->closing()) {'
new '  if (aggregate_->closing() || conductor_.makes_model()) {'
caught_by property_sim 'two shells'

mutant shell-fetch-goes-silent 'a fetch of the clients'"'"' model that finds the disk full is not answered'
file server/coordinator/ports/run_exchange.cc
old '    return answer(id, object.error());'
new '    return;'
caught_by property_sim 'two shells'

mutant shell-all-obtainable 'an update counts as held by the others once the coordinator watches it'
file server/coordinator/seeder.cc
old '  return torrent != nullptr && torrent->obtainable();'
new '  return torrent != nullptr;'
caught_by property_sim 'two shells'

mutant shell-nobody-listens 'a warm-up is planned as if no client accepted connections'
file server/coordinator/seeder.cc
old '  return known != clients_.end() && !known->second.address.empty();'
new '  return known != clients_.end() && known->second.address.empty();'
caught_by property_sim 'two shells'

mutant shell-reports-unheard 'a client that has reported no chunks counts as one that has none'
file server/coordinator/seeder.cc
old '  return share == torrent->shares.end() || !share->second.heard ? nullptr : &share->second.has;'
new '  return share == torrent->shares.end() ? nullptr : &share->second.has;'
caught_by property_sim 'two shells'

mutant shell-fetches-from-nobody 'a client that returns is not admitted to what the coordinator exchanges'
file server/coordinator/seeder.cc
old '  if (!exchange_->is_linked(client)) exchange_->link(client, link);
  exchange_->admit(object, client);'
new '  if (exchange_->is_linked(client)) exchange_->admit(object, client);'
caught_by property_sim 'two shells'

mutant shell-orders-too-early 'clients are told what to aggregate before the journal has it'
file server/coordinator/ports/journal_gate.cc
old '  const bool waits = has_payload_ || (surroundings_.clients_aggregate && decision.closes_phase());'
new '  const bool waits = has_payload_;'
caught_by property_sim 'pinned scripts: a crash'

mutant shell-one-contributor 'only one of the clients whose updates are in the model of clients is counted'
file server/coordinator/ports/run_aggregate.cc
old '{surroundings_.exchange->take(), by_clients->contributors}'
new '{surroundings_.exchange->take(), {by_clients->contributors.front()}}'
caught_by property_sim 'two shells'

mutant shell-keeps-what-came-to-nothing 'the simulator folds the updates of a round that came to nothing into the next one'
file sim/coordinator/virtual_aggregate.cc
old '  if (std::holds_alternative<server::NotMade>(made)) waiting_.clear();'
new ''
caught_by property_sim 'two shells'

mutant shell-track-starts-anew 'the model of a track starts from the initial model instead of its source'
file server/coordinator/ports/run_aggregate.cc
old 'start) { return state().start(start); }'
new 'start) { return state().start({start.track, std::nullopt, start.description}); }'
caught_by property_sim 'two shells'

mutant shell-retires-no-track 'the simulator keeps the model of a track that was retired'
file sim/coordinator/virtual_aggregate.cc
old '  if (!surroundings_.log.replaying()) surroundings_.state.retire(track);
'
new ''
caught_by property_sim 'two shells'

mutant shell-forgets-retirement 'a restart brings back tracks that were retired since the last checkpoint'
file server/coordinator/recovery.cc
old '  if (!is_kept() && outcome()) parts_.state.retire(track);'
new ''
caught_by property_sim 'two shells'
