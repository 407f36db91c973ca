// Checks what a signed token says: for whom it was issued, by whom, for which service and for how long
// (RFC 7519, RFC 9068, RFC 8725). Pure functions; any thread.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "core/result.h"
#include "server/access/calendar.h"

namespace fedge::server {

// Clocks of the provider and of the coordinator may differ by this much.
inline constexpr std::chrono::seconds kTokenLeeway{60};
// A longer-lived token is refused: the coordinator cannot ask the provider whether a token was revoked.
inline constexpr std::chrono::hours kMaxTokenLifetime{24};

struct ExpectedClaims {
  std::string issuer;              // iss, compared exactly
  std::string audience;            // must be aud, or in it
  std::string user_claim = "sub";  // whose value is the name of the user
};

struct TokenBearer {
  std::string user;         // a valid user name; whether there is such a user is not known here
  UnixSeconds expires = 0;  // as the token says; it is refused from expires + kTokenLeeway on
};

// Returns whom the payload of a token names. kRefused says exactly what is wrong at this time. Everything in
// it except the times holds for ever.
Result<TokenBearer> check_claims(std::string_view payload, const ExpectedClaims& expected, UnixSeconds now);
// The part of the check that depends on the time after the token was accepted once.
Result<void> check_expiry(UnixSeconds expires, UnixSeconds now);

}  // namespace fedge::server
