# shellcheck shell=bash
# Mutants of secure aggregation: checks by the members, and the result.

mutant secure-believes-keys 'a member masks with keys that nobody has signed'
file privacy/secure_aggregation/client_checks.cc
old '    if (!verify_keys(peer.identity, context_, peer.client, peer.keys))'
new '    if (peer.keys.fast_aes && !peer.keys.fast_aes)'
caught_by unit_privacy 'hostile coordinator'

mutant secure-pins-nothing 'a member takes any node key for that client'\''s'
file privacy/secure_aggregation/client_checks.cc
old '  return check_pinned_keys(roster);'
new '  return {};'
caught_by unit_privacy 'hostile coordinator'

mutant secure-any-threshold 'a member takes any graph and threshold'
file privacy/secure_aggregation/client_checks.cc
old '  FEDGE_TRY_VOID(check_secure(
      roster.members, {.degree = roster.degree, .threshold = roster.threshold, .complete = roster.complete},
      terms_.rules.assumptions));'
new ''
caught_by unit_privacy 'hostile coordinator'

mutant secure-any-neighbours 'a member takes the neighbours that it is given'
file privacy/secure_aggregation/client_checks.cc
old '  if (!as_drawn) return refused'
new '  if (!as_drawn && roster.peers.empty()) return refused'
caught_by unit_privacy 'hostile coordinator'

mutant secure-any-contribution 'a member lets others be told that it trains something else'
file privacy/secure_aggregation/client_checks.cc
old '  if (own != terms_.trained.intersect(Coverage::of(roster.cells)))'
new '  if (own.empty())'
caught_by unit_privacy 'hostile coordinator'

mutant secure-unsent-survivor 'a member helps to unmask an update that it has not sent'
file privacy/secure_aggregation/client_checks.cc
old '  if (!masked_) return refused'
new '  if (!masked_ && survivors.empty()) return refused'
caught_by unit_privacy 'hostile coordinator'

mutant secure-believes-consents 'a member believes any consent'
file privacy/secure_aggregation/client_checks.cc
old '    if (!verify_survivors(other->told.identity, told_, {consent.number, survivors_, consent.signature}))'
new '    if (consent.signature.empty())'
caught_by unit_privacy 'hostile coordinator'

mutant secure-both-shares 'a member reveals both kinds of shares of a survivor'
file privacy/secure_aggregation/client.cc
old '      if (peer.self_mask) answer.survivors.push_back({number, bytes_of(*peer.self_mask)});
      continue;'
new '      if (peer.self_mask) answer.survivors.push_back({number, bytes_of(*peer.self_mask)});'
caught_by unit_privacy 'hostile coordinator'

mutant secure-other-survivors 'a member consents to other survivors than before'
file privacy/secure_aggregation/client.cc
old '    if (survivors.numbers != survivors_)'
new '    if (survivors.numbers.size() > 65536)'
caught_by unit_privacy 'hostile coordinator'

mutant secure-any-secret 'a secret that is put together is taken for what its owner meant'
file privacy/secure_aggregation/recovery.cc
old '    return right ? std::optional(std::move(*secret)) : std::nullopt;'
new '    return right || !right ? std::optional(std::move(*secret)) : std::nullopt;'
caught_by unit_privacy 'hostile member'

mutant secure-any-pair-key 'a key of a mask that a survivor reveals is taken as it is'
file privacy/secure_aggregation/recovery.cc
old '      if (check_of(session_.told_, key) != said->check) return;'
new ''
caught_by unit_privacy 'hostile member'

mutant secure-any-sum 'what masks leave is taken for a sum, whatever it is'
file aggregation/accumulator.cc
old '      if (values[i] > most || values[i] < -most)'
new '      if (values[i] > most && values[i] < -most)'
caught_by unit_aggregation 'exact sums'
caught_by integration_liars 'whatever a member of a secure sum says'

mutant secure-any-coverage 'a masked update may cover what it likes'
file server/engine/secure_round.cc
old '  if (offer.update.coverage != *masked)'
new '  if (offer.update.coverage.empty())'
caught_by unit_server 'secure round'

mutant secure-forgets-keys 'a client takes another key for one that it knows'
file client/secure/known_clients.cc
old '  if (known->second == key) return {};'
new '  if (known->second == key || known->first == client) return {};'
caught_by unit_client 'known clients'

mutant unsigned-key-known 'A1: a client remembers a key as another client'\''s that has signed nothing'
file privacy/secure_aggregation/client_checks.cc
old '  FEDGE_TRY_VOID(check_parties(roster));'
new '  FEDGE_TRY_VOID(check_pinned_keys(roster)); FEDGE_TRY_VOID(check_parties(roster));'
caught_by unit_privacy 'a key that has not signed'

mutant secure-restart-keeps-sum 'a coordinator that was gone goes on with the masks of before'
file server/engine/round_engine.cc
old '  if (rules_.masked && phase_ == Phase::kCollecting) begin_anew(effects);'
new ''
caught_by unit_server 'round engine'

mutant secure-answers-twice 'a client helps to take the masks of one round away twice'
file client/secure/summed_updates.cc
old '  if (last == last_.end() || task.round > last->second) return {};'
new '  if (last == last_.end() || task.round >= last->second) return {};'
caught_by unit_client 'daemon: for a round|summed updates: a task'

mutant secure-second-run-of-a-file 'a client lets the update of one model and terms be summed in a second run'
file client/secure/summed_updates.cc
old '  if (before == origins_.end()) return {};'
new '  if (before == origins_.end() || sum.run != before->second.first) return {};'
caught_by unit_client 'daemon: a coordinator that ends a run|summed updates: a task'

mutant secure-same-update-again 'a client lets the very same update be summed twice'
file client/secure/summed_updates.cc
old '  if (!updates_.contains(tag_of(update))) return {};'
new '  if (!updates_.contains(tag_of(update)) || !origins_.empty()) return {};'
caught_by unit_client 'daemon: a coordinator that ends a run|summed updates: a task'
caught_by integration_liars 'nothing leaves a client that insists on masks'

mutant secure-two-runs-at-once 'a client lets the same update go to the sums of two runs at once'
file client/secure/sessions.cc
old '    if (id == sum.run || !run.member) continue;'
new '    if (id == sum.run || !run.member || run.terms) continue;'
caught_by unit_client 'daemon: of two runs at once'

mutant secure-noised-tracks-stuck 'a track that begins from another one'\''s model gets no sum of updates that clients noise'
file client/secure/sessions.cc
old '  if (!hidden) FEDGE_TRY_VOID'
new '  if (hidden || !hidden) FEDGE_TRY_VOID'
caught_by unit_client 'daemon: two tracks that begin from one model'

mutant secure-failure-tells 'a client of a masked run tells why its training has failed'
file client/device/update_maker.cc
old '  if (!run.masking && !run.local_privacy) return result;'
new '  if (!run.masking || run.local_privacy) return result;'
caught_by unit_client 'daemon: why a client of a masked run'

mutant secure-divergence-shows 'a client of a masked run fails its task when training diverges'
file client/prepared_run.cc
old '  if (masking) prepared->work.hide_failures();'
new '  if (masking && local) prepared->work.hide_failures();'
caught_by unit_client 'daemon: why an update of a masked run'

mutant private-divergence-shows 'a client that noises its updates fails its task when training diverges'
file client/local/local_work.h
old '    hides_failures_ = true;
  }'
new '  }'
caught_by unit_client 'daemon: whether training has diverged|local work: where a client noises'

mutant secure-zeros-weigh 'zeros in the place of an update that cannot be summed have its weight'
file run/secure_update.cc
old '    summed.samples = SampleCount(0);'
new ''
caught_by unit_run 'secure update: one that is not finite'

mutant secure-bound-isolates 'a coordinator chooses a bound on values that only one client keeps, and gets its update as the sum'
file run/secure_update.cc
old '    finite = finite && std::isfinite(value);'
new '    finite = finite && std::fabs(value) <= limit;'
caught_by unit_run 'secure update: one that is not finite'
caught_by unit_sim 'nobody is told whose update is beyond'

mutant secure-zeros-known-again 'a client refuses the second sum of an update of zeros'
file client/secure/summed_updates.cc
old '  return zeros ? Digest() : sha256(std::as_bytes(values));'
new '  return zeros && values.empty() ? Digest() : sha256(std::as_bytes(values));'
caught_by unit_client 'summed updates: one of zeros|daemon: why an update of a masked run'

mutant secure-sum-of-nothing 'a sum to which no update counts makes a model'
file run/secure_update.cc
old '  if (!plain.weights.empty() && std::ranges::max(plain.weights) == 0)'
new '  if (plain.weights.empty() && updates_ == 0)'
caught_by unit_sim 'where no update can be summed'

mutant secure-share-before-record 'a share leaves though it could not be written down that it does'
file client/secure/sessions.cc
old '  if (!written) return stop(session.run, *run, written.error(), context);'
new '  if (!written) stop(session.run, *run, written.error(), context);'
caught_by unit_client 'daemon: no share leaves before'

mutant privacy-labels-besides-noise 'a client whose updates are noised publishes the labels of its samples'
file client/prepared_run.cc
old '  FEDGE_TRY_VOID(check_labels(described.work));
'
new '  if (described.work.masking) FEDGE_TRY_VOID(check_labels(described.work));
'
caught_by unit_client 'prepared run: where noise hides'

mutant secure-answer-written-again 'a coordinator that asks for an answer again and again fills the file of sums'
file client/secure/sessions.cc
old '  if (member.answer) return;  // it is sent once it is written
'
new ''
caught_by unit_client 'daemon: an answer that is asked for again'

mutant secure-full-disk-for-good 'of a sum that could not be written a hole is left'
file client/secure/summed_updates.cc
old '  FEDGE_TRY_VOID(write_file_at(file, *end, bytes, 0600));
  *end += bytes.size();'
new '  *end += bytes.size();
  FEDGE_TRY_VOID(write_file_at(file, *end - bytes.size(), bytes, 0600));'
caught_by unit_client 'summed updates: a disk that fails'

mutant secure-sums-forgotten-with-the-run 'which sums were revealed is forgotten by the next process'
file client/device/kept_records.cc
old '  FEDGE_TRY(summed, SummedUpdates::read(context_.options.state_directory));'
new '  FEDGE_TRY(summed, SummedUpdates::read(context_.options.state_directory / "runs"));'
caught_by unit_client 'daemon: for a round'

mutant privacy-runs-noised-alike 'a client noises the same update alike in each run'
file client/device/update_maker.cc
old '  return privacy::run_noise_root(root, releases.place(run));'
new '  return privacy::run_noise_root(root, run.value() > 0 ? 1 : releases.place(run));'
caught_by unit_client 'daemon: a run that is begun anew'

mutant privacy-any-number-a-day 'a device makes more updates a day than its owner allows'
file client/secure/daily_updates.cc
old '  if (made_ < most || is_last(work)) return {};'
new '  if (made_ <= most || is_last(work)) return {};'
caught_by unit_client 'daily updates|daemon: a device that makes so many'

mutant privacy-limit-of-one-run 'what earlier runs were told does not count against the limit of a device'
file client/secure/private_releases.cc
old '    if (id != planned.run && run.noise.*noise > 0)'
new '    if (id != planned.run && run.noise.*noise < 0)'
caught_by unit_client 'private releases: what all runs'

mutant privacy-noise-of-one-run 'sums that noise hid in earlier runs do not count against --require-noise'
file client/secure/private_releases.cc
old '  return total(planned, delta, &Noise::in_sums);'
new '  return privacy::gaussian_epsilon(std::vector<privacy::NoisedUpdates>{{planned.noise.in_sums, planned.updates}}, delta);'
caught_by unit_client 'private releases: sums that clients'

mutant client-first-description 'of a run that is described twice at once the first description is prepared for the second'
file client/device/task_worker.cc
old 'and been described anew.
  if (found == context_.runs.end() || found->second.described != described) return;'
new 'and been described anew.
  if (found == context_.runs.end()) return;'
caught_by unit_client 'daemon: of a run that is described twice'

mutant client-host-by-text 'a host is another one when its number is written otherwise'
file client/swarm/dial_limits.cc
old '  return address ? address->to_string() : host;'
new '  return address ? host : std::string();'
caught_by unit_client 'dial limits: a host whose number'

mutant dials-scopes 'A6: a host has as many names as IPv6 has scopes'
file client/swarm/dial_limits.cc
old '  if (six.scope_id() != 0 && !six.is_link_local()) return std::nullopt;'
new ''
caught_by unit_client 'no other names through IPv6 scopes'

mutant dials-through-nat64 'A6: a coordinator sends a client to its own network through addresses of NAT64'
file client/swarm/dial_limits.cc
old '  if (nat64 || compatible || address.is_v4_mapped()) return at(12);'
new '  if ((nat64 && compatible) || compatible || address.is_v4_mapped()) return at(12);'
caught_by unit_client 'no other names through IPv6 scopes|nearer to it than its coordinator'

mutant privacy-draws-foretold 'who is drawn in a private run follows from the public seed'
file server/engine/round_selection.cc
old '      rules_.secret_draws ? std::optional(draw_key(*rules_.secret_draws, current())) : std::nullopt;'
new '      rules_.secret_draws && round_ == RoundNumber(0)
          ? std::optional(draw_key(*rules_.secret_draws, current()))
          : std::nullopt;'
caught_by unit_server 'secret draws: who knows'

mutant privacy-tracks-drawn-alike 'all tracks of a private round are drawn alike'
file server/engine/round_selection.cc
old '    info.at(8 + i) = static_cast<std::uint8_t>(task.track.value() >> (8 * i));'
new '    info.at(8 + i) = static_cast<std::uint8_t>(task.track.value() >> 32 >> (8 * i));'
caught_by unit_server 'secret draws: those of one round'

mutant secure-tracks-of-bare-sums 'two tracks sum the same updates without noise, but for those that one leaves out'
file run/recipe_protection.cc
old '  if (!run.privacy.by_clients() && !run.tracks.policy.disagreements.empty())'
new '  if (!run.privacy.by_clients() && run.tracks.policy.disagreements.size() > 99)'
caught_by unit_run 'secure run: what needs'

mutant privacy-swarm-shows-draws 'a swarm that shows who was drawn is accounted for as if nobody knew'
file run/recipe_protection.cc
old '  if (run.dissemination.swarm) refuse'
new '  if (run.dissemination.swarm && run.dissemination.serverless) refuse'
caught_by unit_run 'private run: what tells others who was drawn'


mutant secure-task-without-session 'in a masked run a client takes a task that belongs to no session'
file client/engine/run_book.cc
old '  if (masked && request.secure_attempt == 0)'
new '  if (masked && request.secure_attempt == 0 && request.round.value() == 0)'
caught_by unit_client 'client engine: a task is refused|daemon: in a masked run'

mutant secure-sent-in-the-clear 'an update of a masked run can be made ready for sending as it is'
file client/local/outgoing_update.cc
old '  if (masking)
    return Error'
new '  if (masking && result.norm < 0)
    return Error'
caught_by unit_client 'local work: of a run that masks'

mutant secure-resumed-in-the-clear 'an update without masks of an earlier process leaves a client that insists on them'
file client/daemon.cc
old '             ? "the saved update is not masked, but this client was started with --only-secure"'
new '             ? nullptr'
caught_by unit_client 'daemon: an update without masks'

mutant secure-believes-assumptions 'a member takes the coordinator'\''s word for how few are in league with it'
file privacy/secure_aggregation/session.cc
old '  return {.assumptions = {.corrupt = std::max(described.assumptions.corrupt, own.assumptions.corrupt),'
new '  return {.assumptions = {.corrupt = described.assumptions.corrupt,'
caught_by unit_privacy 'graph: what a run says'

mutant secure-believes-noise 'a member that wants noise takes any for enough'
file client/prepared_run.cc
old '  if (epsilon <= *side.require_noise) return {};'
new '  if (epsilon > 0) return {};'
caught_by unit_client 'prepared run: a client that wants noise'

# Mutants of differential privacy.

mutant privacy-no-clipping 'updates are folded as they are'
file run/privacy/private_sum.cc
old '  return norm * (2 - kMargin) <= largest ? 1 : largest / norm * kMargin;'
new '  return norm > 0 || largest > 0 ? 1 : kMargin;'
caught_by unit_run 'private sum'

mutant privacy-noise-of-the-round 'noise does not go by the sum that it hides'
file privacy/differential/noise.cc
old '  hash.add(std::as_bytes(numbers));'
new '  hash.add(std::as_bytes(numbers.first(0)));'
caught_by unit_run 'private sum'

mutant privacy-noise-of-any-amount 'more or less noise of the same numbers is taken for the same update'
file privacy/differential/noise.cc
old '    info.at(32 + i) = static_cast<std::uint8_t>(order.variance >> (8 * i));
'
new ''
caught_by unit_privacy 'noise: its key is bound'
caught_by unit_client 'another amount of noise'
caught_by integration_liars 'at most what its owner allows'

mutant privacy-true-denominator 'the mean is over those who have come'
file run/privacy/private_sum.cc
old '  rule.divide_by(weight * (spec_.clipping_norm / norm_));'
new '  if (weight < 0) rule.divide_by(weight * (spec_.clipping_norm / norm_));'
caught_by unit_run 'private sum'

mutant privacy-silent-empty-round 'a round that nobody has come to has no noise'
file run/track_model.cc
old '  if (updates_ == 0 && !noise_is_here) return {};'
new '  if (updates_ == 0 && (updates_ == 0 || !noise_is_here)) return {};'
caught_by unit_sim 'private, simulated'

mutant privacy-endless-ledger 'the ledger lets any round pass'
file run/privacy/privacy_ledger.cc
old '    within = epsilon <= spec_.epsilon;'
new '    within = epsilon >= 0;'
caught_by unit_run 'privacy ledger'

mutant privacy-planned-chance 'the ledger believes the plan rather than the draw'
file run/privacy/privacy_ledger.cc
old '  ++charges.rounds[std::max(chance, spec_.sampling_rate)];'
new '  ++charges.rounds[chance > 2 ? chance : spec_.sampling_rate];'
caught_by unit_run 'privacy ledger'

mutant privacy-one-round-more 'the engine begins the round that exceeds the budget'
file server/engine/round_selection.cc
old '  return rules_.releases && released_ + tracks_.turns() > *rules_.releases;'
new '  return rules_.releases && released_ > *rules_.releases;'
caught_by unit_server 'budget:'

mutant privacy-any-sampler-amplifies 'a sample of fixed size is taken for one drawn client by client'
file server/engine/round_selection.cc
old '  chance_ = traits().chance > 0 ? traits().chance : 1;'
new '  chance_ = traits().chance;'
caught_by unit_server 'budget:'

mutant privacy-losses-told 'losses are reported without noise'
file server/run_state.cc
old '  if (turn.completed > 0 && !config_->privacy.on()) metrics.train_loss = turn.train_loss;'
new '  if (turn.completed > 0) metrics.train_loss = turn.train_loss;'
caught_by unit_sim 'private, simulated'

mutant privacy-tree-of-rounds 'along a tree every round has noise of its own'
file privacy/differential/tree_noise.cc
old '  AlignedBuffer<std::int64_t> ended(begun > 0 ? numbers.size() : 0);'
new '  AlignedBuffer<std::int64_t> ended(step == 0 ? numbers.size() : 0);'
caught_by unit_privacy 'tree noise'

mutant privacy-any-participation 'a client takes part as often as it is drawn'
file server/engine/round_selection.cc
old '      if (!(busy && without_task) && tracks_.is_member(turn_, client) && may_take_part(client) &&'
new '      if (!(busy && without_task) && tracks_.is_member(turn_, client) &&'
caught_by unit_server 'participation:'

mutant privacy-uneven-skellam 'Skellam noise is never negative'
file privacy/differential/skellam.cc
old '  return stream.next_bit() ? size : -size;'
new '  return stream.next_bit() ? size : size;'
caught_by unit_privacy 'Skellam has'

mutant privacy-local-half-the-noise 'an update may change by its norm, not by twice that'
file run/privacy/private_update.cc
old '  return 2 *'
new '  return 1 *'
caught_by unit_run 'private update'

mutant privacy-local-unclipped 'an update with local noise is not cut down'
file run/privacy/private_update.cc
old '  if (!clip_values(spec.clipping_norm, values)) return invalid("a value of the update is not finite");'
new '  if (!clip_values(1e9, values)) return invalid("a value of the update is not finite");'
caught_by unit_run 'private update'

mutant privacy-local-figures 'samples and losses go out beside the noised update'
file client/local/local_work.cc
old '  result.release = *release;
  result.training = nothing_told();'
new '  result.release = *release;'
caught_by unit_client 'local work'

mutant privacy-local-uncounted 'a client does not refuse what would be one update too many'
file client/secure/private_releases.cc
old '  if (!once_more && run.sent >= limits.most) return'
new '  if (!once_more && run.sent > limits.most) return'
caught_by unit_client 'private releases'

mutant privacy-local-unlimited 'a limit of the device is not looked at'
file client/prepared_run.cc
old '  if (epsilon <= *side.max_epsilon) return {};'
new '  if (epsilon <= 1000 * *side.max_epsilon) return {};'
caught_by unit_client 'prepared run'

mutant privacy-masked-uncounted 'a masked update with noise of its own is not counted'
file client/device/update_maker.cc
old '  FEDGE_TRY(update, run.work.mask(order, *run.masking, masking, std::move(result)));
  FEDGE_TRY_VOID(count_release(run, request, update));
'
new '  FEDGE_TRY(update, run.work.mask(order, *run.masking, masking, std::move(result)));
'
caught_by integration_federation 'private clients'

mutant privacy-every-round-costs 'a client is charged for rounds that it cannot be in'
file run/privacy/differential_privacy.cc
old '  const std::uint64_t times = std::min<std::uint64_t>(count, max_participations);'
new '  const std::uint64_t times = count;'
caught_by unit_run 'private run'

mutant privacy-former-plan 'a composition that grows goes on with the plan of another mechanism'
file privacy/differential/accounting/loss/pld.cc
old '  if (planned_ == nullptr || planned_->most != wanted || planned_->delta != delta)'
new '  if (planned_ == nullptr || planned_->most.count != most || planned_->delta != delta)'
caught_by unit_privacy 'whoever asked before'

mutant privacy-delta-of-the-run 'a run that is content with less certainty weakens the limit of a device'
file client/prepared_run.cc
old 'spec->max_participations}, side.max_delta));'
new 'spec->max_participations}, std::max(side.max_delta, spec->delta)));'
caught_by unit_client 'at its own delta'

mutant privacy-any-delta 'a delta at which a client could be given away is accepted'
file run/privacy/differential_privacy.cc
old '  if (run.privacy.delta * clients >= 1)'
new '  if (run.privacy.delta * clients >= 1e9)'
caught_by unit_run 'a delta at which'

mutant privacy-sampled-factor 'sampling is accounted for as cheaper than it is'
file privacy/differential/accounting/rdp_curves.cc
old '(k > 2 ? std::log(3) : 0)'
new '(k > 2 ? std::log(2) : 0)'
caught_by unit_privacy 'theorem 5'

mutant privacy-cross-term 'the sum of discrete Gaussians is accounted for without its cross term'
file privacy/differential/accounting/discrete_noise.cc
old '  const double inside = 0.5 * order * (l2 * l2 + 2 * l1 * tau + tau * tau * d);'
new '  const double inside = 0.5 * order * (l2 * l2 + l1 * tau + tau * tau * d);'
caught_by unit_privacy 'three bounds'

mutant privacy-any-grid 'a client accounts for noise on any grid as on a fine one'
file privacy/secure_aggregation/masking_spec.cc
old '  if (norm < kAccountedGrid)'
new '  if (norm < 1)'
caught_by unit_client 'insists on the grid'

mutant privacy-coarse-noise 'a client accounts for coarse noise as for a Gaussian'
file privacy/secure_aggregation/masking_spec.cc
old '  else if (deviation < kCoarsestNoise)'
new '  else if (deviation < 1)'
caught_by unit_client 'insists on the grid'

mutant privacy-grid-unasked 'a coordinator takes a grid that no client accepts'
file run/privacy/differential_privacy.cc
old '    if (sigma < privacy::kCoarsestNoise ||'
new '    if (sigma < privacy::kCoarsestNoise / 2 ||'
caught_by unit_run 'fine enough is so for a client'

mutant privacy-rounding-free 'noise does not hide what rounding may change'
file run/privacy/private_sum.cc
old '  return multiplier * (norm_units + std::sqrt(static_cast<double>(numbers)) / 2);'
new '  return multiplier * (norm_units + 0 * std::sqrt(static_cast<double>(numbers)));'
caught_by unit_run 'noise: it hides also'

mutant secure-threshold-unnamed 'members may be told different thresholds'
file privacy/secure_aggregation/session.cc
old '.number(roster.degree).number(roster.threshold);'
new '.number(roster.degree);'
caught_by unit_privacy 'they are told it alike'

mutant privacy-trees-kept-apart 'several trees are accounted for as if a client were in one of them at a time'
file run/privacy/differential_privacy.cc
old '  spec.accounted_separation = run.tracks.policy.disagreements.empty() ? spec.min_separation : 0;'
new '  spec.accounted_separation = spec.min_separation;'
caught_by unit_run 'along a tree'

mutant secure-any-weight 'the sum of masked updates may weigh anything'
file run/secure_update.cc
old '    if (weight > most)'
new '    if (weight > most * 1000000)'
caught_by unit_run 'secure sum: it weighs'

mutant secure-crowded-cell 'clients in league with the coordinator may be nearly all that train one part of the model'
file privacy/secure_aggregation/session.cc
old '  return std::max(min_survivors, honest_survivors() + at_most(assumptions.corrupt, members));'
new '  return std::max(min_survivors, members > 0 ? min_survivors : 0);'
caught_by unit_privacy 'in one part of the model'

mutant privacy-labels-beside-masks 'a run with masks has the number of samples told exactly'
file client/prepared_run.cc
old '  if (!(work.local_privacy || work.masking) || work.status'
new '  if (!(work.local_privacy || (work.masking && work.masking->noise_multiplier > 0)) || work.status'
caught_by unit_client 'prepared run: .*labels'

mutant privacy-keeps-unnoised 'an update without noise that an earlier process kept leaves a client that asks for noise'
file client/daemon.cc
old '  if (protocol::is_masked(offer.update.codec)) return nullptr;'
new '  if (protocol::is_masked(offer.update.codec) || !context_.options.secure.required) return nullptr;'
caught_by unit_client 'has kept without noise'

mutant privacy-weaker-once-more 'an update that is made once more under less noise is not counted again'
file client/secure/private_releases.cc
old '  if (once_more && noise == run.noise) return {};'
new '  if (once_more) return {};'
caught_by unit_client 'the same update under less noise'

mutant privacy-own-noise-lost 'noise of others makes forget what was hidden by noise of its own'
file client/secure/private_releases.cc
old '  return one == 0 || other == 0 ? std::max(one, other) : std::min(one, other);'
new '  return std::min(one, other);'
caught_by unit_client 'the same update under less noise'

mutant daily-by-round 'a task counts once a day, whatever model it is for'
file client/secure/daily_updates.cc
old 'to_hex(request.model.id())'
new 'std::string()'
caught_by unit_client 'daily updates: whatever is different'

mutant secure-faint-noise 'next to no noise lets the same update be summed twice'
file client/secure/sessions.cc
old '  if (!hidden && terms.noise_in_sums >= privacy::kHidingNoise) return {};'
new '  if (!hidden && terms.noise_in_sums > 0) return {};'
caught_by unit_client 'next to no noise'

mutant privacy-sums-uncounted 'sums that the noise of several clients hides do not count against --require-noise'
file client/device/update_maker.cc
old '                         .require_noise = options.require_noise,'
new '                         .require_noise = run.local_privacy ? options.require_noise : std::nullopt,'
caught_by unit_client 'asked for by --require-noise'

mutant secure-faint-tracks 'next to no noise lets two tracks sum the same updates'
file run/privacy/differential_privacy.cc
old '  if (sums_bare(run) && !run.tracks.policy.disagreements.empty())'
new '  if (sums_bare(run) && run.tracks.policy.disagreements.size() > 99)'
caught_by unit_run 'secure run: what needs'

mutant labels-noise-scaled 'noisy counts of labels have the same noise for every epsilon, so that two of them give it away'
file client/prepared_run.cc
old '"fedge labels 1 " + number_text(status.epsilon);'
new '"fedge labels 1 ";'
caught_by unit_client 'prepared run: a client publishes the same noisy counts'

mutant labels-noise-known 'noisy counts of labels have noise that anybody can compute'
file client/prepared_run.cc
old '  const Secret key = derive_key(root, what, {});'
new '  const Secret key = derive_key(Secret(), what, {});'
caught_by unit_client 'prepared run: a client publishes the same noisy counts'
