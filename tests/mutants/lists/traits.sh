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
