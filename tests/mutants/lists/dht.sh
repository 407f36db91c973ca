# shellcheck shell=bash
# Mutants of dht/.

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

mutant ids-unbound 'A6: in the simulated overlay a contact claims an id that is not its own'
file dht/overlays/kademlia.h
old '    return !protections_.bound_ids || identities_.genuine(contact);'
new '    return !protections_.bound_ids || identities_.genuine(contact) || contact.known();'
caught_by unit_sim 'bound ids'

mutant no-token-needed 'A6: in the simulated overlay a stranger gets more than it has sent'
file dht/overlays/node.cc
old '  if (options_.protections.tokens && request.token != token_of(request.from.address)) {
'
new '  if (options_.protections.tokens && request.token + 1 == token_of(request.from.address)) {
'
caught_by unit_sim 'tokens'

mutant paths-meet 'A6: disjoint paths of a look-up share nodes'
file dht/overlays/disjoint_search.cc
old '        if (path_of(contact->address) != nullptr || crowded(*contact)) {
'
new '        if (crowded(*contact)) {
'
caught_by unit_sim 'disjoint paths'

mutant answer-in-anothers-place 'A6: a look-up waits for ever for an answer that came from somebody else'
file dht/overlays/node.cc
old '  if (message.retry || message.from != request.to) return silent(request);'
new '  if (message.retry) return silent(request);'
caught_by unit_sim 'row 61: a node that is not who was asked for|row 61: bound ids'
