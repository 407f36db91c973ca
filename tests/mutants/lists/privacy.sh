# shellcheck shell=bash
# What a member of a secure sum insists on, and what a sum must be.

mutant secure-believes-keys 'a member masks with keys that nobody has signed'
file privacy/secure_aggregation/client_checks.cc
old '    if (!verify_keys(peer.identity, context_, peer.client, peer.keys))'
new '    if (peer.keys.fast_aes && !peer.keys.fast_aes)'
caught_by unit_privacy 'hostile coordinator'

mutant secure-vouches-for-all 'a member takes any node key for that client'\''s'
file privacy/secure_aggregation/client_checks.cc
old '    if (terms_.vouch) FEDGE_TRY_VOID(terms_.vouch(peer.client, peer.identity));'
new ''
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

mutant secure-any-coverage 'a masked update may cover what it likes'
file server/engine/secure_round.cc
old '  if (offer.update.coverage != *masked)'
new '  if (offer.update.coverage.empty())'
caught_by unit_server 'secure round'

mutant secure-forgets-keys 'a client takes another key for one that it knows'
file client/secure/known_clients.cc
old '  if (known->second == key) return {};'
new '  if (known->second == key || !is_new) return {};'
caught_by unit_client 'known clients'

mutant secure-restart-keeps-sum 'a coordinator that was gone goes on with the masks of before'
file server/engine/round_engine.cc
old '  if (rules_.masked && phase_ == Phase::kCollecting) begin_anew(effects);'
new ''
caught_by unit_server 'round engine'

mutant secure-answers-twice 'a client helps to take the masks of one round away twice'
file client/secure/daemon_secure.cc
old '  if (prepared.answered->has(task.task()))'
new '  if (prepared.answered->has(task.task()) && run.value() == 0)'
caught_by unit_client 'daemon: for a round'
