# shellcheck shell=bash
# Mutants of the list of transfers.

mutant transfers-of-all-teams 'a team sees the transfers of another'
file server/api/live.cc
old '    return call.sees(facts.project) && (project.empty() || project == facts.project) &&'
new '    return (project.empty() || project == facts.project) &&'
caught_by unit_server 'transfers api: a team sees'

mutant transfers-beyond-the-end 'a transfer shows more bytes than the object has'
file server/live/transfers.cc
old '  const std::uint64_t done = std::min(end, facts_.bytes);'
new '  const std::uint64_t done = end;'
caught_by unit_server 'transfers: the bytes never exceed'

mutant transfers-backwards 'a chunk that is sent again moves a transfer back'
file server/live/transfers.cc
old '  if (done > count_->done.load(std::memory_order_relaxed))'
new '  if (done > 0)'
caught_by unit_server 'counted transfers: a client that requests one chunk'

mutant transfers-after-their-end 'a transfer that has ended is listed again'
file server/live/transfers.cc
old '  if (!ended_) all_->show(facts_, count_, reason);'
new '  all_->show(facts_, count_, reason);'
caught_by unit_server 'transfers: after its end'

mutant transfers-of-finished-uploads 'an upload that has arrived or failed stays listed'
file server/coordinator/uploads.cc
old '                transfers_->end(sender, TransferObject::kUpdate);
'
new ''
caught_by unit_server 'counted transfers: an upload'

mutant transfers-of-discarded-uploads 'an upload that was discarded stays listed'
file server/coordinator/uploads.cc
old '  transfers_->end(client, TransferObject::kUpdate);
  forget(client);'
new '  forget(client);'
caught_by unit_server 'counted transfers: an upload that fails'
