# shellcheck shell=bash
# Mutants of runs for some clients, quarantine, models of earlier rounds, and removed runs.

mutant filter-or-for-and 'sampling.where: and means or'
file aggregation/samplers/client_filter.cc
old 'values.back() = step.kind == Step::Kind::kAnd ? values.back() && last : values.back() || last;'
new 'values.back() = values.back() || last;'
caught_by unit_aggregation 'client filter: not binds'

mutant unknown-labels-fit 'a client takes part in a run for others while its labels are not known'
file server/conductor/selection.cc
old '  return labels && where.matches(*labels);'
new '  return !labels || where.matches(*labels);'
caught_by unit_server 'selection: while its labels are not known'

mutant excluded-clients-speak 'what a client sends that lost its label counts'
file server/conductor/conductor.cc
old '  if (over_ || excluded_.contains(client)) return Heard::kTaken;'
new '  if (over_) return Heard::kTaken;'
caught_by unit_server 'selection: a client that loses the label'

mutant excluded-clients-get-models 'a task that waits for the journal goes to a client that lost its label'
file server/conductor/conductor.cc
old '  if (!ports_.clients->connected(work.client) || excludes(work.client)) return;'
new '  if (!ports_.clients->connected(work.client)) return;'
caught_by unit_server 'selection: a task that was decided'

mutant any-number-with-sums 'a client with any number takes part although the strategy divides by the number of clients'
file run/run_config.cc
old '!run.tracks.policy.disagreements.empty() || run.control_variates ||'
new '!run.tracks.policy.disagreements.empty() ||'
caught_by unit_server 'selection: parts that count clients'

mutant quarantine-one-round-short 'a quarantine ends a round too early'
file server/engine/participations.h
old '           round.value() - found->second.last.value() > rule_.rounds;'
new '           round.value() - found->second.last.value() >= rule_.rounds;'
caught_by unit_server 'quarantine: it begins after'

mutant quarantine-starves-rounds 'a round has fewer candidates than it needs because of quarantine'
file server/engine/round_selection.cc
old '  if (pool_.size() >= rules_.min_candidates || without_task || quarantine_.is_empty()) return pool_;'
new '  if (!pool_.empty() || without_task || quarantine_.is_empty()) return pool_;'
caught_by unit_server 'quarantine: a round has as many'

mutant quarantine-for-ever 'a buffered run stands still while all its clients are in quarantine'
file server/engine/buffered/buffered_engine.cc
old '  wake_those([&](const Member& member) { return context.now - member.failed >= rules_.deadline; });'
new ''
caught_by unit_server 'clients in quarantine work again'

mutant keep-one-model-less 'one model less is kept than the run file says'
file server/report/model_files.cc
old '  const std::uint64_t first = rounds[rounds.size() - facts.config.keep_models];'
new '  const std::uint64_t first = rounds[rounds.size() - facts.config.keep_models + 1];'
caught_by unit_server 'model files: the models of the last rounds'

mutant remove-running-runs 'a run that goes on is removed'
file server/store/sqlite_store.cc
old '  if (!record.is_over())'
new '  if (record.number.value() < 0)'
caught_by unit_server 'run store: a removed run'

mutant removed-runs-come-back 'a repeated submission starts a removed run again'
file server/store/sqlite_store.cc
old '  if (was)'
new '  if (was && run.number.value() > 0)'
caught_by unit_server 'run store: a removed run'
