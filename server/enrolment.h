// Enrolment: who may connect. Join tokens (for one use or several, expiring, only a hash is kept) turn a
// node's public key into an enrolled client, at once or when an operator has approved it; a revoked key is
// refused for ever. Kept in one small file of the data directory, replaced atomically; the command-line tool
// and a running coordinator may use it at the same time: every change reads, modifies and replaces it under
// a file lock, and is in the audit log before.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/crypto/ed25519.h"
#include "core/ids.h"
#include "core/result.h"
#include "server/access/enrolment_book.h"
#include "server/audit_log.h"

namespace fedge::server {

// What a key may do here.
struct Standing {
  ClientId client;
  bool pending = false;  // enrolled, but not to be let in before an operator has approved it
  bool fresh = false;    // of redeem(): enrolled just now, not once more with an answer that was lost
};

// A join secret as it is handed over; only its hash is kept.
struct NewToken {
  std::uint32_t id = 0;
  std::optional<ClientId> client;  // of a token for one use: the number its user will get
  std::string secret;
};

struct TokenOrder {
  std::size_t count = 1;
  std::uint32_t uses = 1;  // of each, at least 1
  bool approve = false;
  UnixSeconds now = 0;
  std::chrono::seconds lifetime{0};
};

// A join secret that a peer shows, and the key that it has proved to hold.
struct Redemption {
  const std::string& secret;
  PublicKey key;
  UnixSeconds now = 0;
  std::string address;  // for the audit log
};

class Enrolment {
 public:
  // The book lies in this directory, which must exist; a missing book is an empty one.
  explicit Enrolment(std::filesystem::path data_directory);

  // A token for one use promises the next free client number; of one for several uses each use takes it.
  Result<NewToken> create_token(UnixSeconds now, std::chrono::seconds lifetime);
  Result<std::vector<NewToken>> create_tokens(const TokenOrder& order);
  // Uses the token once and binds a client number to this key. The same key may redeem the same token again
  // (its first answer was lost). A wrong one costs no look at the file, unless it has changed. Wrong, used
  // up, expired, revoked: kRefused; a book or an audit log that cannot be read or written: kUnavailable.
  Result<Standing> redeem(const Redemption& redemption);
  // Enrols a key that its owner has told the operator, without a token. kRefused: it is here already, or has
  // been revoked.
  Result<ClientId> add(const PublicKey& key, UnixSeconds now);
  // The client with this key; kRefused if it is unknown or revoked, kUnavailable as above. The book is
  // read again only when its file has changed.
  Result<Standing> authenticate(const PublicKey& key);
  // How many clients may connect; kUnavailable and cost as above.
  Result<std::size_t> count();
  // Whether the book's file is another than at the last authenticate().
  bool changed() const;

  // Refuses this client, or the user of the token that its number is promised to, from now on.
  Result<void> revoke(ClientId client);
  // Nobody more enrols with this token; who has is not concerned. kNotFound: there is no such token.
  Result<void> revoke_token(std::uint32_t id);
  // Lets a pending client in. kNotFound: there is none of this number; kInvalid: it is not pending.
  Result<void> approve(ClientId client);

  Result<EnrolmentBook> read() const;

 private:
  // Reads, changes, and writes, under the lock. What `change` returns is recorded in between; its error, or
  // nothing to record, leaves the book as it is.
  Result<void> update(const std::function<Result<std::optional<AuditEvent>>(EnrolmentBook&)>& change);
  Result<void> refresh();  // what is remembered of the book, if the file has changed
  bool knows(const std::string& secret_hash) const;

  // What tells one state of the book's file from another.
  struct FileState {
    std::uint64_t inode = 0;
    std::int64_t changed = 0;  // nanoseconds since 1970
    std::uint64_t size = 0;
    bool operator==(const FileState&) const = default;
  };
  std::optional<FileState> file_state() const;

  std::filesystem::path directory_;
  std::filesystem::path file_;
  AuditLog audit_;
  std::optional<FileState> indexed_;  // the state that `index_` was made from
  std::map<PublicKey, ClientRecord> index_;
  std::size_t enrolled_ = 0;  // of them, who may connect
  std::vector<std::string> secret_hashes_;
};

}  // namespace fedge::server
