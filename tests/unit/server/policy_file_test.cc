#include "server/policy_file.h"

#include <doctest/doctest.h>

#include "core/platform/files.h"
#include "run/run_config.h"
#include "server/data_directory.h"
#include "tests/unit/learn/idx_fixture.h"

namespace fedge::server {
namespace {

std::string name_of(std::size_t client) {
  std::string name = std::to_string(client);
  return name.insert(0, 100 - name.size(), 'x');
}

// A run of this many clients with one disagreement each, in the shortest TOML.
Result<run::RunConfig> run_with(std::size_t clients, const std::string& entry) {
  std::string names;
  std::string list;
  for (std::size_t i = 0; i < clients; ++i) {
    const std::string name = "\"" + name_of(i) + "\"";
    names += (i == 0 ? "" : ",") + name;
    list += (i == 0 ? "{clients=[" : ",{clients=[") + name + "]," + entry + "}";
  }
  const auto document =
      config::parse_toml("[data]\npartition = { clients = " + std::to_string(clients) +
                             " }\n[tracks]\nclients = [" + names + "]\ndisagreement = [" + list + "]\n",
                         "run.toml");
  REQUIRE_MESSAGE(document, document.error().message);
  return run::read_run_config(*document);
}

}  // namespace

TEST_CASE(
    "policy file: whatever run is accepted, its policy can be kept, and a longer one is refused by name") {
  struct Kind {
    std::string entry;
    std::size_t fits;
    std::size_t too_many;  // although the run file itself is within the limit
  };
  // The first kind is longer in the run file, the second in the policy file, which spells out its defaults.
  for (auto [entry, fits, too_many] : {Kind{"kind=\"inbound\",against=[\"" + name_of(0) + "\"]", 2000, 3025},
                                       Kind{"kind=\"partial_data\"", 3000, 4400}}) {
    CAPTURE(entry);
    while (too_many - fits > 1) {
      const std::size_t middle = (fits + too_many) / 2;
      (run_with(middle, entry) ? fits : too_many) = middle;
    }
    const auto run = run_with(fits, entry);
    REQUIRE(run);
    CHECK(run->tracks.policy.disagreements.size() == fits);
    const auto again = config::parse_toml(run->canonical, "results/run.toml");
    REQUIRE(again);
    CHECK(run::read_run_config(*again)->id == run->id);
    const learn::test::TemporaryDirectory directory;
    const RunNumber number(1);
    REQUIRE(make_directory(run_directory(directory.path(), number)));
    REQUIRE(PolicyFile(directory.path(), number).open(run->tracks.policy));
    const auto kept = PolicyFile(directory.path(), number).read();
    REQUIRE_MESSAGE(kept, kept.error().message);
    CHECK(*kept == run->tracks.policy);

    const auto refused = run_with(too_many, entry);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::kInvalid);
    CHECK(refused.error().message.starts_with("run.toml: written with one key per line, the run file is 10"));
    CHECK(refused.error().message.ends_with(" bytes long; at most 1048576 are allowed"));
  }
}

TEST_CASE("policy file: a disagreement too many is refused with the limit, and the file stays as it was") {
  const learn::test::TemporaryDirectory directory;
  aggregation::Policy policy{.clients = 1};
  policy.names = {std::string(1000, 'x')};
  policy.disagreements.assign(1000, {.clients = {ClientId(0)}, .until_round = {}});
  REQUIRE(make_directory(run_directory(directory.path(), RunNumber(7))));
  PolicyFile file(directory.path(), RunNumber(7));
  REQUIRE(file.open(policy));
  const config::Table one_more = {{"kind", {std::string("full"), "a test"}},
                                  {"clients", {config::Array{{policy.names.front(), "a test"}}, "a test"}}};
  std::size_t added = 0;
  auto place = file.add(one_more);
  for (; place; place = file.add(one_more)) ++added;
  CHECK(added > 0);
  CHECK(place.error().code == ErrorCode::kResource);
  CHECK(place.error().message.ends_with("/policy.toml would be longer than 1048576 bytes"));
  CHECK(file.read()->disagreements.size() == 1000 + added);
}

}  // namespace fedge::server
