// Why a key cannot join or connect. Private to Enrolment.
#pragma once

#include <string>

#include "core/crypto/sha256.h"
#include "core/result.h"
#include "server/access/enrolment_book.h"

namespace fedge::server {

inline constexpr const char* kTokenRevoked = "the join token has been revoked";
inline constexpr const char* kKeyRevoked = "this client's key has been revoked";
inline constexpr const char* kKeyRetired = "another device has taken over this client's number";
inline constexpr const char* kMoved = "the client that this token replaces was moved to another project";
inline constexpr const char* kOtherToken = "this client already joined with another token";

inline Error refused(const char* reason) { return {ErrorCode::kRefused, reason}; }

// Turns a local error into kUnavailable: a client gives up after a refusal.
inline Error unavailable(const Error& error) { return {ErrorCode::kUnavailable, error.message}; }

inline std::string secret_hash(const std::string& secret) { return to_hex(sha256(secret)); }

// Returns why this token cannot be used again, or null if it can.
inline const char* objection(const TokenRecord& token, UnixSeconds now) {
  if (token.used >= token.uses)
    return token.uses == 1 ? "the join token was already used; ask the operator for a new one"
                           : "all uses of the join token are used up; ask the operator for a new one";
  return now > token.expires ? "the join token has expired; ask the operator for a new one" : nullptr;
}

}  // namespace fedge::server
