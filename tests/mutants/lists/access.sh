# shellcheck shell=bash
# Mutants of admission (A1).

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
old '    if (!*current) return being_written();
'
new '    if (!*current || current) return Standing{ClientId(0), false};
'
caught_by unit_server 'enrolment'
caught_by integration_federation 'A1'

mutant let-in-revoked 'A1: a key that was revoked is let in'
file server/enrolment.cc
old '  if (known->second.state == ClientState::kRevoked) return refused(kKeyRevoked);
'
new ''
caught_by unit_server 'enrolment'
caught_by integration_federation 'revoked'

mutant keep-revoked 'A1: a client that is revoked while it is connected stays'
file server/coordinator/gatekeeper.cc
old '    for (const ClientRecord& changed : changes->clients) look_at(changed.client);
'
new '    return report_fault("");
'
caught_by integration_federation 'revoked'

mutant revoked-while-others-look 'A1: who is revoked stays when somebody else connects before the next look'
file server/enrolment.cc
old '  std::ranges::move(fresh->clients, std::back_inserter(news_.clients));'
new '  news_.clients = std::move(fresh->clients);
  if (index_.size() > 0 && !news_.all) news_ = {};'
caught_by unit_server 'what has changed in an enrolment book'

mutant foreign-book-joins 'A1: clients join by a book that took the place of the one in force'
file server/store/logged_book.cc
old '  identity_ = rows.marks.identity;
'
new ''
caught_by unit_server 'nobody joins by another enrolment book'

mutant work-for-revoked 'A1: a client that was revoked since it connected is given work'
file server/coordinator/ports/client_lines.cc
old '  return link && surroundings_.is_welcome(link);'
new '  return link != nullptr;'
caught_by integration_federation 'A1: a client that was revoked since'

mutant skip-hello 'A1: whatever comes first is taken for a hello'
file server/coordinator/gatekeeper.cc
old '                             refuse(alive, invalid('
new '                             if (true) return greet(alive, protocol::Hello{});
                             refuse(alive, invalid('
caught_by integration_federation 'A1'

mutant token-for-ever 'A1: a join token may be used as often as one likes'
file server/enrolment_changes.cc
old '    ++token->used;
'
new ''
caught_by unit_server 'enrolment'

mutant missing-book-is-empty 'A1: an enrolment book that is missing is made anew, and everybody is unknown'
file server/store/enrolment_store.cc
old '      if (seen)
        return Error'
new '      if (seen && former)
        return Error'
caught_by unit_server 'a missing enrolment book'

mutant reread-fault-forgets 'A1: a coordinator that cannot read its enrolment book knows nobody'
file server/enrolment.cc
old '  const auto known = index_.find(key);
  if (known == index_.end()) {'
new '  const auto known = fresh ? index_.find(key) : index_.end();
  if (known == index_.end()) {'
caught_by unit_server 'stays in force'
caught_by integration_federation 'while the enrolment book cannot be read'

mutant unknown-is-refused 'A1: a key that the book does not hold is told what a revoked one is told'
file server/enrolment.cc
old '    return Error{ErrorCode::kNotFound,
                 "this client is not'
new '    return Error{ErrorCode::kRefused,
                 "this client is not'
caught_by unit_server 'an unknown key is not found'
caught_by integration_federation 'whose key the coordinator does not know'

mutant foreign-book-in-force 'A1: another coordinator'\''s book takes the place of the one in force'
file server/store/logged_book.cc
old '  if (!identity_.empty() && rows.marks.identity != identity_)'
new '  if (rows.marks.identity.empty() && rows.marks.identity != identity_)'
caught_by unit_server 'stays in force'

mutant new-identity 'A1: a coordinator whose key is missing makes itself a new one'
file server/data_directory.cc
old '  if (had_key)
    return'
new '  if (had_key && data_directory.empty())
    return'
caught_by unit_server 'a missing node.key'

mutant revoked-ends 'A1: a daemon that is revoked ends, and is started again for ever'
file client/client_engine.cc
old '  end_work(reason, LinkState::kRevoked, effects);
'
new '  end_work(reason, LinkState::kStopped, effects);
  effects.push_back(Finished{});
'
caught_by unit_client 'waits for its owner'

mutant token-used-again 'A1: after a backup of the book a token that was used since then is good once more'
file server/store/book_history.cc
old '  ++token->used;'
new '  if (token->used > token->uses) ++token->used;'
caught_by unit_server 'who has joined since a backup'

mutant unknown-asks-fast 'A6: a client that is not known asks again as fast as one that was cut off'
file client/discovery/backoff.h
old '    asked_ = takes_long ? std::max(window, rules_.unknown) : window;'
new '    asked_ = takes_long ? std::max(window, rules_.first) : window;'
caught_by unit_client 'asks again, slowly, for ever'

mutant revoked-keeps-token 'A1: a token for several uses stays open when a client that knows it is revoked'
file server/enrolment_changes.cc
old '      promise = came_by;
'
new '      if (came_by && came_by->uses == 1) promise = came_by;
'
caught_by unit_server 'token of several uses is closed with it'

mutant number-twice 'A1: after a backup was put back a client number is given twice'
file server/store/book_history.cc
old '    if (detail(event, "uses") == "1" && detail(event, "replaces").empty())
      marks.next_client += numbers.back() - numbers.front() + 1;
'
new ''
caught_by unit_server 'client numbers are never given twice'

mutant revocation-lost 'A1: after a backup was put back who was revoked is let in'
file server/store/book_history.cc
old '    client->state = ClientState::kRevoked;
'
new ''
caught_by unit_server 'who was revoked stays so'

mutant revoked-is-waited-for 'N6: a round waits for a client that was revoked'
file server/engine/round_engine.cc
old '  if (left.for_good) return lose(left.client, TaskState::kFailed, "revoked", context, effects);
'
new ''
caught_by unit_server 'a revoked client.s task ends at once'

mutant foreign-owner 'N5: a tool of another user changes the coordinator'\''s files'
file core/platform/files.cc
old '  if (info.st_uid == ::geteuid()) return {};
'
new '  if (info.st_uid != ::geteuid() || true) return {};
'
caught_by unit_server 'a tool that runs as another user'

mutant owner-lost 'N5: a file that is replaced becomes its writer'\''s'
file core/platform/files.cc
old '    mode = former.st_mode & 07777;
'
new ''
caught_by unit_core 'a file that is replaced keeps its owner and mode'

mutant look-waits 'A6: whoever is looked up waits for those who join'
file server/enrolment.cc
old '  const auto rows = book_->rows(std::chrono::milliseconds(0));'
new '  const auto rows = book_->rows(std::chrono::milliseconds(10));
  if (!rows) return rows.error();'
caught_by unit_server 'a look at the enrolment book'
