// Routes of the coordinator's key.
#include <sys/stat.h>
#include <algorithm>
#include <utility>

#include "core/text.h"
#include "server/api/detail/call.h"
#include "server/contact/key_rotation.h"
#include "server/data_directory.h"
#include "server/live/live.h"

namespace fedge::server {
namespace {

constexpr std::size_t kMostUnaware = 100;  // that an answer names
constexpr std::size_t kMostNamed = 10;     // in an error

// The clients' knowledge of the announced key.
struct KeyNews {
  PublicKey key{};
  std::optional<PublicKey> next;
  std::size_t clients = 0;  // enrolled or pending
  std::vector<const ClientRecord*> unaware;
  std::size_t open_tokens = 0;
  std::shared_ptr<const EnrolmentBook> book;  // keeps `unaware` alive
};

// A device that took another's place has not stored what that one had.
bool knows_key(const ClientRecord& client, const std::optional<ClientActivity>& activity,
               const PublicKey& next) {
  return activity && activity->kept_key == to_hex(next) && activity->kept_by == to_hex(client.key);
}

Result<KeyNews> key_news(Call& call) {
  const auto& directory = call.stores.parts().data_directory;
  KeyNews news;
  // While a coordinator runs, only the file is read: this may be another thread than that of changes.
  Enrolment& enrolment = call.stores.enrolment(call.actor());
  FEDGE_TRY(key,
            call.stores.parts().live ? open_coordinator_key(directory) : key_in_force(directory, enrolment));
  FEDGE_TRY(next, announced_key(directory));
  FEDGE_TRY(book, enrolment.snapshot());
  news.key = key.public_key();
  if (next) news.next = next->public_key();
  news.book = book;
  for (const ClientRecord& client : book->clients) {
    if (client.state == ClientState::kRevoked) continue;
    ++news.clients;
    FEDGE_TRY(activity, call.stores.activity(client.client));
    if (news.next && !knows_key(client, activity, *news.next)) news.unaware.push_back(&client);
  }
  for (const TokenRecord& token : book->tokens)
    if (state_of(token, calendar_now()) == std::string("open")) ++news.open_tokens;
  return news;
}

Result<Json> key_json(Call& call) {
  FEDGE_TRY(news, key_news(call));
  Json json;
  json["key"] = to_hex(news.key);
  json["next_key"] = news.next ? Json(to_hex(*news.next)) : Json();
  struct stat file {};
  const auto path = call.stores.parts().data_directory / kNextKeyFile;
  const bool dated = news.next && ::stat(path.c_str(), &file) == 0;
  json["announced"] = time_or_null(dated ? file.st_mtim.tv_sec : 0);
  json["clients"] = news.clients;
  json["unaware_clients"] = news.unaware.size();
  json["unaware"] = Json::array();
  for (std::size_t i = 0; i < std::min(news.unaware.size(), kMostUnaware); ++i) {
    const ClientRecord& client = *news.unaware[i];
    FEDGE_TRY(activity, call.stores.activity(client.client));
    json["unaware"].push_back({{"client", client.client.value()},
                               {"name", client.description.name},
                               {"state", to_string(client.state)},
                               {"last_seen", time_or_null(activity ? activity->last_seen : 0)}});
  }
  json["open_tokens"] = news.open_tokens;
  return json;
}

// The running coordinator looks at its files at once.
void tell_coordinator(const Call& call) {
  if (const auto& live = call.stores.parts().live) live->keys_changed();
}

Result<Reply> show_key(Call& call) {
  FEDGE_TRY(json, key_json(call));
  return Reply{200, std::move(json)};
}

Result<Reply> announce_key(Call& call) {
  FEDGE_TRY(key, announce_next_key(call.stores.parts().data_directory, call.stores.enrolment(call.actor()),
                                   call.actor()));
  (void)key;
  tell_coordinator(call);
  return show_key(call);
}

Result<Reply> withdraw_key(Call& call) {
  FEDGE_TRY_VOID(withdraw_next_key(call.stores.parts().data_directory, call.stores.enrolment(call.actor()),
                                   call.actor()));
  tell_coordinator(call);
  return show_key(call);
}

Error still_unaware(const KeyNews& news) {
  std::string numbers;
  for (std::size_t i = 0; i < std::min(news.unaware.size(), kMostNamed); ++i)
    numbers += (i == 0 ? "" : ", ") + std::to_string(news.unaware[i]->client.value());
  if (news.unaware.size() > kMostNamed) numbers += ", ...";
  return {
      ErrorCode::kRefused,
      std::to_string(news.unaware.size()) + " of " + std::to_string(news.clients) +
          (news.clients == 1 ? " client" : " clients") +
          " did not report that they have stored the announced key: " + numbers +
          "; after the rotation, a device that has joined and does not have the key can connect only once "
          "its owner has run 'fedge-client move --key " +
          to_hex(*news.next) +
          "'; wait until they have connected, revoke them, or repeat the request with force"};
}

// Nothing may become the key of a coordinator whose clients were not told of it.
Result<void> check_told(const Call& call, const PublicKey& next) {
  const auto& live = call.stores.parts().live;
  if (!live || live->told_key() == next) return {};
  live->keys_changed();
  return Error{ErrorCode::kUnavailable,
               "the coordinator has not told its clients of the announced key yet; repeat the request in a "
               "second"};
}

Result<Reply> rotate_coordinator_key(Call& call) {
  FEDGE_TRY(news, key_news(call));
  if (const std::string wanted = call.text("next_key");
      news.next && !wanted.empty() && wanted != to_hex(*news.next))
    return Error{ErrorCode::kStale, "the announced key is " + to_hex(*news.next) + " by now, and not " +
                                        clean_text(wanted, 80) + "; look at it again"};
  const bool forced = call.has("force") && call.body["force"].get<bool>();
  if (!news.unaware.empty() && !forced) return still_unaware(news);
  if (news.next) FEDGE_TRY_VOID(check_told(call, *news.next));
  FEDGE_TRY(key, rotate_key(call.stores.parts().data_directory, call.stores.enrolment(call.actor()),
                            {{"clients", std::to_string(news.clients)},
                             {"unaware", std::to_string(news.unaware.size())}}));
  (void)key;
  tell_coordinator(call);
  return show_key(call);
}

}  // namespace

std::vector<ApiRoute> key_routes() {
  return {{.method = "GET",
           .path = "/key",
           .operation = "showKey",
           .summary = "Show the coordinator's key, the announced one, and which clients have not stored that",
           .role = Role::kOperator,
           .everywhere = true,
           .handler = show_key,
           .answer = "Key"},
          {.method = "POST",
           .path = "/key/next",
           .operation = "announceKey",
           .summary = "Create the coordinator's next key and announce it to the clients",
           .role = Role::kAdmin,
           .everywhere = true,
           .handler = announce_key,
           .answer = "Key"},
          {.method = "DELETE",
           .path = "/key/next",
           .operation = "withdrawKey",
           .summary = "Remove the announced key; the clients forget it",
           .role = Role::kAdmin,
           .everywhere = true,
           .handler = withdraw_key,
           .answer = "Key"},
          {.method = "POST",
           .path = "/key/rotation",
           .operation = "rotateKey",
           .summary = "Replace the coordinator's key by the announced one, and let all clients connect again",
           .role = Role::kAdmin,
           .everywhere = true,
           .handler = rotate_coordinator_key,
           .body = "KeyRotation",
           .answer = "Key"}};
}

}  // namespace fedge::server
