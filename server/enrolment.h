// Enrolment decides who may connect. Join tokens (for one or several uses, expiring, stored only as a hash)
// turn a node's public key into an enrolled client, at once or after an operator's approval. A revoked key
// is refused until an operator readmits it; a key whose client was replaced is refused for ever. The data is
// in enrolment.db of the data directory (server/store/enrolment_file.h). The command-line tool and a running
// coordinator may use it at the same time: every change is one transaction, and is in the audit log before it
// takes effect. While the book cannot be read, the version last read stays in force. An unknown key is
// kNotFound, which clients treat as temporary; only a revoked key is kRefused. One thread at a time. A look
// reads only new rows of the database; a change costs two syncs.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/crypto/ed25519.h"
#include "core/ids.h"
#include "core/result.h"
#include "server/access/enrolment_book.h"
#include "server/audit_log.h"

namespace fedge::server {

// Why a client that this process does not know must connect again: another process writes the book.
inline constexpr const char* kBookBusy =
    "the list of enrolled clients is being written; the client connects again by itself";

class LoggedBook;

// The state of an enrolled key.
struct Standing {
  ClientId client;
  bool pending = false;      // enrolled, but must be approved before it connects
  bool fresh = false;        // redeem() enrolled it now, not in an earlier call
  std::string project = {};  // empty: not known yet
};

// A new join secret; the book stores only its hash.
struct NewToken {
  std::uint32_t id = 0;
  std::optional<ClientId> client;  // single-use token: number that its client will get
  std::string secret;
};

struct TokenOrder {
  std::size_t count = 1;
  std::uint32_t uses = 1;  // per token, at least 1
  bool approve = false;
  UnixSeconds now = 0;
  std::chrono::seconds lifetime{0};
  ClientDescription description = {};  // of the clients that join
  // The client that joins takes over this client's number, description and history, and the former key is
  // refused from then on. With count and uses of 1.
  std::optional<ClientId> replaces = {};
};

// What changes of a client's description; absent values stay.
struct DescriptionChange {
  std::optional<std::string> name = {};
  std::optional<std::vector<std::string>> labels = {};  // as checked_labels() returns them
  std::optional<std::string> project = {};
};

// A join secret from a peer, and the key that the peer has proved to hold.
struct Redemption {
  const std::string& secret;
  PublicKey key;
  UnixSeconds now = 0;
  std::string address;         // for the audit log
  std::string household = {};  // for the enrolment rates
};

// What `fedge restore` knows of an older copy of the book.
struct Restoration {
  AuditDetails details = {};          // of the entry in the audit log
  bool nothing_since = false;         // nothing happened after the copy was made
  std::uint32_t skipped_numbers = 0;  // client numbers that may have been assigned since
};
// What the restored book does not allow any more.
struct Withdrawn {
  std::size_t join_tokens = 0;
  std::size_t access_tokens = 0;
};

class Enrolment {
 public:
  // The directory contains the book, and must exist.
  explicit Enrolment(std::filesystem::path data_directory);
  ~Enrolment();
  Enrolment(Enrolment&&) noexcept;
  Enrolment& operator=(Enrolment&&) noexcept;

  // Records later changes in this name; by default in that of this process's user.
  void act_as(Actor actor) { actor_ = std::move(actor); }

  // Call before the coordinator admits clients. Binds the book to this key; kRefused if it is bound to
  // another that is not `announced` either. Applies audit log entries that the book lacks, as after an older
  // copy was restored: numbers are not assigned twice, and enrolments and revocations are restored. Returns
  // those entries; usually none.
  Result<std::vector<AuditEntry>> take_up(const PublicKey& coordinator,
                                          const std::optional<PublicKey>& announced = {});
  // Applies audit log entries that the book lacks, as every change does first.
  Result<void> catch_up();
  // Returns the key that the book is bound to. kNotFound: none yet.
  Result<PublicKey> coordinator();
  // Binds the book to the coordinator's next key. kRefused: it is bound to neither of them.
  Result<void> change_coordinator(const PublicKey& present, const PublicKey& next,
                                  const AuditDetails& details);
  // Returns whether a coordinator's key is in use here: the book is bound to it, or there are tokens, which
  // name it.
  Result<bool> has_coordinator();

  // A single-use token reserves the next client number, unless it replaces a client; a token for several uses
  // assigns a number at each use.
  Result<NewToken> create_token(UnixSeconds now, std::chrono::seconds lifetime);
  Result<std::vector<NewToken>> create_tokens(const TokenOrder& order);
  // Uses the token once and binds a client number to this key. The same key may redeem the same token
  // again, in case the first answer was lost. kRefused: wrong, used up, expired or revoked. kUnavailable:
  // the book or the audit log cannot be read or written.
  Result<Standing> redeem(const Redemption& redemption);
  // Enrols a key that its owner gave to the operator, without a token. kRefused: it is already enrolled or
  // revoked.
  Result<ClientId> add(const PublicKey& key, UnixSeconds now, const ClientDescription& description = {});
  // Changes what operators say about a client. kNotFound: there is no such client or project.
  Result<void> describe(ClientId client, const DescriptionChange& change);
  // Returns the client with this key. kNotFound: unknown; kRefused: revoked; kUnavailable: unknown, and the
  // book cannot be read.
  Result<Standing> authenticate(const PublicKey& key);
  // Returns the labels of the client with this key, as read last; nothing before its entry was read.
  std::optional<std::vector<std::string>> labels_of(const PublicKey& key) const;
  // Records a key that another Enrolment of this process has enrolled, so that it is known at once.
  void learn(const PublicKey& key, const Standing& standing);
  // Returns whether such a token exists, in whatever state. For a wrong token this costs only a look for
  // changes. kUnavailable: unknown, and the book cannot be read.
  Result<bool> knows(const std::string& secret);
  // Why this key cannot join with a token that knows() has found: the token is revoked, expired or used up by
  // other keys, or the key is revoked or joined with another token. From memory alone; without an objection,
  // redeem() decides.
  std::optional<Error> spent(const std::string& secret, const PublicKey& key, UnixSeconds now) const;
  // Admits a revoked client again, with its key. kNotFound: there is no such client; kInvalid: it is not
  // revoked.
  Result<void> readmit(ClientId client);
  // Returns how many clients may connect. kUnavailable: the book cannot be read.
  Result<std::size_t> count();
  // Returns the clients that joined since then, in order.
  Result<std::vector<RecentEnrolment>> enrolled_since(UnixSeconds since);

  // Changes found in the book.
  struct Changes {
    bool current = true;                // false: another change is being written, and nothing was read
    bool all = false;                   // the file was restored or replaced: anything may differ
    std::vector<ClientRecord> clients;  // new and changed clients
  };
  // Reads the book and returns all changes since the last refresh(), including those that other calls have
  // read. kUnavailable, kCorrupt: the book cannot be read; the version last read stays in force.
  Result<Changes> refresh();

  // Refuses this client, or the future user of the token that reserves its number, from now on. Also
  // revokes the token that it joined with, unless `keep_token`: the client knows the secret. Returns that
  // token if it was still open.
  Result<std::optional<std::uint32_t>> revoke(ClientId client, bool keep_token = false);
  // Revokes a token. Clients that joined with it stay enrolled. kNotFound: there is no such token.
  Result<void> revoke_token(std::uint32_t id);
  // Approves a pending client. kNotFound: there is no such client; kInvalid: it is not pending.
  Result<void> approve(ClientId client);

  // Records that this book is a restored copy. Unless nothing happened since the copy was made, revokes all
  // join tokens and access tokens that are still open, because they may have been used or revoked since, and
  // leaves numbers out, so that a number assigned since is not given to another client.
  Result<Withdrawn> restored(const Restoration& restoration);

  Result<EnrolmentBook> read();
  // The same, from memory if the book has not changed since the last call.
  Result<std::shared_ptr<const EnrolmentBook>> snapshot();

 private:
  // Reads new rows. Returns false if another change is being written, and nothing was read.
  Result<bool> look();
  void note_reopened();

  std::unique_ptr<LoggedBook> book_;
  Actor actor_;
  std::shared_ptr<const EnrolmentBook> snapshot_;
  std::int64_t snapshot_change_ = 0;
  bool opened_anew_ = false;  // since look() last read it
  std::int64_t seen_ = 0;     // last change that was read
  std::map<PublicKey, ClientRecord> index_;
  std::set<PublicKey> retired_;                          // of these, keys whose client has another key now
  std::size_t enrolled_ = 0;                             // of these, clients that may connect
  std::unordered_map<std::string, TokenRecord> tokens_;  // by secret_hash
  Changes news_;                                         // not yet returned by refresh()
};

}  // namespace fedge::server
