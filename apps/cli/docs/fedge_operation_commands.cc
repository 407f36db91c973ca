// Help of the `fedge` commands for a coordinator's audit log, backups, key and users.
#include "apps/cli/docs/parts.h"

namespace fedge::apps {
namespace {

constexpr const char* kOperate = "Operate a coordinator";

}  // namespace

std::vector<CommandDoc> audit_docs() {
  return {
      {"audit", kOperate, "Show and verify the audit log", {}},
      {"audit ls",
       "",
       "List the entries of the audit log",
       {{"List the entries", "fedge audit ls --data-dir /var/lib/fedge"}}},
      {"audit verify",
       "",
       "Check that no entry was changed, removed or moved",
       {{"Verify the log and print its head hash", "fedge audit verify --data-dir /var/lib/fedge"}},
       {"Store the printed head hash elsewhere and pass it to --expect later: the check then also finds that "
        "both audit.log and audit.head were replaced by older copies."}},
  };
}

std::vector<CommandDoc> backup_docs() {
  return {
      {"backup",
       kOperate,
       "Back up a coordinator's data directory, also while the coordinator runs",
       {{"Make a backup", "fedge backup --data-dir /var/lib/fedge --out /backup/fedge-2026-12-01"},
        {"Check a backup", "fedge backup --verify /backup/fedge-2026-12-01"}},
       {"Run it on the coordinator's machine as the coordinator's user. The backup is a directory that only "
        "this user can read: it contains the coordinator's private keys. It is verified before it gets its "
        "name. Results that a run writes outside of the data directory (fedge-coordinator --out) are not in "
        "it."}},
      {"restore",
       kOperate,
       "Restore a backup into an empty directory",
       {{"Restore a backup", "fedge restore /backup/fedge-2026-12-01 --data-dir /var/lib/fedge"},
        {"Move a stopped coordinator to this machine",
         "fedge restore /backup/moved --data-dir /var/lib/fedge --nothing-since"}},
       {"Without --nothing-since, runs with differential privacy or secure aggregation are stopped, all join "
        "tokens and access tokens are revoked, and client numbers are left out. Other runs continue from "
        "the round of the backup. See docs/operate/backup.md."}},
  };
}

std::vector<CommandDoc> key_docs() {
  return {
      {"key", kOperate, "Show the coordinator's key, and replace it", {}},
      {"key show",
       "",
       "Show the coordinator's key, the announced one, and which clients have not stored that",
       {{"Show the keys", "fedge key show --data-dir /var/lib/fedge"}}},
      {"key announce",
       "",
       "Create the next key and announce it to the clients",
       {{"Announce a next key", "fedge key announce --data-dir /var/lib/fedge"}},
       {"The coordinator tells each client that connects, and each client stores the announced key beside "
        "the "
        "one that it trusts. The key stays in force until 'fedge key rotate'."}},
      {"key withdraw",
       "",
       "Remove the announced key; the clients forget it",
       {{"Withdraw the announced key", "fedge key withdraw --data-dir /var/lib/fedge"}}},
      {"key rotate",
       "",
       "Replace the coordinator's key by the announced one",
       {{"Rotate the key", "fedge key rotate --data-dir /var/lib/fedge"}},
       {"The former key is destroyed, and all clients connect again. A client that has connected with the "
        "new "
        "key does not accept the former one any more. Clients that have not stored the announced key cannot "
        "connect: without --force the command therefore does nothing while there are any. See "
        "docs/operate/keys.md."}},
  };
}

std::vector<CommandDoc> user_docs() {
  return {
      {"user", kOperate, "Manage users of the admin API and their access tokens", {}},
      {"user add",
       "",
       "Add a user",
       {{"Add a user who may operate all projects",
         "fedge user add alice --data-dir /var/lib/fedge --role operator"},
        {"Add a user who may submit runs in one project and see another",
         "fedge user add bob --data-dir /var/lib/fedge --role cardiology=submitter,oncology=viewer"}},
       {"The user can do nothing before 'fedge user token create' has created an access token."},
       {{"Roles",
         {{"viewer", "See runs, clients and metrics"},
          {"submitter", "Also submit, pause, resume and stop runs"},
          {"operator", "Also admit, name and revoke clients, create join tokens, change tracks"},
          {"admin", "Also manage users, access tokens and projects, and read the audit log"}}}}},
      {"user ls", "", "List users", {{"List the users", "fedge user ls --data-dir /var/lib/fedge"}}},
      {"user grant",
       "",
       "Replace the roles of a user",
       {{"Let a user only see things", "fedge user grant alice --data-dir /var/lib/fedge --role viewer"}}},
      {"user remove",
       "",
       "Remove a user for good; its access tokens are void",
       {{"Remove a user", "fedge user remove alice --data-dir /var/lib/fedge"}}},
      {"user token", "", "Manage access tokens", {}},
      {"user token create",
       "",
       "Create an access token of a user and print it",
       {{"Create a token for 30 days",
         "fedge user token create alice --data-dir /var/lib/fedge --days 30 > token.txt"},
        {"Create a token with which a monitoring program can only see things",
         "fedge user token create alice --data-dir /var/lib/fedge --role viewer --note monitoring"}},
       {"The coordinator stores only a hash of the token, so it cannot show the token again."}},
      {"user token ls",
       "",
       "List access tokens without their secrets",
       {{"List the tokens", "fedge user token ls --data-dir /var/lib/fedge"}}},
      {"user token revoke",
       "",
       "Revoke an access token",
       {{"Revoke access token 2", "fedge user token revoke 2 --data-dir /var/lib/fedge"}}},
      {"project",
       kOperate,
       "Manage projects, which own runs, clients and join tokens",
       {},
       {"Users see only the projects in which they have a role. At first there is the project 'default'."}},
      {"project add",
       "",
       "Add a project",
       {{"Add a project", "fedge project add cardiology --data-dir /var/lib/fedge"}}},
      {"project ls",
       "",
       "List projects",
       {{"List the projects", "fedge project ls --data-dir /var/lib/fedge"}}},
      {"login",
       kOperate,
       "Store an access token for a remote coordinator",
       {{"Log in, and type the token", "fedge login https://fedge.example.org:7434"},
        {"Log in with the token in a file",
         "fedge login https://fedge.example.org:7434 --token-file token.txt"}},
       {"Commands without --data-dir and --coordinator then use this coordinator. The token is stored in "
        "~/.config/fedge/logins.json, which only you can read. A self-signed certificate is trusted from "
        "then "
        "on, and no other."}},
      {"logout",
       kOperate,
       "Remove a stored access token from this machine",
       {{"Log out at the coordinator of the last login", "fedge logout"}}},
      {"whoami",
       kOperate,
       "Show who you are for a coordinator, and your roles",
       {{"Show your roles at the coordinator of the last login", "fedge whoami"}}},
  };
}

}  // namespace fedge::apps
