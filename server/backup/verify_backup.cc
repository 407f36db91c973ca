#include <algorithm>
#include <utility>

#include "core/crypto/sha256.h"
#include "core/text.h"
#include "server/backup/backup.h"
#include "server/backup/backup_files.h"

namespace fedge::server {
namespace {

constexpr std::size_t kMostFindings = 20;

// What is wrong with a backup, in sentences.
class Findings {
 public:
  void add(const std::string& path, const std::string& what) {
    if (++count_ <= kMostFindings) text_ += "\n" + clean_text(path, 200) + ": " + what;
  }
  Result<void> outcome(const std::filesystem::path& backup) const {
    if (count_ == 0) return {};
    const std::string rest =
        count_ > kMostFindings ? "\nand " + std::to_string(count_ - kMostFindings) + " more" : "";
    return Error{ErrorCode::kCorrupt,
                 "the backup " + backup.string() + " is damaged and must not be used:" + text_ + rest};
  }

 private:
  std::size_t count_ = 0;
  std::string text_;
};

const char* kind_of(const ListedFile& file) {
  return file.link ? "is a symbolic link, which a backup does not contain" : "is not a regular file";
}

Result<void> compare(const std::filesystem::path& file, const BackupFile& wanted, Findings& findings) {
  const auto found = hash_file(file);
  if (!found && found.error().code == ErrorCode::kNotFound) return {};  // it vanished: the list is wrong
  if (!found) return found.error();
  if (found->size != wanted.size)
    findings.add(wanted.path, "is damaged: it has " + std::to_string(found->size) + " bytes instead of " +
                                  std::to_string(wanted.size));
  else if (found->sha256 != wanted.sha256)
    findings.add(wanted.path, "is damaged: its SHA-256 is " + found->sha256 + " instead of " + wanted.sha256);
  return {};
}

}  // namespace

Result<BackupSummary> verify_backup(const std::filesystem::path& backup, const std::string& version,
                                    const BackupProgress& progress) {
  FEDGE_TRY(manifest, read_manifest(backup, version));
  if (progress) progress("verifying " + std::to_string(manifest.files.size()) + " files");
  FEDGE_TRY(listed, list_files(backup));
  BackupSummary summary{.manifest = std::move(manifest)};
  summary.hash = to_hex(sha256(encode_manifest(summary.manifest)));
  Findings findings;
  const std::string folder = std::string(kBackupData) + "/";
  auto wanted = summary.manifest.files.begin();
  const auto end = summary.manifest.files.end();
  const auto miss_before = [&](const std::string& path) {
    for (; wanted != end && folder + wanted->path < path; ++wanted) findings.add(wanted->path, "is missing");
  };
  for (const ListedFile& file : listed) {
    if (file.path == kManifestName) continue;
    if (!file.path.starts_with(folder)) {
      findings.add(file.path, "is surplus: the manifest does not name it");
      continue;
    }
    miss_before(file.path);
    const bool named = wanted != end && folder + wanted->path == file.path;
    if (!file.regular)
      findings.add(file.path.substr(folder.size()), kind_of(file));
    else if (!named)
      findings.add(file.path.substr(folder.size()), "is surplus: the manifest does not name it");
    else
      FEDGE_TRY_VOID(compare(backup / file.path, *wanted, findings));
    if (!named) continue;
    summary.bytes += wanted->size;
    ++wanted;
  }
  for (; wanted != end; ++wanted) findings.add(wanted->path, "is missing");
  FEDGE_TRY_VOID(findings.outcome(backup));
  return summary;
}

}  // namespace fedge::server
