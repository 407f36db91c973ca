// AccessControl decides who may use the admin API: users with roles in projects, and their access tokens,
// which are stored only as hashes. The data is in the enrolment book (LoggedBook), so a change is in the
// audit log before it takes effect, and a restored older copy is repaired from the log: removed users and
// revoked tokens stay so. While the book cannot be read, nobody is authenticated. One thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/result.h"
#include "server/access/users.h"

namespace fedge::server {

class LoggedBook;
class TokenVerifier;

struct AccessTokenOrder {
  std::string user;
  UnixSeconds now = 0;
  std::chrono::seconds lifetime{0};
  std::optional<Role> role = {};
  std::string project = {};
  std::string note = {};
};

struct NewAccessToken {
  std::uint32_t id = 0;
  std::string secret;
};

class AccessControl {
 public:
  // kNever: while another change is being written, authenticate() uses what it read last.
  enum class Waiting { kForWriters, kNever };
  explicit AccessControl(std::filesystem::path data_directory, Waiting waiting = Waiting::kForWriters);
  ~AccessControl();
  AccessControl(AccessControl&&) noexcept;
  AccessControl& operator=(AccessControl&&) noexcept;

  // From now on also accepts tokens of this identity provider for users of the book; null: none.
  void trust(std::shared_ptr<TokenVerifier> provider);

  // Returns the sender of a request with this access token, or with this token of the identity provider.
  // kRefused: unknown, expired or revoked, or its user was removed or never added; kUnavailable: the book
  // cannot be read.
  Result<Principal> authenticate(const std::string& secret, UnixSeconds now);
  Result<AccessBook> read();

  // Changes are recorded in the actor's name. kRefused: the user exists, or was removed; kNotFound: there is
  // no such user, token or project; kInvalid: the name or a grant is wrong.
  Result<void> add_user(const Actor& actor, const std::string& name, const std::vector<Grant>& grants,
                        UnixSeconds now);
  Result<void> set_grants(const Actor& actor, const std::string& name, const std::vector<Grant>& grants);
  // The user's access tokens are void from now on.
  Result<void> remove_user(const Actor& actor, const std::string& name);
  Result<NewAccessToken> create_token(const Actor& actor, const AccessTokenOrder& order);
  Result<void> revoke_token(const Actor& actor, std::uint32_t id);
  Result<void> add_project(const Actor& actor, const std::string& name, UnixSeconds now);

 private:
  struct Known {
    AccessTokenRecord token;
    UserRecord user;
  };
  // Reads the book again if it has changed. If the file is another or an older copy, what it lacks is made
  // good from the audit log first.
  Result<void> look();
  Result<Principal> bearer_of(const std::string& token, UnixSeconds now);

  std::unique_ptr<LoggedBook> book_;
  std::shared_ptr<TokenVerifier> provider_;
  Waiting waiting_;
  std::int64_t seen_ = -1;                        // last change that was read
  std::unordered_map<std::string, Known> known_;  // by secret_hash
  std::unordered_map<std::string, UserRecord> users_;
};

}  // namespace fedge::server
