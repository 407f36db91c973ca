// The fuzz target of the admin API with its recorded inputs, and whether these and its dictionary reach every
// route.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "server/api/api.h"
#include "tests/fuzz/replay.h"
#include "tests/fuzz/targets/api_targets.h"

namespace fedge::server {
namespace {

using fuzz::ApiDocument;
using fuzz::ApiJson;

// The entries of the dictionary, without quotes and escapes.
std::vector<std::string> dictionary_entries() {
  std::ifstream file(FEDGE_SOURCE_DIR "/tests/fuzz/dictionaries/admin_api.dict");
  std::vector<std::string> entries;
  for (std::string line; std::getline(file, line);) {
    std::string entry;
    for (std::size_t i = 1; i + 1 < line.size(); ++i) {
      if (line[i] == '\\') ++i;
      entry += line[i];
    }
    entries.push_back(entry);
  }
  return entries;
}

}  // namespace

TEST_CASE("fuzz corpus: every recorded request to the admin API is refused or answered as documented") {
  CHECK(fuzz::replay("admin_api", fuzz::feed_admin_api, fuzz::Cuts::kNone) >= 25);
  // These need a coordinator that runs.
  const std::vector<std::string> live = {"watchEvents", "startVerification", "showVerification"};
  for (const RouteInfo& route : api_routes())
    if (std::ranges::find(live, route.operation) == live.end())
      CHECK_MESSAGE(fuzz::succeeded_operations().contains(route.operation), route.operation);
}

TEST_CASE("admin api: a client that has moved to another project shows no run of the former one") {
  fuzz::ApiCoordinator coordinator;
  const auto ask = [&](const std::string& grants, const std::string& method, const std::string& body = "") {
    const auto answer =
        coordinator.api().answer({.method = method,
                                  .path = kApiRoot + std::string("/clients/0"),
                                  .body = body,
                                  .principal = {{"user ann", "192.0.2.1"}, *parse_grants(grants)}});
    REQUIRE_MESSAGE(answer.status == 200, answer.body);
    return ApiJson::parse(answer.body);
  };
  CHECK(ask("cardiology=viewer", "GET")["runs"].size() == 1);
  (void)ask("*=operator", "PATCH", R"({"project":"oncology"})");
  CHECK(ask("oncology=viewer", "GET")["runs"].empty());
}

TEST_CASE("fuzz dictionary: has every path, parameter and field of the admin API") {
  const ApiDocument document;
  const std::vector<std::string> entries = dictionary_entries();
  REQUIRE(entries.size() > 100);
  const auto has = [&](auto&& fits) { return std::ranges::any_of(entries, fits); };
  for (const RouteInfo& route : api_routes()) {
    const ApiJson& described =
        document.operation_json(route.method, route.path.substr(std::string(kApiRoot).size()));
    CHECK_MESSAGE(has([&](const std::string& entry) {
                    const auto* found = document.find(route.method, kApiRoot + entry);
                    return entry.starts_with('/') && found != nullptr && found->id == route.operation;
                  }),
                  route.operation);
    for (const ApiJson& parameter : described["parameters"])
      if (parameter["in"] == "query")
        CHECK_MESSAGE(has([&](const std::string& entry) {
                        return entry == parameter["name"].get<std::string>() + "=";
                      }),
                      parameter.dump());
    if (!described.contains("requestBody")) continue;
    const ApiJson& schema =
        document.resolved(described["requestBody"]["content"]["application/json"]["schema"]);
    for (const auto& [name, type] : schema["properties"].items())
      CHECK_MESSAGE(has([&, field = name](const std::string& entry) {
                      return entry.starts_with("\"" + field + "\":");
                    }),
                    (route.operation + " " + name));
  }
}

}  // namespace fedge::server
