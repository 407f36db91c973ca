#include "apps/admin/backup_commands.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <utility>
#include <vector>

#include "apps/cli/help.h"
#include "apps/cli/validators.h"
#include "apps/common.h"
#include "core/detail/json.h"
#include "server/backup/backup.h"
#include "server/backup/restore.h"

namespace fedge::apps {
namespace {

using Json = nlohmann::ordered_json;

struct BackupOptions {
  std::string data_directory;
  std::string out;
  std::string verify;
  std::string backup;
  bool nothing_since = false;
  std::uint32_t skip_clients = server::kSkippedNumbers;
  std::string format = "text";
};

// Standard output has only the summary, so that it can be read by a program.
void print_step(const std::string& what) { std::fprintf(stderr, "%s\n", what.c_str()); }

std::string mebibytes_text(std::uint64_t bytes) {
  char text[40];
  std::snprintf(text, sizeof text, "%.1f MiB", static_cast<double>(bytes) / (1 << 20));
  return text;
}

Json summary_json(const std::string& path, const server::BackupSummary& summary) {
  Json json;
  json["backup"] = path;
  json["created"] = summary.manifest.created;
  json["version"] = summary.manifest.version;
  json["running"] = summary.manifest.running;
  json["files"] = summary.manifest.files.size();
  json["bytes"] = summary.bytes;
  json["manifest"] = summary.hash;
  json["audit_entries"] = summary.manifest.audit_entries;
  json["audit_head"] = summary.manifest.audit_head;
  json["notes"] = summary.notes;
  return json;
}

std::string summary_lines(const std::string& path, const server::BackupSummary& summary) {
  std::string text = "backup    " + path + "\n";
  text += "created   " + summary.manifest.created + ", by version " + summary.manifest.version +
          (summary.manifest.running ? ", while the coordinator was running\n"
                                    : ", while no coordinator was running\n");
  text += "files     " + std::to_string(summary.manifest.files.size()) + ", " +
          mebibytes_text(summary.bytes) + "\n";
  text += "manifest  " + summary.hash + "\n";
  text += "audit log " + std::to_string(summary.manifest.audit_entries) + " entries, head " +
          summary.manifest.audit_head + "\n";
  for (const std::string& note : summary.notes) text += "note      " + note + "\n";
  return text;
}

Result<std::string> make_or_verify(const BackupOptions& options) {
  const bool json = options.format == "json";
  if (!options.verify.empty()) {
    FEDGE_TRY(verified, server::verify_backup(options.verify, version(), print_step));
    if (json) return json_text(summary_json(options.verify, verified)) + "\n";
    return summary_lines(options.verify, verified) + "OK: every file is as the manifest says\n";
  }
  FEDGE_TRY(made, server::make_backup({.data_directory = options.data_directory,
                                       .out = options.out,
                                       .version = version(),
                                       .progress = print_step}));
  if (json) return json_text(summary_json(options.out, made)) + "\n";
  return summary_lines(options.out, made) +
         "The backup contains the coordinator's private keys: keep it where only the coordinator's user can "
         "read it.\n";
}

std::string restored_lines(const BackupOptions& options, const server::RestoreSummary& summary) {
  std::string text = summary_lines(options.backup, summary.backup);
  text += "restored  " + options.data_directory + "\n";
  for (const server::RunRecord& run : summary.ended)
    text +=
        "stopped   run " + std::to_string(run.number.value()) + " (" + run.name + "): " + run.reason + "\n";
  if (summary.announced_key)
    text +=
        "The backup has an announced key. If the coordinator has put it in force since, its clients accept "
        "no "
        "other: start the coordinator and run 'fedge key rotate --force'.\n";
  if (options.nothing_since) return text;
  text += "revoked   " + std::to_string(summary.withdrawn.join_tokens) + " join tokens, " +
          std::to_string(summary.withdrawn.access_tokens) + " access tokens\n";
  text += "left out  " + std::to_string(summary.skipped_numbers) + " client numbers\n";
  text +=
      "Revoke the clients and remove the users again that were revoked or removed after the backup was made, "
      "before you start the coordinator.\n";
  return text;
}

Result<std::string> restore_data(const BackupOptions& options) {
  FEDGE_TRY(summary, server::restore_backup({.backup = options.backup,
                                             .data_directory = options.data_directory,
                                             .version = version(),
                                             .nothing_since = options.nothing_since,
                                             .skipped_numbers = options.skip_clients,
                                             .progress = print_step}));
  if (options.format != "json") return restored_lines(options, summary);
  Json json = summary_json(options.backup, summary.backup);
  json["restored"] = options.data_directory;
  json["stopped"] = Json::array();
  for (const server::RunRecord& run : summary.ended) {
    Json one;
    one["run"] = run.number.value();
    one["name"] = run.name;
    one["reason"] = run.reason;
    json["stopped"].push_back(std::move(one));
  }
  json["join_tokens_revoked"] = summary.withdrawn.join_tokens;
  json["access_tokens_revoked"] = summary.withdrawn.access_tokens;
  json["skipped_clients"] = summary.skipped_numbers;
  return json_text(json) + "\n";
}

}  // namespace

struct BackupCommands::Impl {
  BackupOptions options;
  CLI::App* backup = nullptr;
  CLI::App* restore = nullptr;

  void add_text_format(CLI::App* command) {
    command->add_option("--format", options.format, "Output format")
        ->type_name("FORMAT")
        ->capture_default_str()
        ->check(one_of({"text", "json"}));
  }
};

BackupCommands::BackupCommands(CLI::App& app) : impl_(std::make_unique<Impl>()) {
  BackupOptions& options = impl_->options;
  CLI::App* backup = impl_->backup = app.add_subcommand("backup");
  backup
      ->add_option("--data-dir", options.data_directory,
                   "The coordinator's data directory, on this machine; default: $FEDGE_DATA_DIR")
      ->type_name("DIR")
      ->envname("FEDGE_DATA_DIR");
  auto* out =
      backup->add_option("--out", options.out, "Directory to create; it must not exist")->type_name("BACKUP");
  backup->add_option("--verify", options.verify, "Only check this backup, and make none")
      ->type_name("BACKUP")
      ->excludes(out);
  impl_->add_text_format(backup);
  CLI::App* restore = impl_->restore = app.add_subcommand("restore");
  restore->add_option("BACKUP", options.backup, "The backup")->required();
  restore
      ->add_option("--data-dir", options.data_directory,
                   "The data directory to restore, empty or missing; default: $FEDGE_DATA_DIR")
      ->type_name("DIR")
      ->envname("FEDGE_DATA_DIR");
  auto* nothing =
      restore->add_flag("--nothing-since", options.nothing_since,
                        "The coordinator was stopped when the backup was made, and was not started "
                        "since: everything continues as it was");
  restore
      ->add_option(
          "--skip-clients", options.skip_clients,
          "Client numbers to leave out, because they may have been assigned after the backup was made")
      ->type_name("NUMBER")
      ->capture_default_str()
      ->check(between(0, server::kMostSkippedNumbers))
      ->excludes(nothing);
  impl_->add_text_format(restore);
}

BackupCommands::~BackupCommands() = default;

std::optional<int> BackupCommands::run(const std::string& program) const {
  if (!impl_->backup->parsed() && !impl_->restore->parsed()) return std::nullopt;
  const BackupOptions& options = impl_->options;
  const CLI::App& command = impl_->backup->parsed() ? *impl_->backup : *impl_->restore;
  if (options.data_directory.empty() && options.verify.empty())
    return report_wrong_usage(full_name(command),
                              "the data directory is missing: give --data-dir DIR, or set FEDGE_DATA_DIR");
  if (impl_->backup->parsed() && options.out.empty() && options.verify.empty())
    return report_wrong_usage(full_name(command), "give --out BACKUP to make a backup, or --verify BACKUP");
  const auto done = impl_->backup->parsed() ? make_or_verify(options) : restore_data(options);
  if (!done) return report_failure(program, done.error());
  std::printf("%s", done->c_str());
  return kOk;
}

}  // namespace fedge::apps
