# shellcheck shell=bash
# Mutants of checkpoints of simulations.

mutant former-places-reused 'the file of clients'"'"' states is written over before the next checkpoint is complete'
file sim/training/client_states.cc
old '(place->checksum != 0 ? former_ : free_)'
new 'free_'
caught_by unit_sim 'until the next checkpoint is complete'

mutant former-models-forgotten 'a checkpoint lacks the former models that tasks under way train'
file sim/simulation.cc
old '    pool_.add_live(live);
    training_->add_live(live);'
new ''
caught_by unit_sim 'a killed run continues'

mutant view-not-recorded 'a log lacks the models as clients get them after the first'
file sim/checkpoint/run_log.cc
old '  if (last != views_.end() && last->second == seen) return;'
new '  if (last != views_.end()) return;'
caught_by unit_sim 'a killed run continues'

mutant best-not-saved 'a checkpoint lacks the models of the best round'
file server/run_state_saved.cc
old '    for (const auto& [track, object] : best_) objects.push_back(object);'
new '    return objects;'
caught_by unit_sim 'a killed run continues'

mutant any-program-continues 'a checkpoint of another version of the program is taken'
file sim/checkpoint/checkpoints.cc
old 'if (saved.program() != options_.program)'
new 'if (false)'
caught_by unit_sim 'another program or another run'

mutant any-run-continues 'a checkpoint of another run is taken'
file sim/checkpoint/checkpoints.cc
old 'if (RunId(saved.run()) != options_.run)'
new 'if (false)'
caught_by unit_sim 'another program or another run'

mutant any-data-continue 'data with other numbers of samples are not noticed'
file sim/training/training_pool.cc
old 'samples.value() > 0 && samples != expected->samples'
new 'false'
caught_by integration_programs 'data that has changed'

mutant later-rounds-stay 'metrics of rounds after the checkpoint stay in the file'
file server/report/run_output.cc
old '  std::filesystem::resize_file(path, end, error);'
new ''
caught_by integration_programs 'killed at 20 random instants'

mutant damaged-log-believed 'a damaged log of a checkpoint is taken'
file sim/checkpoint/checkpoints.cc
old '    return damaged(options_.directory / "log", "is damaged");'
new '    log_size_ = 0;'
caught_by integration_programs 'a missing or damaged file'

mutant damaged-states-believed 'a damaged state of a client is taken'
file sim/training/client_states.cc
old 'if (place.checksum != 0 && checksum_of(memory) != place.checksum)'
new 'if (false)'
caught_by integration_programs 'a missing or damaged file'

mutant first-file-taken 'of several files with the name of an object the first is taken, damaged or not'
file protocol/chunks/file_store.cc
old 'while (found.empty() || !found.back()->complete())'
new 'while (found.empty())'
caught_by unit_protocol 'of two files'
