#include "server/access/oidc/claims.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "core/detail/json.h"
#include "core/text.h"
#include "server/access/roles.h"

namespace fedge::server {
namespace {

using Claims = nlohmann::json;

constexpr int kClaimLevels = 8;
constexpr std::size_t kShownClaim = 80;       // bytes in messages
constexpr double kLatestTime = 253402300799;  // the year 9999

Error not_accepted(const std::string& why) { return {ErrorCode::kRefused, why}; }

Result<std::optional<UnixSeconds>> time_claim(const Claims& claims, const char* name) {
  const auto found = claims.find(name);
  if (found == claims.end()) return std::optional<UnixSeconds>();
  const double time = found->is_number() ? found->get<double>() : -1;
  if (!(time >= 0 && time <= kLatestTime))
    return not_accepted(std::string("its claim ") + name + " is not a time in seconds since 1970");
  return std::optional(static_cast<UnixSeconds>(std::floor(time)));
}

Result<UnixSeconds> required_time(const Claims& claims, const char* name) {
  FEDGE_TRY(time, time_claim(claims, name));
  if (!time) return not_accepted(std::string("its claim ") + name + " is missing");
  return *time;
}

Result<std::string> text_claim(const Claims& claims, const std::string& name) {
  const auto found = claims.find(name);
  if (found == claims.end()) return not_accepted("its claim " + name + " is missing");
  if (!found->is_string()) return not_accepted("its claim " + name + " is not a string");
  return found->get<std::string>();
}

bool is_for(const Claims& claims, const std::string& audience) {
  const auto found = claims.find("aud");
  if (found == claims.end()) return false;
  if (found->is_string()) return *found == audience;
  return found->is_array() &&
         std::ranges::all_of(*found, [](const Claims& one) { return one.is_string(); }) &&
         std::ranges::find(*found, Claims(audience)) != found->end();
}

// Refuses tokens that were issued for something else than access by their bearer.
Result<void> check_purpose(const Claims& claims) {
  for (const char* name : {"at_hash", "c_hash"})
    if (claims.contains(name))
      return not_accepted(std::string("it is an ID token, as its claim ") + name +
                          " shows, and an access token is needed");
  if (claims.contains("events"))
    return not_accepted("it reports an event (claim events) and gives no access");
  if (claims.contains("cnf"))
    return not_accepted("it is bound to a key of its bearer (claim cnf), which this API does not check");
  const auto type = claims.find("typ");  // of Keycloak, beside the header's
  if (type != claims.end() && *type != "Bearer")
    return not_accepted("its claim typ is not 'Bearer', and an access token is needed");
  return {};
}

// Times are compared by differences, which cannot overflow below kLatestTime.
Result<UnixSeconds> check_times(const Claims& claims, UnixSeconds now) {
  FEDGE_TRY(expires, required_time(claims, "exp"));
  FEDGE_TRY(issued, required_time(claims, "iat"));
  FEDGE_TRY(begins, time_claim(claims, "nbf"));
  FEDGE_TRY_VOID(check_expiry(expires, now));
  const UnixSeconds soon = now + kTokenLeeway.count();
  if (begins && *begins > soon)
    return not_accepted("it is not valid before " + calendar_text(*begins) + " (claim nbf)");
  if (issued > soon)
    return not_accepted("it was issued in the future, at " + calendar_text(issued) + " (claim iat)");
  if (expires - issued > std::chrono::seconds(kMaxTokenLifetime).count())
    return not_accepted("it is valid for " + std::to_string(expires - issued) +
                        " seconds after it was issued; at most " +
                        std::to_string(std::chrono::seconds(kMaxTokenLifetime).count()) + " are accepted");
  return expires;
}

Result<std::string> user_of(const Claims& claims, const std::string& name) {
  FEDGE_TRY(user, text_claim(claims, name));
  if (const auto shaped = check_user_name(user); !shaped)
    return not_accepted("its claim " + name + " names no user: " + shaped.error().message);
  const auto verified = claims.find("email_verified");
  if (name == "email" && (verified == claims.end() || *verified != true))
    return not_accepted("its claim email counts only if email_verified is true");
  return user;
}

}  // namespace

Result<void> check_expiry(UnixSeconds expires, UnixSeconds now) {
  if (now - expires < kTokenLeeway.count()) return {};
  return not_accepted("it expired at " + calendar_text(expires));
}

Result<TokenBearer> check_claims(std::string_view payload, const ExpectedClaims& expected, UnixSeconds now) {
  const Claims claims = parse_json_without_duplicates(payload, kClaimLevels);
  if (!claims.is_object())
    return not_accepted("its payload is not a JSON object, is nested too deep, or has a member twice");
  FEDGE_TRY(issuer, text_claim(claims, "iss"));
  if (issuer != expected.issuer)
    return not_accepted("it was issued by '" + clean_text(issuer, kShownClaim) + "', not by '" +
                        expected.issuer + "'");
  if (!is_for(claims, expected.audience))
    return not_accepted("it is not for the audience '" + expected.audience + "' (claim aud)");
  FEDGE_TRY_VOID(check_purpose(claims));
  FEDGE_TRY(expires, check_times(claims, now));
  FEDGE_TRY(user, user_of(claims, expected.user_claim));
  return TokenBearer{std::move(user), expires};
}

}  // namespace fedge::server
