# shellcheck shell=bash
# Mutants of swarm/.

mutant sends-the-same-again 'A6: a peer sends a chunk again and again to whoever asks'
file swarm/peer/peer_chunks.cc
old '    } else if (share->given.has(chunk.index)) {'
new '    } else if (share->given.has(chunk.index) && !torrent->held.has(chunk.index)) {'
caught_by unit_swarm 'hostile peer, row 62'

mutant patient-with-rubbish 'A6: a peer that sends wrong bytes is asked for ever'
file swarm/peer/peer_chunks.cc
old '    if (++neighbour.bad >= rules_.bad_chunks)'
new '    if (++neighbour.bad > 1000 * rules_.bad_chunks)'
caught_by unit_swarm 'hostile peer, row 62'

mutant waits-for-the-silent 'N6: what a silent neighbour was asked for is asked of nobody else'
file swarm/peer/downloader.cc
old '    if (!snubbed && (!torrent.missing.empty() || now - since < endgame_)) continue;'
new '    if (snubbed || !torrent.missing.empty() || now - since < 100 * endgame_) continue;'
caught_by unit_swarm 'hostile peer, row 62'

mutant boundless-upload 'A6: a peer sends without regard to its limit'
file swarm/peer/upload_pace.h
old '    next_ = std::max(next_, now - kSaved)'
new '    next_ = std::min(next_, now - kSaved)'
caught_by unit_swarm 'upload pace'

mutant lets-the-starved-starve 'N6: a client whom no other gives anything gets no more than its share of the copies'
file swarm/peer/torrent.cc
old '  if (std::get<0>(*best) > 0 && !affordable && !share.starved) return std::nullopt;'
new '  if (std::get<0>(*best) > 0 && !affordable) return std::nullopt;'
caught_by unit_swarm 'linked to the coordinator alone'

mutant still-a-member 'A1: who is gone from a run still gets its model from the others'
file swarm/tracker.cc
old '    part(swarm, entry->first, member, left.tells);'
new '    if (swarm.tasks == 0) part(swarm, entry->first, member, left.tells);'
caught_by unit_swarm 'tracker'

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
file swarm/peer/book.cc
old 'if (warmup == nullptr || peer != kCoordinator) return shown;'
new 'if (warmup == nullptr || peer == ClientId(77)) return shown;'
caught_by unit_swarm 'linked in the middle'

mutant announced-to-neighbours 'a warm-up: neighbours are told what comes to a client'
file swarm/peer/peer_chunks.cc
old '(!share.has.complete() && !torrent.warmup)'
new '!share.has.complete()'
caught_by unit_swarm 'by every scheduler'

mutant own-on-demand 'a warm-up: whoever asks gets own chunks that the gate holds back'
file swarm/peer/book.cc
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

mutant asked-once-for-all 'a warm-up: what a silent neighbour was asked for is asked of nobody else'
file swarm/peer/peer_warmup.cc
old 'if (own || (torrent->wanted.has(ask.chunk) && !torrent->held.has(ask.chunk)))'
new 'if (own || torrent->missing.has(ask.chunk))'
caught_by unit_swarm 'is asked of another'

mutant own-never-asked 'a warm-up: a client does not ask for its own chunks, and stands out'
file swarm/peer/downloader.cc
old 'const bool own = ordered && warmup->own() == id;'
new 'const bool own = ordered && warmup->own() == torrent.id && torrent.size == 0;'
caught_by unit_swarm 'about as often as others do'

mutant forgiven 'a warm-up: a new link makes strikes forgotten'
file swarm/peer/peer.cc
old 'std::max(neighbour->second.strikes, member.strikes(linked.peer));'
new 'std::min(neighbour->second.strikes, member.strikes(linked.peer));'
caught_by unit_swarm 'is not forgiven'

mutant strangers-served 'a warm-up: whoever is linked gets chunks'
file swarm/peer/book.cc
old 'return warmup->is_neighbour(peer) && warmup->shows'
new 'return warmup->shows'
caught_by unit_swarm 'nobody but a neighbour'

mutant slow-is-silent 'a warm-up: a slow line is taken for a silent one'
file swarm/warmup/round_warmup.cc
old 'most_sent_(config.nodes, kFirst)'
new 'most_sent_(config.nodes, kFirst + 6)'
caught_by unit_swarm 'a slow line is not taken'

mutant unwanted-offered 'a swarm: the coordinator offers a client chunks that it does not want'
file swarm/peer/torrent.cc
old '    if (!share.wants.has(chunk) || share.offers.contains(chunk)) return;'
new '    if (share.offers.contains(chunk)) return;'
caught_by unit_swarm 'chunks that nobody wants'
caught_by unit_sim 'devices that want parts of a model'

mutant commonest-first 'a peer asks for any chunk before the rarest'
file swarm/peer/torrent.cc
old 'std::pair(copies[which], order[which]);'
new 'std::pair(order[which], copies[which]);'
caught_by unit_swarm 'the rarest chunk'

mutant swarm-unsent-leak 'chunks of a closed object count for ever as waiting on the line of a neighbour'
file swarm/peer/torrent.cc
old '  neighbour.unsent -= share.unsent;  // its link refuses them
'
new ''
caught_by unit_swarm 'peer: chunks that a closed object leaves unsent'

mutant reopened-unanswered 'who opens an object anew does not learn what its neighbours hold'
file swarm/peer/peer.cc
old 'if (!std::exchange(share->heard, true) || anew)'
new 'if (!std::exchange(share->heard, true))'
caught_by unit_swarm 'peer: who opens an object anew'

mutant reopened-remembered 'who opens an object anew is told that it has the chunks already'
file swarm/peer/torrent.cc
old '  share.given = ChunkSet(share.given.size());
'
new ''
caught_by unit_swarm 'peer: who opens an object anew'

mutant reopened-offers 'a seeder waits for answers to offers that a neighbour has forgotten'
file swarm/peer/torrent.cc
old '  while (!share.offers.empty()) withdraw_offer(share, share.offers.begin()->first);
  share.given = '
new '  share.given = '
caught_by unit_swarm 'torrent: a neighbour that has forgotten'

mutant reopened-for-ever 'who opens an object anew gets its chunks again without a limit'
file swarm/peer/peer.cc
old 'if (costs && ++share.reopenings > rules_.reopenings)'
new 'if (costs && ++share.reopenings > 1000 * rules_.reopenings)'
caught_by unit_swarm 'peer: who opens an object anew'

mutant ended-is-a-lie 'who ends its exchange is blamed for each request that it refuses'
file swarm/peer/peer_chunks.cc
old 'lied = lied || ++share->refusals > kFewestAsked + neighbour.received / torrent->length(chunk);'
new 'lied = ++share->refusals > 0;'
caught_by unit_swarm 'peer: who ends its exchange'

mutant ended-for-nothing 'who announces chunks and refuses them may do so again and again'
file swarm/peer/peer_chunks.cc
old '++share->refusals > kFewestAsked'
new '++share->refusals > 1000 + kFewestAsked'
caught_by unit_swarm 'who says that it has everything and refuses'

mutant unchanged-opened-anew 'a complete object that is opened again is announced again to all neighbours'
file swarm/exchange.cc
old '  if (stays_open(object)) {'
new '  if (stays_open(object) && object.wanted.empty()) {'
caught_by unit_swarm 'exchange: a complete object'
