// Enrolment: who may connect. Join tokens (for one use or several, expiring, only a hash is kept) turn a
// node's public key into an enrolled client, at once or when an operator has approved it; a revoked key is
// refused for ever. Kept in enrolment.db of the data directory (server/store/enrolment_file.h); the
// command-line tool and a running coordinator may use it at the same time: every change is one transaction,
// and is in the audit log before it holds.
// What was last read of a book stays in force while the book cannot be read. A key that it does not hold is
// kNotFound, which a client takes for a fault to wait out; only a revoked one is kRefused.
// One thread at a time; a look costs one read of the database, of what is new; a change two syncs.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "core/crypto/ed25519.h"
#include "core/ids.h"
#include "core/result.h"
#include "server/access/enrolment_book.h"
#include "server/audit_log.h"

namespace fedge::server {

class BookRows;
class EnrolmentStore;

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
  std::string address;         // for the audit log
  std::string household = {};  // for the rates of enrolments
};

class Enrolment {
 public:
  // The book lies in this directory, which must exist.
  explicit Enrolment(std::filesystem::path data_directory);
  ~Enrolment();
  Enrolment(Enrolment&&) noexcept;
  Enrolment& operator=(Enrolment&&) noexcept;

  // For the coordinator that leads here, before it lets anybody in. The book is this key's from now on:
  // kRefused if it is another's. What the audit log tells of that the book does not know, because an older
  // copy has been put back, is made good: no number is given twice, and who was revoked is so again. Returns
  // those entries; none: the book is as it was left.
  Result<std::vector<AuditEntry>> take_up(const PublicKey& coordinator);
  // Whether a coordinator's key has been in use here: the book is bound to it, or there are tokens, which
  // name it.
  Result<bool> has_coordinator();

  // A token for one use promises the next client number; of one for several uses each use takes it.
  Result<NewToken> create_token(UnixSeconds now, std::chrono::seconds lifetime);
  Result<std::vector<NewToken>> create_tokens(const TokenOrder& order);
  // Uses the token once and binds a client number to this key. The same key may redeem the same token again
  // (its first answer was lost). Wrong, used up, expired, revoked: kRefused; a book or an audit log that
  // cannot be read or written: kUnavailable.
  Result<Standing> redeem(const Redemption& redemption);
  // Enrols a key that its owner has told the operator, without a token. kRefused: it is here already, or has
  // been revoked.
  Result<ClientId> add(const PublicKey& key, UnixSeconds now);
  // The client with this key; kNotFound if it is unknown, kRefused if it is revoked, kUnavailable if it is
  // unknown and the book cannot be read.
  Result<Standing> authenticate(const PublicKey& key);
  // This key has been enrolled through another Enrolment of this process: it need not be looked up.
  void learn(const PublicKey& key, const Standing& standing);
  // Whether there is such a token, whatever has become of it; a wrong one costs a look for changes alone.
  // kUnavailable: it is not known, and the book cannot be read.
  Result<bool> knows(const std::string& secret);
  // How many clients may connect; kUnavailable: the book cannot be read.
  Result<std::size_t> count();
  // Those since then, in their order.
  Result<std::vector<RecentEnrolment>> enrolled_since(UnixSeconds since);

  // What a look at the book has found.
  struct Changes {
    bool current = true;                // false: a change is being written just now, and nothing was read
    bool all = false;                   // the file was put back or replaced: anything may be different
    std::vector<ClientRecord> clients;  // new ones, and those that have changed
  };
  // Looks, and tells what is new since this was last asked, whoever has looked meanwhile. kUnavailable,
  // kCorrupt: the book cannot be read; what was last read stays in force.
  Result<Changes> refresh();

  // Refuses this client, or the user of the token that its number is promised to, from now on. Nobody more
  // enrols with the token that it came by, whose secret it knows, unless `keep_token`. Returns that token, if
  // it was open until now.
  Result<std::optional<std::uint32_t>> revoke(ClientId client, bool keep_token = false);
  // Nobody more enrols with this token; who has is not concerned. kNotFound: there is no such token.
  Result<void> revoke_token(std::uint32_t id);
  // Lets a pending client in. kNotFound: there is none of this number; kInvalid: it is not pending.
  Result<void> approve(ClientId client);

  Result<EnrolmentBook> read();

 private:
  // Opens it when first needed, and anew when its file is no longer in its place.
  Result<EnrolmentStore*> store();
  // Reads what is new. False: a change is being written just now, and nothing was read.
  Result<bool> look();
  // One change. What `change` returns is recorded before it holds; its error, or nothing to record, leaves
  // the book as it is. If the change fails after that, the log says so.
  Result<void> update(const std::function<Result<std::optional<AuditEvent>>(BookRows&)>& change);
  // Makes good what the log tells of and the book does not know. Returns the entries.
  Result<std::vector<AuditEntry>> catch_up(EnrolmentStore& book);

  std::filesystem::path directory_;
  AuditLog audit_;
  std::unique_ptr<EnrolmentStore> store_;
  bool opened_anew_ = false;  // since the last look
  std::string identity_;      // of the book that was opened first
  std::int64_t seen_ = 0;     // the last change that was read
  std::map<PublicKey, ClientRecord> index_;
  std::size_t enrolled_ = 0;  // of them, who may connect
  std::unordered_set<std::string> secret_hashes_;
  Changes news_;  // that refresh() has not told yet
};

}  // namespace fedge::server
