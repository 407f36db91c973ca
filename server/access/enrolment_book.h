// EnrolmentBook: what is known of join tokens and clients. It holds no secret, only hashes of them. Values;
// the database's owner is Enrolment.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/crypto/ed25519.h"
#include "core/ids.h"
#include "core/result.h"
#include "server/access/calendar.h"

namespace fedge::server {

struct TokenRecord {
  std::uint32_t id = 0;            // from 1, for people: fedge token revoke 3
  std::optional<ClientId> client;  // of a token for one use: the number its user will get
  std::string secret_hash;         // hexadecimal SHA-256
  UnixSeconds created = 0;
  UnixSeconds expires = 0;
  std::uint32_t uses = 1;  // allowed in all
  std::uint32_t used = 0;
  bool approve = false;  // whoever uses it must be approved before it is let in
  bool revoked = false;
};

// "open", "used up", "expired", "revoked".
const char* state_of(const TokenRecord& token, UnixSeconds now);

enum class ClientState { kEnrolled, kPending, kRevoked };
const char* to_string(ClientState state);  // "enrolled", "pending", "revoked"

struct ClientRecord {
  ClientId client;
  PublicKey key;
  UnixSeconds enrolled = 0;
  std::uint32_t token = 0;  // that it came with; 0: none, an operator has added it
  ClientState state = ClientState::kEnrolled;
  std::string household = {};  // of the address that it joined from; empty: not known
};

// A client that has joined with a token, for the rates of enrolments.
struct RecentEnrolment {
  std::string household;
  std::string token_hash;  // hexadecimal SHA-256 of the secret
  UnixSeconds when = 0;
};

struct EnrolmentBook {
  std::vector<TokenRecord> tokens;    // by number
  std::vector<ClientRecord> clients;  // by number

  const ClientRecord* find_client(ClientId client) const;
};

// Of enrolment.json, which was the book before there was enrolment.db. kCorrupt for anything else.
Result<EnrolmentBook> parse_enrolment_book(const std::string& text);

}  // namespace fedge::server
