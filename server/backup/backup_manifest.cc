#include "server/backup/backup_manifest.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <utility>

#include "core/crypto/sha256.h"
#include "core/detail/json.h"
#include "core/platform/files.h"
#include "core/text.h"
#include "server/backup/backup_lock.h"
#include "server/store/detail/audit_file.h"

namespace fedge::server {
namespace {

constexpr std::uint64_t kFormat = 1;
constexpr std::size_t kMaxManifest = 256 << 20;
constexpr std::size_t kMaxPath = 1024;
constexpr std::array kTopFiles = {
    "node.key",    "next.key",        "noise.key", "enrolment.db", "enrolment.json.migrated",
    "runs.db",     "fleet.db",        "address",   "addresses",    "api-cert.pem",
    "api-key.pem", "directory-nodes", "audit.log", "audit.head",   kCopyMark};

using Json = nlohmann::ordered_json;

Error wrong_manifest(const std::string& why) {
  return {ErrorCode::kCorrupt, std::string(kManifestName) + " is damaged: " + why};
}

std::string quoted_path(const std::string& path) { return "'" + clean_text(path, 120) + "'"; }

bool is_number(std::string_view text) {
  return !text.empty() && text.size() < 19 && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// Returns the parts of "1.20.3"; missing ones are 0.
std::array<std::uint64_t, 3> version_parts(std::string_view text) {
  std::array<std::uint64_t, 3> parts{};
  for (auto& part : parts) {
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), part);
    text.remove_prefix(static_cast<std::size_t>(parsed.ptr - text.data()));
    if (!text.empty() && text.front() == '.') text.remove_prefix(1);
  }
  return parts;
}

Result<void> check_version(const Json& json, const std::string& version) {
  const auto newer = [&](const std::string& what) {
    return Error{ErrorCode::kUnsupported, "the backup was made by a newer version (" + what +
                                              "); this program is version " + version + ": update it first"};
  };
  const auto format = json.find("format");
  if (format == json.end() || !format->is_number_unsigned()) return wrong_manifest("it has no format");
  if (format->get<std::uint64_t>() > kFormat) return newer("format " + format->dump());
  const auto made_by = json.find("version");
  if (made_by == json.end() || !made_by->is_string()) return wrong_manifest("it has no version");
  const auto text = made_by->get<std::string>();
  if (version_parts(text) > version_parts(version)) return newer(clean_text(text, 40));
  return {};
}

bool take_file(const Json& json, BackupFile& file) {
  if (!json.is_object() || json.size() != 3) return false;
  const auto path = json.find("path");
  const auto size = json.find("size");
  const auto hash = json.find("sha256");
  if (path == json.end() || !path->is_string() || size == json.end() || !size->is_number_unsigned() ||
      hash == json.end() || !hash->is_string())
    return false;
  file = {path->get<std::string>(), size->get<std::uint64_t>(), hash->get<std::string>()};
  return is_hex_digest(file.sha256);
}

bool take_fields(const Json& json, BackupManifest& manifest) {
  const auto text = [&](const char* key, std::string& out) {
    const auto found = json.find(key);
    if (found == json.end() || !found->is_string()) return false;
    out = found->get<std::string>();
    return true;
  };
  const auto running = json.find("running");
  const auto entries = json.find("audit_entries");
  if (running == json.end() || !running->is_boolean() || entries == json.end() ||
      !entries->is_number_unsigned())
    return false;
  manifest.running = running->get<bool>();
  manifest.audit_entries = entries->get<std::uint64_t>();
  return text("version", manifest.version) && text("created", manifest.created) &&
         text("audit_head", manifest.audit_head) && json.contains("files") && json["files"].is_array();
}

Json json_of(const BackupManifest& manifest) {
  Json json;
  json["format"] = kFormat;
  json["version"] = manifest.version;
  json["created"] = manifest.created;
  json["running"] = manifest.running;
  json["audit_entries"] = manifest.audit_entries;
  json["audit_head"] = manifest.audit_head;
  json["files"] = Json::array();
  for (const BackupFile& file : manifest.files) {
    Json entry;
    entry["path"] = file.path;
    entry["size"] = file.size;
    entry["sha256"] = file.sha256;
    json["files"].push_back(std::move(entry));
  }
  return json;
}

}  // namespace

std::string encode_manifest(const BackupManifest& manifest) {
  Json json = json_of(manifest);
  json["sha256"] = to_hex(sha256(json_text(json, 1)));
  return json_text(json, 1) + "\n";
}

Result<BackupManifest> parse_manifest(std::string_view text, const std::string& version) {
  const Json json = parse_ordered_json(text, /*levels=*/4);
  if (!json.is_object()) return wrong_manifest("it is not JSON");
  FEDGE_TRY_VOID(check_version(json, version));
  BackupManifest manifest;
  if (!take_fields(json, manifest)) return wrong_manifest("a field is missing");
  for (const Json& entry : json["files"]) {
    BackupFile file;
    if (!take_file(entry, file)) return wrong_manifest("an entry of files is not a file");
    if (!is_backup_path(file.path))
      return wrong_manifest("a backup must not contain the file " + quoted_path(file.path));
    if (!manifest.files.empty() && manifest.files.back().path >= file.path)
      return wrong_manifest("the file " + quoted_path(file.path) + " is not in order, or twice");
    manifest.files.push_back(std::move(file));
  }
  if (encode_manifest(manifest) != text) return wrong_manifest("its hash does not match its content");
  return manifest;
}

Result<BackupManifest> read_manifest(const std::filesystem::path& backup, const std::string& version) {
  const auto file = backup / kManifestName;
  std::error_code ignored;
  if (std::filesystem::is_symlink(file, ignored))
    return Error{ErrorCode::kRefused, file.string() + " is a symbolic link; symbolic links are not followed"};
  const auto text = read_file(file, kMaxManifest);
  if (!text && text.error().code == ErrorCode::kNotFound)
    return Error{ErrorCode::kNotFound, backup.string() + " is not a backup: it has no " + kManifestName};
  if (!text) return text.error();
  auto manifest = parse_manifest(*text, version);
  if (!manifest) return manifest.error().with_prefix(backup.string() + ": ");
  return manifest;
}

bool is_backup_path(std::string_view path) {
  if (path.empty() || path.size() > kMaxPath || std::ranges::any_of(path, [](char byte) {
        return static_cast<unsigned char>(byte) < ' ' || byte == '\x7f' || byte == '\\';
      }))
    return false;
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    parts.push_back(path.substr(begin, end - begin));
    if (parts.back().empty() || parts.back() == "." || parts.back() == "..") return false;
    begin = end + 1;
  }
  if (parts.size() == 1)
    return std::ranges::find(kTopFiles, parts[0]) != kTopFiles.end() || audit_segment_number(parts[0]) > 0;
  return parts.size() >= 3 && parts[0] == "runs" && is_number(parts[1]);
}

}  // namespace fedge::server
