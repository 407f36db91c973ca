# shellcheck shell=bash
# Mutants of exactly-once aggregation: duplicate and late updates (N4).

mutant skip-duplicate-check 'N4: an update offered twice counts twice'
file server/engine/round_engine.cc
old '  if (task->state != TaskState::kAssigned)
    return'
new '  if (false)
    return'
caught_by unit_server 'round: a second update'
caught_by integration_liars 'the model is the mean'

mutant skip-duplicate-check-fetching 'N4: another update may take the place of one that is on its way'
file server/engine/round_engine.cc
old '  if (task->state != TaskState::kAssigned)
    return'
new '  if (task->state == TaskState::kDone)
    return'
caught_by unit_server 'N4, round: '

mutant skip-duplicate-check-stored 'N4: an update that has come counts whenever it is said to have come'
file server/engine/round_engine.cc
old '  if (task == nullptr || task->state != TaskState::kFetching) {
    effects.push_back(Discard{stored'
new '  if (task == nullptr) {
    effects.push_back(Discard{stored'
caught_by unit_server 'N4, round: '

mutant hands-out-while-moving 'in an asynchronous run it is chance which model a client that comes back begins with'
file server/engine/buffered/buffered_engine.cc
old '    returned_.insert(arrived.client);
  }'
new '    returned_.insert(arrived.client);
    hand_out_again(context, effects);
  }'
caught_by unit_server 'buffered: whoever comes back'

mutant skip-duplicate-check-buffered 'N4: in an asynchronous run another update may take the place of one that is on its way'
file server/engine/buffered/buffered_tasks.cc
old '  if (task->second.fetching)
    return'
new '  if (false)
    return'
caught_by unit_server 'N4, buffered: '

mutant restart-forgets-done 'N4: after a restart who has delivered is asked again, and counts again'
file server/engine/round_engine.cc
old '    if (task.at_work() && task.state != TaskState::kDone) {'
new '    if (task.at_work()) {'
caught_by property_server 'N1 N2 N4 N5 N6, rounds'
caught_by integration_liars 'the model is the mean'

mutant skip-stale-check 'N4: an update of an earlier round counts in this one'
file server/engine/round_engine.cc
old '  if (offer.round != round_ || phase_ != Phase::kCollecting) return'
new '  if (phase_ != Phase::kCollecting) return'
caught_by unit_server 'round: an update of an earlier round'
