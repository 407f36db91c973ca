// Records of users, access tokens and projects, and what a request's sender may do. They contain no secrets,
// only their hashes. Plain values; AccessControl owns the database.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/access/calendar.h"
#include "server/access/roles.h"
#include "server/audit_log.h"

namespace fedge::server {

struct UserRecord {
  std::string name;
  std::vector<Grant> grants;
  UnixSeconds created = 0;
  bool removed = false;  // the name stays taken, so that the audit log means one person
};

struct AccessTokenRecord {
  std::uint32_t id = 0;  // from 1; operators use it: fedge user token revoke 3
  std::string user;
  std::string secret_hash;  // hexadecimal SHA-256
  UnixSeconds created = 0;
  UnixSeconds expires = 0;
  std::optional<Role> role = {};  // the token gives at most this role; empty: the user's
  std::string project = {};       // the token is for this project only; empty: for all of the user's
  std::string note = {};          // for people
  bool revoked = false;
};

// "valid", "expired", "revoked".
const char* state_of(const AccessTokenRecord& token, UnixSeconds now);

struct ProjectRecord {
  std::string name;
  UnixSeconds created = 0;
};

// All of them, by name or number.
struct AccessBook {
  std::vector<UserRecord> users;
  std::vector<AccessTokenRecord> tokens;
  std::vector<ProjectRecord> projects;
};

// The sender of a request: who it is, and what it may do.
struct Principal {
  Actor actor;
  std::vector<Grant> grants;

  bool may(Role role, const std::string& project) const {
    const auto has = role_in(grants, project);
    return has && *has >= role;
  }
  // Whether the role is given in all projects, also future ones.
  bool may_everywhere(Role role) const { return may(role, kAllProjects); }
  // Whether the role is given in any project.
  bool may_somewhere(Role role) const;
};

// Returns the sender of a local request, an administrator: this user runs the program, or connects through
// the coordinator's Unix socket.
Principal local_administrator(unsigned user);

// Returns the user's grants as far as the token limits them.
std::vector<Grant> effective_grants(const UserRecord& user, const AccessTokenRecord& token);

}  // namespace fedge::server
