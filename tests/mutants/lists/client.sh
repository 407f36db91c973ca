# shellcheck shell=bash
# Mutants of client/.

mutant skip-cached-hash 'R2: a client trains on a model that its disk has changed'
file client/task_files.cc
old '  if (sound) sound = protocol::verify_chunk(object->manifest(), chunk, bytes);'
new '  if (sound && bytes.empty()) sound = protocol::verify_chunk(object->manifest(), chunk, bytes);'
caught_by unit_client 'damage|hash|pending|cache'

mutant skip-pending-hash 'N1: a client believes a damaged note of its pending update'
file client/pending_update.cc
old '  if (std::memcmp(digest.data(), text.data() + body.size(), digest.size()) != 0) return std::nullopt;'
new '  (void)digest;'
caught_by unit_client 'damage|hash|pending|cache'

mutant any-coordinator 'A1: a client that was told whom to trust takes whoever announces the run'
file client/join.cc
old ' : order_.coordinator;'
new ' : std::optional<PublicKey>();'
caught_by integration_discovery 'of two coordinators that announce'

mutant first-coordinator 'A1: of two coordinators that announce a run a client takes the first'
file client/discovery/discovery.cc
old '  if (found.size() == 1) return found.front();'
new '  if (found.size() <= 2) return found.front();'
caught_by integration_discovery 'of two coordinators that announce'

mutant labels-told 'A4: a device tells its labels though it was told to keep them'
file client/node_status.cc
old '  if (!withheld.contains(Field::kLabels)) record'
new '  if (!withheld.contains(Field::kLabels) || figures.labels.size() > 0) record'
caught_by unit_client 'but for what is withheld'
caught_by integration_discovery 'what a device withholds'

mutant open-swarm 'A1: a client gives the model to whoever knows its address'
file client/swarm/swarm.cc
old '    return contact.second.member.key == link->peer() && named_.names(contact.first);'
new '    return named_.names(contact.first);'
caught_by integration_federation 'swarm, row 62'

mutant unseen-by-the-others 'A2: clients aggregate updates without a look at their values'
file client/serverless/own_aggregate.cc
old '  return run::examine_update(arrived, {*task_->model().layout(), config_->strategy.fixed_point}, store);'
new '  (void)store;
  return run::StoredUpdate{arrived, arrived, 0};'
caught_by integration_federation 'serverless, A2: an update with values'

mutant forgets-its-model 'a client that was killed cannot aggregate any more'
file client/serverless/serverless_rounds.cc
old '    if (context.engine.holds_update(id)) context.ports.peers->hold_model(*request);
'
new ''
caught_by faults_coordinator 'kill loop: a run without a server'

mutant final-alert 'N6: an error of a link ends a client for good'
file client/client_engine.cc
old '  presence_.disconnected(context.now);
  link_ = LinkState::kOffline;'
new '  if (lost.error.code == ErrorCode::kRefused) return revoked(lost.error.message, effects);
  presence_.disconnected(context.now);
  link_ = LinkState::kOffline;'
caught_by unit_client 'no error of a link is final'

mutant alert-is-refusal 'N6: a TLS alert is taken for the coordinator'\''s word, as one changed bit brings it about'
file protocol/session/tls.cc
old '  return {ErrorCode::kUnavailable,
          std::string("TLS failed: ")'
new '  return {ErrorCode::kRefused,
          std::string("TLS failed: ")'
caught_by unit_protocol 'one bit changed in what two links send'

mutant any-samples 'N6: a program that says it has more samples than a message may makes its client connect over and over'
file client/trainers/trainer_frames.cc
old '    if (*samples > protocol::kMaxSamples) fail('
new '    if (*samples > protocol::kMaxSamples && *samples == 0) fail('
caught_by unit_client '2\^53 samples'

mutant dials-idle 'A6: a coordinator makes an idle client connect to whom it names'
file client/swarm/swarm.cc
old '      if (may_dial(contact->second) && named_.names_for_work(contact->first))'
new '      if (may_dial(contact->second))'
caught_by unit_client 'not in hand nobody is connected to'

mutant dials-without-pause 'A6: a host that cannot be reached is connected to without end'
file client/swarm/dial_limits.cc
old '  if (++there.failures < kFreeFailures) return;'
new '  if (++there.failures < 1000 * kFreeFailures) return;'
caught_by unit_client 'however often a coordinator names one host|left alone for longer'

mutant dials-inward 'A6: a coordinator sends a client to its own network'
file client/swarm/dial_limits.cc
old 'there < coordinator_ || '
new ''
caught_by unit_client 'nearer to it than its coordinator'

mutant leaves-sessions 'A4: what a trainer program has started in a session of its own outlives its client'
file client/trainers/process.cc
old '    if (running_.empty()) kill_left_behind();'
new '    if (running_.empty()) reap_left_behind();'
caught_by unit_client 'leaves behind in sessions'

mutant memory-open 'A4: other programs of the same user look into a client'\''s memory'
file apps/common.cc
old '  if (!is_traced() && ::prctl(PR_SET_DUMPABLE, 0) != 0)'
new '  if (!is_traced() && ::prctl(PR_SET_DUMPABLE, 1) != 0)'
caught_by integration_programs 'look into the memory'

mutant keys-one-by-one 'a client writes its list of known keys for every session, whether there is a new one or not'
file client/secure/sessions.cc
old '  if (known == nullptr || known->size() == known_asked_) return;'
new '  if (known == nullptr || known->size() == 0) return;'
caught_by integration_federation 'secure runs: a client writes the keys'

mutant keys-unwritten 'A1: a client sends its shares though it may forget whose keys it has seen'
file client/secure/sessions.cc
old '  if (member.rests_on > known_written_) {'
new '  if (member.rests_on > known_asked_) {'
caught_by unit_client 'written down whose keys the others have'

mutant keys-written-once 'a client whose disk was full once takes no part in secure sums any more'
file client/secure/sessions.cc
old '  known_asked_ = written ? std::max(known_asked_, number) : known_written_;'
new '  known_asked_ = std::max(known_asked_, number);'
caught_by unit_client 'written down whose keys the others have'

mutant keys-after-training 'clients agree on masks once they have trained, and are too late'
file client/device/kept_records.cc
old '  context_.writer.post([weak = context_.weak(this), all = known_clients_] {'
new '  context_.worker.post([weak = context_.weak(this), all = known_clients_] {'
caught_by unit_client 'agree on masks while a device trains'

mutant any-verdict 'a verdict on another task drops the update that is kept'
file client/client_engine.cc
old '  if (run == nullptr || !run->has(verdict.task())) return;'
new '  if (run == nullptr || !run->task) return;'
caught_by unit_client 'a verdict on another task'

mutant made-for-another-order 'a client reports the model of a former order as that of a new one'
file client/serverless/round_updates.cc
old '  if (made_ && order_ == order) {'
new '  if (made_) {'
caught_by unit_client 'task conductor: a client aggregates what'

mutant power-keeps-secrets 'a device that lost its power still helps to remove masks'
file client/conductor/task_conductor.cc
old '  if (sessions_) sessions_->lose_secrets();
'
new ''
caught_by unit_client 'task conductor: a device that lost power'

mutant answers-at-once 'the answer of a port is carried out amid the input that caused it'
file client/conductor/task_conductor.cc
old '  if (busy_) return waiting_.push_back(std::move(input));'
new '  if (busy_ && waiting_.size() > 99) return waiting_.push_back(std::move(input));'
caught_by unit_client 'task conductor'

mutant exchanged-fetched-again 'a client fetches the model that it exchanges with others again'
file client/task_files.cc
old 'download_.model = has(present, model) ? present : nullptr;'
new 'download_.model = nullptr;'
caught_by unit_client 'cache: a model that is exchanged'
