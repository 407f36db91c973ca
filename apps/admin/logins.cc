#include "apps/admin/logins.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <utility>

#include "core/detail/json.h"
#include "core/platform/files.h"

namespace fedge::apps {
namespace {

constexpr std::size_t kMostLoginBytes = 1 << 20;
constexpr std::string_view kHttps = "https://";

Result<std::filesystem::path> logins_file() {
  if (const char* config = std::getenv("XDG_CONFIG_HOME"); config != nullptr && *config == '/')
    return std::filesystem::path(config) / "fedge" / "logins.json";
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0')
    return std::filesystem::path(home) / ".config" / "fedge" / "logins.json";
  return Error{ErrorCode::kNotFound,
               "neither HOME nor XDG_CONFIG_HOME is set, so there is no place for logins"};
}

Result<void> write_logins(const std::filesystem::path& file, const std::vector<Login>& logins) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Login& login : logins) {
    nlohmann::ordered_json json;
    json["address"] = protocol::to_string(login.address);
    json["token"] = login.token;
    json["fingerprint"] = login.fingerprint;
    list.push_back(std::move(json));
  }
  FEDGE_TRY_VOID(make_directory(file.parent_path(), 0700));
  return write_file_atomic(file, json_text(list, 1) + "\n", 0600);
}

Error damaged(const std::filesystem::path& file) {
  return {ErrorCode::kCorrupt, file.string() + " is damaged; remove it and log in again"};
}

std::string text_in(const nlohmann::ordered_json& json, const char* field) {
  const auto found = json.find(field);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace

Result<protocol::Address> parse_coordinator_url(const std::string& url) {
  std::string rest = url;
  if (rest.starts_with("http://"))
    return invalid("the admin API needs HTTPS; write https://, not '" + url.substr(0, 80) + "'");
  if (rest.starts_with(kHttps)) rest = rest.substr(kHttps.size());
  while (rest.ends_with('/')) rest.pop_back();
  const std::size_t bracket = rest.rfind(']');
  const std::size_t colon = rest.rfind(':');
  const bool has_port = colon != std::string::npos && (bracket == std::string::npos || colon > bracket);
  auto address = protocol::parse_address(has_port ? rest : rest + ":443");
  if (!address)
    return invalid("a coordinator's address is https://HOST:PORT, not '" + url.substr(0, 80) + "'");
  return address;
}

Result<std::vector<Login>> read_logins() {
  FEDGE_TRY(file, logins_file());
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0 && errno == ENOENT) return std::vector<Login>();
  if ((info.st_mode & 077) != 0)
    return Error{ErrorCode::kRefused,
                 file.string() + " can be read by other users; run: chmod 600 " + file.string()};
  FEDGE_TRY(text, read_file(file, kMostLoginBytes));
  const auto json = parse_ordered_json(text, 4);
  if (!json.is_array()) return damaged(file);
  std::vector<Login> logins;
  for (const auto& one : json) {
    if (!one.is_object()) return damaged(file);
    const auto address = protocol::parse_address(text_in(one, "address"));
    if (!address) return damaged(file);
    logins.push_back({*address, text_in(one, "token"), text_in(one, "fingerprint")});
  }
  return logins;
}

Result<void> store_login(const Login& login) {
  FEDGE_TRY(logins, read_logins());
  std::erase_if(logins, [&](const Login& one) { return one.address == login.address; });
  logins.insert(logins.begin(), login);
  FEDGE_TRY(file, logins_file());
  return write_logins(file, logins);
}

Result<Login> remove_login(const std::optional<protocol::Address>& address) {
  FEDGE_TRY(logins, read_logins());
  const auto found = address ? std::ranges::find(logins, *address, &Login::address) : logins.begin();
  if (found == logins.end())
    return Error{ErrorCode::kNotFound, address ? "there is no login at " + protocol::to_string(*address)
                                               : std::string("there is no login")};
  Login removed = *found;
  logins.erase(found);
  FEDGE_TRY(file, logins_file());
  FEDGE_TRY_VOID(write_logins(file, logins));
  return removed;
}

}  // namespace fedge::apps
