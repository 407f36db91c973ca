// Join token: one line of text that admits a new client. It contains the coordinator's addresses, its key
// (so that the client cannot be redirected to another coordinator), and a secret that is used up on
// joining. Format: "fedge1." and base64url of: number of addresses (1 byte; 0: look in the directory), each
// as length of host (1), host, port (2, little-endian); the coordinator's key (32); length of the secret
// (1), secret; the first 4 bytes of the SHA-256 of "fedge1." and everything before. The checksum
// distinguishes a damaged token from a wrong one.
#pragma once

#include <string>
#include <vector>

#include "core/crypto/ed25519.h"
#include "core/result.h"
#include "protocol/session/endpoint.h"

namespace fedge::protocol {

inline constexpr std::size_t kMinTokenSecret = 16;  // bytes, printable ASCII
inline constexpr std::size_t kMaxTokenSecret = 128;

struct JoinToken {
  std::vector<Address> addresses;  // in the order to try; none: look in the directory
  PublicKey coordinator;
  std::string secret;
};

// The token must satisfy the bounds above.
std::string encode_join_token(const JoinToken& token);
// kUnsupported for another version, kCorrupt for a truncated or mistyped token, kInvalid for text that is
// not a token. The error never repeats the token, which is a secret.
Result<JoinToken> parse_join_token(const std::string& text);

}  // namespace fedge::protocol
