#include "server/backup/backup_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <span>
#include <system_error>
#include <utility>

#include "core/crypto/sha256.h"
#include "core/platform/detail/descriptor.h"
#include "core/platform/files.h"

namespace fedge::server {
namespace {

constexpr std::size_t kPiece = 1 << 20;

Result<ReadOnlyFile> open_file(const std::filesystem::path& path) {
  if (std::error_code ignored; std::filesystem::is_symlink(path, ignored))
    return Error{ErrorCode::kRefused, path.string() + " is a symbolic link; symbolic links are not followed"};
  return ReadOnlyFile::open(path);
}

// Passes the first bytes to `take`, piece by piece, and returns their number and hash.
Result<BackupFile> read_pieces(const ReadOnlyFile& file, std::uint64_t bytes,
                               const std::function<Result<void>(std::span<const std::byte>)>& take) {
  std::vector<std::byte> buffer(static_cast<std::size_t>(std::min<std::uint64_t>(bytes, kPiece)));
  Sha256 hash;
  for (std::uint64_t offset = 0; offset < bytes;) {
    const auto piece =
        std::span(buffer).first(static_cast<std::size_t>(std::min<std::uint64_t>(bytes - offset, kPiece)));
    FEDGE_TRY_VOID(file.read(offset, piece));
    hash.add(piece);
    if (take) FEDGE_TRY_VOID(take(piece));
    offset += piece.size();
  }
  return BackupFile{.path = {}, .size = bytes, .sha256 = to_hex(hash.finish())};
}

Result<void> sync_file(const std::filesystem::path& path) {
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (fd.get() < 0) return system_error("cannot open", path, errno);
  if (::fsync(fd.get()) != 0) return system_error("cannot sync", path, errno);
  return {};
}

Result<void> list_below(const std::filesystem::path& directory, const std::string& prefix,
                        const std::function<Result<void>(const std::filesystem::path&)>& directories,
                        std::vector<ListedFile>& found) {
  if (directories) FEDGE_TRY_VOID(directories(directory));
  std::error_code error;
  std::filesystem::directory_iterator entry(directory, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string path = prefix + entry->path().filename().string();
    std::error_code unknown;
    const auto type = std::filesystem::symlink_status(entry->path(), unknown).type();
    if (type == std::filesystem::file_type::not_found) continue;
    if (type == std::filesystem::file_type::directory)
      FEDGE_TRY_VOID(list_below(entry->path(), path + "/", directories, found));
    else
      found.push_back(
          {path, type == std::filesystem::file_type::regular, type == std::filesystem::file_type::symlink});
  }
  if (error) return system_error("cannot list", directory, error.value());
  return {};
}

}  // namespace

Result<BackupFile> copy_bytes(const ReadOnlyFile& from, std::uint64_t bytes,
                              const std::filesystem::path& to) {
  const Descriptor fd(::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (fd.get() < 0) return system_error("cannot create", to, errno);
  auto copied = read_pieces(from, bytes,
                            [&](std::span<const std::byte> piece) { return write_all(fd.get(), piece, to); });
  if (copied && ::fsync(fd.get()) != 0) copied = system_error("cannot sync", to, errno);
  if (!copied) ::unlink(to.c_str());
  return copied;
}

Result<BackupFile> copy_whole(const std::filesystem::path& from, const std::filesystem::path& to) {
  FEDGE_TRY(file, open_file(from));
  return copy_bytes(file, file.size(), to);
}

Result<BackupFile> hash_file(const std::filesystem::path& path) {
  FEDGE_TRY(file, open_file(path));
  return read_pieces(file, file.size(), {});
}

Result<void> make_folders_of(const std::filesystem::path& root, const std::string& file) {
  for (std::size_t end = file.find('/'); end != std::string::npos; end = file.find('/', end + 1))
    FEDGE_TRY_VOID(make_directory(root / file.substr(0, end), 0700));
  return {};
}

Result<std::vector<ListedFile>> list_files(
    const std::filesystem::path& directory,
    const std::function<Result<void>(const std::filesystem::path&)>& directories) {
  std::vector<ListedFile> found;
  FEDGE_TRY_VOID(list_below(directory, "", directories, found));
  std::ranges::sort(found, {}, &ListedFile::path);
  return found;
}

Result<void> sync_tree(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> directories;
  FEDGE_TRY(files, list_files(directory, [&](const std::filesystem::path& path) -> Result<void> {
              directories.push_back(path);
              return {};
            }));
  for (const ListedFile& file : files)
    if (file.regular) FEDGE_TRY_VOID(sync_file(directory / file.path));
  for (const auto& path : directories) FEDGE_TRY_VOID(sync_directory(path));
  return {};
}

}  // namespace fedge::server
