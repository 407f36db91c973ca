# shellcheck shell=bash
# Mutants of the rotation of a coordinator's key, and of what clients store of their coordinator.

mutant accept-a-former-key 'a client goes on to accept a key that was replaced'
file client/membership.cc
old '  coordinator_key = key;
  next_key.reset();'
new '  next_key = coordinator_key;
  coordinator_key = key;'
caught_by unit_client 'contact: an announced key is accepted once'

mutant keep-a-withdrawn-key 'a client keeps an announced key that was withdrawn'
file client/device/coordinator_link.cc
old '  const bool key = changed.next_key != context_.membership.next_key;'
new '  if (!changed.next_key) changed.next_key = context_.membership.next_key;
  const bool key = changed.next_key != context_.membership.next_key;'
caught_by unit_client 'contact: a key that was not announced'

mutant tell-before-storing 'a client says that it has a key before it has stored it'
file client/device/coordinator_link.cc
old '  if (addresses || key || contact.next_key) store_membership();'
new '  if (contact.next_key) link_->send(protocol::ContactKept{*contact.next_key});
  if (addresses || key || contact.next_key) store_membership();'
caught_by unit_client 'contact: an announced key is accepted once'

mutant store-every-contact 'a coordinator can make a client write without end'
file client/device/coordinator_link.cc
old '  if (++contacts_ > kMostContacts) {'
new '  if (++contacts_ > 100 * kMostContacts) {'
caught_by unit_client 'contact: a coordinator that changes its mind'

mutant another-coordinator-by-its-key 'N1: a coordinator that replaces its key gets a second sum of the same update'
file client/membership.h
old '  const PublicKey& identity() const { return first_key ? *first_key : coordinator_key; }'
new '  const PublicKey& identity() const { return coordinator_key; }'
caught_by unit_client 'daemon: a coordinator that has replaced its key'

mutant forget-the-address-in-use 'a client forgets the only address that answers'
file client/device/coordinator_link.cc
old '    if (std::ranges::find(changed.coordinators, here_) == changed.coordinators.end()) {'
new '    if (changed.coordinators.empty()) {'
caught_by unit_client 'contact: a client follows its coordinator'

mutant start-with-a-former-key 'a coordinator starts with a key that was replaced'
file server/enrolment.cc
old '  if (!is_bound(bound))
    return Error'
new '  if (before.marks.coordinator.empty() && !is_bound(bound))
    return Error'
caught_by unit_server 'key: an older copy of the book or of the key'

mutant repair-a-foreign-book "another coordinator's enrolment book gets this one's clients"
file server/enrolment.cc
old '  std::string bound = before.marks.coordinator.empty()'
new '  FEDGE_TRY_VOID(catch_up());
  std::string bound = before.marks.coordinator.empty()'
caught_by unit_server "key: another coordinator's enrolment book"

mutant leave-a-rotation-halfway 'the key in force is lost when a command follows an interrupted rotation'
file server/contact/key_rotation.cc
old '  FEDGE_TRY_VOID(enrolment.catch_up());
'
new ''
caught_by unit_server 'key: a rotation that a crash interrupts'

mutant announce-a-known-key 'an operator who announces a key because of a leak gets one that has leaked'
file server/contact/key_rotation.cc
old '  if (announced)
    return Error'
new '  if (announced) return announced->public_key();
  if (announced)
    return Error'
caught_by unit_server "key: the announced key is the owner's file"

mutant rotate-untold 'a key becomes that of a coordinator that has told nobody of it'
file server/api/access/key.cc
old '  if (!live || live->told_key() == next) return {};'
new '  if (!live || live->told_key()) return {};'
caught_by unit_server 'key api: nothing becomes the key'

mutant serve-any-key 'a key that was put there by hand is served to clients that refuse it'
file server/contact/contact_keeper.cc
old '  if (key.public_key() != in_force)'
new '  if (key.public_key() == in_force)'
caught_by unit_server 'contact keeper: a key that somebody puts there'

mutant greet-with-a-former-key 'a client is told over the former key that no next key is announced'
file server/coordinator/gatekeeper.cc
old '  if (!options_.is_current(*link)) return dismiss(link, kKeyReplaced);
'
new ''
caught_by integration_federation 'contact: a connection whose handshake'

mutant tell-older-clients 'older clients are disconnected by a message that they do not know'
file server/coordinator/coordinator.cc
old '  if (understands_contact(hello)) {'
new '  if (understands_contact(hello) || peers_.find(client)) {'
caught_by integration_federation 'contact: only a client that understands it'

mutant keep-a-thiefs-key 'a device that its owner moves still accepts a key that a thief has announced'
file client/discovery/move.cc
old '    *order.key == membership.coordinator_key ? membership.next_key.reset()'
new '    *order.key == membership.coordinator_key ? void()'
caught_by unit_client 'move: the key that the owner names'

mutant rotate-unseen 'a backup of the book before a rotation is not repaired from the log'
file server/store/book_history.cc
old '         action == kKeyRotated || changes_access(action);'
new '         changes_access(action);'
caught_by unit_server 'key: an older copy of the book or of the key'
