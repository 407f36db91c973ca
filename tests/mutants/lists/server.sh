# shellcheck shell=bash
# Mutants of server/.

mutant fast-models 'N6: a model is published for every round, however fast'
file server/directory/announcer.cc
old '  if (model.said && now >= model.when && now - model.when < kModelEvery) return;'
new ''
caught_by unit_server 'models of fast rounds'

mutant waits-for-ever 'N6: a round without a server waits for whoever is silent'
file server/engine/serverless_round.cc
old '    if (!lost && !all && !(late && (refused || said.is_most(said.sound)))) continue;'
new '    if (!lost && !all && !(late && refused)) continue;'
caught_by unit_server 'shared round: when it is late'
caught_by integration_federation 'serverless, N6'

mutant orphans 'invariant 8: an update goes with its client although the others hold all of it'
file server/engine/serverless_round.cc
old '    const bool lost = !all && !present && !obtainable(offer.object);'
new '    const bool lost = !all && !present && (true || !obtainable(offer.object));'
caught_by unit_server 'shared round, invariant 8'

mutant few-decide 'A2: half of the clients of a round without a server make the model'
file server/engine/serverless_round.cc
old '  return 2 * number > voters_.value_or(0) ? model : nullptr;'
new '  return 2 * number >= voters_.value_or(0) ? model : nullptr;'
caught_by unit_server 'shared round: half of the clients do not make the model'
caught_by integration_federation 'serverless, A2: one of two clients does not make'
caught_by integration_liars 'whatever at most half of the clients say'

mutant former-round-again 'a round without a server in which nobody is selected adopts the former one once more'
file server/conductor/serverless_route.cc
old '  if (round_.task() != task) begin(task, model_);'
new '  if (round_.task() != task && round_.folds().empty()) begin(task, model_);'
caught_by integration_federation 'serverless: a round in which nobody is selected'
caught_by unit_sim 'serverless, simulated: a round in which nobody is selected'

mutant zeros-unheard 'a run without a server whose sampler weighs is let in, and its clients miss the zeros'
file run/recipe_rounds.cc
old '  if (run.sampling.traits.weighs)
    root.fail("dissemination",
              kind'
new '  if (run.sampling.traits.weighs && run.tracks.lifting_rounds > 0)
    root.fail("dissemination",
              kind'
caught_by unit_run 'a run without a server whose sampler weighs'

mutant half-veto 'A2: half of the clients of a round without a server keep an update out of it'
file server/engine/serverless_round.h
old '    bool is_most(std::size_t number) const { return 2 * number > heard() + silent; }'
new '    bool is_most(std::size_t number) const { return 2 * number >= heard() + silent; }'
caught_by unit_server 'shared round: half of the clients that find an update unsound'
caught_by integration_federation 'serverless, A2: half of the clients'

mutant first-back-decides 'A2: after a restart the first client that is back decides the model'
file server/engine/serverless_round.cc
old '  if (!voters_) voters_ = participants_.size() + expected_.size();'
new '  if (!voters_) voters_ = participants_.size();'
caught_by unit_server 'shared round: after a restart the first client'
caught_by integration_federation 'serverless: after a restart the first client'

mutant first-back-examines 'A2: after a restart the first client that is back decides which updates count'
file server/engine/serverless_round.cc
old '  Tally tally{.silent = expected_.size()};'
new '  Tally tally{};'
caught_by unit_server 'shared round: after a restart the first client'

mutant the-gone-vote 'a restart gives clients that had lost their task a say in the model again'
file server/conductor/serverless_route.cc
old 'if (const auto* failed = std::get_if<RunEngine::Failed>(&input)) dismissed('
new 'if (const auto* failed = std::get_if<RunEngine::Failed>(&input); failed != nullptr && turn_) dismissed('
caught_by integration_federation 'serverless: after a restart those who had no part'

mutant expected-for-ever 'a round without a server waits for clients that have not come back from before a restart'
file server/engine/round_engine.cc
old '  for (const ClientId client : missing) effects.push_back(GiveUp{client});'
new '  for (const ClientId client : gone) effects.push_back(GiveUp{client});'
caught_by unit_server 'restart: who has not come back in time'

mutant in-the-order-of-clients 'what is aggregated tells whose update is whose'
file server/engine/serverless_round.cc
old '  std::ranges::sort(order.parts, {},'
new '  if (order.parts.empty()) std::ranges::sort(order.parts, {},'
caught_by unit_server 'shared round: what is to be aggregated does not tell'

mutant warmup-voided 'a warm-up: that it failed is not told'
file server/engine/serverless_warmup.cc
old '  failure_ = tracker_->failure();'
new '  if (!over_) failure_ = tracker_->failure();'
caught_by unit_server 'is over in time'

mutant chunks-of-any-size 'an update in chunks of another size is taken'
file server/engine/offer_check.cc
old 'if (offer.update.chunk_size != rules.chunk_size)'
new 'if (offer.update.chunk_size < rules.chunk_size)'
caught_by unit_server 'updates nobody asked for'

mutant announces-anywhere 'A6: a client has others connect to a third party'
file server/coordinator/seeder.cc
old '  if (!said.host.empty() && !protocol::same_host(said.host, seen.host))'
new '  if (!said.host.empty() && !protocol::same_host(said.host, seen.host) && said.port == 0)'
caught_by integration_federation 'third party'

mutant too-stale-by-one 'an update of the greatest staleness that is allowed is refused'
file server/engine/buffered/buffered_tasks.cc
old 'stale > schedule_.max_staleness)'
new 'stale >= schedule_.max_staleness)'
caught_by unit_server 'greatest staleness'

mutant weight-as-claimed 'an update claims more samples than its client said it has'
file server/engine/offer_check.cc
old 'offer.samples > asked.said)'
new 'offer.samples > std::max(asked.said, rules.max_samples))'
caught_by unit_server 'told to train on 200 samples'

mutant weight-as-said 'a client counts as many samples as it says when it joins'
file server/engine/round_engine.cc
old 'std::min({arrived.samples, arrived.most, rules_.max_samples})'
new 'std::min(arrived.samples, rules_.max_samples)'
caught_by unit_server 'no more than the partition gives it'

mutant weight-as-said-buffered 'a client of an asynchronous run counts as many samples as it says'
file server/engine/buffered/buffered_engine.cc
old 'std::min({arrived.samples, arrived.most, rules_.max_samples})'
new 'std::min(arrived.samples, rules_.max_samples)'
caught_by unit_server 'no more than the partition gives it'

mutant steps-as-claimed 'the steps behind a bounded weight are those that were claimed'
file server/engine/offer_check.cc
old '  offer.steps = std::min(offer.steps, most_steps(rules, most));'
new '  if (most_steps(rules, most) == 0) offer.steps = 0;'
caught_by unit_server 'no more than the partition gives it'

mutant one-part-for-all-tracks 'what a client does in one track costs it its part in another'
file server/engine/participations.h
old '    const auto found = counts_.find({track, client});'
new '    const auto found = counts_.find({TrackId(), client});'
caught_by unit_server 'participation: an excluded client'

mutant a-whole-part-in-each-track 'in all tracks together a client takes part more often than it may'
file server/engine/participations.h
old '    return found->second.times < bounds_.most / bounds_.tracks &&'
new '    return found->second.times < bounds_.most &&'
caught_by unit_server 'participation: in all tracks together'

mutant unforeseen-tracks-take-part 'a track that the run file did not foresee takes clients beyond their bound'
file server/engine/participations.h
old '    if (!includes(track)) return false;'
new ''
caught_by unit_server 'no run file foresaw'

mutant invented-labels-count 'labels that the data set does not have reach the sampler'
file server/engine/run_engine.h
old '  if (record.labels.size() > rules.classes) record.labels.resize(rules.classes);'
new '  if (record.labels.size() < rules.classes) return record;'
caught_by unit_server 'labels that the run'

mutant left-out-unsaid 'nobody is warned of parameters that are in no sum'
file server/engine/secure_round.cc
old '              if (session_->left_out() > 0 && begin_.task.kind == TaskKind::kTraining)'
new '              if (session_->left_out() > session_->cells().size() * 1000000)'
caught_by unit_sim 'too few train'

mutant policy-of-bare-sums 'an operator makes tracks in a run whose updates nothing but secure sums hides'
file server/coordinator/run_host.cc
old ' || run::sums_bare(config()))
    return {};'
new ')
    return {};'
caught_by integration_federation 'policy file: where secure sums alone'

mutant others-results-overwritten 'a run that goes on overwrites the results of another one'
file server/report/results_place.cc
old '|| is_of_run(directory, choice.going_on);'
new '|| choice.going_on;'
caught_by unit_server "results place: a directory with another run"

mutant results-shared 'two runs at the same time write into one directory'
file server/report/results_place.cc
old 'LOCK_EX | LOCK_NB'
new 'LOCK_SH | LOCK_NB'
caught_by unit_server 'results place: a directory is taken while another run'

mutant refused-round-fails 'a run fails for one last round whose updates are refused'
file server/report/run_verdict.cc
old '  if (idle_.refused_rounds >= kRefusedRounds)'
new '  if (idle_.refused_rounds >= 1)'
caught_by unit_server 'verdict: a run whose clients contributed'

mutant late-updates-fail 'a run fails for honest updates that come too late'
file server/report/run_verdict.cc
old '!has_field(event, "code", to_string(ErrorCode::kStale)) &&'
new ''
caught_by unit_server 'verdict: updates that come too late'

mutant stopped-run-overwritten 'results of a stopped run are overwritten by the run after it'
file apps/run_results.cc
old '!server::has_ended(run.status)'
new '!run.is_over()'
caught_by integration_programs 'results: a coordinator that is started again'

mutant half-round-model 'a failed or stopped run leaves a model of a round that is not complete'
file server/run_state.cc
old '  if (turn.ends_round)
    for (auto& [id, each]'
new '    for (auto& [id, each]'
caught_by unit_server 'run state: the models of a run are those of its last complete round'

mutant own-error-as-disk-error 'an error of an own aggregator is taken for a full disk, or ends the coordinator'
file aggregation/own_parts.cc
old 'return error.code == allowed ? error : fail('
new 'return error.code != ErrorCode::kInvalid ? error : fail('
caught_by integration_federation 'own aggregator: the model of a failed run'

mutant failure-forgotten 'a run whose strategy failed is paused after a restart'
file server/coordinator/recovery.cc
old '|| told.error().code != ErrorCode::kInvalid || is_kept()) return told;'
new '|| true) return told;'
caught_by integration_federation 'own aggregator: a failed run stays failed'

mutant task-for-the-gone 'a client that disconnected since it was selected is given a task'
file server/conductor/conductor.cc
old '  if (!ports_.clients->connected(work.client) || excludes(work.client)) return;'
new '  if (excludes(work.client)) return;'
caught_by unit_server 'conductor: a client that is gone before'

mutant route-hears-first 'a secure sum hears of a departure before the engine'
file server/conductor/conductor.cc
old '  if (!held) submit(RunEngine::ClientLeft{client, for_good});
  route_->left(client, held);'
new '  route_->left(client, held);
  if (!held) submit(RunEngine::ClientLeft{client, for_good});'
caught_by unit_server 'conductor: the engine hears of a departure before'

mutant late-arrival 'what is told to a client that arrives is told after it has left again'
file server/conductor/conductor.cc
old ' && ports_.clients->connected(arrived->client)'
new ''
caught_by unit_server 'conductor: a client that is gone before its arrival'

mutant no-rejoin 'a client that returns while the clients aggregate their model takes no part any more'
file server/conductor/serverless_route.cc
old '  if (stage_ != Stage::kMaking || !round_.expects(client)) return;'
new '  if (stage_ != Stage::kMade || !round_.expects(client)) return;'
caught_by unit_server 'conductor: serverless, a client that returns while the model is made'

mutant anything-goes 'a client may send messages that no route of the run has asked for'
file server/conductor/conductor.cc
old '  return by_route == Heard::kOther && of_a_route ? Heard::kUnasked : by_route;'
new '  return by_route == Heard::kOther && of_a_route ? Heard::kTaken : by_route;'
caught_by unit_server 'conductor: only the route of a run'

mutant failed-comes-back 'a restart while clients make a model waits for one that had failed'
file server/conductor/serverless_route.cc
old 'if (const auto* failed = std::get_if<RunEngine::Failed>(&input)) dismissed('
new 'if (const auto* failed = std::get_if<RunEngine::Failed>(&input); failed != nullptr && !turn_) dismissed('
caught_by unit_server 'conductor: after a restart, a client that had failed'

mutant ends-at-once 'a run that is stopped while its model is made ends without this model'
file server/conductor/conductor.cc
old '(!retelling_ && (closing_ > 0 || route_->makes_model()))'
new '(!retelling_ && closing_ > 1)'
caught_by unit_server 'conductor: a run that is stopped'

mutant retold-aloud 'a restart decides anew what an earlier process decided'
file server/conductor/conductor.h
old '    if (!retelling_) inputs_.push_back(std::move(input));'
new '    inputs_.push_back(std::move(input));'
caught_by property_sim 'two shells'

mutant lost-twice 'a member of a secure sum that disconnects counts as two failures'
file server/engine/round_engine.cc
old '  if (!std::exchange(task.missed, true))'
new '  if (!std::exchange(task.missed, true) || rules_.masked)'
caught_by unit_server 'a member of a secure sum that disconnects'

mutant own-weights-by-name 'an aggregator with equal weights gets factors by samples, because of its name'
file server/run_state.cc
old '      .uniform_weights = config_->strategy.traits.uniform_weights,'
new '      .uniform_weights = config_->strategy.aggregator_kind == "uniform_mean",'
caught_by unit_sim 'own traits, simulated: an aggregator'

# Traces of rounds: their ids, what they must not contain, and the export, for which nobody waits.

mutant trace-text-of-clients 'words of a client are exported'
file server/traces/otlp.cc
old '  return stage == TaskStage::kRefused || stage == TaskStage::kLate || stage == TaskStage::kLost;'
new '  return stage != TaskStage::kAccepted;'
caught_by unit_server 'no text of a client or an operator is exported'

mutant trace-of-another-round 'clients and coordinator name different traces'
file core/tracing/trace_id.cc
old '"fedge trace\n"'
new '"fedge traces\n"'
caught_by unit_core 'they are the documented hashes'

mutant trace-told-twice 'after a restart, rounds of an earlier process are exported again'
file server/live/run_watch.cc
old '    rounds = recorder_.take();'
new '    if (ended_) rounds = recorder_.take();'
caught_by unit_server 'what an earlier process has told is not told again'

mutant trace-queue-unbounded 'spans fill the memory while there is no collector'
file server/traces/trace_exporter.cc
old '    while (bytes_ > options_.limits.queue_bytes || queue_.size() > options_.limits.queue_parts) {'
new '    while (queue_.size() > options_.limits.queue_parts) {'
caught_by unit_server 'a full queue drops the oldest'

mutant trace-end-waits 'the coordinator cannot stop while a collector hangs'
file server/traces/http_post.cc
old '    limit_ = time.time_since_epoch().count();'
new '    (void)time;'
caught_by unit_server 'a collector that hangs or is not there'

mutant trace-pause-ignored 'a collector that asks for a pause gets none'
file server/traces/trace_exporter.cc
old '  if (answer && answer->wait) pause = *answer->wait;'
new '  if (answer && answer->wait) pause.reset();'
caught_by unit_server 'the pause that a collector asks for'
