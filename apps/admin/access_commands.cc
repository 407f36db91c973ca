#include "apps/admin/access_commands.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <utility>
#include <vector>

#include "apps/admin/cells.h"
#include "apps/admin/client_view.h"
#include "apps/admin/command_table.h"
#include "core/detail/json.h"

namespace fedge::apps {
namespace {

struct AccessOptions {
  AdminTarget target;
  std::string format = "table";
  std::string address;
  std::size_t count = 1;
  std::uint32_t uses = 1;
  bool approve = false;
  double hours = 24;
  std::uint32_t number = 0;
  std::string expected;
  bool no_address = false;
  bool keep_token = false;
  std::string key;
  std::optional<std::string> name;
  std::optional<std::vector<std::string>> labels;
  std::optional<std::string> project;
  std::string state;
  std::string label;
  bool online = false;
  std::optional<std::uint32_t> replaces;
  std::optional<std::uint32_t> client;
  std::optional<std::int64_t> run;

  std::string path(const char* what, const char* action = "") const {
    return std::string("/") + what + "/" + std::to_string(number) + action;
  }
};

// Adds what the options say about a client.
void describe(const AccessOptions& options, Json& body) {
  if (options.name) body["name"] = *options.name;
  if (options.labels) body["labels"] = *options.labels;
  if (options.project) body["project"] = *options.project;
}

Result<std::string> create_tokens(const AccessOptions& options, const AdminClient& client) {
  Json body;
  body["count"] = options.count;
  body["uses"] = options.uses;
  body["approve"] = options.approve;
  body["hours"] = options.hours;
  if (!options.address.empty()) body["address"] = options.address;
  if (options.no_address) body["no_address"] = true;
  if (options.replaces) body["replaces"] = *options.replaces;
  describe(options, body);
  FEDGE_TRY(created, client.call({"POST", "/join-tokens", std::move(body)}));
  if (options.format == "json") return printed(created["items"], {}, options.format);
  std::string lines;
  for (const Json& token : created["items"]) lines += token["join"].get<std::string>() + "\n";
  return lines;
}

Result<std::string> list_tokens(const AccessOptions& options, const AdminClient& client) {
  const std::vector<std::string> columns = {"token", "state",  "used",    "uses",    "approve", "client",
                                            "name",  "labels", "project", "created", "expires"};
  FEDGE_TRY(tokens, client.all("/join-tokens"));
  return printed(tokens, columns, options.format);
}

Result<std::string> revoke_token(const AccessOptions& options, const AdminClient& client) {
  FEDGE_TRY(revoked, client.call({"POST", options.path("join-tokens", "/revoke")}));
  (void)revoked;
  return "token " + std::to_string(options.number) + " is revoked\n";
}

std::string one_client(const AccessOptions& options, const Json& client) {
  return options.format == "json" ? json_text(client) + "\n" : client_lines(client);
}

Result<std::string> list_clients(const AccessOptions& options, const AdminClient& client) {
  std::string query;
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) query += (query.empty() ? "?" : "&") + std::string(name) + "=" + url_escaped(value);
  };
  add("state", options.state);
  add("label", options.label);
  add("project", options.project.value_or(""));
  if (options.online) add("online", "true");
  FEDGE_TRY(clients, client.all("/clients" + query));
  return options.format == "json" ? printed(clients, {}, options.format) : clients_table(clients);
}

Result<std::string> show_client(const AccessOptions& options, const AdminClient& client) {
  FEDGE_TRY(shown, client.call({"GET", options.path("clients")}));
  return one_client(options, shown);
}

Result<std::string> list_transfers(const AccessOptions& options, const AdminClient& client) {
  std::string query;
  const auto add = [&](const char* name, const std::string& value) {
    query += (query.empty() ? "?" : "&") + std::string(name) + "=" + url_escaped(value);
  };
  if (options.client) add("client", std::to_string(*options.client));
  if (options.run) add("run", std::to_string(*options.run));
  if (options.project) add("project", *options.project);
  FEDGE_TRY(transfers, client.all("/transfers" + query));
  return options.format == "json" ? printed(transfers, {}, options.format) : transfers_table(transfers);
}

Result<std::string> add_key(const AccessOptions& options, const AdminClient& client) {
  Json body;
  body["key"] = options.key;
  describe(options, body);
  FEDGE_TRY(added, client.call({"POST", "/clients", std::move(body)}));
  return "client " + std::to_string(added["client"].get<std::uint64_t>()) + " is enrolled\n";
}

Result<std::string> set_description(const AccessOptions& options, const AdminClient& client) {
  Json body = Json::object();
  describe(options, body);
  if (body.empty()) return invalid("nothing to change: give --name, --labels or --project");
  FEDGE_TRY(changed, client.call({"PATCH", options.path("clients"), std::move(body)}));
  return one_client(options, changed);
}

Result<std::string> approve_client(const AccessOptions& options, const AdminClient& client) {
  FEDGE_TRY(approved, client.call({"POST", options.path("clients", "/approve")}));
  (void)approved;
  return "client " + std::to_string(options.number) + " is approved; it connects within a minute\n";
}

Result<std::string> readmit_client(const AccessOptions& options, const AdminClient& client) {
  FEDGE_TRY(readmitted, client.call({"POST", options.path("clients", "/readmit")}));
  (void)readmitted;
  return "client " + std::to_string(options.number) +
         " is enrolled again; its owner starts 'fedge-client run' on the device\n";
}

Result<std::string> revoke_client(const AccessOptions& options, const AdminClient& client) {
  Json body;
  body["keep_token"] = options.keep_token;
  FEDGE_TRY(revoked, client.call({"POST", options.path("clients", "/revoke"), std::move(body)}));
  const std::string said = "client " + std::to_string(options.number) + " is revoked";
  const Json& closed = revoked["token_revoked"];
  if (closed.is_null()) return said + "\n";
  return said + "; token " + std::to_string(closed.get<std::uint64_t>()) +
         " is revoked too, because the client knows it and others could join with it\n";
}

Result<std::string> verify_audit(const AccessOptions& options, const AdminClient& client) {
  const std::string query = options.expected.empty() ? "" : "?expect=" + options.expected;
  FEDGE_TRY(summary, client.call({"GET", "/audit/verification" + query}));
  return "OK: " + std::to_string(summary["entries"].get<std::uint64_t>()) + " entries, head " +
         summary["head"].get<std::string>() + "\n";
}

// Shortens a key, whose first digits identify it well enough.
std::string short_actor(const std::string& actor) {
  return actor.starts_with("key ") ? actor.substr(0, 16) : actor;
}

void print_entry(const Json& entry) {
  std::string details;
  for (const auto& [key, value] : entry["details"].items())
    details += (details.empty() ? "" : " ") + key + "=" + value.get<std::string>();
  const auto text = [&](const char* field) { return entry[field].get<std::string>(); };
  std::printf("%7llu  %-20s  %-16s  %-20s  %-20s  %s\n",
              static_cast<unsigned long long>(entry["seq"].get<std::uint64_t>()), text("time").c_str(),
              short_actor(text("actor")).c_str(), text("action").c_str(), text("subject").c_str(),
              details.c_str());
}

// Prints line by line, because a log may be larger than memory. Checks the log first: a damaged one is not
// listed as if it were whole.
Result<std::string> list_audit(const AccessOptions& options, const AdminClient& client) {
  FEDGE_TRY(verified, client.call({"GET", "/audit/verification"}));
  (void)verified;
  const bool json = options.format == "json";
  if (json)
    std::printf("[");
  else
    std::printf("%7s  %-20s  %-16s  %-20s  %-20s  %s\n", "entry", "time", "actor", "action", "subject",
                "details");
  bool first = true;
  FEDGE_TRY_VOID(client.each("/audit", [&](const Json& entry) -> Result<bool> {
    if (json)
      std::printf("%s\n %s", std::exchange(first, false) ? "" : ",", json_text(entry).c_str());
    else
      print_entry(entry);
    return true;
  }));
  return std::string(json ? "\n]\n" : "");
}

}  // namespace

struct AccessCommands::Impl : CommandTable<AccessOptions> {
  void add_number(CLI::App* command, const char* what) {
    command->add_option("NUMBER", options.number, what)->required();
  }
  void add_description(CLI::App* command, const char* whose) {
    command->add_option("--name", options.name, std::string("Name of ") + whose + ", for people")
        ->type_name("NAME");
    command
        ->add_option("--labels", options.labels,
                     std::string("Labels of ") + whose + ", by which lists can be filtered")
        ->type_name("LABEL,...")
        ->delimiter(',');
    command
        ->add_option("--project", options.project, std::string("Project of ") + whose + "; default: default")
        ->type_name("PROJECT");
  }
  void add_token(CLI::App& app);
  void add_client(CLI::App& app);
  void add_audit(CLI::App& app);
};

void AccessCommands::Impl::add_token(CLI::App& app) {
  auto* token = app.add_subcommand("token")->require_subcommand(1);
  auto* create = add_anywhere(token, "create", create_tokens);
  create->add_option("--count", options.count, "Number of tokens to create")
      ->capture_default_str()
      ->check(between(1, 100'000));
  create->add_option("--uses", options.uses, "Number of clients that may join with each token")
      ->capture_default_str()
      ->check(between(1, 1'000'000));
  create->add_flag("--approve", options.approve,
                   "Clients that join stay pending until the operator runs 'fedge client approve'");
  auto* address = create
                      ->add_option("--address", options.address,
                                   "Address at which clients reach the coordinator; default: the address "
                                   "where it last listened")
                      ->type_name("HOST:PORT")
                      ->check(network_address());
  create
      ->add_flag("--no-address", options.no_address,
                 "Put no address into the token; clients find the coordinator in the directory "
                 "(fedge-client join --bootstrap)")
      ->excludes(address);
  create->add_option("--hours", options.hours, "Hours until the token expires")
      ->type_name("HOURS")
      ->capture_default_str()
      ->check(between(0.001, 87'600));
  create
      ->add_option(
          "--replaces", options.replaces,
          "Number of a client whose number, name, labels, project and history the device takes over; "
          "the former device is refused once it has joined")
      ->type_name("NUMBER");
  add_description(create, "the clients that join");
  add_format(create);
  add_format(add(token, "ls", list_tokens));
  auto* revoke = add(token, "revoke", revoke_token);
  add_number(revoke, "The token's number, as listed by 'fedge token ls'");
}

void AccessCommands::Impl::add_client(CLI::App& app) {
  auto* client = app.add_subcommand("client")->require_subcommand(1);
  auto* list = add(client, "ls", list_clients);
  add_format(list);
  list->add_option("--state", options.state,
                   "Only clients in this state: enrolled, pending, revoked or invited")
      ->type_name("STATE");
  list->add_option("--label", options.label, "Only clients with this label")->type_name("LABEL");
  list->add_flag("--online", options.online, "Only clients that are connected");
  list->add_option("--project", options.project, "Only clients of this project")->type_name("PROJECT");
  auto* show = add(client, "show", show_client);
  add_format(show);
  auto* transfers = add(client, "transfers", list_transfers);
  add_format(transfers);
  transfers->add_option("--run", options.run, "Only transfers of this run")->type_name("NUMBER");
  transfers->add_option("--project", options.project, "Only transfers of this project's runs")
      ->type_name("PROJECT");
  transfers->add_option("NUMBER", options.client,
                        "The client's number, as listed by 'fedge client ls'; default: all clients");
  auto* add_command = add(client, "add", add_key);
  add_description(add_command, "the client");
  add_command->add_option("KEY", options.key, "The public key that 'fedge-client key' prints on the device")
      ->required();
  auto* set = add(client, "set", set_description);
  add_description(set, "the client");
  add_format(set);
  auto* approve = add(client, "approve", approve_client);
  auto* revoke = add(client, "revoke", revoke_client);
  revoke->add_flag("--keep-token", options.keep_token,
                   "Keep the client's join token valid for other clients; by default it is revoked too");
  auto* readmit = add(client, "readmit", readmit_client);
  for (CLI::App* command : {show, set, approve, revoke, readmit})
    add_number(command, "The client's number, as listed by 'fedge client ls'");
}

void AccessCommands::Impl::add_audit(CLI::App& app) {
  auto* audit = app.add_subcommand("audit")->require_subcommand(1);
  add_format(add(audit, "ls", list_audit));
  auto* verify = add(audit, "verify", verify_audit);
  verify
      ->add_option("--expect", options.expected,
                   "Head hash that an earlier check printed; the log must contain it")
      ->type_name("HASH")
      ->check([](const std::string& text) {
        return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos
                   ? std::string()
                   : "must be 64 lower-case hexadecimal digits, not '" + text.substr(0, 80) + "'";
      });
}

AccessCommands::AccessCommands(CLI::App& app) : impl_(std::make_unique<Impl>()) {
  impl_->add_token(app);
  impl_->add_client(app);
  impl_->add_audit(app);
}

AccessCommands::~AccessCommands() = default;

std::optional<int> AccessCommands::run(const std::string& program) const { return impl_->run(program); }

}  // namespace fedge::apps
