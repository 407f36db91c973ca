#include "server/access_control.h"

#include <utility>

#include "core/crypto/random.h"
#include "core/crypto/sha256.h"
#include "core/text.h"
#include "server/access/oidc/signed_token.h"
#include "server/access/oidc/token_verifier.h"
#include "server/store/detail/access_rows.h"
#include "server/store/detail/logged_book.h"

namespace fedge::server {
namespace {

constexpr std::size_t kAccessSecretBytes = 32;
constexpr const char* kPrefix = "fedge_";  // makes a leaked token recognisable
constexpr std::size_t kMaxNote = 200;

std::string user_name(const std::string& name) { return "user " + name; }

Error no_such_user(const std::string& name) {
  return {ErrorCode::kNotFound, "there is no user '" + clean_text(name, 80) + "'; see: fedge user ls"};
}

Result<UserRecord> existing_user(const AccessRows& rows, const std::string& name) {
  FEDGE_TRY(user, rows.find_user(name));
  if (!user || user->removed) return no_such_user(name);
  return *user;
}

Result<void> check_grants(const AccessRows& rows, const std::vector<Grant>& grants) {
  // The audit log must have them whole: a restored older book is repaired from it.
  if (to_string(grants).size() > kMaxAuditField)
    return invalid("the roles of a user must not need more than " + std::to_string(kMaxAuditField) +
                   " bytes as text; give a role in all projects, or in fewer");
  for (const Grant& grant : grants) {
    FEDGE_TRY(exists, grant.project == kAllProjects ? Result<bool>(true) : rows.has_project(grant.project));
    if (!exists)
      return Error{ErrorCode::kNotFound,
                   "there is no project '" + clean_text(grant.project, 80) + "'; see: fedge project ls"};
  }
  return {};
}

}  // namespace

AccessControl::AccessControl(std::filesystem::path data_directory, Waiting waiting)
    : book_(std::make_unique<LoggedBook>(std::move(data_directory))), waiting_(waiting) {}
AccessControl::~AccessControl() = default;
AccessControl::AccessControl(AccessControl&&) noexcept = default;
AccessControl& AccessControl::operator=(AccessControl&&) noexcept = default;

Result<void> AccessControl::look() {
  const auto now = waiting_ == Waiting::kNever ? book_->rows(std::chrono::milliseconds(0)) : book_->rows();
  if (!now && waiting_ == Waiting::kNever && book_->is_busy() && seen_ >= 0) return {};
  if (!now) return now.error();
  const bool replaced = book_->opened_anew() || now->marks.change < seen_;
  if (!replaced && now->marks.change == seen_) return {};
  seen_ = -1;  // until everything is read
  if (replaced) {
    FEDGE_TRY(made_good, book_->catch_up());
    (void)made_good;
  }
  FEDGE_TRY(rows, replaced ? book_->rows() : now);
  FEDGE_TRY(all, AccessRows(rows).all());
  users_.clear();
  for (UserRecord& user : all.users) users_.emplace(user.name, user);
  known_.clear();
  for (AccessTokenRecord& token : all.tokens)
    if (const auto user = users_.find(token.user); user != users_.end())
      known_.emplace(token.secret_hash, Known{token, user->second});
  seen_ = rows.marks.change;
  return {};
}

void AccessControl::trust(std::shared_ptr<TokenVerifier> provider) { provider_ = std::move(provider); }

Result<Principal> AccessControl::authenticate(const std::string& secret, UnixSeconds now) {
  if (const auto looked = look(); !looked) return Error{ErrorCode::kUnavailable, looked.error().message};
  if (provider_ && !secret.starts_with(kPrefix) && looks_like_signed_token(secret))
    return bearer_of(secret, now);
  const auto found = known_.find(to_hex(sha256(secret)));
  if (found == known_.end() || found->second.user.removed)
    return Error{ErrorCode::kRefused, "this coordinator does not know the access token"};
  const auto& [token, user] = found->second;
  if (token.revoked) return Error{ErrorCode::kRefused, "the access token has been revoked"};
  if (now > token.expires)
    return Error{ErrorCode::kRefused, "the access token expired at " + calendar_text(token.expires)};
  return Principal{{user_name(user.name)}, effective_grants(user, token)};
}

// The token only names its bearer: what the user may do, and whether there is one, is in the book.
Result<Principal> AccessControl::bearer_of(const std::string& token, UnixSeconds now) {
  const auto name = provider_->verify(token, now);
  if (!name) return name.error().with_prefix("the identity provider's token is not accepted: ");
  const auto found = users_.find(*name);
  if (found == users_.end() || found->second.removed)
    return Error{ErrorCode::kRefused, "this coordinator has no user '" + *name +
                                          "'; an administrator adds one with: fedge user add"};
  return Principal{{user_name(*name)}, found->second.grants};
}

Result<AccessBook> AccessControl::read() {
  FEDGE_TRY(rows, book_->rows());
  return AccessRows(rows).all();
}

Result<void> AccessControl::add_user(const Actor& actor, const std::string& name,
                                     const std::vector<Grant>& grants, UnixSeconds now) {
  FEDGE_TRY_VOID(check_user_name(name));
  return book_->update([&](BookRows& book) -> Result<std::optional<AuditEvent>> {
    const AccessRows rows(book);
    FEDGE_TRY(known, rows.find_user(name));
    if (known)
      return Error{ErrorCode::kRefused, "the user '" + name +
                                            (known->removed ? "' was removed; choose another name, so that "
                                                              "the audit log stays clear"
                                                            : "' exists already")};
    FEDGE_TRY_VOID(check_grants(rows, grants));
    FEDGE_TRY_VOID(rows.put(UserRecord{.name = name, .grants = grants, .created = now}));
    return std::optional(event_by(actor, "user.added", user_name(name), {{"grants", to_string(grants)}}));
  });
}

Result<void> AccessControl::set_grants(const Actor& actor, const std::string& name,
                                       const std::vector<Grant>& grants) {
  return book_->update([&](BookRows& book) -> Result<std::optional<AuditEvent>> {
    const AccessRows rows(book);
    FEDGE_TRY(user, existing_user(rows, name));
    FEDGE_TRY_VOID(check_grants(rows, grants));
    user.grants = grants;
    FEDGE_TRY_VOID(rows.put(user));
    return std::optional(event_by(actor, "user.granted", user_name(name), {{"grants", to_string(grants)}}));
  });
}

Result<void> AccessControl::remove_user(const Actor& actor, const std::string& name) {
  return book_->update([&](BookRows& book) -> Result<std::optional<AuditEvent>> {
    const AccessRows rows(book);
    FEDGE_TRY(user, existing_user(rows, name));
    user.removed = true;
    FEDGE_TRY_VOID(rows.put(user));
    return std::optional(event_by(actor, "user.removed", user_name(name)));
  });
}

Result<NewAccessToken> AccessControl::create_token(const Actor& actor, const AccessTokenOrder& order) {
  if (order.lifetime.count() <= 0) return invalid("an access token must be valid for more than 0 seconds");
  FEDGE_TRY_VOID(check_text(order.note, kMaxNote, "note"));
  NewAccessToken created;
  FEDGE_TRY_VOID(book_->update([&](BookRows& book) -> Result<std::optional<AuditEvent>> {
    const AccessRows rows(book);
    FEDGE_TRY(user, existing_user(rows, order.user));
    if (!order.project.empty()) FEDGE_TRY_VOID(check_grants(rows, {{order.project, Role::kViewer}}));
    created = {book.take_access(), kPrefix + random_hex(kAccessSecretBytes)};
    const AccessTokenRecord token{.id = created.id,
                                  .user = user.name,
                                  .secret_hash = to_hex(sha256(created.secret)),
                                  .created = order.now,
                                  .expires = order.now + order.lifetime.count(),
                                  .role = order.role,
                                  .project = order.project,
                                  .note = order.note};
    FEDGE_TRY_VOID(rows.put(token));
    AuditDetails details = {{"user", user.name}, {"expires", calendar_text(token.expires)}};
    if (token.role) details.emplace_back("role", name_of(*token.role));
    if (!token.project.empty()) details.emplace_back("project", token.project);
    return std::optional(
        event_by(actor, "access.created", "access token " + std::to_string(token.id), std::move(details)));
  }));
  return created;
}

Result<void> AccessControl::revoke_token(const Actor& actor, std::uint32_t id) {
  return book_->update([&](BookRows& book) -> Result<std::optional<AuditEvent>> {
    const AccessRows rows(book);
    FEDGE_TRY(token, rows.find_token(id));
    if (!token)
      return Error{ErrorCode::kNotFound,
                   "there is no access token " + std::to_string(id) + "; see: fedge user token ls"};
    if (token->revoked) return std::optional<AuditEvent>();
    token->revoked = true;
    FEDGE_TRY_VOID(rows.put(*token));
    return std::optional(
        event_by(actor, "access.revoked", "access token " + std::to_string(id), {{"user", token->user}}));
  });
}

Result<void> AccessControl::add_project(const Actor& actor, const std::string& name, UnixSeconds now) {
  FEDGE_TRY_VOID(check_project_name(name));
  return book_->update([&](BookRows& book) -> Result<std::optional<AuditEvent>> {
    const AccessRows rows(book);
    FEDGE_TRY(exists, rows.has_project(name));
    if (exists) return Error{ErrorCode::kRefused, "the project '" + name + "' exists already"};
    FEDGE_TRY_VOID(rows.put(ProjectRecord{name, now}));
    return std::optional(event_by(actor, "project.added", "project " + name));
  });
}

}  // namespace fedge::server
