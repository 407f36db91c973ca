// EnrolmentBook holds the records of join tokens and clients. It contains no secrets, only their hashes.
// Plain values; Enrolment owns the database.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/crypto/ed25519.h"
#include "core/ids.h"
#include "core/result.h"
#include "server/access/calendar.h"
#include "server/access/roles.h"

namespace fedge::server {

// What operators say about a client.
struct ClientDescription {
  std::string name = {};                 // for people; may be empty
  std::vector<std::string> labels = {};  // ascending, without duplicates
  std::string project = kDefaultProject;
  bool operator==(const ClientDescription&) const = default;
};

struct TokenRecord {
  std::uint32_t id = 0;            // from 1; operators use it: fedge token revoke 3
  std::optional<ClientId> client;  // single-use token: number that its client will get
  std::string secret_hash;         // hexadecimal SHA-256
  UnixSeconds created = 0;
  UnixSeconds expires = 0;
  std::uint32_t uses = 1;  // maximum number of uses
  std::uint32_t used = 0;
  bool approve = false;  // clients that join with it need an operator's approval
  bool revoked = false;
  // Given to the clients that join with it.
  ClientDescription description = {};
  // The client that joins with it takes over this client's number, description and history.
  std::optional<ClientId> replaces = {};
};

// "open", "used up", "expired", "revoked".
const char* state_of(const TokenRecord& token, UnixSeconds now);

enum class ClientState { kEnrolled, kPending, kRevoked };
const char* to_string(ClientState state);  // "enrolled", "pending", "revoked"

struct ClientRecord {
  ClientId client;
  PublicKey key;
  UnixSeconds enrolled = 0;
  std::uint32_t token = 0;  // id of its join token; 0: an operator added the client
  ClientState state = ClientState::kEnrolled;
  std::string household = {};  // IPv4 address or IPv6 /64 that it joined from; empty: unknown
  ClientDescription description = {};
};

// A key that is refused for ever, because another device took over its client number.
struct RetiredKey {
  PublicKey key;
  ClientId client;
};

// A client that joined with a token, counted for the enrolment rates.
struct RecentEnrolment {
  std::string household;
  std::string token_hash;  // hexadecimal SHA-256 of the secret
  UnixSeconds when = 0;
};

struct EnrolmentBook {
  std::vector<TokenRecord> tokens;    // by number
  std::vector<ClientRecord> clients;  // by number
  std::vector<RetiredKey> retired;    // in no order

  const ClientRecord* find_client(ClientId client) const;
};

// Parses enrolment.json, the book's format before enrolment.db. kCorrupt if the text is anything else.
Result<EnrolmentBook> parse_enrolment_book(const std::string& text);

}  // namespace fedge::server
