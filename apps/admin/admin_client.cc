#include "apps/admin/admin_client.h"

#include <unistd.h>

#include <cctype>
#include <cstdlib>
#include <span>
#include <thread>
#include <utility>

#include "apps/admin/logins.h"
#include "apps/common.h"
#include "core/detail/json.h"
#include "core/platform/files.h"
#include "core/text.h"
#include "server/api/api_server.h"
#include "server/backup/backup_lock.h"
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

// Locks the directory against coordinators; null if there is no directory yet. Nothing if one runs there.
Result<std::optional<std::shared_ptr<DirectoryLock>>> lock_idle(const std::filesystem::path& directory) {
  using Locked = std::optional<std::shared_ptr<DirectoryLock>>;
  std::error_code ignored;
  if (!std::filesystem::exists(directory, ignored)) return Locked(std::in_place);
  auto lock = DirectoryLock::acquire(directory);
  if (lock) return Locked(std::make_shared<DirectoryLock>(std::move(*lock)));
  if (lock.error().code == ErrorCode::kUnavailable) return Locked();
  return lock.error();
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

}  // namespace

Result<AdminTarget> chosen_target(AdminTarget given) {
  if (!given.data_directory.empty() && !given.coordinator.empty())
    return invalid("use only one of --data-dir and --coordinator");
  if (!given.data_directory.empty() || !given.coordinator.empty()) return given;
  const AdminTarget set{variable("FEDGE_DATA_DIR"), variable("FEDGE_COORDINATOR")};
  if (!set.data_directory.empty() && !set.coordinator.empty())
    return invalid(
        "FEDGE_DATA_DIR and FEDGE_COORDINATOR are both set; give --data-dir DIR or --coordinator URL");
  if (!set.data_directory.empty() || !set.coordinator.empty()) return set;
  FEDGE_TRY(logins, read_logins());
  if (logins.empty())
    return invalid(
        "give --data-dir DIR on the coordinator's machine, or log in at a remote coordinator with 'fedge "
        "login'");
  return given;
}

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
  FEDGE_TRY_VOID(server::check_restored(directory));
  if (!anywhere) FEDGE_TRY_VOID(server::check_coordinator_data(directory));
  const std::filesystem::path socket = server::admin_socket(directory);
  client.place_ = socket;
  for (std::chrono::milliseconds waited{0};; waited += kAgain) {
    const auto greeted =
        send_request(socket, {.method = "GET", .target = std::string(server::kApiRoot) + "/identity"});
    if (greeted) return client;
    if (greeted.error().code != ErrorCode::kNotFound) return greeted.error();
    FEDGE_TRY(locked, lock_idle(directory));
    if (locked) {
      client.lock_ = std::move(*locked);
      break;
    }
    if (waited >= kStarting)
      return Error{ErrorCode::kUnavailable, "a coordinator uses " + directory.string() +
                                                ", but does not answer on " + socket.string()};
    std::this_thread::sleep_for(kAgain);
  }
  client.offline_ = std::make_shared<server::Api>(server::ApiParts{directory, software("fedge")});
  return client;
}

HttpCall AdminClient::http_call(const AdminCall& call) const {
  HttpCall http{.method = call.method,
                .target = server::kApiRoot + call.path,
                .body = call.body.is_null() ? std::string() : json_text(call.body)};
  if (!token_.empty()) http.fields.emplace_back("Authorization", "Bearer " + token_);
  if (!call.idempotency_key.empty()) http.fields.emplace_back("Idempotency-Key", call.idempotency_key);
  return http;
}

server::ApiResponse AdminClient::answer_here(const AdminCall& call) const {
  const std::size_t mark = std::min(call.path.find('?'), call.path.size());
  return offline_->answer({.method = call.method,
                           .path = server::kApiRoot + call.path.substr(0, mark),
                           .query = call.path.substr(std::min(mark + 1, call.path.size())),
                           .body = call.body.is_null() ? std::string() : json_text(call.body),
                           .principal = server::local_administrator(::getuid()),
                           .idempotency_key = call.idempotency_key});
}

Result<std::uint64_t> AdminClient::download(const std::string& path, const std::filesystem::path& out) const {
  const std::filesystem::path unfinished = out.string() + ".part";
  std::error_code error;
  std::filesystem::remove(unfinished, error);
  std::uint64_t size = 0;
  if (offline_) {
    const auto answer = answer_here({"GET", path});
    if (answer.file.empty()) return outcome(answer.status, answer.body).error();
    std::filesystem::copy_file(answer.file, unfinished, error);
    if (error) return system_error("cannot write", unfinished, error.value());
    size = std::filesystem::file_size(unfinished, error);
  } else {
    Result<void> written;
    HttpCall http = http_call({"GET", path});
    http.on_part = [&](const std::string& part) {
      written = write_file_at(unfinished, size, std::as_bytes(std::span(part)));
      size += part.size();
      return written.has_value();
    };
    const auto answer = send_request(place_, http);
    const auto failed = [&](const Error& why) {
      std::filesystem::remove(unfinished, error);
      return why;
    };
    if (!written) return failed(written.error());
    if (!answer) return failed(answer.error());
    if (answer->status != 200) return outcome(answer->status, answer->body).error();
  }
  std::filesystem::rename(unfinished, out, error);
  if (error) return system_error("cannot write", out, error.value());
  return size;
}

Result<Json> AdminClient::call(const AdminCall& call) const {
  if (offline_) {
    const auto answer = answer_here(call);
    return outcome(answer.status, answer.body);
  }
  const auto answer = send_request(place_, http_call(call));
  if (answer) return outcome(answer->status, answer->body);
  const bool cut = answer.error().code == ErrorCode::kUnavailable && call.method != "GET";
  if (!cut) return answer.error();
  return Error{answer.error().code,
               answer.error().message +
                   "; the change may have been made all the same: look before you repeat the command"};
}

Result<void> AdminClient::follow(
    const std::string& query,
    const std::function<Result<bool>(const std::string& name, const Json& data)>& visit) const {
  if (offline_)
    return Error{ErrorCode::kNotFound, "no coordinator runs in this data directory, so nothing happens"};
  HttpCall http = http_call({"GET", "/events" + query});
  std::string unread;
  bool opened = false;
  Result<bool> more = true;
  http.on_part = [&](const std::string& part) {
    if (!std::exchange(opened, true)) more = visit("open", Json());
    unread += part;
    for (std::size_t end = 0; more && *more && (end = unread.find("\n\n")) != std::string::npos;) {
      std::string name;
      std::string data;
      for (std::size_t begin = 0; begin < end;) {
        const std::size_t line = std::min(unread.find('\n', begin), end);
        const std::string_view text = std::string_view(unread).substr(begin, line - begin);
        if (text.starts_with("event: ")) name = text.substr(7);
        if (text.starts_with("data: ")) data = text.substr(6);
        begin = line + 1;
      }
      unread.erase(0, end + 2);
      if (!name.empty()) more = visit(name, parse_ordered_json(data, kMaxJsonLevels));
    }
    return more && *more;
  };
  const auto answer = send_request(place_, http);
  if (!more) return more.error();
  if (!*more) return {};
  // Nobody listens while the coordinator restarts.
  if (!answer && answer.error().code == ErrorCode::kNotFound)
    return Error{ErrorCode::kUnavailable, answer.error().message};
  if (!answer) return answer.error();
  if (answer->status != 200) return outcome(answer->status, answer->body).error();
  return Error{ErrorCode::kUnavailable, "the coordinator ended the stream of events"};
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
