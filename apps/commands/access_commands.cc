#include "apps/commands/access_commands.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <vector>

#include "apps/commands/command_table.h"
#include "apps/commands/listing.h"
#include "core/platform/files.h"
#include "protocol/join_token.h"
#include "server/audit_log.h"
#include "server/data_directory.h"
#include "server/enrolment.h"

namespace fedge::apps {
namespace {

struct AccessOptions {
  std::string data_directory;
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

  server::Enrolment enrolment() const { return server::Enrolment(data_directory); }
  std::string print(const Listing& list) const { return format == "json" ? list.json() : list.table(); }
  std::string named(const char* what) const { return std::string(what) + " " + std::to_string(number); }
};

Listing::Cell number_or_nothing(const std::optional<ClientId>& client) {
  return client ? Listing::Cell(std::int64_t{client->value()}) : Listing::Cell();
}

// The addresses for a token; none if clients must look the coordinator up in the directory.
Result<std::vector<protocol::Address>> token_addresses(const AccessOptions& options) {
  if (options.no_address) return std::vector<protocol::Address>();
  FEDGE_TRY(address, options.address.empty() ? server::last_address(options.data_directory)
                                             : protocol::parse_address(options.address));
  if (address.host == "0.0.0.0" || address.host == "::")
    return invalid(
        "the address of the token is missing: the coordinator listens on all addresses of this machine; give "
        "the address at which clients reach the coordinator: --address HOST:PORT");
  return std::vector{address};
}

Result<std::string> create_tokens(const AccessOptions& options) {
  FEDGE_TRY_VOID(check_owner(options.data_directory));
  FEDGE_TRY(addresses, token_addresses(options));  // first: an error leaves no new directory behind
  FEDGE_TRY(key, server::open_coordinator_key(options.data_directory));
  FEDGE_TRY(created,
            options.enrolment().create_tokens(
                {.count = options.count,
                 .uses = options.uses,
                 .approve = options.approve,
                 .now = server::calendar_now(),
                 .lifetime = std::chrono::seconds(static_cast<std::int64_t>(options.hours * 3600))}));
  Listing list({"token", "client", "join"});
  std::string lines;
  for (const server::NewToken& token : created) {
    const std::string text = protocol::encode_join_token(
        {.addresses = addresses, .coordinator = key.public_key(), .secret = token.secret});
    list.add({std::int64_t{token.id}, number_or_nothing(token.client), text});
    lines += text + "\n";
  }
  return options.format == "json" ? list.json() : lines;
}

Result<std::string> list_tokens(const AccessOptions& options) {
  FEDGE_TRY(book, options.enrolment().read());
  Listing list({"token", "state", "used", "uses", "approve", "client", "created", "expires"});
  for (const server::TokenRecord& token : book.tokens)
    list.add({std::int64_t{token.id}, state_of(token, server::calendar_now()), std::int64_t{token.used},
              std::int64_t{token.uses}, token.approve, number_or_nothing(token.client),
              server::calendar_text(token.created), server::calendar_text(token.expires)});
  return options.print(list);
}

Result<std::string> revoke_token(const AccessOptions& options) {
  FEDGE_TRY_VOID(options.enrolment().revoke_token(options.number));
  return options.named("token") + " is revoked\n";
}

Listing client_listing() { return Listing({"client", "state", "enrolled", "token", "key"}); }

std::vector<Listing::Cell> row_of(const server::ClientRecord& client) {
  return {std::int64_t{client.client.value()}, to_string(client.state),
          server::calendar_text(client.enrolled), std::int64_t{client.token}, to_hex(client.key)};
}

Result<std::string> list_clients(const AccessOptions& options) {
  FEDGE_TRY(book, options.enrolment().read());
  Listing list = client_listing();
  for (const server::ClientRecord& client : book.clients) list.add(row_of(client));
  for (const server::TokenRecord& token : book.tokens) {
    if (!token.client || token.used > 0) continue;
    const std::string state = state_of(token, server::calendar_now());
    list.add({std::int64_t{token.client->value()},
              state == "open" ? "invited" : state,
              {},
              std::int64_t{token.id},
              {}});
  }
  return options.print(list);
}

Result<std::string> show_client(const AccessOptions& options) {
  FEDGE_TRY(book, options.enrolment().read());
  const server::ClientRecord* client = book.find_client(ClientId(options.number));
  if (client == nullptr)
    return Error{ErrorCode::kNotFound,
                 "there is no " + options.named("client") + "; list clients with: fedge client ls"};
  Listing list = client_listing();
  list.add(row_of(*client));
  return options.format == "json" ? list.object() : list.lines();
}

Result<std::string> add_key(const AccessOptions& options) {
  FEDGE_TRY(key, parse_public_key(options.key));
  FEDGE_TRY(client, options.enrolment().add(key, server::calendar_now()));
  return "client " + std::to_string(client.value()) + " is enrolled\n";
}

Result<std::string> approve_client(const AccessOptions& options) {
  FEDGE_TRY_VOID(options.enrolment().approve(ClientId(options.number)));
  return options.named("client") + " is approved; it connects within a minute\n";
}

Result<std::string> revoke_client(const AccessOptions& options) {
  FEDGE_TRY(closed, options.enrolment().revoke(ClientId(options.number), options.keep_token));
  if (!closed) return options.named("client") + " is revoked\n";
  return options.named("client") + " is revoked; token " + std::to_string(*closed) +
         " is revoked too, because the client knows it and others could join with it\n";
}

Result<std::string> verify_audit(const AccessOptions& options) {
  FEDGE_TRY(summary, server::AuditLog(options.data_directory).verify(options.expected));
  return "OK: " + std::to_string(summary.entries) + " entries, head " + summary.head + "\n";
}

// Shortens a key, whose first digits identify it well enough.
std::string short_actor(const std::string& actor) {
  return actor.starts_with("key ") ? actor.substr(0, 16) : actor;
}

// Prints line by line, because a log may be larger than memory.
Result<std::string> list_audit(const AccessOptions& options) {
  const bool json = options.format == "json";
  if (json)
    std::printf("[");
  else
    std::printf("%7s  %-20s  %-16s  %-20s  %-20s  %s\n", "entry", "time", "actor", "action", "subject",
                "details");
  const auto print = [&](const server::AuditEntry& entry) {
    if (json) {
      const auto line = server::format_audit_entry(entry);
      std::printf("%s\n %s", entry.sequence == 1 ? "" : ",", line->substr(0, line->size() - 1).c_str());
      return;
    }
    std::string details;
    for (const auto& [key, value] : entry.event.details)
      details += (details.empty() ? "" : " ") + key + "=" + value;
    std::printf("%7llu  %-20s  %-16s  %-20s  %-20s  %s\n", static_cast<unsigned long long>(entry.sequence),
                entry.time.c_str(), short_actor(entry.event.actor).c_str(), entry.event.action.c_str(),
                entry.event.subject.c_str(), details.c_str());
  };
  const auto read = server::AuditLog(options.data_directory).verify("", print);
  if (!read) return read.error();
  return std::string(json ? "\n]\n" : "");
}

}  // namespace

struct AccessCommands::Impl : CommandTable<AccessOptions> {
  void add_number(CLI::App* command, const char* what) {
    command->add_option("NUMBER", options.number, what)->required();
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
  add_format(create);
  add_format(add(token, "ls", list_tokens));
  auto* revoke = add(token, "revoke", revoke_token);
  add_number(revoke, "The token's number, as listed by 'fedge token ls'");
}

void AccessCommands::Impl::add_client(CLI::App& app) {
  auto* client = app.add_subcommand("client")->require_subcommand(1);
  add_format(add(client, "ls", list_clients));
  auto* show = add(client, "show", show_client);
  add_format(show);
  add(client, "add", add_key)
      ->add_option("KEY", options.key, "The public key that 'fedge-client key' prints on the device")
      ->required();
  auto* approve = add(client, "approve", approve_client);
  auto* revoke = add(client, "revoke", revoke_client);
  revoke->add_flag("--keep-token", options.keep_token,
                   "Keep the client's join token valid for other clients; by default it is revoked too");
  for (CLI::App* command : {show, approve, revoke})
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

std::optional<Result<std::string>> AccessCommands::run() const { return impl_->run(); }

}  // namespace fedge::apps
