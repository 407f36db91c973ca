# shellcheck shell=bash
# The coordinator's shell of the conductor: each mutant is a difference to the simulator's.

mutant shell-forgets-zeros 'the coordinator does not count an update that was not fetched'
file server/coordinator/ports/run_aggregate.cc
old '  fold(zeros.task.track,
       {.client = zeros.client, .weight = zeros.weight, .coverage = zeros.coverage, .values = nullptr}, {});'
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
