#include "server/access/roles.h"

#include <algorithm>
#include <array>

#include "core/text.h"

namespace fedge::server {
namespace {

constexpr std::array kRoleNames = {"viewer", "submitter", "operator", "admin"};
constexpr std::size_t kMaxName = 64;
constexpr std::size_t kMaxClientName = 128;

bool is_one_of(char c, std::string_view further) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || further.find(c) != std::string_view::npos;
}

Result<void> check_name(const std::string& name, const char* what, std::string_view further) {
  const bool shaped = !name.empty() && name.size() <= kMaxName && is_one_of(name.front(), "") &&
                      std::ranges::all_of(name, [&](char c) { return is_one_of(c, further); });
  if (shaped) return {};
  std::string allowed;
  for (const char c : further) allowed += std::string(allowed.empty() ? "" : " ") + c;
  return invalid(std::string(what) + " must have 1 to " + std::to_string(kMaxName) +
                 " of the characters a-z, 0-9 and " + allowed + ", and begin with a letter or digit, not '" +
                 clean_text(name, 80) + "'");
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

}  // namespace

const char* name_of(Role role) { return kRoleNames[static_cast<std::size_t>(role)]; }

std::optional<Role> parse_role(std::string_view name) {
  const auto* found = std::ranges::find(kRoleNames, name);
  if (found == kRoleNames.end()) return std::nullopt;
  return static_cast<Role>(found - kRoleNames.begin());
}

std::string to_string(const std::vector<Grant>& grants) {
  std::string text;
  for (const Grant& grant : grants)
    text += (text.empty() ? "" : ",") + grant.project + "=" + name_of(grant.role);
  return text;
}

Result<std::vector<Grant>> parse_grants(const std::string& text) {
  std::vector<Grant> grants;
  for (const std::string& part : split(text)) {
    const std::size_t equals = part.find('=');
    const auto role = parse_role(equals == std::string::npos ? "" : part.substr(equals + 1));
    if (!role)
      return invalid("a grant is PROJECT=ROLE with the role viewer, submitter, operator or admin, not '" +
                     clean_text(part, 80) + "'");
    Grant grant{part.substr(0, equals), *role};
    if (grant.project != kAllProjects) FEDGE_TRY_VOID(check_project_name(grant.project));
    if (std::ranges::find(grants, grant.project, &Grant::project) != grants.end())
      return invalid("the grants name the project '" + grant.project + "' twice");
    grants.push_back(std::move(grant));
  }
  std::ranges::sort(grants, {}, &Grant::project);
  return grants;
}

std::optional<Role> role_in(const std::vector<Grant>& grants, const std::string& project) {
  std::optional<Role> highest;
  for (const Grant& grant : grants)
    if (grant.project == project || grant.project == kAllProjects)
      highest = highest ? std::max(*highest, grant.role) : grant.role;
  return highest;
}

Result<void> check_user_name(const std::string& name) { return check_name(name, "a user's name", "._-@"); }

Result<void> check_project_name(const std::string& name) {
  return check_name(name, "a project's name", "._-");
}

Result<std::vector<std::string>> checked_labels(std::vector<std::string> labels) {
  std::ranges::sort(labels);
  labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
  if (labels.size() > kMaxLabels)
    return invalid("a client has at most " + std::to_string(kMaxLabels) + " labels, not " +
                   std::to_string(labels.size()));
  if (joined_labels(labels).size() > kMaxLabelsBytes)
    return invalid("the labels of a client must not have more than " + std::to_string(kMaxLabelsBytes) +
                   " bytes together");
  for (const std::string& label : labels) FEDGE_TRY_VOID(check_label(label));
  return labels;
}

std::string joined_labels(const std::vector<std::string>& labels) {
  std::string text;
  for (const std::string& label : labels) text += (text.empty() ? "" : ",") + label;
  return text;
}

std::vector<std::string> split_labels(const std::string& text) { return split(text); }

Result<void> check_client_name(const std::string& name) {
  if (name.size() <= kMaxClientName && clean_text(name, kMaxClientName) == name) return {};
  return invalid("a client's name must be printable text of at most " + std::to_string(kMaxClientName) +
                 " bytes");
}

}  // namespace fedge::server
