# shellcheck shell=bash
# What the traits of parts decide, and how parts of a user's program are held to them.

mutant privacy-unequal-weights 'noise bounds what a client may change, and the aggregator weighs it by its samples'
file run/recipe_protection.cc
old '  if (run.privacy.of_sums() && !(rule.linear && rule.uniform_weights))'
new '  if (run.privacy.of_sums() && !rule.linear)'
caught_by unit_run 'own traits: an aggregator with equal weights'
caught_by unit_run 'private run: what no guarantee'

mutant privacy-losses-select 'the losses that clients report decide who takes part, and no noise hides it'
file aggregation/samplers/awpsp/aw_psp.h
old '            .blind = options_.d == 0 && !options_.inverse_probability,'
new '            .blind = !options_.inverse_probability,'
caught_by unit_run 'own traits: a sampler that goes by nothing'

mutant secure-sum-of-a-few 'a masked sum has room for clients_per_round, and a sampler may draw every client'
file run/recipe.cc
old '  return run.sampling.traits.independent ? run'
new '  return run.sampling.traits.independent && run.privacy.on() ? run'
caught_by unit_run 'own traits: a sampler that draws independently'

mutant privacy-weight-of-a-few 'an update weighs more in a sum with little room than its noise is measured for'
file run/track_model.cc
old '           .max_updates = most_summed(*config_),'
new '           .max_updates = contributors(*config_),'
caught_by unit_sim 'counts as much as its noise'

mutant own-sums-unchecked 'an aggregator of the user that ignores clipping is trusted with noise'
file aggregation/own_parts.cc
old '!std::ranges::equal(rule->sums(), reference->sums())'
new 'rule->sums().size() != reference->sums().size()'
caught_by unit_run 'own traits: sums that'

mutant own-blind-sees 'a blind sampler of the user is shown what clients report'
file aggregation/own_sampler.cc
old '    if (declared.blind) {'
new '    if (false) {'
caught_by unit_run 'own traits: a blind sampler'

mutant own-selects-more 'a sampler of the user selects more clients than the masks and the noise were made for'
file aggregation/own_sampler.cc
old '    if (!declared.independent && selected.size() > request.count)'
new '    if (false)'
caught_by unit_run 'own traits: a sampler that selects more'

mutant own-failure-revealed 'the coordinator learns that the model or the objective of a program failed on the data'
file client/local/local_work.cc
old '= elsewhere_.train || task_.has_own_parts();'
new '= static_cast<bool>(elsewhere_.train);'
caught_by unit_client 'own parts: where updates are masked'

mutant own-kind-not-chosen 'a registered kind that the run file does not select makes the run file wrong'
file core/config/reader.h
old '    if (applies()) problems_.add(std::move(problem));'
new '    problems_.add(std::move(problem));'
caught_by unit_core 'config: what is wrong with the defaults'
caught_by unit_learn 'own kinds: one that is not chosen'

mutant own-model-unguarded 'an exception in initialise() ends the process'
file learn/models/own_model.cc
old '    guarded(part_, [&] { model_->initialise(parameters, rng); });'
new '    model_->initialise(parameters, rng);'
caught_by unit_learn 'own model: an exception or an impossible'
caught_by unit_server 'own model: a failure in its initial'

mutant own-text-model-unchecked 'the scores of a model of texts are written beyond their buffer'
file learn/models/own_model.cc
old '  if (model.outputs_per_sample() != predictions)'
new '  if (!text && model.outputs_per_sample() != predictions)'
caught_by unit_learn 'own model: one of texts'

mutant own-window-unchecked 'a window of a text is read beyond the tokens'
file learn/data/sample_check.cc
old '    if (std::size_t{window.start} + window.targets >= text.tokens.size())'
new '    if (window.targets >= text.tokens.size())'
caught_by unit_learn 'own data set: the windows and tokens'

mutant own-part-unchecked 'a client trains on other samples than its partition says'
file learn/data/kinds.cc
old '      if (data.labels != expected)'
new '      if (data.labels.size() < expected.size())'
caught_by unit_learn 'own data set: wrong labels and parts'

mutant trainer-directory 'beside a trainer program the coordinator chooses the directory of a data set'
file client/prepared_run.cc
old 'const auto chosen = learn::choose_directory('
new 'const auto chosen = side.trainer ? Result<void>() : learn::choose_directory('
caught_by unit_client 'own parts: a coordinator does not choose'

mutant own-plan-frozen 'a planner assigns frozen parameters, whose gradient no model writes'
file aggregation/own_planner.cc
old '!plan.subtract(trainable).empty()'
new 'plan.end() > layout_->size()'
caught_by unit_sim 'own planner: an exception or a wrong plan'

mutant own-optimizer-throws 'a server optimizer that throws when a track starts ends the process'
file aggregation/own_server_optimizer.cc
old '      failure_ = failure;'
new '      throw;'
caught_by integration_federation 'own planner, own server optimizer'

mutant unevaluated-round 'a run leaves the model of a round that could not be evaluated'
file server/run_state.cc
old '  std::optional<learn::Evaluation> evaluation;
  FEDGE_TRY(measured'
new '  if (turn.ends_round)
    for (auto& [id, each] : tracks_) each.complete = each.model.object();
  std::optional<learn::Evaluation> evaluation;
  FEDGE_TRY(measured'
caught_by integration_federation 'own model: an exception in the evaluation'

mutant own-memory-serverless 'clients aggregate with a rule whose state they do not have'
file run/track_model.cc
old 'if (track.config_->dissemination.serverless && remembers)'
new 'if (track.config_->dissemination.serverless && remembers && false)'
caught_by unit_sim 'own aggregator: one that remembers'
