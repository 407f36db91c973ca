# shellcheck shell=bash
# Mutants of durability: fsync, and messages sent before it (N1, N2, R3).

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
file server/store/audit_file.cc
old '  if (::fsync(fd_) != 0) return error("cannot sync");
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
file server/coordinator/ports/journal_gate.cc
old '  if (!waits && waiting_.empty()) return surroundings_.carry_out(decision);'
new '  if (waits) surroundings_.journal.flush();
  return surroundings_.carry_out(decision);'
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
file server/coordinator/ports/run_aggregate.cc
old '  if (closing->checkpoint) return surroundings_.journal.keep(std::move(*closing->checkpoint), done);'
new '  if (closing->checkpoint) surroundings_.journal.keep(std::move(*closing->checkpoint), [] {});'
caught_by faults_coordinator 'before the next round'

mutant early-secure-verdict 'N1: members of a track phase are told before its sum is on the disk'
file server/coordinator/ports/run_aggregate.cc
old '  if (closing->summed) return surroundings_.journal.drain(done);
'
new ''
caught_by integration_federation 'the sum of each track phase is on the disk'

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

mutant full-disk-tried-once 'N1: what a full disk stopped is not tried again once the disk was full before'
file server/coordinator/detail/disk_retry.h
old '        armed_ = false;
        again();'
new '        again();'
caught_by unit_server 'all work that was stopped is tried again'

mutant full-disk-for-good 'a full disk is reported again and again, or never again once there was room'
file server/conductor/full_disk.h
old 'if (std::exchange(full_, false)) report_'
new 'if (full_) report_'
caught_by unit_server 'a failure and the success after it are reported once'

mutant wanted-gives-way 'N1: a coordinator that comes up on a full disk removes chunks before it knows which it needs'
file protocol/chunks/file_pool.h
old 'return settled_ || !options_.all_wanted || !spare.inherited_;'
new 'return spare.size_ > 0;'
caught_by unit_protocol 'while all is wanted nothing gives way'

mutant cache-never-written-over 'a client writes each model to a new file until its cache is full: half a round of a large model goes into that'
file protocol/chunks/file_pool.cc
old '  return spare->inherited_ || spares_.cend() - spare <= kRecentSpares;'
new '  return spare->size_ > 0 || kRecentSpares > 0;'
caught_by unit_protocol 'durable chunk store: until it is settled'

mutant swallow-last-failure 'R3: a journal that fails while the run ends is not heeded, and the coordinator waits for ever'
file server/coordinator/run_host.cc
old '  if (!finished_) leave();
  callbacks_.on_failure(error);'
new '  failed(error);'
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

mutant unlinked-journal 'N1: what is written into a runs.db that was removed is acknowledged'
file server/store/sqlite_journal.cc
old '  FEDGE_TRY_VOID(database_->check_in_place());
  FEDGE_TRY(transaction, Transaction::begin(*database_));
  std::map<RunNumber, Head> heads;'
new '  FEDGE_TRY(transaction, Transaction::begin(*database_));
  std::map<RunNumber, Head> heads;'
caught_by unit_server 'whose file was removed or replaced'

mutant runs-forgotten 'N1: a coordinator whose runs.db is missing begins without a word'
file server/store/run_evidence.cc
old '  if (told <= highest.value()) return {};
'
new '  if (told <= highest.value() || told > 0) return {};
'
caught_by unit_server 'missed, not forgotten'

mutant audit-head-ignored 'N1: an audit log that was moved away or cut off verifies'
file server/audit_log.cc
old '  if (!anchored) return cut(chain.entries());
'
new ''
caught_by unit_server 'a log that was moved away'

mutant failure-unrecorded 'N1: a change that was recorded and has failed is not recorded as failed'
file server/store/logged_book.cc
old '  if (!done && entry) (void)audit_.append('
new '  if (done && entry) (void)audit_.append('
caught_by unit_server 'is recorded as failed'

mutant clone-unnoticed 'A2: two devices that use one key in turn raise no alarm'
file server/coordinator/coordinator.cc
old '  if (replacements_.full(name, now) || !replacements_.count(name, now)) return;
'
new '  if (replacements_.full(name, now) || replacements_.count(name, now) || !name.empty()) return;
'
caught_by integration_federation 'two devices with one key'

mutant noise-key-unnoticed 'A4: a noise key that is lost is made anew without a word'
file server/coordinator/run_parts.cc
old '  if (parts.made_noise_key && parts.recovered.entries > 0) '
new '  if (parts.made_noise_key && parts.recovered.entries == 0) '
caught_by integration_federation 'a lost noise.key'
