// Enrolment: who may connect. Join tokens (single use, expiring, only a hash is kept) turn a node's
// public key into an enrolled client; a revoked key is refused for ever. Kept in one small file of
// the data directory, replaced atomically; the command-line tool and a running coordinator may use
// it at the same time: every change reads, modifies and replaces it under a file lock.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/crypto/ed25519.h"
#include "core/crypto/sha256.h"
#include "core/ids.h"
#include "core/result.h"

namespace fedge::server {

// Calendar time, seconds since 1970: enrolment outlives processes.
using UnixSeconds = std::int64_t;

struct TokenRecord {
  ClientId client;          // the number its user will get
  std::string secret_hash;  // hexadecimal SHA-256
  UnixSeconds expires = 0;
  bool used = false;
  bool revoked = false;
};

struct ClientRecord {
  ClientId client;
  PublicKey key;
  UnixSeconds enrolled = 0;
  bool revoked = false;
};

struct EnrolmentBook {
  std::vector<TokenRecord> tokens;
  std::vector<ClientRecord> clients;
};

class Enrolment {
 public:
  // The book lies in this directory, which must exist; a missing book is an empty one.
  explicit Enrolment(std::filesystem::path data_directory);

  // Makes a join secret for the next free client number; only its hash is kept.
  struct NewToken {
    ClientId client;
    std::string secret;
  };
  Result<NewToken> create_token(UnixSeconds now, std::chrono::seconds lifetime);
  // So many at once.
  Result<std::vector<NewToken>> create_tokens(std::size_t count, UnixSeconds now,
                                              std::chrono::seconds lifetime);
  // Uses up the token and binds its client number to this key. The same key may redeem the same
  // token again (its first answer was lost). Wrong, used, expired, revoked: kRefused; a book that
  // cannot be read or written: kUnavailable.
  Result<ClientId> redeem(const std::string& secret, const PublicKey& key, UnixSeconds now);
  // The client with this key; kRefused if it is unknown or revoked, kUnavailable as above. The book is
  // read again only when its file has changed.
  Result<ClientId> authenticate(const PublicKey& key);
  // How many clients have joined and are not revoked; kUnavailable and cost as above.
  Result<std::size_t> count();
  // Refuses this client, or this token's future user, from now on.
  Result<void> revoke(ClientId client);

  Result<EnrolmentBook> read() const;

 private:
  Result<void> write(const EnrolmentBook& book) const;
  Result<void> refresh();  // the index, if the file has changed

  // What tells one state of the book's file from another.
  struct FileState {
    std::uint64_t inode = 0;
    std::int64_t changed = 0;  // nanoseconds since 1970
    std::uint64_t size = 0;
    bool operator==(const FileState&) const = default;
  };

  std::filesystem::path directory_;
  std::filesystem::path file_;
  std::optional<FileState> indexed_;  // the state that `index_` was made from
  std::map<PublicKey, ClientRecord> index_;
};

}  // namespace fedge::server
