// The admin API's routes of the coordinator's key.
#include <doctest/doctest.h>
#include <unistd.h>

#include <string>

#include "core/detail/json.h"
#include "server/access/users.h"
#include "server/api/api.h"
#include "server/contact/key_rotation.h"
#include "server/live/live.h"
#include "tests/support/tiny_dataset.h"

namespace fedge::server {
namespace {

struct KeyDesk {
  KeyDesk() { REQUIRE(take_up_key(directory.path())); }
  // Returns the answer's JSON, and checks its status.
  nlohmann::ordered_json ask(const char* method, const char* path, int status, const std::string& body = "") {
    const auto response = api.answer({.method = method,
                                      .path = std::string(kApiRoot) + path,
                                      .body = body,
                                      .principal = local_administrator(::geteuid())});
    CHECK_MESSAGE(response.status == status, response.body);
    return parse_ordered_json(response.body, 8);
  }

  test::TemporaryDirectory directory;
  std::shared_ptr<Live> live = std::make_shared<Live>();
  std::size_t looks = 0;
  Api api{{.data_directory = directory.path(), .software = "test", .live = live}};
};

}  // namespace

TEST_CASE("key api: nothing becomes the key of a running coordinator that has not told its clients of it") {
  KeyDesk desk;
  desk.live->on_keys_changed([&] { ++desk.looks; });
  const std::string former = desk.ask("GET", "/key", 200)["key"];
  const std::string next = desk.ask("POST", "/key/next", 200)["next_key"];
  CHECK(desk.looks == 1);
  for (const char* body : {"{}", R"({"force": true})"}) {
    const auto refused = desk.ask("POST", "/key/rotation", 503, body);
    CHECK(refused["detail"].get<std::string>().find("has not told its clients") != std::string::npos);
  }
  CHECK(desk.ask("GET", "/key", 200)["key"] == former);
  desk.live->set_told_key(parse_public_key(former).value());  // another key
  desk.ask("POST", "/key/rotation", 503);
  desk.live->set_told_key(parse_public_key(next).value());
  desk.ask("POST", "/key/rotation", 409, R"({"next_key": ")" + former + R"("})");
  CHECK(desk.ask("POST", "/key/rotation", 200)["key"] == next);
}

}  // namespace fedge::server
