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
