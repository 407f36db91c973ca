# shellcheck shell=bash
# Mutants of checksums (N2, R3).

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

mutant skip-journal-chain 'N2: a journal'\''s entry is believed without its checksum'
file server/store/sqlite_journal.cc
old '    if (entry.sequence != before.sequence + 1 || now.chain != select.text(3))'
new '    if (entry.sequence != before.sequence + 1)'
caught_by unit_server 'store'

mutant skip-checkpoint-checksum 'N2: a checkpoint is believed without its checksum'
file server/store/sqlite_journal.cc
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
file sim/transfers/device_files.cc
old '      if (size > bytes) return void(bytes = {});'
new '      if (bytes == Bytes()) return;'
caught_by unit_sim 'the chunks that have arrived whole|a fetch that was given up'
