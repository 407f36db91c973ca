# shellcheck shell=bash
# The mutants: what each breaks, one exact replacement, and the tests of which one at least must fail then.
# Read by run.sh, which defines the words used here.

# --- fsync, and what is said before it (N1, N2, R3) ---

mutant skip-fsync-file 'N2: a file takes its place before its bytes are on the disk'
file core/platform/files.cc
old '  if (result && ::fsync(fd.get()) != 0) result = system_error("cannot sync", temporary, errno);
'
new ''
caught_by faults_coordinator 'what takes a file.s place'

mutant skip-fsync-folder 'N2: the folder is not synced after a file has taken its place'
file core/platform/files.cc
old '  return sync_directory(directory);'
new '  return {};'
caught_by faults_coordinator 'what takes a file.s place'

mutant skip-fsync-chunks 'N1: chunks of updates and models are never synced'
file protocol/chunks/file_pool.cc
old '  if (::fdatasync(open.fd) != 0)
    return'
new '  if (open.fd < 0)
    return'
caught_by faults_coordinator 'durable: '
caught_by faults_client 'an update that cannot be made durable'

mutant skip-fsync-chunk-folder 'N1: the name of a new chunk file is never synced'
file protocol/chunks/file_pool.cc
old '  if (const auto synced = sync_directory(directory_); !synced)
    return'
new '  if (const Result<void> synced; !synced)
    return'
caught_by faults_coordinator 'durable: '

mutant skip-fsync-key 'A1: a new key has its name before its bytes are on the disk'
file core/crypto/ed25519.cc
old '  if (error == 0 && ::fsync(file.get()) != 0) error = errno;
'
new ''
caught_by faults_coordinator 'what takes a file.s place'

mutant skip-fsync-audit 'A1: what changes who may connect holds before it is recorded'
file server/audit_log.cc
old '    if (::fsync(fd_) != 0) return error("cannot sync");
'
new ''
caught_by faults_coordinator 'an enrolment is in the audit log'

mutant synchronous-off 'N1: the run store does not wait for the disk'
file server/store/sqlite_store.cc
old 'PRAGMA synchronous = FULL'
new 'PRAGMA synchronous = OFF'
caught_by faults_coordinator 'before it says accepted|before the next round'

mutant synchronous-normal 'N1: the run store waits for the disk at its checkpoints alone'
file server/store/sqlite_store.cc
old 'PRAGMA synchronous = FULL'
new 'PRAGMA synchronous = NORMAL'
caught_by faults_coordinator 'before it says accepted|before the next round'

mutant early-verdict 'N1: a client hears that its update is accepted while that is being written'
file server/coordinator/run_host.cc
old '    waiting_.push_back({lasting ? sequence : 0, std::move(effects)});
    if (lasting) journal_->flush();'
new '    (void)sequence;
    if (lasting) journal_->flush();
    carry_out(effects);'
caught_by faults_coordinator 'before it says accepted'

mutant journal-before-update 'N1: the journal names an update that may still be lost'
file server/coordinator/journal_writer.cc
old '    for (const auto& object : work->objects)
      if (outcome) outcome = object->sync();
    if (outcome && !work->batches.empty()) outcome = self->store_.append(work->batches);'
new '    if (!work->batches.empty()) outcome = self->store_.append(work->batches);
    for (const auto& object : work->objects)
      if (outcome) outcome = object->sync();'
caught_by faults_coordinator 'before it says accepted'

mutant early-model 'N2: the next round begins while the checkpoint of this one is being written'
file server/coordinator/run_host_effects.cc
old '    return journal_->keep(std::move(*closing->checkpoint), [this, closing] {
      if (!finished_) committed(closing);
    });'
new '    journal_->keep(std::move(*closing->checkpoint), [] {});'
caught_by faults_coordinator 'before the next round'

mutant early-offer 'N1: a client offers an update that may still be lost'
file client/task_files.cc
old '  FEDGE_TRY_VOID(payload->sync());
'
new ''
caught_by faults_coordinator 'before it offers it'
caught_by faults_client 'an update that cannot be made durable'

mutant close-drops-updates 'N1: on a full disk a coordinator that is told to end removes the chunks it goes on with'
file protocol/chunks/file_pool.cc
old '  closed_ = true;'
new '  closed_ = false;'
caught_by faults_coordinator 'a store that is closed keeps what it holds'

mutant wanted-gives-way 'N1: a coordinator that comes up on a full disk removes chunks before it knows which it needs'
file protocol/chunks/file_pool.h
old 'return settled_ || !options_.all_wanted || !spare.inherited_;'
new 'return spare.size_ > 0;'
caught_by unit_protocol 'while all is wanted nothing gives way'

mutant swallow-last-failure 'R3: a journal that fails while the run ends is not heeded, and the coordinator waits for ever'
file server/coordinator/run_host.cc
old '  if (!finished_) leave();
  callbacks_.on_failure(error);'
new '  fail(error);'
caught_by faults_coordinator 'after a write or sync that fails'

mutant ignore-failed-sync 'R3: a chunk file whose sync fails passes for durable'
file protocol/chunks/file_pool.cc
old '  if (::fdatasync(open.fd) != 0)
    return'
new '  (void)::fdatasync(open.fd);
  if (false)
    return'
caught_by faults_coordinator 'after a write or sync that fails'
caught_by faults_client 'an update that cannot be made durable'

mutant unreadable-is-too-few 'N1: an update that cannot be read back costs a round all of them'
file run/stored_update.h
old '    if (!read && read.error().code == ErrorCode::kUnavailable)'
new '    if (false)'
caught_by unit_server 'run state: an update that cannot be read again'

mutant ignore-failed-journal 'R3: a journal that cannot be written passes for durable'
file server/coordinator/journal_writer.cc
old '    failed_ = true;
    return callbacks_.on_failure(outcome.error());'
new '    failed_ = false;'
caught_by faults_coordinator 'where an update cannot be synced'

# --- twice (N4) ---

mutant skip-duplicate-check 'N4: an update offered twice counts twice'
file server/engine/round_engine.cc
old '  if (task->second.state != TaskState::kAssigned)
    return'
new '  if (false)
    return'
caught_by unit_server 'round: a second update'

mutant skip-duplicate-check-fetching 'N4: another update may take the place of one that is on its way'
file server/engine/round_engine.cc
old '  if (task->second.state != TaskState::kAssigned)
    return'
new '  if (task->second.state == TaskState::kDone)
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
file server/engine/buffered_engine.cc
old '    returned_.insert(arrived.client);
  }'
new '    returned_.insert(arrived.client);
    hand_out_again(context, effects);
  }'
caught_by unit_server 'buffered: whoever comes back'

mutant skip-duplicate-check-buffered 'N4: in an asynchronous run another update may take the place of one that is on its way'
file server/engine/buffered_engine.cc
old '  if (task->second.fetching)
    return'
new '  if (false)
    return'
caught_by unit_server 'N4, buffered: '

mutant restart-forgets-done 'N4: after a restart who has delivered is asked again, and counts again'
file server/engine/round_engine.cc
old '    if (at_work(task.state) && task.state != TaskState::kDone) {'
new '    if (at_work(task.state)) {'
caught_by property_server 'N1 N2 N4 N5 N6, rounds'

mutant skip-stale-check 'N4: an update of an earlier round counts in this one'
file server/engine/round_engine.cc
old '  if (offer.round != round_ || phase_ != Phase::kCollecting)
    return'
new '  if (phase_ != Phase::kCollecting)
    return'
caught_by unit_server 'round: an update of an earlier round'

# --- who is let in (A1) ---

mutant skip-authentication-return 'A1: a client that is refused is let in all the same'
file server/coordinator/gatekeeper.cc
old '  const auto standing = enrolment_.authenticate(link->peer());
  if (!standing) return refuse(link, standing.error());'
new '  auto standing = enrolment_.authenticate(link->peer());
  if (!standing) {
    refuse(link, standing.error());
    standing = Standing{ClientId(0), false};
  }'
caught_by integration_federation 'A1'

mutant skip-authentication-return-revoked 'A1: a client whose key was revoked is told so and let in all the same'
file server/coordinator/gatekeeper.cc
old '  const auto standing = enrolment_.authenticate(link->peer());
  if (!standing) return refuse(link, standing.error());'
new '  auto standing = enrolment_.authenticate(link->peer());
  if (!standing) {
    refuse(link, standing.error());
    if (standing.error().message.find("revoked") == std::string::npos) return;
    standing = Standing{ClientId(0), false};
  }'
caught_by integration_federation 'A1'

mutant skip-approval-return 'A1: a client that waits for approval is let in all the same'
file server/coordinator/gatekeeper.cc
old '    return dismiss(link, error);
  }
  if (!rate_'
new '    dismiss(link, error);
  }
  if (!rate_'
caught_by integration_federation 'A1 row 36: a pending'

mutant let-in-stranger 'A1: a key that is not enrolled is let in'
file server/enrolment.cc
old '  if (known == index_.end()) return refused("this client is not enrolled here; join with a token first");'
new '  if (known == index_.end()) return Standing{ClientId(0), false};'
caught_by unit_server 'enrolment'
caught_by integration_federation 'A1'

mutant let-in-revoked 'A1: a key that was revoked is let in'
file server/enrolment.cc
old '  if (known->second.state == ClientState::kRevoked) return refused("this client'\''s key has been revoked");
'
new ''
caught_by unit_server 'enrolment'
caught_by integration_federation 'revoked'

mutant keep-revoked 'A1: a client that is revoked while it is connected stays'
file server/coordinator/gatekeeper.cc
old '  if (enrolment_.changed()) expel_revoked();
'
new ''
caught_by integration_federation 'revoked'

mutant work-for-revoked 'A1: a client that was revoked since it connected is given work'
file server/coordinator/run_host_effects.cc
old '  if (!link || !house_.is_welcome(link)) return;'
new '  if (!link) return;'
caught_by integration_federation 'A1: a client that was revoked since'

mutant skip-hello 'A1: whatever comes first is taken for a hello'
file server/coordinator/gatekeeper.cc
old '                             refuse(alive, invalid('
new '                             if (true) return greet(alive, protocol::Hello{});
                             refuse(alive, invalid('
caught_by integration_federation 'A1'

mutant token-for-ever 'A1: a join token may be used as often as one likes'
file server/enrolment.cc
old '    ++token->used;
'
new ''
caught_by unit_server 'enrolment'

# --- secrets (A4) ---

mutant log-a-token 'A4: a join token is written to the coordinator'\''s log'
file server/coordinator/gatekeeper.cc
old '              .with("software", hello.software));
  link->close("enrolled");'
new '              .with("software", hello.software)
              .with("token", hello.token));
  link->close("enrolled");'
caught_by integration_programs 'canary: no token'

mutant log-a-wrong-token 'A4: the refusal of a join token repeats it'
file server/enrolment.cc
old '  if (!knows(hash)) return refused("the join token is not known here");'
new '  if (!knows(hash)) return Error{ErrorCode::kRefused, "join token " + redemption.secret + " is not known here"};'
caught_by integration_programs 'canary: no token'

mutant audit-a-token 'A4: a join token is written to the audit log'
file server/enrolment.cc
old '                   {{"token", std::to_string(client.token)}}};'
new '                   {{"token", redemption.secret}}};'
caught_by integration_programs 'canary: no token'

mutant keep-a-token 'A4: the enrolment book keeps the join tokens themselves'
file server/enrolment.cc
old 'std::string hash_of(const std::string& secret) { return to_hex(sha256(secret)); }'
new 'std::string hash_of(const std::string& secret) { return secret; }'
caught_by unit_server 'enrolment'
caught_by integration_programs 'canary: no token'

mutant token-on-command-line 'A4: a join token stays readable among the client'\''s arguments'
file apps/fedge_client.cc
old '  fedge::apps::hide_argument(argc, argv, options.token);
'
new ''
caught_by integration_programs 'canary: no token'

# --- values (R2) ---

mutant skip-finite-check 'R2: an update with a value that is no number is folded'
file aggregation/value_check.cc
old '  if (fold_kernels().front().max_magnitude(piece.values.data(), piece.values.size()) <= limit) return {};'
new '  if (limit > 0) return {};'
caught_by integration_federation 'damaged updates'

mutant skip-nan-check 'R2: what is no number passes for a small one'
file aggregation/value_check.cc
old '  if (fold_kernels().front().max_magnitude(piece.values.data(), piece.values.size()) <= limit) return {};'
new '  const auto largest = fold_kernels().front().max_magnitude(piece.values.data(), piece.values.size());
  if (largest <= limit || largest > 0x7f800000) return {};'
caught_by integration_federation 'damaged updates'

mutant skip-finite-check-decoded 'R2: a value that is no number comes out of a compressed update'
file protocol/codecs/payload_decoder.cc
old '    if (codec != Codec::kFloat32 && !all_finite(out)) return not_finite(out);
'
new ''
caught_by unit_protocol 'payload'

mutant skip-update-check 'R2: nobody looks at the values of an update'
file run/stored_update.cc
old '  const auto norm = inspect_values(rules, arrived->manifest().coverage, StoredValues(update.plain));'
new '  const Result<double> norm = rules.layout.size() > 0 ? 1.0 : 0.0;'
caught_by integration_federation 'damaged updates|refused updates'

# --- checksums (N2, R3) ---

mutant skip-chunk-hash 'N2: a chunk is taken for what it should be without a look at its hash'
file protocol/chunks/receiver.cc
old '  if (auto verified = verify_chunk(manifest_, index, bytes); !verified) {'
new '  if (auto verified = verify_chunk(manifest_, index, bytes); !verified && index > manifest_.chunk_count()) {'
caught_by unit_protocol 'wrong hash'
caught_by integration_federation 'damaged updates'

mutant skip-stored-hash 'N2: a chunk that the disk has changed is believed'
file protocol/chunks/stored_object.h
old '      if (sha256(std::span<const std::byte>(bytes)) != manifest_.chunks[i]) continue;
'
new ''
caught_by unit_protocol 'chunk store'

mutant skip-cached-hash 'R2: a client trains on a model that its disk has changed'
file client/task_files.cc
old '    if (const auto sound = protocol::verify_chunk(manifest, i, chunk); !sound) {'
new '    if (const auto sound = protocol::verify_chunk(manifest, i, chunk); !sound && i > manifest.chunk_count()) {'
caught_by unit_client 'damage|hash|pending|cache'

mutant skip-pending-hash 'N1: a client believes a damaged note of its pending update'
file client/pending_update.cc
old '  if (std::memcmp(digest.data(), text.data() + body.size(), digest.size()) != 0) return std::nullopt;'
new '  (void)digest;'
caught_by unit_client 'damage|hash|pending|cache'

mutant skip-journal-chain 'N2: a journal'\''s entry is believed without its checksum'
file server/store/sqlite_store.cc
old '    if (entry.sequence != before.sequence + 1 || now.chain != select.text(3))'
new '    if (entry.sequence != before.sequence + 1)'
caught_by unit_server 'store'

mutant skip-checkpoint-checksum 'N2: a checkpoint is believed without its checksum'
file server/store/sqlite_store.cc
old '  if (select.text(2) != checksum_of(run, select.integer(0), result.state))
    return damaged("the checkpoint" + of_run(run));
'
new ''
caught_by unit_server 'store'

mutant skip-run-checksum 'N2: the row of a run is believed without its checksum'
file server/store/sqlite_store.cc
old '  if (row.text(9) != checksum_of(run) || status < 0 ||'
new '  if (status < 0 ||'
caught_by unit_server 'store'

mutant needed-chunk-short 'N2: a device trains on a part of its adapters that it has never fetched'
file protocol/chunks/chunk_selection.cc
old 'chunk <= (range.end - 1) / values && chunk < wanted.size()'
new 'chunk < (range.end - 1) / values && chunk < wanted.size()'
caught_by unit_client 'chunks that hold nothing that is needed'
caught_by integration_language 'over sockets as in virtual time'

mutant former-chunk-believed 'N2: a chunk of the former model is taken for one of this, whatever it holds'
file client/task_files.cc
old '      if (had.chunks[i] != model.chunks[i] || download_.model->has(i) || !former->has(i)) continue;
      const auto chunk = buffer.span().first(model.chunk_length(i));
      if (!former->read(i, chunk) || !protocol::verify_chunk(model, i, chunk))
'
new '      if (download_.model->has(i) || !former->has(i)) continue;
      const auto chunk = buffer.span().first(model.chunk_length(i));
      if (!former->read(i, chunk))
'
caught_by unit_client 'frozen but for its end'
caught_by integration_language 'over sockets as in virtual time'

mutant rank-limit-ignored 'N2: a client that has given up ranks is asked for them all the same'
file aggregation/planners/rank_prefix.cc
old '  return std::min<std::size_t>(own, limit_[client.value()]);'
new '  return limit_[client.value()] > 0 ? own : 1;'
caught_by unit_aggregation 'prunes itself'

mutant adapters-count-twice 'N4: what has joined the frozen weights stays in the adapters too'
file aggregation/aggregators/adapters/rules.cc
old '    set(layout.prefix(layout.rank), fresh());
'
new '    if (products_.mean(0).size() == 0) set(layout.prefix(layout.rank), fresh());
'
caught_by unit_aggregation 'FLoRA adds the mean of products'

mutant no-prefix-believed 'R3: an update that is no prefix of ranks is combined as one'
file aggregation/aggregators/adapters/factor_rule.cc
old '  if (!prefix)
'
new '  if (!prefix && count == 0)
'
caught_by unit_aggregation 'no prefix of ranks is refused'

mutant truncation-leaks 'N2: a device that has the first ranks trains with values that it does not have'
file learn/trainer.cc
old '  plan.workspace->ranks = options.ranks;
'
new '  if (options.ranks == 0) plan.workspace->ranks = options.ranks;
'
caught_by unit_learn 'nested ranks|prefix'
caught_by integration_language 'over sockets as in virtual time'

mutant any-tokenizer 'N2: a run goes on from a base whose tokens mean something else'
file learn/model_file.cc
old '  if (is_text(data) && (tokenizer.kind != data.tokenizer.kind || tokenizer.table != data.tokenizer.table))'
new '  if (is_text(data) && tokenizer.kind != data.tokenizer.kind && tokenizer.table != data.tokenizer.table)'
caught_by integration_language 'fit together'

mutant held-before-arrival 'N2: a simulated device has a model that was cut off on its way'
file sim/simulation.cc
old '  if (at(id).arriving && task != nullptr && task->task() == fetched->task) {'
new '  if (at(id).arriving && (task != nullptr || fetched == nullptr)) {'
caught_by unit_sim 'what had arrived when a device went down|a fetch that was given up'

mutant any-signature 'A2: a record of the directory is believed whoever signed it'
file dht/record.cc
old '  if (!verify(record->signer, signed_text(envelope.record()), signature))
'
new '  if (!verify(record->signer, signed_text(envelope.record()), signature) && inner.sequence() == 0)
'
caught_by unit_dht 'each flaw is told'

mutant record-for-ever 'A2: a record of the directory is believed after its end'
file dht/record.cc
old '  if (record->expires <= now) return Refusal'
new '  if (record->expires + kMaxRecordLifetime <= now) return Refusal'
caught_by unit_dht 'each flaw is told'

mutant others-key 'A2: somebody writes under a key that is another node'"'"'s'
file dht/record.cc
old '  if (record->key != key || key_of(record->content, record->signer) != key)
'
new '  if (record->key != key)
'
caught_by unit_dht 'another.s statement|each flaw is told'

mutant rolled-back 'A2: an earlier record comes back after a later one'
file dht/record_guard.cc
old '  if (record.sequence < last.sequence) return Flaw::kRolledBack;'
new '  if (record.sequence + 1 < last.sequence) return Flaw::kRolledBack;'
caught_by unit_dht 'never an earlier one again'

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

mutant keeps-anything 'A6: a node of the directory keeps whatever it is given'
file dht/opendht/directory.cc
old '    const bool right = is_right(*shared, key, *value);
'
new '    const bool right = is_right(*shared, key, *value) || value->data.size() < 100000;
'
caught_by integration_directory 'nodes keep none'

mutant hangs-on 'A6: a node keeps a record that something hangs on to'
file dht/opendht/directory.cc
old '!value.user_type.empty() || '
new ''
caught_by integration_directory 'hangs on to a record'

mutant fast-models 'N6: a model is published for every round, however fast'
file server/directory/announcer.cc
old '  if (model.said && now >= model.when && now - model.when < kModelEvery) return;'
new ''
caught_by unit_server 'models of fast rounds'

mutant ids-unbound 'A6: in the simulated overlay a contact claims an id that is not its own'
file sim/overlays/kademlia.h
old '    return !protections_.bound_ids || identities_.genuine(contact);'
new '    return !protections_.bound_ids || identities_.genuine(contact) || contact.known();'
caught_by unit_sim 'bound ids'

mutant no-token-needed 'A6: in the simulated overlay a stranger gets more than it has sent'
file sim/overlays/node.cc
old '  if (options_.protections.tokens && request.token != token_of(request.from.address)) {
'
new '  if (options_.protections.tokens && request.token + 1 == token_of(request.from.address)) {
'
caught_by unit_sim 'tokens'

mutant paths-meet 'A6: disjoint paths of a look-up share nodes'
file sim/overlays/disjoint_search.cc
old '        if (path_of(contact->address) != nullptr || crowded(*contact)) {
'
new '        if (crowded(*contact)) {
'
caught_by unit_sim 'disjoint paths'

mutant answer-in-anothers-place 'A6: a look-up waits for ever for an answer that came from somebody else'
file sim/overlays/node.cc
old '  if (message.retry || message.from != pending.to) return silent(pending);'
new '  if (message.retry) return silent(pending);'
caught_by unit_sim 'row 61: a node that is not who was asked for|row 61: bound ids'

mutant sends-the-same-again 'A6: a peer sends a chunk again and again to whoever asks'
file swarm/peer/peer_upload.cc
old '    } else if (share->given.has(chunk.index)) {'
new '    } else if (share->given.has(chunk.index) && !torrent->held.has(chunk.index)) {'
caught_by unit_swarm 'hostile peer, row 62'

mutant patient-with-rubbish 'A6: a peer that sends wrong bytes is asked for ever'
file swarm/peer/peer_download.cc
old '    if (++neighbour.bad >= rules_.bad_chunks)'
new '    if (++neighbour.bad > 1000 * rules_.bad_chunks)'
caught_by unit_swarm 'hostile peer, row 62'

mutant waits-for-the-silent 'N6: what a silent neighbour was asked for is asked of nobody else'
file swarm/peer/peer_download.cc
old '    if (!snubbed && (!torrent.missing.empty() || now - since < rules_.endgame)) continue;'
new '    if (snubbed || !torrent.missing.empty() || now - since < 100 * rules_.endgame) continue;'
caught_by unit_swarm 'hostile peer, row 62'

mutant boundless-upload 'A6: a peer sends without regard to its limit'
file swarm/peer/upload_pace.h
old '    next_ = std::max(next_, now - kSaved)'
new '    next_ = std::min(next_, now - kSaved)'
caught_by unit_swarm 'upload pace'

mutant lets-the-starved-starve 'N6: a client whom no other gives anything gets no more than its share of the copies'
file swarm/peer/peer_upload.cc
old '  if (std::get<0>(*best) > 0 && !affordable && !share.starved) return std::nullopt;'
new '  if (std::get<0>(*best) > 0 && !affordable) return std::nullopt;'
caught_by unit_swarm 'linked to the coordinator alone'

mutant open-swarm 'A1: a client gives the model to whoever knows its address'
file client/swarm/swarm.cc
old '    return contact.second.member.key == link->peer() && is_wanted(contact.first);'
new '    return is_wanted(contact.first);'
caught_by integration_federation 'swarm, row 62'

mutant still-a-member 'A1: who is gone from a run still gets its model from the others'
file swarm/tracker.cc
old '    part(swarm, entry->first, member, left.tells);'
new '    if (swarm.tasks == 0) part(swarm, entry->first, member, left.tells);'
caught_by unit_swarm 'tracker'

mutant waits-for-ever 'N6: a round without a server waits for whoever is silent'
file server/engine/shared_round.cc
old '    if (!all && !(late && most) && !lost) continue;'
new '    if (!all && !(late && most && false) && !lost) continue;'
caught_by unit_server 'shared round: when it is late'
caught_by integration_federation 'serverless, N6'

mutant orphans 'invariant 8: an update goes with its client although the others hold all of it'
file server/engine/shared_round.cc
old '    const bool lost = !all && !present && !obtainable(offer.object);'
new '    const bool lost = !all && !present && (true || !obtainable(offer.object));'
caught_by unit_server 'shared round, invariant 8'

mutant few-decide 'A2: fewer than half of the clients make the model'
file server/engine/shared_round.cc
old '  const bool most = 2 * best->second.size() > participants_.size();'
new '  const bool most = 3 * best->second.size() > participants_.size() - 1;'
caught_by unit_server 'shared round: the model is that of more than half'

mutant in-the-order-of-clients 'what is aggregated tells whose update is whose'
file server/engine/shared_round.cc
old '  std::ranges::sort(order.parts, {},'
new '  if (order.parts.empty()) std::ranges::sort(order.parts, {},'
caught_by unit_server 'shared round: what is to be aggregated does not tell'

mutant unseen-by-the-others 'A2: clients aggregate updates without a look at their values'
file client/serverless/own_aggregate.cc
old '  return run::examine_update(arrived, {*task_->model().layout(), config_->strategy.fixed_point}, store);'
new '  (void)store;
  return run::StoredUpdate{arrived, arrived, 0};'
caught_by integration_federation 'serverless, A2: an update with values'

mutant forgets-its-model 'a client that was killed cannot aggregate any more'
file client/serverless/daemon_serverless.cc
old '    part.shared->fetch_model(in_hand->model);'
new '    part.exchanging.reset();'
caught_by faults_coordinator 'kill loop: a run without a server'

mutant early-gate 'a serverless round: an owner sends its own chunks before k others cover them'
file swarm/warmup/client_buffer.cc
old 'foreign() + released_.size() < gate_.k'
new 'foreign() + released_.size() + 1 < gate_.k'
caught_by unit_swarm 'invariant 4'
caught_by unit_sim 'invariants 1 and 3'

mutant unthrottled-owner 'a serverless round: an owner sends more than kappa of its own chunks'
file swarm/warmup/client_buffer.cc
old 'std::min(gate_.kappa, released_.size())'
new 'std::min(gate_.kappa + 1, released_.size())'
caught_by unit_swarm 'invariant 4'
caught_by unit_sim 'invariants 1 and 3|invariant 3'

mutant sprayed-next-door 'a serverless round: an owner sprays to its neighbours'
file swarm/warmup/obfuscation.cc
old '!overlay.adjacent(owner, other)'
new '(!overlay.adjacent(owner, other) || other > owner)'
caught_by unit_swarm 'invariant 6'

mutant short-lag 'a serverless round: a client sends a slot before its lag has passed'
file sim/swarm/swarm_round.cc
old 'slot_ >= result_.lags[peer]'
new 'slot_ + 1 >= result_.lags[peer]'
caught_by unit_sim 'invariant 5'

mutant owner-preferred 'a serverless round: an owner is asked though another holds its chunk'
file swarm/warmup/schedulers/greedy.cc
old 'rule_.non_owner_first && candidates_.size() > 1'
new 'rule_.non_owner_first && candidates_.size() > 2'
caught_by unit_swarm 'greedy fastest first'

mutant over-budget 'a serverless round: a sender is given one receiver more than its budget'
file swarm/warmup/schedulers/requests.cc
old '    if (up[asked] == 0 || '
new '    if ('
caught_by unit_swarm 'invariant 1'

mutant beside-the-overlay 'a serverless round: the audit takes transfers between strangers'
file swarm/warmup/audit.cc
old 'if (!round.overlay.adjacent(transfer.from, transfer.to))'
new 'if (slot > 0 && !round.overlay.adjacent(transfer.from, transfer.to))'
caught_by unit_swarm 'beside the overlay'

mutant silent-fallback 'a serverless round: owners that had to help are not counted'
file sim/swarm/swarm_round.cc
old '++result_.fallbacks'
new 'result_.fallbacks += 0'
caught_by unit_sim 'owners help after a stall'

mutant lag-forgotten 'a warm-up: a client sends before its lag has passed'
file swarm/warmup/member.h
old 'return slot_ >= plan_.lag && shows(chunk);'
new 'return slot_ + 1 >= plan_.lag && shows(chunk);'
caught_by unit_swarm 'warm-up: nothing is sent before the lag'

mutant spray-without-end 'a warm-up: a client sprays as much as its tracker asks for'
file swarm/warmup/member.cc
old 'if (sprayed_.size() >= plan_.spray) return false;'
new 'if (sprayed_.size() > plan_.spray) return false;'
caught_by unit_swarm 'asks for too much'

mutant shown-to-neighbours 'a warm-up: neighbours are shown what a client has'
file swarm/peer/peer_warmup.cc
old 'if (warmup == nullptr || peer != kCoordinator) return shown;'
new 'if (warmup == nullptr || peer == ClientId(77)) return shown;'
caught_by unit_swarm 'linked in the middle'

mutant announced-to-neighbours 'a warm-up: neighbours are told what comes to a client'
file swarm/peer/peer_download.cc
old '(!share.has.complete() && !torrent.warmup)'
new '!share.has.complete()'
caught_by unit_swarm 'by every scheduler'

mutant own-on-demand 'a warm-up: whoever asks gets own chunks that the gate holds back'
file swarm/peer/peer_warmup.cc
old '&& warmup->shows({torrent.id, chunk});'
new '&& (warmup->shows({torrent.id, chunk}) || torrent.id == warmup->own());'
caught_by unit_swarm 'refused like what is not there'

mutant never-left-out 'a warm-up: a silent member is waited for to the end'
file swarm/warmup/round_warmup.cc
old '    if (!order.spray)
      dead'
new '    if (!order.spray && order.from == to)
      dead'
caught_by unit_swarm 'by nobody again'

mutant warmup-voided 'a warm-up: that it failed is not told'
file server/engine/shared_warmup.cc
old '  failure_ = tracker_->failure();'
new '  if (!over_) failure_ = tracker_->failure();'
caught_by unit_server 'is over in time'

mutant fewer-neighbours-count 'gossip: weights go by the smaller of two degrees, and rows may go below zero'
file sim/gossip/mixing.cc
old 'const std::size_t degree = std::max(neighbours.size()'
new 'const std::size_t degree = std::min(neighbours.size()'
caught_by unit_sim 'mixing: weights are'

mutant own-degree-alone 'gossip: a client weighs its neighbours by its own degree, so that the mean moves'
file sim/gossip/mixing.cc
old '1.0 / static_cast<double>(1 + degree)'
new '1.0 / static_cast<double>(1 + std::min(degree, neighbours.size()))'
caught_by unit_sim 'mixing, invariant: the mean'

mutant mixed-with-the-mixed 'gossip: a client mixes with models that have been mixed already'
file sim/gossip/mixing.cc
old '    for (swarm::Pseudonym client = 0; client < models.size(); ++client) {
      std::ranges::fill(sum, 0.0);'
new '    for (swarm::Pseudonym client = 0; client < models.size(); ++client) {
      for (std::size_t i = 0; i < client; ++i)
        std::ranges::copy(models[i].subspan(first, count), before.data() + i * count);
      std::ranges::fill(sum, 0.0);'
caught_by unit_sim 'mixing: a hand-computed path'

mutant one-model-for-all 'gossip: everybody trains the first client'"'"'s model'
file sim/gossip/gossip.cc
old '.global = {.model = models_[client]'
new '.global = {.model = models_[client / task_.clients()]'
caught_by unit_sim 'gossip: two rounds are those'

mutant asked-once-for-all 'a warm-up: what a silent neighbour was asked for is asked of nobody else'
file swarm/peer/peer_warmup.cc
old 'if (torrent->wanted.has(ask.chunk) && !torrent->held.has(ask.chunk))'
new 'if (torrent->missing.has(ask.chunk))'
caught_by unit_swarm 'is asked of another'

mutant own-never-asked 'a warm-up: a client does not ask for its own chunks, and stands out'
file swarm/peer/peer_download.cc
old 'const bool own = ordered && warmup->own() == id;'
new 'const bool own = ordered && warmup->own() == torrent.id && torrent.size == 0;'
caught_by unit_swarm 'about as often as others do'

mutant forgiven 'a warm-up: a new link makes strikes forgotten'
file swarm/peer/peer.cc
old 'std::max(neighbour->second.strikes, member.strikes(linked.peer));'
new 'std::min(neighbour->second.strikes, member.strikes(linked.peer));'
caught_by unit_swarm 'is not forgiven'

mutant strangers-served 'a warm-up: whoever is linked gets chunks'
file swarm/peer/peer_warmup.cc
old 'return warmup->is_neighbour(peer) && warmup->shows'
new 'return warmup->shows'
caught_by unit_swarm 'nobody but a neighbour'

mutant slow-is-silent 'a warm-up: a slow line is taken for a silent one'
file swarm/warmup/round_warmup.cc
old 'most_sent_(config.nodes, kFirst)'
new 'most_sent_(config.nodes, kFirst + 6)'
caught_by unit_swarm 'a slow line is not taken'

mutant chunks-of-any-size 'an update in chunks of another size is taken'
file server/engine/offer_check.cc
old 'if (offer.update.chunk_size != rules.chunk_size)'
new 'if (offer.update.chunk_size < rules.chunk_size)'
caught_by unit_server 'updates nobody asked for'
