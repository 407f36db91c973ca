#include "server/access/users.h"

#include <algorithm>

namespace fedge::server {

const char* state_of(const AccessTokenRecord& token, UnixSeconds now) {
  if (token.revoked) return "revoked";
  return now > token.expires ? "expired" : "valid";
}

bool Principal::may_somewhere(Role role) const {
  return std::ranges::any_of(grants, [&](const Grant& grant) { return grant.role >= role; });
}

Principal local_administrator(unsigned user) {
  return {{"uid " + std::to_string(user)}, {{kAllProjects, Role::kAdmin}}};
}

std::vector<Grant> effective_grants(const UserRecord& user, const AccessTokenRecord& token) {
  std::vector<Grant> grants = user.grants;
  if (!token.project.empty()) {
    const auto role = role_in(user.grants, token.project);
    grants.clear();
    if (role) grants.push_back({token.project, *role});
  }
  if (token.role)
    for (Grant& grant : grants) grant.role = std::min(grant.role, *token.role);
  return grants;
}

}  // namespace fedge::server
