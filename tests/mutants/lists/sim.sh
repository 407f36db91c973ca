# shellcheck shell=bash
# Mutants of sim/.

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
file sim/transfers/virtual_uploads.cc
old 'void VirtualUploads::discard(ClientId client, TaskId) {
  end(client, surroundings_.world.now(), surroundings_.world.now());
'
new 'void VirtualUploads::discard(ClientId client, TaskId) {
'
caught_by unit_sim 'an upload that is discarded goes no further'

mutant cancelled-goes-on 'in the simulator the model of a cancelled task is downloaded to its end'
file sim/transfers/virtual_downloads.cc
old '  if (download && download->task == task) release(client);
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
file sim/clients/dropouts.cc
old '.fork("session", client.times, work.task.track.value());'
new '.fork("session", links.session(work.client), work.task.track.value());'
caught_by unit_sim 'who drops out of one track'

mutant sim-forgets-what-is-coming 'a simulated device forgets the model of a task that is on its way'
file sim/clients/virtual_training.cc
old '                [&](const auto& entry) { return entry.second.arrived && in_hand != entry.first; });'
new '                [&](const auto& entry) { return in_hand != entry.first; });'
caught_by unit_sim 'records: a device may begin a task'
