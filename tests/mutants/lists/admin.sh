# shellcheck shell=bash
# The admin API: roles, projects, access tokens, and the HTTP server under it.

mutant api-role-not-compared 'a viewer may pause runs and revoke clients'
file server/api/call.cc
old '  if (request.principal.may(role, project)) return {};'
new '  if (request.principal.may(role < Role::kOperator ? role : Role::kViewer, project)) return {};'
caught_by unit_server 'every route does what it does for its role'

mutant api-projects-visible 'objects of other projects are shown'
file server/api/call.cc
old '  if (!sees(project)) return missing;'
new '  if (project.empty()) return missing;'
caught_by unit_server 'objects do not exist for a user of another project'

mutant api-everywhere-anywhere 'an administrator of one project manages all users'
file server/api/routes.cc
old 'route.everywhere ? !sender.may_everywhere(route.role)'
new 'route.everywhere ? !sender.may_somewhere(route.role)'
caught_by unit_server 'every route does what it does for its role'

mutant api-client-given-away 'a client is moved into a project of others'
file server/api/clients.cc
old '  if (change.project) FEDGE_TRY_VOID(call.require_project(Role::kOperator, *change.project));'
new ''
caught_by unit_server 'objects do not exist for a user of another project'

mutant api-unknown-fields 'a misspelt field is ignored'
file server/api/schemas.cc
old '    if (field == schema.fields.end()) {'
new '    if (field == schema.fields.end()) continue;
    if (schema.fields.empty()) {'
caught_by unit_server 'wrong parameters and bodies are refused'

mutant api-lost-update 'a change of somebody else is overwritten'
file server/api/routes.cc
old 'request.if_match != "*" && !is_unchanged(request)'
new 'request.if_match != "*" && false'
caught_by unit_server 'a tag says whether something has changed'

mutant api-key-of-anybody 'one sender gets the run of another'
file server/api/runs.cc
old 'sha256("fedge run\n" + call.actor().name + "\n" + key)'
new 'sha256("fedge run\n" + key)'
caught_by unit_server 'a submission that is repeated with its key is one run'

mutant access-removed-user 'a removed user still has access'
file server/access_control.cc
old 'found == known_.end() || found->second.user.removed'
new 'found == known_.end()'
caught_by unit_server 'access control: a token makes its bearer'

mutant access-never-expires 'an access token lasts too long'
file server/access_control.cc
old '  if (now > token.expires)'
new '  if (now > token.expires + 100'"'"'000'"'"'000)'
caught_by unit_server 'access control: a token makes its bearer'

mutant access-token-unlimited 'a token gives more than its role'
file server/access/users.cc
old '    for (Grant& grant : grants) grant.role = std::min(grant.role, *token.role);'
new '    for (Grant& grant : grants) grant.role = std::max(grant.role, *token.role);'
caught_by unit_server 'access control: a token gives at most its role'

mutant access-stale-look 'a revocation by another process does not count'
file server/access_control.cc
old '  if (!replaced && now->marks.change == seen_) return {};'
new '  if (!replaced && seen_ >= 0) return {};'
caught_by unit_server "access control: another process's change"

mutant access-removal-lost 'a removed user is back after a restore'
file server/store/book_history.cc
old '    user->removed = user->removed || event.action == "user.removed";'
new ''
caught_by unit_server 'access control: after an older book was restored'

mutant access-revocation-lost 'a revoked token is valid after a restore'
file server/store/book_history.cc
old '  if (event.action != "access.revoked") return {};'
new '  if (event.action != "access.revoked" || !numbers.empty()) return {};'
caught_by unit_server 'access control: after an older book was restored'

mutant http-body-unbounded 'a body above the limit is read'
file server/http/http_connection.cc
old '  if (request_.announced_body > admission.most_body)'
new '  if (request_.announced_body > admission.most_body + (1U << 30))'
caught_by unit_server 'http server: a body'

mutant http-refused-body-read 'the body of a refused request is the next request'
file server/http/http_connection.cc
old 'request_.keep_alive && request_.announced_body == 0'
new 'request_.keep_alive'
caught_by unit_server "http server: a refused request's body"

mutant http-body-forever 'a body that does not come is waited for'
file server/http/http_connection.cc
old '    if (pending_.size() / kFilePiece != left_over_) {'
new '    if (pending_.size() / kFilePiece == left_over_) timer_.cancel();
    if (pending_.size() / kFilePiece != left_over_) {'
caught_by unit_server 'http server: a body that does not come'

mutant http-socket-open 'every user may connect to the Unix socket'
file server/http/http_server.cc
old '::umask(0177)'
new '::umask(0)'
caught_by unit_server 'http server: a Unix socket says who'

mutant http-streams-unbounded 'events for a watcher that falls behind fill the memory'
file server/http/http_connection.cc
old '    if (queued_.size() > most_) open_ = false;'
new '    if (queued_.size() > most_ * 1000) open_ = false;'
caught_by unit_server 'http server: a watcher that hangs up'

mutant http-streams-give-way 'a stream gives way to further connections'
file server/http/http_server.cc
old '      if (connection->is_serving()) continue;'
new ''
caught_by unit_server 'http server: streams do not give way'

mutant http-old-tls 'TLS 1.2 is accepted'
file server/http/http_identity.cc
old 'SSL_CTX_set_min_proto_version(raw, TLS1_3_VERSION)'
new 'SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION)'
caught_by unit_server 'http server: TLS 1.3'

mutant watch-ends-other-tasks 'a buffer that closes makes the tasks of other clients late'
file server/live/run_watch.cc
old '    if (!buffered_ && task->first.second == turn.task())'
new '    if (task->first.second == turn.task())'
caught_by unit_server 'run watch: a buffer that closes'

mutant watch-forgets-the-begin 'a client that returns to its task seems to have begun anew'
file server/live/run_watch.cc
old '.asked = known ? task.asked : now,'
new '.asked = now,'
caught_by unit_server 'run watch: a client that returns'

mutant watch-waits-anew 'a run that waits seems to wait only since the last client came'
file server/live/run_watch.cc
old '  const Time since = waiting_ ? waiting_->since : now;'
new '  const Time since = now;'
caught_by unit_server 'run watch: who takes part'

mutant fleet-online-twice 'a client with two links counts as two'
file server/live/fleet.cc
old '  if (activity.online_since == 0) ++online_;'
new '  ++online_;'
caught_by unit_server 'is online once'

mutant fleet-idle-not-seen 'the file says that a connected client was last seen when it connected'
file server/live/fleet.cc
old '    if (activity.online_since != 0) activity.last_seen = now;
    changed.push_back(activity);'
new '    (void)now;
    changed.push_back(activity);'
caught_by unit_server 'fleet: only what has changed is written'

mutant feed-gap-hidden 'a reader is not told that events were dropped'
file server/live/event_feed.cc
old 'events_.front().id > id + 1'
new 'events_.front().id > id + 2'
caught_by unit_server 'event feed'

mutant feed-project-of-the-client 'an event of a foreign run is shown to the project of its client'
file server/live/live.cc
old '    else if (!one.run && known != projects_.end())'
new '    else if (known != projects_.end())'
caught_by unit_server 'live: an event belongs'

mutant streams-other-projects 'whoever views one project gets the events of all'
file server/api/event_streams.cc
old ': watcher.sender.may(Role::kViewer, event.project);'
new ': watcher.sender.may_somewhere(Role::kViewer);'
caught_by unit_server 'event streams: a watcher gets'

mutant streams-outlive-tokens 'a stream goes on after its token was revoked'
file server/api/event_streams.cc
old '  watcher.stream->end();
  return false;'
new '  return true;'
caught_by unit_server 'event streams: a revocation'

mutant replaced-key-joins-again 'a replaced device comes back with another token'
file server/enrolment_changes.cc
old '    if (retired) return refuse(kKeyRetired);'
new '    (void)retired;'
caught_by unit_server 'replacement: the new device'

mutant replaced-key-stays 'a running coordinator lets the replaced device in'
file server/enrolment.cc
old '    index_[retired.key] = {.client = retired.client, .key = retired.key, .state = ClientState::kRevoked};
    retired_.insert(retired.key);'
new ''
caught_by unit_server 'replacement: the new device'

mutant replacement-lost 'after an older book was put back, the replaced device is in again'
file server/store/book_history.cc
old '  if (event.action == "client.replaced") return replace_again(rows, entry, known);
'
new '  if (event.action == "client.replaced" && rows.marks.change < 0) return replace_again(rows, entry, known);
'
caught_by unit_server 'replacement: holds after an older copy'

mutant replacement-across-projects 'a token of the former project still replaces a client that was moved'
file server/enrolment_changes.cc
old '      if (before->description.project != token->description.project) return refuse(kMoved);'
new ''
caught_by unit_server 'replacement: a token is void'

mutant replacement-outlives-revocation 'a token for a replacement brings a revoked client back'
file server/enrolment_changes.cc
old '      token.revoked = true;'
new ''
caught_by unit_server 'replacement: a revocation also closes'

mutant retired-keys-are-clients 'a coordinator that starts counts a replaced key as a client less'
file server/enrolment.cc
old '    if (former != index_.end()) enrolled_ -= counts(former->second);'
new '    enrolled_ -= former != index_.end() ? counts(former->second) : 1;'
caught_by unit_server 'replacement: a coordinator that starts later'

mutant fleet-shows-former-project 'what a client did for one project is shown to the next'
file server/live/fleet.cc
old '  if (!activity.project.empty()) forget_tasks(activity);'
new ''
caught_by unit_server 'fleet: what a client did for one project'

mutant watch-counts-attempts 'an update counts once for each attempt at a secure sum'
file server/live/run_watch.cc
old 'if (ended_ && stage != TaskStage::kAccepted) told_.push_back(ended);'
new 'if (ended_) told_.push_back(ended);'
caught_by unit_server 'run watch: a secure sum'

mutant watch-believes-failures 'a failure that the engine ignores counts'
file server/live/run_watch.cc
old 'task->second.stage == TaskStage::kUploading) return;'
new 'false) return;'
caught_by unit_server 'run watch: a failure that the engine'

mutant streams-without-limit 'one user takes all connections for streams'
file server/api/event_streams.cc
old 'static_cast<std::size_t>(of_user) >= kMostOfUser'
new 'static_cast<std::size_t>(of_user) > 4 * kMostOfUser'
caught_by unit_server 'event streams: one user'

mutant http-strangers-known 'whoever fetches an open page pushes out those who have logged in'
file server/http/http_connection.cc
old '  known_ = known_ || admission.known;'
new '  known_ = true;'
caught_by unit_server 'http server: whoever has only fetched'

mutant http-body-gives-way 'a request whose body is arriving is ended by strangers'
file server/http/http_connection.cc
old '  serving_ = admission.known;  // also while its body arrives'
new ''
caught_by unit_server 'http server: a known sender whose body'

mutant oidc-signature-not-checked 'a token of the identity provider counts without a right signature'
file server/access/oidc/signed_token.cc
old '  if (!key->verifies(header.algorithm, parts.covered, signature)) return refused("its signature is wrong");'
new '  if (!key->fits(header.algorithm) || signature.empty()) return refused("its signature is wrong");'
caught_by unit_server 'signed token'

mutant oidc-any-audience 'a token for another service counts'
file server/access/oidc/claims.cc
old '  if (!is_for(claims, expected.audience))'
new '  if (!claims.contains("aud") && !is_for(claims, expected.audience))'
caught_by unit_server 'the audience is the coordinator'

mutant oidc-cache-outlives-keys 'a token that was accepted once counts after its key was taken away'
file server/access/oidc/token_verifier.cc
old '  known_.clear();
  order_.clear();'
new ''
caught_by unit_server 'a changed key set counts at once'

mutant oidc-cache-without-expiry 'a token that was accepted once counts for ever'
file server/access/oidc/token_verifier.cc
old '    FEDGE_TRY_VOID(check_expiry(found->second.expires, now));'
new ''
caught_by unit_server 'a token names its user until it expires'

mutant oidc-removed-user 'a removed user comes back with a token of the identity provider'
file server/access_control.cc
old '  if (found == users_.end() || found->second.removed)
    return Error{ErrorCode::kRefused, "this coordinator has no user'
new '  if (found == users_.end())
    return Error{ErrorCode::kRefused, "this coordinator has no user'
caught_by unit_server 'makes its bearer the user of the book'

mutant api-page-of-nothing 'a page without items is asked for, and ends the coordinator'
file server/api/detail/call.h
old 'query_number("limit", kPageDefault, kPageMost, 1)'
new 'query_number("limit", kPageDefault, kPageMost, 0)'
caught_by unit_server 'fuzz corpus: every recorded request to the admin API'

mutant api-join-tokens-of-others 'join tokens of other projects are listed'
file server/api/access/join_tokens.cc
old '    if (token.id <= after || !call.request.principal.may(Role::kOperator, token.description.project))'
new '    if (token.id <= after)'
caught_by unit_server 'fuzz corpus: every recorded request to the admin API'

mutant api-revokes-clients-of-others 'an operator revokes a client of another project'
file server/api/clients.cc
old '  FEDGE_TRY_VOID(call.require(Role::kOperator, description.project, no_such_client(id)));'
new '  if (description.project.empty()) return no_such_client(id);'
caught_by unit_server 'fuzz corpus: every recorded request to the admin API'

mutant api-undocumented-field 'an answer has a field that the document lacks'
file server/api/live.cc
old '  json["since"] = calendar_text(transfer.since);'
new '  json["since"] = calendar_text(transfer.since);
  json["address"] = "";'
caught_by unit_server 'fuzz corpus: every recorded request to the admin API'

mutant api-runs-of-former-project 'a client that was moved shows the runs of its former project'
file server/live/live.cc
old 'led.project == project ? led.watch->standing(client) : std::nullopt'
new '!project.empty() ? led.watch->standing(client) : std::nullopt'
caught_by unit_server 'a client that has moved to another project shows no run'
caught_by unit_server 'fuzz corpus: every recorded request to the admin API'
