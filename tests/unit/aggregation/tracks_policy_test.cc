#include "aggregation/tracks/policy.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "core/config/document.h"
#include "tests/support/text.h"
#include "tests/support/tracks.h"

namespace fedge::aggregation::test {
namespace {

Result<Policy> policy_of_text(const std::string& text) {
  auto document = config::parse_toml(text, "p.toml");
  REQUIRE_MESSAGE(document, document.error().message);
  return read_policy(*document);
}

Policy policy(const std::string& text) {
  auto result = policy_of_text(text);
  REQUIRE_MESSAGE(result, result.error().message);
  return *result;
}

std::string policy_error(const std::string& text) {
  const auto result = policy_of_text(text);
  return result ? "" : result.error().message;
}

// Returns the error of a policy whose first line is `clients = 6` and whose second opens the table.
std::string error_in(const std::string& lines) {
  return policy_error("clients = 6\n[[disagreement]]\n" + lines);
}

// Reads the section [tracks] of a run with this many clients.
Result<Policy> read_section(const std::string& text, std::size_t clients) {
  const auto document = config::parse_toml(text, "run.toml");
  REQUIRE_MESSAGE(document, document.error().message);
  config::Reader root(document->root, "", document->name);
  config::Reader section = root.section("tracks");
  Policy result = read_policy(section, clients);
  root.adopt(section);
  FEDGE_TRY_VOID(root.finish());
  return result;
}

std::string section_error(const std::string& text, std::size_t clients) {
  const auto result = read_section(text, clients);
  return result ? "" : result.error().message;
}

using fedge::test::contains;

}  // namespace

TEST_CASE("policy: every kind is read, with its rounds, and lists come in the order of ids") {
  const Policy read_policy = policy(
      "clients = [\"north\", \"south\", \"east\", \"west\"]\nstrict = true\nkeep_orphan_global = true\n"
      "[[disagreement]]\nkind = \"inbound\"\nclients = [\"west\", \"north\"]\nagainst = [\"south\"]\n"
      "[[disagreement]]\nkind = \"outbound\"\nclients = [\"east\"]\nagainst = [\"west\", \"east\"]\n"
      "from_round = 3\nuntil_round = 3\ndeep = true\n"
      "[[disagreement]]\nkind = \"bidirectional\"\nclients = [\"east\"]\nagainst = [\"north\"]\n"
      "[[disagreement]]\nkind = \"full\"\nclients = [\"south\"]\nuntil_round = 4294967295\n"
      "[[disagreement]]\nkind = \"partial_data\"\nclients = [\"south\"]\nwithheld = 0.25\n"
      "[[disagreement]]\nkind = \"partial_data\"\nclients = [\"north\"]\n");
  Policy expected =
      policy_of(4, {inbound({0, 3}, {1}), outbound({2}, {2, 3}), bidirectional({2}, {0}),
                    full({1}, 1, 4294967294), disagreement(DisagreementKind::kPartialData, {1}, {}),
                    disagreement(DisagreementKind::kPartialData, {0}, {})});
  expected.names = {"north", "south", "east", "west"};
  expected.strict = true;
  expected.keep_orphan_global = true;
  expected.disagreements[1].from_round = RoundNumber(3);
  expected.disagreements[1].until_round = RoundNumber(3);
  expected.disagreements[1].deep = true;
  expected.disagreements[3].until_round = RoundNumber(4294967295);
  expected.disagreements[4].withheld = 0.25;
  expected.disagreements[5].withheld = 0.5;
  CHECK(read_policy == expected);
  CHECK(read_policy.name(ClientId(2)) == "east");
}

TEST_CASE("policy: clients without names are called by their numbers") {
  const Policy read_policy =
      policy("clients = 12\n[[disagreement]]\nkind = \"full\"\nclients = [\"11\", \"0\"]\n");
  CHECK(read_policy == policy_of(12, {full({0, 11})}));
  CHECK(read_policy.name(ClientId(11)) == "11");
  CHECK(policy("clients = 1000000\n").clients == 1'000'000);
}

TEST_CASE("policy: its text is short, has one form and reads back") {
  const std::string text =
      "clients = [\"a b\", \"\\\"q\\\"\"]\n"
      "disagreement = [{ against = [\"\\\"q\\\"\"], clients = [\"a b\"], deep = true, from_round = 2, "
      "kind = \"inbound\", until_round = 7 }, { clients = [\"a b\"], kind = \"partial_data\", withheld = "
      "0.1 }]\nstrict = true\n";
  CHECK(to_toml(policy(text)) == text);
  CHECK(to_toml(policy("strict = false\nclients = 3\n")) == "clients = 3\n");
}

TEST_CASE("policy: what is wrong with the clients is said with file, line and key") {
  CHECK(contains(policy_error("strict = true\n"),
                 "p.toml: clients is required but missing: Number of clients"));
  CHECK(policy_error("\nclients = 0\n") == "p.toml:2: clients: 0 is out of range, expected 1 to 1000000");
  CHECK(policy_error("clients = 1000001\n") ==
        "p.toml:1: clients: 1000001 is out of range, expected 1 to 1000000");
  CHECK(policy_error("clients = -9223372036854775808\n") ==
        "p.toml:1: clients: -9223372036854775808 is out of range, expected 1 to 1000000");
  CHECK(policy_error("clients = 2.5\n") == "p.toml:1: clients: found a float, expected an integer");
  CHECK(policy_error("clients = []\n") == "p.toml:1: clients: is an empty list");
  CHECK(policy_error("clients = [1, 2]\n") ==
        "p.toml:1: clients: contains an integer; every item must be a string");
  CHECK(policy_error("clients = [\"a\", \"b\", \"a\"]\n") == "p.toml:1: clients: lists \"a\" twice");
  CHECK(policy_error("clients = [\"a\", \"\"]\n") == "p.toml:1: clients: contains an empty name");
  const std::string longest(1024, 'x');
  CHECK(policy_error("clients = [\"" + longest + "\"]\n").empty());
  CHECK(policy_error("clients = [\"" + longest + "y\"]\n") ==
        "p.toml:1: clients: one of the names has 1025 bytes; at most 1024 are allowed");
  // The last three: two reverse the direction of the following text, one ends a line.
  for (const char* control :
       {"\\u0000", "\\n", "\\u001B", "\\u007F", "\\u0085", "\\u202E", "\\u2067", "\\u2028"})
    CHECK(policy_error(std::string("clients = [\"a") + control + "\"]\n") ==
          "p.toml:1: clients: one of the names contains a control character at byte 1");
  CHECK(policy_error("clients = [\"é\", \"\\u00A0\"]\n").empty());
}

TEST_CASE("policy: what is wrong with a disagreement is said with file, line and key") {
  CHECK(error_in("clients = [\"0\"]\n") ==
        "p.toml:2: disagreement[0].kind is required but missing: What the clients want: to take no part "
        "(full), to withhold samples (partial_data), not to be influenced by the clients in against "
        "(inbound), not to influence the clients in against (outbound), or inbound and outbound together "
        "(bidirectional).");
  CHECK(
      contains(error_in("kind = \"inbond\"\nclients = [\"0\"]\nagainst = [\"1\"]\n"),
               "p.toml:3: disagreement[0].kind: \"inbond\" is not a known value, did you mean \"inbound\"?"));
  CHECK(error_in("kind = \"full\"\n") ==
        "p.toml:2: disagreement[0].clients is required but missing: Names of the clients that disagree.");
  CHECK(error_in("kind = \"full\"\nclients = []\n") == "p.toml:4: disagreement[0].clients: is an empty list");
  CHECK(error_in("kind = \"full\"\nclients = [\"0\"]\nagainst = [\"1\"]\n") ==
        "p.toml:5: disagreement[0].against: has no effect with kind = \"full\"; it applies only to inbound, "
        "outbound and bidirectional");
  CHECK(error_in("kind = \"outbound\"\nclients = [\"0\"]\n") ==
        "p.toml:2: disagreement[0].against: is required for this kind: list the clients whose models or "
        "updates are excluded");
  CHECK(error_in("kind = \"inbound\"\nclients = [\"0\"]\nagainst = []\n") ==
        "p.toml:5: disagreement[0].against: is an empty list");
  CHECK(error_in("kind = \"full\"\nclients = [\"0\", \"1\", \"0\"]\n") ==
        "p.toml:4: disagreement[0].clients: lists \"0\" twice");
  CHECK(error_in("kind = \"full\"\nclients = \"0\"\n") ==
        "p.toml:4: disagreement[0].clients: found a string, expected a list of strings");
  CHECK(error_in("kind = \"full\"\nclients = [0]\n") ==
        "p.toml:4: disagreement[0].clients: contains an integer; every item must be a string");
  CHECK(error_in("kind = \"full\"\nclients = [\"0\"]\nfrom_round = 4\nuntil_round = 3\n") ==
        "p.toml:6: disagreement[0].until_round: 3 is before from_round, which is 4");
  CHECK(error_in("kind = \"full\"\nclients = [\"0\"]\nuntil_round = 0\n") ==
        "p.toml:5: disagreement[0].until_round: 0 is out of range, expected 1 to 4294967295");
  CHECK(error_in("kind = \"full\"\nclients = [\"0\"]\nfrom_round = 4294967296\n") ==
        "p.toml:5: disagreement[0].from_round: 4294967296 is out of range, expected 1 to 4294967295");
  CHECK(error_in("kind = \"full\"\nclients = [\"0\"]\nwithheld = 0.5\n") ==
        "p.toml:5: disagreement[0].withheld: has no effect with kind = \"full\"; it applies only to "
        "partial_data");
  CHECK(contains(error_in("kind = \"partial_data\"\nclients = [\"0\"]\ndeep = true\n"),
                 "p.toml:5: disagreement[0].deep: has no effect with kind = \"partial_data\""));
  for (const char* share : {"0", "1", "1.0", "0.0"})
    CHECK(error_in("kind = \"partial_data\"\nclients = [\"0\"]\nwithheld = " + std::string(share) + "\n") ==
          "p.toml:5: disagreement[0].withheld: must be above 0 and below 1");
  CHECK(contains(error_in("kind = \"partial_data\"\nclients = [\"0\"]\nwithheld = nan\n"), "out of range"));
  CHECK(policy_error("clients = 2\ndisagreement = 3\n") ==
        "p.toml:2: disagreement: found an integer, expected a list of tables");
  CHECK(error_in("kind = \"full\"\nclients = [\"0\"]\nuntil = 3\n") ==
        "p.toml:5: unknown key disagreement[0].until (known keys: kind, clients, against, from_round, "
        "until_round, deep, withheld)");
  CHECK(policy_error("clients = 2\n[tracks]\n") ==
        "p.toml:2: unknown key tracks (known keys: clients, strict, keep_orphan_global, disagreement)");
}

TEST_CASE("policy: a client that there is not is named, whatever is written in its place") {
  const auto unknown = [](const std::string& name) {
    return error_in("kind = \"full\"\nclients = [\"0\", \"" + name + "\"]\n");
  };
  for (const char* name :
       {"6", "01", "-1", "+1", " 1", "1 ", "0x1", "1.0", "", "4294967296", "99999999999999999999"})
    CHECK(unknown(name) == "p.toml:4: disagreement[0].clients: \"" + std::string(name) +
                               "\" is not a client of this policy (its clients are \"0\" to \"5\")");
  CHECK(contains(unknown("\\u202Eabc"), "a string with control characters is not a client of this policy"));
  CHECK(contains(unknown("\\u001B[2J"), "a string with control characters is not a client of this policy"));
  CHECK(contains(unknown(std::string(1000, '7')), "a string of 1000 bytes is not a client of this policy"));
  const std::string named = "clients = [\"north\", \"south\"]\n[[disagreement]]\nkind = \"inbound\"\n";
  CHECK(
      policy_error(named + "clients = [\"north\"]\nagainst = [\"soth\"]\n") ==
      "p.toml:5: disagreement[0].against: \"soth\" is not a client of this policy, did you mean \"south\"?");
  CHECK(policy_error(named + "clients = [\"0\"]\nagainst = [\"south\"]\n") ==
        "p.toml:4: disagreement[0].clients: \"0\" is not a client of this policy");
}

TEST_CASE("policy: each of several wrong disagreements is reported with its line") {
  const std::string wrong = "[[disagreement]]\nkind = \"full\"\nclients = [\"x\"]\n";
  CHECK(policy_error("clients = 2\n" + wrong + wrong) ==
        "p.toml:4: disagreement[0].clients: \"x\" is not a client of this policy (its clients are \"0\" to "
        "\"1\")\n"
        "p.toml:7: disagreement[1].clients: \"x\" is not a client of this policy (its clients are \"0\" to "
        "\"1\")\n2 errors in "
        "p.toml");
  CHECK(policy_error("clients = 2\n[[disagreement]]\nkind = \"full\"\nclients = [\"1\"]\n" + wrong) ==
        "p.toml:7: disagreement[1].clients: \"x\" is not a client of this policy (its clients are \"0\" to "
        "\"1\")");
}

TEST_CASE("policy: pairs of clients and disagreements are bounded") {
  const auto list = [](std::size_t count) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i) text += (i == 0 ? "[\"" : ",\"") + std::to_string(i) + "\"";
    return text + "]";
  };
  const auto crossed = [&](std::size_t clients, std::size_t against) {
    return "[[disagreement]]\nkind = \"inbound\"\nclients = " + list(clients) +
           "\nagainst = " + list(against) + "\n";
  };
  const std::string head = "clients = 10000\n";
  CHECK(policy_error(head + crossed(2000, 2500)).empty());
  CHECK(policy_error(head + crossed(2000, 2501)) ==
        "p.toml:4: disagreement[0].clients: this disagreement and the earlier ones name too many pairs of a "
        "client and a client that it excludes; the limit is 5000000");
  const std::string one = "[[disagreement]]\nkind = \"full\"\nclients = [\"0\"]\n";
  CHECK(policy_error(head + crossed(2000, 2500) + one) ==
        "p.toml:8: disagreement[1].clients: this disagreement and the earlier ones name too many pairs of a "
        "client and a client that it excludes; the limit is 5000000");
  std::string many = "clients = 2\ndisagreement = [{}";
  for (int i = 1; i < 100'001; ++i) many += ",{}";
  CHECK(policy_error(many + "]\n") ==
        "p.toml:2: disagreement: lists 100001 disagreements, but at most 100000 are allowed");
}

TEST_CASE("policy: a run's section has the run's clients, by number or by name") {
  const std::string rest = "[[tracks.disagreement]]\nkind = \"full\"\nclients = [\"2\"]\n";
  const auto absent = read_section("[tracks]\nstrict = true\n" + rest, 3);
  REQUIRE(absent);
  CHECK(absent->clients == 3);
  CHECK(absent->strict);
  CHECK(absent->disagreements == std::vector<Disagreement>{full({2})});
  CHECK(read_section("[tracks]\nclients = 3\n" + rest, 3));
  CHECK(read_section("", 20'000'000)->clients == 20'000'000);
  const auto named = read_section("[tracks]\nclients = [\"a\", \"b\", \"2\"]\n" + rest, 3);
  REQUIRE(named);
  CHECK(named->disagreements == std::vector<Disagreement>{full({2})});
  CHECK(section_error("[tracks]\nclients = [\"a\", \"b\"]\n", 3) ==
        "run.toml:2: tracks.clients: lists 2, but the run has 3 clients");
  CHECK(section_error("[tracks]\nclients = 4\n", 3) ==
        "run.toml:2: tracks.clients: is 4, but the run has 3 clients");
  CHECK(section_error(rest, 2) ==
        "run.toml:3: tracks.disagreement[0].clients: \"2\" is not a client of this policy (its clients are "
        "\"0\" to \"1\")");
  CHECK(
      contains(section_error(rest, 1'000'001), "run.toml:1: tracks.disagreement: a run of 1000001 clients"));
}

TEST_CASE("policy: every key is documented, those of a disagreement once") {
  std::vector<config::KeyDoc> docs;
  const config::Table empty;
  config::Reader section(empty, "tracks", "", &docs);
  read_policy(section, 10);
  std::vector<std::string> paths;
  for (const config::KeyDoc& doc : docs) {
    paths.push_back(doc.path);
    CHECK_MESSAGE(doc.doc.size() > 10, doc.path);
  }
  CHECK(paths == std::vector<std::string>{"tracks.clients", "tracks.strict", "tracks.keep_orphan_global",
                                          "tracks.disagreement", "tracks.disagreement.kind",
                                          "tracks.disagreement.clients", "tracks.disagreement.against",
                                          "tracks.disagreement.from_round", "tracks.disagreement.until_round",
                                          "tracks.disagreement.deep", "tracks.disagreement.withheld"});
}

}  // namespace fedge::aggregation::test
