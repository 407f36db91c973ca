# shellcheck shell=bash
# Mutants of backups, of what a restored data directory must not repeat, and of the audit log's closed files.

mutant free-under-a-backup 'a model that a copied checkpoint names is freed while a backup is made'
file server/backup/backup_lock.cc
old '  if (!backup_is_running(directory_)) kept_.clear();'
new '  kept_.clear();'
caught_by unit_server 'removed objects stay on the disk'

mutant copy-a-torn-object 'an object is copied that another one has overwritten'
file protocol/chunks/stored_files.cc
old '    if (!verify_chunk(manifest, chunk, bytes)) return false;'
new '    (void)verify_chunk(manifest, chunk, bytes);'
caught_by unit_protocol 'stored files: a file that is torn'

mutant restore-used-tokens 'a restored backup admits tokens that were used since'
file server/store/book_history.cc
old '    token.revoked = true;
    FEDGE_TRY_VOID(rows.put(token));
    ++revoked.first;'
new '    ++revoked.first;'
caught_by unit_server 'restored: numbers and tokens'

mutant restore-given-numbers 'a restored backup gives client numbers twice'
file server/enrolment_changes.cc
old '      rows.marks.next_client += restoration.skipped_numbers;
'
new ''
caught_by unit_server 'restored: numbers and tokens'

mutant restore-the-noise 'later runs of a restored coordinator draw the noise of lost ones'
file server/backup/restore.cc
old '    if (file.path == "noise.key" && !order.nothing_since) continue;
'
new ''
caught_by unit_server 'restored: a copy of a stopped coordinator'

mutant repeat-private-rounds 'N3: a run with noise of its clients continues from a backup'
file server/backup/restore.cc
old '  if (config->privacy.on())'
new '  if (config->privacy.of_sums())'
caught_by unit_server 'restored: only runs'

mutant believe-nothing-happened 'a backup of a running coordinator is restored as if nothing had happened since'
file server/backup/restore.cc
old '  if (order.nothing_since && manifest.running)'
new '  if (order.nothing_since && manifest.files.empty())'
caught_by unit_server 'restored: a copy of a stopped coordinator'

mutant leave-the-directory 'a path in a manifest leaves the data directory'
file server/backup/backup_manifest.cc
old ' || parts.back() == ".."'
new ''
caught_by unit_server 'no path in a manifest'

mutant forget-a-closed-file 'a log whose audit.log is missing after a rotation begins anew'
file server/store/audit_file.cc
old '  if (tail.kept > 0) return tail;'
new '  if (tail.kept > 0 || tail.torn.empty()) return tail;'
caught_by unit_server 'rotation: a crash at any step'
