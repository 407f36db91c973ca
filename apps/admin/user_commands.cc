#include "apps/admin/user_commands.h"

#include <termios.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <utility>
#include <vector>

#include "apps/admin/cells.h"
#include "apps/admin/command_table.h"
#include "apps/admin/logins.h"
#include "core/crypto/sha256.h"
#include "core/detail/json.h"
#include "core/platform/files.h"
#include "core/text.h"
#include "server/access/oidc/signed_token.h"

namespace fedge::apps {
namespace {

constexpr std::size_t kMostTokenBytes = server::kMaxSignedToken + 2;  // and the end of its line

struct UserOptions {
  AdminTarget target;
  std::string format = "table";
  std::string name;
  std::vector<std::string> grants;
  std::string role;
  std::string project;
  double days = 90;
  std::string note;
  std::uint32_t number = 0;
  // login
  std::string url;
  std::string token_file = "-";
  std::string fingerprint;

  std::string path(const char* action = "") const { return "/users/" + url_escaped(name) + action; }
};

const std::vector<std::string>& user_columns() {
  static const std::vector<std::string> columns = {"name", "grants", "created", "removed"};
  return columns;
}

// "operator" stands for *=operator.
std::vector<std::string> full_grants(const UserOptions& options) {
  std::vector<std::string> grants;
  for (const std::string& grant : options.grants)
    grants.push_back(grant.find('=') == std::string::npos ? "*=" + grant : grant);
  return grants;
}

Result<std::string> add_user(const UserOptions& options, const AdminClient& client) {
  Json body;
  body["name"] = options.name;
  body["grants"] = full_grants(options);
  FEDGE_TRY(user, client.call({"POST", "/users", std::move(body)}));
  return printed_object(user, user_columns(), options.format);
}

Result<std::string> list_users(const UserOptions& options, const AdminClient& client) {
  FEDGE_TRY(users, client.all("/users"));
  return printed(users, user_columns(), options.format);
}

Result<std::string> grant_roles(const UserOptions& options, const AdminClient& client) {
  Json body;
  body["grants"] = full_grants(options);
  FEDGE_TRY(user, client.call({"PUT", options.path("/grants"), std::move(body)}));
  return printed_object(user, user_columns(), options.format);
}

Result<std::string> remove_user(const UserOptions& options, const AdminClient& client) {
  FEDGE_TRY(user, client.call({"DELETE", options.path()}));
  (void)user;
  return "user " + options.name + " is removed; its access tokens are void\n";
}

Result<std::string> create_access(const UserOptions& options, const AdminClient& client) {
  Json body;
  body["days"] = options.days;
  if (!options.role.empty()) body["role"] = options.role;
  if (!options.project.empty()) body["project"] = options.project;
  if (!options.note.empty()) body["note"] = options.note;
  FEDGE_TRY(created, client.call({"POST", options.path("/tokens"), std::move(body)}));
  if (options.format == "json") return json_text(created) + "\n";
  return created["secret"].get<std::string>() + "\n";
}

Result<std::string> list_access(const UserOptions& options, const AdminClient& client) {
  FEDGE_TRY(tokens, client.all("/access-tokens"));
  return printed(tokens, {"token", "user", "state", "role", "project", "note", "created", "expires"},
                 options.format);
}

Result<std::string> revoke_access(const UserOptions& options, const AdminClient& client) {
  FEDGE_TRY(revoked, client.call({"POST", "/access-tokens/" + std::to_string(options.number) + "/revoke"}));
  (void)revoked;
  return "access token " + std::to_string(options.number) + " is revoked\n";
}

Result<std::string> list_projects(const UserOptions& options, const AdminClient& client) {
  FEDGE_TRY(projects, client.all("/projects"));
  return printed(projects, {"name", "created"}, options.format);
}

Result<std::string> add_project(const UserOptions& options, const AdminClient& client) {
  Json body;
  body["name"] = options.name;
  FEDGE_TRY(project, client.call({"POST", "/projects", std::move(body)}));
  return printed_object(project, {"name", "created"}, options.format);
}

Result<std::string> who_am_i(const UserOptions& options, const AdminClient& client) {
  FEDGE_TRY(identity, client.call({"GET", "/identity"}));
  return printed_object(identity, {"name", "grants", "software"}, options.format);
}

// Keeps the terminal from showing what is typed.
class WithoutEcho {
 public:
  WithoutEcho() : changed_(::tcgetattr(STDIN_FILENO, &former_) == 0) {
    termios silent = former_;
    silent.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    if (changed_) ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent);
  }
  ~WithoutEcho() {
    if (changed_) ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &former_);
  }
  WithoutEcho(const WithoutEcho&) = delete;
  WithoutEcho& operator=(const WithoutEcho&) = delete;

 private:
  termios former_{};
  bool changed_;
};

Result<std::string> read_token(const UserOptions& options) {
  const bool input = options.token_file == "-";
  const bool terminal = input && ::isatty(STDIN_FILENO) == 1;
  std::string text;
  if (terminal) {
    std::fprintf(stderr, "access token: ");
    const WithoutEcho hidden;
    std::getline(std::cin, text);
    std::fprintf(stderr, "\n");
  } else {
    FEDGE_TRY(read,
              input ? read_standard_input(kMostTokenBytes) : read_file(options.token_file, kMostTokenBytes));
    text = std::move(read);
  }
  text.erase(text.find_last_not_of(" \t\r\n") + 1);
  if (text.empty() || text.find_first_of(" \t\r\n") != std::string::npos)
    return invalid((input ? std::string("standard input") : options.token_file) + " has no access token");
  return text;
}

// Asks on a terminal whether the certificate is the right one; without a terminal, it must be given.
Result<bool> trusts(const std::string& fingerprint) {
  if (::isatty(STDIN_FILENO) != 1 || ::isatty(STDERR_FILENO) != 1)
    return Error{ErrorCode::kRefused, "the coordinator's certificate is self-signed, with the fingerprint " +
                                          fingerprint +
                                          "; if the coordinator's log has the same (api.listening), give it: "
                                          "--fingerprint HASH"};
  std::fprintf(stderr,
               "The coordinator's certificate is self-signed. Its fingerprint is\n  %s\nThe coordinator logs "
               "it as api.listening. Is it the same? [y/N] ",
               fingerprint.c_str());
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "yes";
}

// Finds out whom to trust, checks the token with the coordinator, and stores both.
Result<std::string> login(const UserOptions& options) {
  FEDGE_TRY(address, parse_coordinator_url(options.url));
  Login login{address, {}, options.fingerprint};
  const std::string target = std::string(server::kApiRoot) + "/openapi.json";
  const auto reached =
      send_request(HttpsPlace{address, login.fingerprint}, {.method = "GET", .target = target});
  if (!reached && (reached.error().code != ErrorCode::kUnsupported || !login.fingerprint.empty()))
    return reached.error();
  if (!reached) {
    FEDGE_TRY(fingerprint, certificate_of(address));
    FEDGE_TRY(trusted, trusts(fingerprint));
    if (!trusted) return Error{ErrorCode::kRefused, "not logged in: the certificate was not accepted"};
    login.fingerprint = fingerprint;
  }
  FEDGE_TRY(token, read_token(options));
  login.token = token;
  FEDGE_TRY(answer, send_request(HttpsPlace{address, login.fingerprint},
                                 {.method = "GET",
                                  .target = std::string(server::kApiRoot) + "/identity",
                                  .fields = {{"Authorization", "Bearer " + token}}}));
  const auto json = parse_ordered_json(answer.body, 8);
  if (answer.status != 200)
    return Error{ErrorCode::kRefused,
                 json.is_object() && json.contains("detail") && json["detail"].is_string()
                     ? json["detail"].get<std::string>()
                     : "the coordinator answered with status " + std::to_string(answer.status)};
  if (!json.is_object() || !json.contains("name") || !json["name"].is_string())
    return Error{ErrorCode::kRefused,
                 "https://" + protocol::to_string(address) + " does not answer like a Fedge coordinator"};
  FEDGE_TRY_VOID(store_login(login));
  return "logged in at https://" + protocol::to_string(address) + " as " + json["name"].get<std::string>() +
         "\n";
}

Result<std::string> log_out(const UserOptions& options) {
  std::optional<protocol::Address> address;
  if (!options.url.empty()) {
    FEDGE_TRY(parsed, parse_coordinator_url(options.url));
    address = parsed;
  }
  FEDGE_TRY(removed, remove_login(address));
  return "logged out at https://" + protocol::to_string(removed.address) +
         "; the access token stays valid until it expires or is revoked\n";
}

}  // namespace

struct UserCommands::Impl : CommandTable<UserOptions> {
  CLI::App* login_command = nullptr;
  CLI::App* logout_command = nullptr;

  void add_users(CLI::App& app);
  void add_projects(CLI::App& app);
  void add_logins(CLI::App& app);
};

void UserCommands::Impl::add_users(CLI::App& app) {
  auto* user = app.add_subcommand("user")->require_subcommand(1);
  auto* added = add(user, "add", add_user);
  auto* list = add(user, "ls", list_users);
  auto* grant = add(user, "grant", grant_roles);
  auto* removed = add(user, "remove", remove_user);
  auto* token = user->add_subcommand("token")->require_subcommand(1);
  auto* create = add(token, "create", create_access);
  auto* tokens = add(token, "ls", list_access);
  auto* revoke = add(token, "revoke", revoke_access);
  for (CLI::App* command : {added, grant, removed, create})
    command->add_option("NAME", options.name, "Name of the user")->required();
  for (CLI::App* command : {added, grant})
    command
        ->add_option("--role", options.grants,
                     "viewer, submitter, operator or admin, in all projects; PROJECT=ROLE: in this project")
        ->type_name("ROLE,...")
        ->required()
        ->delimiter(',');
  create->add_option("--days", options.days, "Days until the token expires")
      ->capture_default_str()
      ->check(between(0.001, 3650));
  create->add_option("--role", options.role, "The token gives at most this role; default: the user's")
      ->type_name("ROLE")
      ->check(one_of({"viewer", "submitter", "operator", "admin"}));
  create->add_option("--project", options.project, "The token is for this project only")
      ->type_name("PROJECT");
  create->add_option("--note", options.note, "What the token is for")->type_name("TEXT");
  revoke->add_option("NUMBER", options.number, "The token's number, as listed by 'fedge user token ls'")
      ->required();
  for (CLI::App* command : {added, list, grant, create, tokens}) add_format(command);
}

void UserCommands::Impl::add_projects(CLI::App& app) {
  auto* project = app.add_subcommand("project")->require_subcommand(1);
  auto* added = add(project, "add", add_project);
  added->add_option("NAME", options.name, "Name of the project")->required();
  auto* list = add(project, "ls", list_projects);
  for (CLI::App* command : {added, list}) add_format(command);
}

void UserCommands::Impl::add_logins(CLI::App& app) {
  login_command = app.add_subcommand("login");
  login_command->add_option("URL", options.url, "Address of the coordinator's admin API, https://HOST:PORT")
      ->required();
  login_command
      ->add_option("--token-file", options.token_file,
                   "File with the access token; -: standard input, or a question on a terminal")
      ->type_name("FILE")
      ->capture_default_str();
  login_command
      ->add_option("--fingerprint", options.fingerprint,
                   "SHA-256 of the coordinator's self-signed certificate, as it logs it (api.listening)")
      ->type_name("HASH")
      ->check([](const std::string& text) {
        return is_hex_digest(text) ? std::string() : "must be 64 lower-case hexadecimal digits";
      });
  logout_command = app.add_subcommand("logout");
  logout_command->add_option("URL", options.url, "Address of the coordinator; default: the last login");
  add_format(add(&app, "whoami", who_am_i));
}

UserCommands::UserCommands(CLI::App& app) : impl_(std::make_unique<Impl>()) {
  impl_->add_users(app);
  impl_->add_projects(app);
  impl_->add_logins(app);
}

UserCommands::~UserCommands() = default;

std::optional<int> UserCommands::run(const std::string& program) const {
  const bool in = impl_->login_command->parsed();
  if (!in && !impl_->logout_command->parsed()) return impl_->run(program);
  const auto done = in ? login(impl_->options) : log_out(impl_->options);
  if (!done) return report_failure(program, done.error());
  std::printf("%s", done->c_str());
  return kOk;
}

}  // namespace fedge::apps
