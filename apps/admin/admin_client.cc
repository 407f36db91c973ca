#include "apps/admin/admin_client.h"

#include <unistd.h>

#include <cctype>
#include <thread>
#include <utility>

#include "apps/admin/logins.h"
#include "apps/common.h"
#include "core/detail/json.h"
#include "core/platform/files.h"
#include "core/text.h"
#include "server/api/api_server.h"
#include "server/data_directory.h"

namespace fedge::apps {
namespace {

constexpr int kAnswerLevels = 24;
// A coordinator that starts has its directory before it listens: it replays its journals in between.
constexpr std::chrono::milliseconds kStarting{30'000};
constexpr std::chrono::milliseconds kAgain{100};

ErrorCode code_of(const std::string& name) {
  for (const ErrorCode code :
       {ErrorCode::kInvalid, ErrorCode::kNotFound, ErrorCode::kCorrupt, ErrorCode::kRefused,
        ErrorCode::kStale, ErrorCode::kUnsupported, ErrorCode::kUnavailable, ErrorCode::kResource})
    if (name == to_string(code)) return code;
  return ErrorCode::kUnavailable;
}

std::string text_of(const Json& json, const char* field) {
  const auto found = json.is_object() ? json.find(field) : json.end();
  return json.is_object() && found != json.end() && found->is_string() ? found->get<std::string>()
                                                                       : std::string();
}

Result<Json> outcome(int status, const std::string& body) {
  Json json = body.empty() ? Json() : Json(parse_ordered_json(body, kAnswerLevels));
  if (json.is_discarded())
    return Error{ErrorCode::kUnavailable, "the coordinator's answer is not JSON: " + clean_text(body, 200)};
  if (status >= 200 && status < 300) return json;
  const std::string detail = text_of(json, "detail");
  return Error{code_of(text_of(json, "code")),
               detail.empty() ? "the coordinator answered with status " + std::to_string(status) : detail};
}

// Returns the login for the coordinator of --coordinator, or the default one.
Result<Login> login_for(const std::string& url) {
  FEDGE_TRY(logins, read_logins());
  if (url.empty()) return logins.front();
  FEDGE_TRY(address, parse_coordinator_url(url));
  for (const Login& login : logins)
    if (login.address == address) return login;
  return Error{ErrorCode::kNotFound, "there is no login at " + protocol::to_string(address) +
                                         "; log in first: fedge login https://" +
                                         protocol::to_string(address)};
}

// Whether no coordinator runs in this directory.
Result<bool> is_idle(const std::filesystem::path& directory) {
  std::error_code ignored;
  if (!std::filesystem::exists(directory, ignored)) return true;
  const auto lock = DirectoryLock::acquire(directory);
  if (lock) return true;
  if (lock.error().code == ErrorCode::kUnavailable) return false;
  return lock.error();
}

}  // namespace

Result<AdminClient> AdminClient::open(const AdminTarget& target, bool anywhere) {
  AdminClient client;
  const bool remote = !target.coordinator.empty() || (target.data_directory.empty());
  if (remote) {
    FEDGE_TRY(login, login_for(target.coordinator));
    client.place_ = HttpsPlace{login.address, login.fingerprint};
    client.token_ = login.token;
    client.remote_ = true;
    return client;
  }
  const std::filesystem::path directory = target.data_directory;
  if (!anywhere) FEDGE_TRY_VOID(server::check_coordinator_data(directory));
  const std::filesystem::path socket = server::admin_socket(directory);
  client.place_ = socket;
  for (std::chrono::milliseconds waited{0};; waited += kAgain) {
    const auto greeted =
        send_request(socket, {.method = "GET", .target = std::string(server::kApiRoot) + "/identity"});
    if (greeted) return client;
    if (greeted.error().code != ErrorCode::kNotFound) return greeted.error();
    FEDGE_TRY(idle, is_idle(directory));
    if (idle) break;
    if (waited >= kStarting)
      return Error{ErrorCode::kUnavailable, "a coordinator uses " + directory.string() +
                                                ", but does not answer on " + socket.string()};
    std::this_thread::sleep_for(kAgain);
  }
  client.offline_ = std::make_shared<server::Api>(server::ApiParts{directory, software("fedge")});
  return client;
}

Result<Json> AdminClient::call(const AdminCall& call) const {
  const std::string body = call.body.is_null() ? std::string() : json_text(call.body);
  if (offline_) {
    const std::size_t mark = std::min(call.path.find('?'), call.path.size());
    const auto answer = offline_->answer({.method = call.method,
                                          .path = server::kApiRoot + call.path.substr(0, mark),
                                          .query = call.path.substr(std::min(mark + 1, call.path.size())),
                                          .body = body,
                                          .principal = server::local_administrator(::getuid()),
                                          .idempotency_key = call.idempotency_key});
    return outcome(answer.status, answer.body);
  }
  HttpCall http{.method = call.method, .target = server::kApiRoot + call.path, .body = body};
  if (!token_.empty()) http.fields.emplace_back("Authorization", "Bearer " + token_);
  if (!call.idempotency_key.empty()) http.fields.emplace_back("Idempotency-Key", call.idempotency_key);
  FEDGE_TRY(answer, send_request(place_, http));
  return outcome(answer.status, answer.body);
}

Result<void> AdminClient::each(const std::string& path,
                               const std::function<Result<bool>(const Json&)>& visit) const {
  const std::string joint = path.find('?') == std::string::npos ? "?" : "&";
  std::string next;
  for (;;) {
    FEDGE_TRY(page, call({"GET", path + joint + "limit=1000" + next}));
    for (const Json& item : page["items"]) {
      FEDGE_TRY(more, visit(item));
      if (!more) return {};
    }
    const Json& after = page["next"];
    if (after.is_null()) return {};
    next = "&after=" + (after.is_string() ? url_escaped(after.get<std::string>()) : json_text(after));
  }
}

Result<Json> AdminClient::all(const std::string& path) const {
  Json items = Json::array();
  FEDGE_TRY_VOID(each(path, [&](const Json& item) -> Result<bool> {
    items.push_back(item);
    return true;
  }));
  return items;
}

std::string url_escaped(const std::string& text) {
  constexpr const char* kDigits = "0123456789ABCDEF";
  std::string escaped;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || c == '-' || c == '.' || c == '_') {
      escaped += c;
    } else {
      escaped += '%';
      escaped += kDigits[byte >> 4];
      escaped += kDigits[byte & 15];
    }
  }
  return escaped;
}

}  // namespace fedge::apps
