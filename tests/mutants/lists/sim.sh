# shellcheck shell=bash
# Mutants of sim/.

mutant late-model-taken 'a round waits for the model of its clients longer than its deadline'
file server/conductor/serverless_route.cc
old '  if (!late_ && (fetching_ || !round_.hopeless())) return;'
new '  if (fetching_ || !round_.hopeless()) return;'
caught_by unit_sim 'takes longer to come than its deadline'

mutant sums-kept 'a simulation keeps every secure sum'
file sim/coordinator/virtual_aggregate.cc
old '  surroundings_.state.remove(sum);
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
old '(held.arrived && in_hand != held.task)'
new '(in_hand != held.task)'
caught_by unit_sim 'records: a device may begin a task'

mutant trained-too-early 'a simulation computes updates that nobody waits for yet'
file sim/clients/virtual_training.cc
old '  if (surroundings_.on_arrival)
'
new '  if (surroundings_.on_arrival && surroundings_.secrets != nullptr)
'
caught_by unit_sim 'on arrival'

mutant states-over-budget 'what simulated clients keep takes twice the memory that it may'
file sim/training/client_states.cc
old 'in_memory_ > budget_ &&'
new 'in_memory_ > 2 * budget_ &&'
caught_by unit_sim 'client states: memory stays within'

mutant file-of-states-grows 'places in the file of client states are never used again'
file sim/training/client_states.cc
old '(place->checksum != 0 ? former_ : free_)'
new 'former_'
caught_by unit_sim 'client states: memory stays within'

mutant one-mix 'replicated clients all have the same samples'
file learn/data/replicated_samples.cc
old 'rng_.fork("mix", client)'
new 'rng_.fork("mix", 0 * client)'
caught_by unit_learn 'replicate'

mutant nobody-told 'clients do not hear that the run has ended'
file server/conductor/conductor.cc
old 'for (const ClientId client : finished.connected)'
new 'for (const ClientId client : std::vector<ClientId>())'
caught_by unit_server 'every connected client hears once'

mutant background-forever 'a thread pool gives work to a background that has been taken away'
file core/platform/thread_pool.cc
old '  has_work_ = background != nullptr;
  if (has_work_)'
new '  has_work_ = true;
  if (has_work_)'
caught_by unit_core 'thread pool'

mutant gone-but-ahead 'results of disconnected clients fill the places of results that are ahead'
file sim/clients/virtual_training.cc
old 'if (surroundings_.on_arrival) surroundings_.pool.postpone(client);'
new ''
caught_by unit_sim 'do not keep other threads from training ahead'

mutant substitutes-exhausted 'a client that may take part no more takes the place of a lost one'
file server/engine/round_selection.cc
old 'all_admitted_(engine.tracks_.is_whole() && !engine.participations_.bounded() &&'
new 'all_admitted_(engine.tracks_.is_whole() &&'
caught_by unit_server 'substitute'

mutant substitutes-strangers 'a client that is no member of the track takes the place of a lost one'
file server/engine/round_selection.cc
old 'all_admitted_(engine.tracks_.is_whole() && !engine.participations_.bounded() &&'
new 'all_admitted_(!engine.participations_.bounded() &&'
caught_by unit_server 'substitute'

mutant busy-for-ever 'a client that had a task in one round never replaces another one'
file server/engine/round_engine.h
old 'for (const auto& [client, task] : tasks_) present_.set_busy(client, false);'
new ''
caught_by unit_server 'substitute'

mutant late-values-stay 'updates that were computed ahead and come too late stay in memory'
file sim/training/training_pool.cc
old 'if (work->stage == Stage::kComputed) work->outcome.values.reset();'
new ''
caught_by unit_sim 'a released model is freed'

mutant late-models-stay 'the model of a closed round stays in memory while a device that had it is switched off'
file sim/training/training_pool.cc
old '  *state = {.released = true};'
new ''
caught_by unit_sim 'a released model is freed'
