# shellcheck shell=bash
# Mutants of simulations that several ranks share.

mutant all-jobs-here 'each rank trains all clients'
file sim/ranks/shared_work.cc
old 'const Place place{jobs_++, rank == ranks_.rank()};'
new 'const Place place{jobs_++, true};'
caught_by unit_sim 'any number of ranks'

mutant states-spread 'the jobs of a client that keeps something are on several ranks'
file sim/ranks/shared_work.cc
old '? client.value() % ranks_.size()'
new '? (client.value() + (jobs_ & 1)) % ranks_.size()'
caught_by unit_sim 'any number of ranks'

mutant sums-not-added 'the sums of other ranks are left out'
file sim/coordinator/virtual_aggregate.cc
old 'FEDGE_TRY_VOID(shared->all_reduce(track.round_sums()));'
new '(void)track;'
caught_by unit_sim 'any number of ranks'

mutant changes-not-added 'the changes of control variates of other ranks are left out'
file run/track_model.cc
old '  if (control_) sums.push_back(control_->changes());'
new ''
caught_by unit_sim 'any number of ranks'

mutant zeros-change-controls 'updates elsewhere change control variates here'
file run/track_model.cc
old '    if (!update.elsewhere) FEDGE_TRY_VOID(control_->add(update));'
new '    if (update.values) FEDGE_TRY_VOID(control_->add(update)); else updates_ += 0, (void)control_->changes()[0]++;'
caught_by unit_sim 'any number of ranks'

mutant elsewhere-not-counted 'clients whose values are elsewhere do not count as participants'
file server/run_state.cc
old 'if (update.values || update.elsewhere) contributors_'
new 'if (update.values) contributors_'
caught_by unit_sim 'any number of ranks'

mutant norm-elsewhere-lost 'the norm of an update elsewhere is unknown'
file sim/ranks/shared_work.cc
old 'outcome.update.inspected = Result<double>(from.inspected_norm());'
new 'outcome.update.inspected = Result<double>(0.0);'
caught_by unit_sim 'any number of ranks'

mutant refusal-elsewhere-lost 'an update elsewhere with a bad value is accepted'
file sim/ranks/shared_work.cc
old 'outcome.update.inspected = Result<double>(error_of(from.refused()));'
new 'outcome.update.inspected = Result<double>(1.0);'
caught_by unit_sim 'any number of ranks'

mutant dropped-outcomes-kept 'outcomes of dropped jobs are kept for ever'
file sim/ranks/shared_work.cc
old 'if (from.number() < jobs_ && !outcomes_.contains(from.number())) return {};'
new ''
caught_by unit_sim 'outcomes that nobody wants are dropped'

mutant models-not-compared 'ranks with different models go on'
file sim/ranks/shared_work.cc
old '  if (mine == theirs) return {};'
new '  if (mine.size() == theirs.size()) return {};'
caught_by unit_sim 'another model and unknown messages'

mutant end-not-told 'the other ranks go on when the evaluation ends the run'
file sim/ranks/shared_work.cc
old 'message.mutable_decision()->set_ends(ends);'
new ''
caught_by unit_sim 'the evaluation of rank 0 ends'

mutant states-of-first-saved 'a checkpoint has the states of the first clients alone'
file sim/simulation.cc
old '    clients = std::move(gathered);'
new '    clients.resize(gathered.size());'
caught_by unit_sim 'with other ranks unless clients keep'

mutant other-ranks-continue 'a run with states of clients continues on another number of ranks'
file sim/checkpoint/checkpoints.cc
old 'states && ranks != options_.ranks)'
new 'states && ranks > 1000)'
caught_by unit_sim 'with other ranks unless clients keep'

mutant share-of-all 'each rank evaluates all samples'
file learn/evaluation/evaluate.cc
old 'return share.part + share.parts * next++;'
new 'return 0 * share.part + next++;'
caught_by unit_learn 'shares of several processes'

mutant silence-is-life 'a rank that stands still is waited for for ever'
file sim/ranks/mpi/join.cc
old 'now - last_sign_[rank] < patience_) continue;'
new 'now - last_sign_[rank] < 1000 * patience_) continue;'
caught_by integration_ranks 'a lost rank ends the run'

mutant everybody-speaks 'each rank prints the error'
file apps/simulation/run_command.cc
old 'return first() ? report_failure(program_, error) : kFailed;'
new 'return report_failure(program_, error);'
caught_by integration_ranks 'an error is printed once'

mutant slice-twice 'a rank adds up the slice of another one'
file sim/ranks/mpi/join.cc
old 'exchange(sum_->slices.back(), slice(other), other, kSliceTag);'
new 'exchange(sum_->slices.back(), slice(rank_), other, kSliceTag);'
caught_by integration_ranks 'give the same files'

mutant starts-not-compared 'ranks with other data wait for each other for ever'
file sim/ranks/shared_work.cc
old '  if (theirs == bytes) return {};'
new '  if (theirs.size() == bytes.size()) return {};'
caught_by unit_sim 'another model and unknown messages'
