#include "apps/admin/key_commands.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <utility>
#include <vector>

#include "apps/admin/cells.h"
#include "apps/admin/command_table.h"
#include "core/detail/json.h"

namespace fedge::apps {
namespace {

struct KeyOptions {
  AdminTarget target;
  std::string format = "table";
  bool force = false;
};

std::string plural_of(std::uint64_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

// The clients that have not stored the announced key, one on each line.
std::string unaware_lines(const Json& key) {
  const auto count = key["unaware_clients"].get<std::uint64_t>();
  const auto clients = key["clients"].get<std::uint64_t>();
  if (count == 0) return "stored by  all clients: " + std::to_string(clients) + "\n";
  std::string text =
      "stored by  " + std::to_string(clients - count) + " of " + plural_of(clients, "client") + "; not by:\n";
  for (const Json& client : key["unaware"]) {
    text += "  client " + std::to_string(client["client"].get<std::uint64_t>());
    if (const std::string name = text_of(client["name"]); !name.empty()) text += " (" + name + ")";
    if (text_of(client["state"]) == "pending") text += ", waits for approval";
    text += client["last_seen"].is_null() ? ", never connected\n"
                                          : ", last seen " + text_of(client["last_seen"]) + "\n";
  }
  if (key["unaware"].size() < count)
    text += "  and " + std::to_string(count - key["unaware"].size()) + " more\n";
  return text;
}

std::string key_lines(const Json& key) {
  std::string text = "key        " + text_of(key["key"]) + "\n";
  if (key["next_key"].is_null()) return text + "next key   none is announced\n";
  text += "next key   " + text_of(key["next_key"]) + "\n";
  text += "announced  " + text_of(key["announced"]) + "\n";
  return text + unaware_lines(key);
}

Result<std::string> printed_key(const KeyOptions& options, const Json& key) {
  if (options.format == "json") return json_text(key) + "\n";
  return key_lines(key);
}

Result<std::string> show_key(const KeyOptions& options, const AdminClient& client) {
  FEDGE_TRY(key, client.call({"GET", "/key"}));
  return printed_key(options, key);
}

Result<std::string> announce_key(const KeyOptions& options, const AdminClient& client) {
  FEDGE_TRY(key, client.call({"POST", "/key/next"}));
  if (options.format == "json") return json_text(key) + "\n";
  return key_lines(key) +
         "Make a backup now: it contains both keys. Rotate the key when 'fedge key show' names no client any "
         "more.\n";
}

Result<std::string> withdraw_key(const KeyOptions& options, const AdminClient& client) {
  FEDGE_TRY(key, client.call({"DELETE", "/key/next"}));
  return printed_key(options, key);
}

Result<std::string> rotate_key(const KeyOptions& options, const AdminClient& client) {
  // The key that was looked at is meant, and no other that somebody has announced since.
  FEDGE_TRY(before, client.call({"GET", "/key"}));
  Json body;
  body["force"] = options.force;
  if (!before["next_key"].is_null()) body["next_key"] = before["next_key"];
  FEDGE_TRY(key, client.call({"POST", "/key/rotation", std::move(body)}));
  if (options.format == "json") return json_text(key) + "\n";
  std::string text = "the coordinator's key is now " + text_of(key["key"]) + "\n";
  if (client.is_running()) text += "All clients are told to connect again.\n";
  if (const auto open = key["open_tokens"].get<std::uint64_t>(); open > 0)
    text += plural_of(open, "open join token") + (open == 1 ? " names" : " name") +
            " a former key: revoke them with 'fedge token revoke', and create new ones.\n";
  return text + "Make a backup now: devices refuse a coordinator that comes back with a former key.\n";
}

}  // namespace

struct KeyCommands::Impl : CommandTable<KeyOptions> {};

KeyCommands::KeyCommands(CLI::App& app) : impl_(std::make_unique<Impl>()) {
  auto* key = app.add_subcommand("key")->require_subcommand(1);
  auto* rotate = impl_->add(key, "rotate", rotate_key);
  rotate->add_flag(
      "--force", impl_->options.force,
      "Rotate although clients did not report that they have stored the next key; those that have "
      "not can connect only after their owners have run 'fedge-client move'");
  for (auto* command : {impl_->add(key, "show", show_key), impl_->add(key, "announce", announce_key),
                        impl_->add(key, "withdraw", withdraw_key), rotate})
    command->add_option("--format", impl_->options.format, "Output format")
        ->type_name("FORMAT")
        ->default_str("text")
        ->check(one_of({"text", "json"}));
}

KeyCommands::~KeyCommands() = default;

std::optional<int> KeyCommands::run(const std::string& program) const { return impl_->run(program); }

}  // namespace fedge::apps
