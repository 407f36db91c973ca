#include "server/store/detail/book_history.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <utility>

#include "core/crypto/ed25519.h"
#include "server/access/calendar.h"
#include "server/audit_log.h"
#include "server/store/detail/access_rows.h"

namespace fedge::server {
namespace {

// Returns 3 for "client 3", and 4 and 7 for "tokens 4 to 7".
std::vector<std::int64_t> numbers_in(const std::string& subject) {
  std::vector<std::int64_t> numbers;
  const char* at = subject.data();
  const char* const end = at + subject.size();
  while (at != end) {
    std::int64_t number = 0;
    const auto parsed = std::from_chars(at, end, number);
    if (parsed.ec == std::errc() && number >= 0) numbers.push_back(number);
    at = parsed.ec == std::errc() ? parsed.ptr : at + 1;
  }
  return numbers;
}

// The numbers of entries whose change failed.
std::set<std::int64_t> failed_in(const std::vector<AuditEntry>& entries) {
  std::set<std::int64_t> failed;
  for (const AuditEntry& entry : entries)
    if (entry.event.action == kChangeFailed)
      for (const std::int64_t number : numbers_in(entry.event.subject)) failed.insert(number);
  return failed;
}

std::string detail(const AuditEvent& event, const std::string& key) {
  for (const auto& [name, value] : event.details)
    if (name == key) return value;
  return "";
}

Result<void> revoke_token_again(BookRows& rows, std::int64_t id) {
  FEDGE_TRY(token, rows.find_token(static_cast<std::uint32_t>(id)));
  if (!token || token->revoked) return {};
  token->revoked = true;
  return rows.put(*token);
}

Result<void> revoke_client_again(BookRows& rows, const AuditEvent& event, ClientId number) {
  FEDGE_TRY(client, rows.find_client(number));
  if (client && client->state != ClientState::kRevoked) {
    client->state = ClientState::kRevoked;
    FEDGE_TRY_VOID(rows.put(*client));
  }
  for (const std::int64_t token : numbers_in(detail(event, "token_revoked")))
    FEDGE_TRY_VOID(revoke_token_again(rows, token));
  FEDGE_TRY(promise, rows.find_promise(number));
  return promise ? revoke_token_again(rows, promise->id) : Result<void>();
}

ClientDescription described_in(const AuditEvent& event) {
  ClientDescription description{detail(event, "name"), split_labels(detail(event, "labels"))};
  if (const std::string project = detail(event, "project"); !project.empty()) description.project = project;
  return description;
}

Result<void> count_use_again(BookRows& rows, std::uint32_t token_id) {
  FEDGE_TRY(token, rows.find_token(token_id));
  if (!token || token->used >= token->uses) return {};
  ++token->used;
  return rows.put(*token);
}

// Gives the client its later key again, and keeps the former one out.
Result<void> replace_again(BookRows& rows, const AuditEntry& entry, std::optional<ClientRecord> client) {
  const AuditEvent& event = entry.event;
  const auto key = parse_public_key(event.actor.starts_with("key ") ? event.actor.substr(4) : "");
  const auto former = parse_public_key(detail(event, "former"));
  if (!client || !key || !former || client->key == *key) return {};
  const auto tokens = numbers_in(detail(event, "token"));
  FEDGE_TRY_VOID(rows.put(RetiredKey{*former, client->client}));
  client->key = *key;
  client->enrolled = parse_calendar_text(entry.time).value_or(calendar_now());
  client->token = tokens.empty() ? 0 : static_cast<std::uint32_t>(tokens.front());
  client->state = detail(event, "approve") == "yes" ? ClientState::kPending : ClientState::kEnrolled;
  client->description = described_in(event);
  FEDGE_TRY_VOID(rows.put(*client));
  return count_use_again(rows, client->token);
}

// Enrols or approves a client again, and counts its use of the token, so that no other client gets the
// number with that token.
Result<void> enrol_again(BookRows& rows, const AuditEntry& entry, ClientId number) {
  const AuditEvent& event = entry.event;
  FEDGE_TRY(known, rows.find_client(number));
  if (event.action == "client.replaced") return replace_again(rows, entry, known);
  if (known && event.action == "client.readmitted") {
    if (known->state != ClientState::kRevoked || to_hex(known->key) != detail(event, "key")) return {};
    known->state = ClientState::kEnrolled;
    return rows.put(*known);
  }
  if (known && event.action == "client.described") {
    known->description = described_in(event);
    return rows.put(*known);
  }
  if (known) {
    if (event.action != "client.approved" || known->state != ClientState::kPending) return {};
    known->state = ClientState::kEnrolled;
    return rows.put(*known);
  }
  // A key that joined with a token is the actor; a key that an operator added or approved is in the
  // details.
  const auto key =
      parse_public_key(event.actor.starts_with("key ") ? event.actor.substr(4) : detail(event, "key"));
  if (!key) return {};
  FEDGE_TRY(other, rows.find_key(*key));
  if (other) return {};
  const auto tokens = numbers_in(detail(event, "token"));
  const std::uint32_t token_id = tokens.empty() ? 0 : static_cast<std::uint32_t>(tokens.front());
  FEDGE_TRY_VOID(rows.put(
      ClientRecord{.client = number,
                   .key = *key,
                   .enrolled = parse_calendar_text(entry.time).value_or(calendar_now()),
                   .token = token_id,
                   .state = event.action == "client.pending" ? ClientState::kPending : ClientState::kEnrolled,
                   .description = described_in(event)}));
  return count_use_again(rows, token_id);
}

// Returns "alice" for "user alice".
std::string name_in(const std::string& subject) {
  return subject.substr(std::min(subject.find(' ') + 1, subject.size()));
}

// Restores users, their grants and removals, and projects. A lost access token cannot be restored, because
// the log has no hash of it; its number stays taken.
Result<void> restore_access(BookRows& book, const AuditEntry& entry) {
  const AuditEvent& event = entry.event;
  const AccessRows rows(book);
  const auto time = parse_calendar_text(entry.time).value_or(calendar_now());
  const std::string name = name_in(event.subject);
  if (event.action == "project.added") return rows.put(ProjectRecord{name, time});
  if (event.action.starts_with("user.")) {
    FEDGE_TRY(user, rows.find_user(name));
    if (!user) user = UserRecord{.name = name, .created = time};
    user->removed = user->removed || event.action == "user.removed";
    // Grants that cannot be read give nothing.
    auto grants = parse_grants(detail(event, "grants"));
    if (event.action != "user.removed") user->grants = grants ? std::move(*grants) : std::vector<Grant>();
    return rows.put(*user);
  }
  const auto numbers = numbers_in(event.subject);
  if (numbers.empty()) return {};
  book.marks.next_access = std::max(book.marks.next_access, numbers[0] + 1);
  if (event.action != "access.revoked") return {};
  FEDGE_TRY(token, rows.find_token(static_cast<std::uint32_t>(numbers[0])));
  if (!token) return {};
  token->revoked = true;
  return rows.put(*token);
}

// Leaves out the numbers that the restored book left out, and revokes the tokens that it revoked.
Result<void> restore_again(BookRows& rows, const AuditEvent& event) {
  const auto raise = [&](const char* key, std::int64_t& next) {
    const auto numbers = numbers_in(detail(event, key));
    if (!numbers.empty()) next = std::max(next, numbers[0]);
  };
  raise("next_client", rows.marks.next_client);
  raise("next_token", rows.marks.next_token);
  raise("next_access", rows.marks.next_access);
  if (detail(event, "tokens_revoked") != "yes") return {};
  FEDGE_TRY(revoked, revoke_all_open(rows));
  (void)revoked;
  return {};
}

// The key that replaced `bound`, or `bound`.
std::string after_entry(const std::string& bound, const AuditEvent& event) {
  const auto next = parse_public_key(event.subject.starts_with("key ") ? event.subject.substr(4) : "");
  return next && bound == detail(event, "former") ? to_hex(*next) : bound;
}

bool changes_access(const std::string& action) {
  return action.starts_with("user.") || action.starts_with("access.") || action.starts_with("project.");
}

Result<void> make_entry_good(BookRows& rows, const AuditEntry& entry) {
  const AuditEvent& event = entry.event;
  if (event.action == kBackupRestored) return restore_again(rows, event);
  if (changes_access(event.action)) return restore_access(rows, entry);
  if (event.action == kKeyRotated) {
    rows.marks.coordinator = after_entry(rows.marks.coordinator, event);
    return {};
  }
  const auto numbers = numbers_in(event.subject);
  if (numbers.empty()) return {};
  BookMarks& marks = rows.marks;
  if (event.action == "token.created") {
    marks.next_token = std::max(marks.next_token, numbers.back() + 1);
    if (detail(event, "uses") == "1" && detail(event, "replaces").empty())
      marks.next_client += numbers.back() - numbers.front() + 1;
  }
  if (event.action.starts_with("client.")) marks.next_client = std::max(marks.next_client, numbers[0] + 1);
  const auto client = [&] { return ClientId(static_cast<std::uint32_t>(numbers[0])); };
  if (event.action == "token.revoked") return revoke_token_again(rows, numbers[0]);
  if (event.action == "client.revoked") return revoke_client_again(rows, event, client());
  return event.action.starts_with("client.") ? enrol_again(rows, entry, client()) : Result<void>();
}

}  // namespace

bool changes_book(const std::string& action) {
  return action.starts_with("token.") || action.starts_with("client.") || action == kBackupRestored ||
         action == kKeyRotated || changes_access(action);
}

Result<std::pair<std::size_t, std::size_t>> revoke_all_open(BookRows& rows) {
  std::pair<std::size_t, std::size_t> revoked;
  FEDGE_TRY(book, rows.changed_after(0));
  for (TokenRecord& token : book.tokens) {
    if (token.revoked || token.used >= token.uses) continue;
    token.revoked = true;
    FEDGE_TRY_VOID(rows.put(token));
    ++revoked.first;
  }
  const AccessRows access(rows);
  FEDGE_TRY(users, access.all());
  for (AccessTokenRecord& token : users.tokens) {
    if (token.revoked) continue;
    token.revoked = true;
    FEDGE_TRY_VOID(access.put(token));
    ++revoked.second;
  }
  return revoked;
}

std::string rotated_coordinator(std::string bound, const std::vector<AuditEntry>& entries) {
  const std::set<std::int64_t> failed = failed_in(entries);
  for (const AuditEntry& entry : entries)
    if (entry.event.action == kKeyRotated && !failed.contains(static_cast<std::int64_t>(entry.sequence)))
      bound = after_entry(bound, entry.event);
  return bound;
}

Result<std::vector<AuditEntry>> make_good(BookRows& rows, const std::vector<AuditEntry>& entries) {
  const std::set<std::int64_t> failed = failed_in(entries);
  std::vector<AuditEntry> good;
  for (const AuditEntry& entry : entries) {
    if (!changes_book(entry.event.action) || failed.contains(static_cast<std::int64_t>(entry.sequence)))
      continue;
    FEDGE_TRY_VOID(make_entry_good(rows, entry));
    good.push_back(entry);
  }
  return good;
}

}  // namespace fedge::server
