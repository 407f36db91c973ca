// Roles, projects and labels: what a user may do, and where. A project owns runs, clients and join tokens;
// a user has a role in each of some projects. Plain values and pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace fedge::server {

inline constexpr const char* kDefaultProject = "default";
inline constexpr const char* kAllProjects = "*";

// Each role may do what the roles before it may.
enum class Role : std::uint8_t {
  kViewer,     // see runs, clients and metrics
  kSubmitter,  // submit, pause, continue and stop runs
  kOperator,   // admit, approve and revoke clients; create join tokens; change tracks
  kAdmin,      // manage users, access tokens and projects; read the audit log
};
const char* name_of(Role role);  // "viewer", ...
std::optional<Role> parse_role(std::string_view name);

struct Grant {
  std::string project;  // or kAllProjects
  Role role = Role::kViewer;
  bool operator==(const Grant&) const = default;
};
// "*=viewer,default=operator", as stored and as in the audit log; projects ascending.
std::string to_string(const std::vector<Grant>& grants);
// kInvalid names the grant that is wrong.
Result<std::vector<Grant>> parse_grants(const std::string& text);
// Returns the highest role that the grants give in this project; nothing if they give none.
std::optional<Role> role_in(const std::vector<Grant>& grants, const std::string& project);

// Names of users and projects: 1 to 64 of the characters a-z, 0-9, '.', '_', '-' and, in users' names, '@',
// beginning with a letter or digit. kInvalid says so, with `what` as subject.
Result<void> check_user_name(const std::string& name);
Result<void> check_project_name(const std::string& name);

// A label consists of 1 to 64 of the characters A-Z, a-z, 0-9, '.', '_', ':', '=' and '-'. A client has at
// most kMaxLabels.
inline constexpr std::size_t kMaxLabels = 32;
inline constexpr std::size_t kMaxLabelsBytes = 512;  // with commas between them: the audit log has them whole
Result<std::vector<std::string>> checked_labels(std::vector<std::string> labels);  // sorted
std::string joined_labels(const std::vector<std::string>& labels);                 // "icu,ward-3"
std::vector<std::string> split_labels(const std::string& text);
// A client's name is printable text of at most 128 bytes.
Result<void> check_client_name(const std::string& name);

}  // namespace fedge::server
