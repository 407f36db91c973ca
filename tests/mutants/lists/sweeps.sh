# shellcheck shell=bash
# Mutants of sweeps, comparisons and the participants of rounds.

mutant sweep-overwrites 'a sweep overwrites the results of other settings without --force'
file apps/simulation/sweep/sweep_runs.cc
old 'if (!own && !options_.force && server::holds_results(run.results))'
new 'if (false)'
caught_by integration_programs 'results of other settings are never overwritten'

mutant sweep-begins-again 'a continued sweep begins interrupted runs from the start'
file apps/simulation/sweep/sweep_runs.cc
old 'run.way = own && file.continues && !damaged ? "--resume" : "--force";'
new 'run.way = damaged ? "--force" : std::string("--force");'
caught_by integration_programs 'the same command and the same results'

mutant sweep-unlocked 'two sweeps write into one directory'
file apps/simulation/sweep/sweep_execution.cc
old '  FEDGE_TRY(lock, DirectoryLock::acquire(out_));
'
new ''
caught_by integration_programs 'never share a directory'

mutant sweep-same-seed 'all runs of a combination have the same seed'
file apps/simulation/sweep/sweep_execution.cc
old 'const std::uint64_t seed = first_seed_ + i;'
new 'const std::uint64_t seed = first_seed_ + 0 * i;'
caught_by integration_programs 'equals the run that a user starts alone'

mutant tuned-on-test 'settings are tuned on the test samples'
file apps/simulation/sweep/sweep_execution.cc
old 'Settings further = {"data.validation=0.1"};'
new 'Settings further;'
caught_by integration_programs 'tuned settings are chosen on validation samples'

mutant tuned-to-worst 'the worst of the tried settings is chosen'
file apps/simulation/sweep/sweep_execution.cc
old 'column.higher_is_better ? 1 : -1;'
new 'column.higher_is_better ? -1 : 1;'
caught_by integration_programs 'tuned settings are chosen on validation samples'

mutant foreign-base 'a base model of another run file is used'
file apps/simulation/sweep/base_model.cc
old 'found && *found == wanted;'
new 'found.has_value() && !wanted.empty();'
caught_by integration_programs 'another one is not taken for it'

mutant children-survive 'runs go on after their sweep was killed'
file core/platform/processes.cc
old '    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
'
new ''
caught_by integration_programs 'the same command and the same results'

mutant failed-has-final 'a failed run has a final result'
file apps/simulation/results/column.cc
old 'if (end && !run.failure.empty()) return kNone;'
new 'if (end && run.rounds.empty()) return kNone;'
caught_by unit_apps 'a failed run has no final value'

mutant upload-over-budget 'the round that exceeds an upload budget counts'
file apps/simulation/results/column.cc
old 'if (sent > budget) break;'
new 'if (sent > 2 * budget) break;'
caught_by unit_apps 'accuracy at a budget'

mutant pairs-by-place 'differences pair the first seeds instead of the same seeds'
file apps/simulation/sweep/sweep_results.cc
old 'std::ranges::find(others, run.seed, &CellResults::Run::seed);'
new 'std::ranges::find(others, run.seed > 0 ? values.size() + 1 : 0, &CellResults::Run::seed);'
caught_by unit_apps 'pairs are formed by seed'

mutant survivors-only 'the mean of the runs that have a value hides the others'
file apps/simulation/sweep/sweep_results.cc
old '  if (summary.count < by_seed.size())
    return failed'
new '  if (summary.count == 0)
    return failed'
caught_by unit_apps 'not averaged away'

mutant interval-of-normal 'intervals of few seeds are as narrow as those of many'
file core/statistics/sample.cc
old 'student_95(summary.count - 1)'
new 'student_95(summary.count + 1000)'
caught_by unit_core 'interval of numbers worked out by hand'

mutant bands-of-some 'a curve goes on with the runs that have more rounds'
file apps/simulation/comparison/curves.cc
old 'rounds = std::min(rounds, run.rounds.size());'
new 'rounds = std::max(rounds, run.rounds.size());'
caught_by unit_apps 'rounds that all of them have'

mutant beaten-in-front 'a group that another beats is in the Pareto front'
file server/report/charts/comparison_chart.cc
old 'if (!beaten) front.push_back(i);'
new 'if (!beaten || i == 0) front.push_back(i);'
caught_by unit_server 'Pareto front'

mutant rows-repeated 'a continued run keeps the rows of the rounds that it repeats'
file sim/participants/column_files.cc
old '    if (integer_in(bytes) <= last)'
new '    if (integer_in(bytes) <= last + 1)'
caught_by unit_sim 'drops the rows of rounds that it repeats'

mutant masked-loss-noted 'the participants have losses that masks hide'
file sim/coordinator/virtual_aggregate.cc
old '.loss = masked ? Participants::kUnknown : accepted.loss,'
new '.loss = masked ? accepted.loss : accepted.loss,'
caught_by integration_programs 'who trained in each round'

mutant old-results-taken 'a run that could not start has the results of an earlier one'
file apps/simulation/sweep/sweep_runs.cc
old '  if (!has_results(run))
    return Error'
new '  if (!is_complete(run.results))
    return Error'
caught_by integration_programs 'not taken for those of a run that could not start'

mutant part-is-whole 'an interrupted run that cannot continue is a result'
file apps/simulation/sweep/sweep_runs.cc
old '  return run.continues || (document && has_ended(run.results, *document));'
new '  return run.continues || document.has_value();'
caught_by integration_programs 'is no result'

mutant rows-misnamed 'an axis may set what --set sets'
file apps/simulation/sweep/sweep_file.cc
old '    if (const auto key = common_key(*axes[i], assignments))'
new '    if (const auto key = common_key(*axes[i], assignments); key && key->empty())'
caught_by unit_apps 'override each other'

mutant copies-are-samples 'a copy of a run counts as another seed'
file apps/simulation/comparison/groups.cc
old 'if (group.runs[i].seed == group.runs[i - 1].seed)'
new 'if (group.runs[i].seed == group.runs[i - 1].seed + 1000)'
caught_by unit_apps 'are not two samples'
