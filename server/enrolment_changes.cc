// Enrolment, part 2: what operators and joining devices change.
#include <algorithm>
#include <utility>

#include "core/crypto/random.h"
#include "core/text.h"
#include "server/enrolment.h"
#include "server/store/detail/access_rows.h"
#include "server/store/detail/book_events.h"
#include "server/store/detail/book_history.h"
#include "server/store/detail/join_refusals.h"
#include "server/store/detail/logged_book.h"

namespace fedge::server {
namespace {

constexpr std::size_t kSecretBytes = 32;

std::string client_name(ClientId client) { return "client " + std::to_string(client.value()); }
Error no_client(ClientId client) {
  return {ErrorCode::kNotFound,
          "there is no " + client_name(client) + "; list clients with: fedge client ls"};
}

Result<void> check_description(const BookRows& rows, const ClientDescription& description) {
  FEDGE_TRY_VOID(check_client_name(description.name));
  FEDGE_TRY(labels, checked_labels(description.labels));
  if (labels != description.labels) return invalid("the labels of a client must be ascending and distinct");
  FEDGE_TRY(exists, AccessRows(rows).has_project(description.project));
  if (exists) return {};
  return Error{ErrorCode::kNotFound,
               "there is no project '" + clean_text(description.project, 80) + "'; see: fedge project ls"};
}

}  // namespace

Result<void> Enrolment::change_coordinator(const PublicKey& present, const PublicKey& next,
                                           const AuditDetails& details) {
  return book_->update([&](BookRows& rows) -> Result<std::optional<AuditEvent>> {
    std::string& bound = rows.marks.coordinator;
    if (bound == to_hex(next)) return std::optional<AuditEvent>();
    if (bound != to_hex(present)) return refused("the enrolment book belongs to another coordinator");
    bound = to_hex(next);
    AuditDetails all{{"former", to_hex(present)}};
    all.insert(all.end(), details.begin(), details.end());
    return std::optional(event_by(actor_, kKeyRotated, "key " + bound, std::move(all)));
  });
}

Result<NewToken> Enrolment::create_token(UnixSeconds now, std::chrono::seconds lifetime) {
  FEDGE_TRY(tokens, create_tokens({.now = now, .lifetime = lifetime}));
  return tokens.front();
}

Result<std::vector<NewToken>> Enrolment::create_tokens(const TokenOrder& order) {
  if (order.count == 0 || order.uses == 0) return invalid("a token must have at least one use");
  if (order.replaces && (order.count != 1 || order.uses != 1))
    return invalid("a token that replaces a client has one use");
  std::vector<NewToken> tokens;
  FEDGE_TRY_VOID(book_->update([&](BookRows& rows) -> Result<std::optional<AuditEvent>> {
    FEDGE_TRY_VOID(check_description(rows, order.description));
    if (order.replaces) {
      FEDGE_TRY(known, rows.find_client(*order.replaces));
      if (!known) return no_client(*order.replaces);
      if (known->description.project != order.description.project) return refused(kMoved);
    }
    for (std::size_t i = 0; i < order.count; ++i) {
      const bool promises = order.uses == 1 && !order.replaces;
      const auto promised = promises ? std::optional(rows.take_client()) : std::nullopt;
      tokens.push_back({rows.take_token(), promised, random_hex(kSecretBytes)});
      FEDGE_TRY_VOID(rows.put(TokenRecord{.id = tokens.back().id,
                                          .client = promised,
                                          .secret_hash = secret_hash(tokens.back().secret),
                                          .created = order.now,
                                          .expires = order.now + order.lifetime.count(),
                                          .uses = order.uses,
                                          .approve = order.approve,
                                          .description = order.description,
                                          .replaces = order.replaces}));
    }
    return std::optional(tokens_created(actor_, tokens, order));
  }));
  return tokens;
}

Result<Standing> Enrolment::redeem(const Redemption& redemption) {
  Standing standing;
  std::optional<Error> refusal;
  const auto refuse = [&](const char* reason) { return *(refusal = refused(reason)); };
  const auto done = book_->update([&](BookRows& rows) -> Result<std::optional<AuditEvent>> {
    FEDGE_TRY(token, rows.find_secret(secret_hash(redemption.secret)));
    if (!token) return refuse("this coordinator does not know the join token");
    if (token->revoked) return refuse(kTokenRevoked);
    FEDGE_TRY(known, rows.find_key(redemption.key));
    if (known) {
      if (known->state == ClientState::kRevoked) return refuse(kKeyRevoked);
      if (known->token != token->id) return refuse(kOtherToken);
      standing = {known->client, known->state == ClientState::kPending, false, known->description.project};
      return std::optional<AuditEvent>();
    }
    FEDGE_TRY(retired, rows.is_retired(redemption.key));
    if (retired) return refuse(kKeyRetired);
    if (const char* reason = objection(*token, redemption.now)) return refuse(reason);
    ++token->used;
    const auto number = token->replaces ? token->replaces : token->client;
    ClientRecord client{.client = number ? *number : rows.take_client(),
                        .key = redemption.key,
                        .enrolled = redemption.now,
                        .token = token->id,
                        .state = token->approve ? ClientState::kPending : ClientState::kEnrolled,
                        .household = redemption.household,
                        .description = token->description};
    FEDGE_TRY_VOID(rows.put(*token));
    std::optional<PublicKey> former;
    if (token->replaces) {
      FEDGE_TRY(before, rows.find_client(*token->replaces));
      if (!before) return no_client(*token->replaces);
      // Its present project has not asked for this.
      if (before->description.project != token->description.project) return refuse(kMoved);
      former = before->key;
      client.description = before->description;
      FEDGE_TRY_VOID(rows.put(RetiredKey{*former, client.client}));
    }
    FEDGE_TRY_VOID(rows.put(client));
    standing = {client.client, token->approve, true, client.description.project};
    return std::optional(former ? client_replaced(client, *former, redemption)
                                : client_enrolled(client, redemption));
  });
  if (refusal) return *refusal;
  if (!done) return unavailable(done.error());
  return standing;
}

Result<ClientId> Enrolment::add(const PublicKey& key, UnixSeconds now, const ClientDescription& description) {
  ClientId client;
  FEDGE_TRY_VOID(book_->update([&](BookRows& rows) -> Result<std::optional<AuditEvent>> {
    FEDGE_TRY(known, rows.find_key(key));
    if (known)
      return Error{ErrorCode::kRefused, "this key belongs to " + client_name(known->client) + ", which is " +
                                            to_string(known->state)};
    FEDGE_TRY(retired, rows.is_retired(key));
    if (retired) return refused(kKeyRetired);
    FEDGE_TRY_VOID(check_description(rows, description));
    client = rows.take_client();
    FEDGE_TRY_VOID(
        rows.put(ClientRecord{.client = client, .key = key, .enrolled = now, .description = description}));
    AuditDetails details = {{"key", to_hex(key)}};
    add_description(description, details);
    return std::optional(event_by(actor_, "client.added", client_name(client), std::move(details)));
  }));
  return client;
}

Result<void> Enrolment::describe(ClientId client, const DescriptionChange& change) {
  return book_->update([&](BookRows& rows) -> Result<std::optional<AuditEvent>> {
    FEDGE_TRY(record, rows.find_client(client));
    if (!record) return no_client(client);
    ClientDescription& now = record->description;
    const ClientDescription before = now;
    if (change.name) now.name = *change.name;
    if (change.labels) now.labels = *change.labels;
    if (change.project) now.project = *change.project;
    if (now == before) return std::optional<AuditEvent>();
    FEDGE_TRY_VOID(check_description(rows, now));
    FEDGE_TRY_VOID(rows.put(*record));
    return std::optional(
        event_by(actor_, "client.described", client_name(client),
                 {{"name", now.name}, {"labels", joined_labels(now.labels)}, {"project", now.project}}));
  });
}

Result<std::optional<std::uint32_t>> Enrolment::revoke(ClientId client, bool keep_token) {
  std::optional<std::uint32_t> closed;
  FEDGE_TRY_VOID(book_->update([&](BookRows& rows) -> Result<std::optional<AuditEvent>> {
    FEDGE_TRY(promise, rows.find_promise(client));
    FEDGE_TRY(record, rows.find_client(client));
    if (!promise && !record) return no_client(client);
    if (record && !promise && !keep_token) {
      FEDGE_TRY(came_by, rows.find_token(record->token));
      promise = came_by;
    }
    const bool was_revoked = !record || record->state == ClientState::kRevoked;
    if (was_revoked && (!promise || promise->revoked))
      return invalid(client_name(client) + " is already revoked");
    if (!was_revoked) {
      record->state = ClientState::kRevoked;
      FEDGE_TRY_VOID(rows.put(*record));
    }
    AuditEvent event = event_by(actor_, "client.revoked", client_name(client));
    std::string revoked;
    if (promise && !promise->revoked) {
      promise->revoked = true;
      if (promise->used < promise->uses) closed = promise->id;
      FEDGE_TRY_VOID(rows.put(*promise));
      revoked = std::to_string(promise->id);
    }
    // A token for its replacement was given out before the revocation.
    FEDGE_TRY(replacements, rows.replacements_of(client));
    for (TokenRecord& token : replacements) {
      token.revoked = true;
      FEDGE_TRY_VOID(rows.put(token));
      revoked += (revoked.empty() ? "" : ", ") + std::to_string(token.id);
    }
    if (!revoked.empty()) event.details.emplace_back("token_revoked", revoked);
    return std::optional(event);
  }));
  return closed;
}

Result<void> Enrolment::readmit(ClientId client) {
  return book_->update([&](BookRows& rows) -> Result<std::optional<AuditEvent>> {
    FEDGE_TRY(record, rows.find_client(client));
    if (!record) return no_client(client);
    if (record->state != ClientState::kRevoked)
      return invalid(client_name(client) + " is not revoked; its state is " + to_string(record->state));
    record->state = ClientState::kEnrolled;
    FEDGE_TRY_VOID(rows.put(*record));
    return std::optional(
        event_by(actor_, "client.readmitted", client_name(client), {{"key", to_hex(record->key)}}));
  });
}

Result<void> Enrolment::revoke_token(std::uint32_t id) {
  return book_->update([&](BookRows& rows) -> Result<std::optional<AuditEvent>> {
    FEDGE_TRY(token, rows.find_token(id));
    if (!token)
      return Error{ErrorCode::kNotFound, "there is no token " + std::to_string(id) + "; see: fedge token ls"};
    token->revoked = true;
    FEDGE_TRY_VOID(rows.put(*token));
    return std::optional(event_by(actor_, "token.revoked", "token " + std::to_string(id)));
  });
}

Result<void> Enrolment::approve(ClientId client) {
  return book_->update([&](BookRows& rows) -> Result<std::optional<AuditEvent>> {
    FEDGE_TRY(record, rows.find_client(client));
    if (!record) return no_client(client);
    if (record->state != ClientState::kPending)
      return invalid(client_name(client) + " does not wait for approval; its state is " +
                     to_string(record->state));
    record->state = ClientState::kEnrolled;
    FEDGE_TRY_VOID(rows.put(*record));
    AuditDetails details = {{"key", to_hex(record->key)}};
    add_description(record->description, details);
    return std::optional(event_by(actor_, "client.approved", client_name(client), std::move(details)));
  });
}

Result<Withdrawn> Enrolment::restored(const Restoration& restoration) {
  Withdrawn withdrawn;
  FEDGE_TRY_VOID(book_->update([&](BookRows& rows) -> Result<std::optional<AuditEvent>> {
    AuditDetails details = restoration.details;
    if (!restoration.nothing_since) {
      FEDGE_TRY(revoked, revoke_all_open(rows));
      withdrawn = {revoked.first, revoked.second};
      rows.marks.next_client += restoration.skipped_numbers;
      rows.marks.next_token += restoration.skipped_numbers;
      rows.marks.next_access += restoration.skipped_numbers;
    }
    details.emplace_back("next_client", std::to_string(rows.marks.next_client));
    details.emplace_back("next_token", std::to_string(rows.marks.next_token));
    details.emplace_back("next_access", std::to_string(rows.marks.next_access));
    details.emplace_back("tokens_revoked", restoration.nothing_since ? "no" : "yes");
    return std::optional(event_by(actor_, "backup.restored", "data directory", std::move(details)));
  }));
  return withdrawn;
}

}  // namespace fedge::server
