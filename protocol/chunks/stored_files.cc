#include "protocol/chunks/stored_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "core/aligned_buffer.h"
#include "core/platform/detail/descriptor.h"
#include "core/platform/files.h"
#include "protocol/chunks/file_pool.h"

namespace fedge::protocol {
namespace {

// Returns the object that the file's header names; nothing if the file is no object or has gone meanwhile.
Result<std::optional<ObjectId>> named_in(const std::filesystem::path& path) {
  const auto file = ReadOnlyFile::open(path);
  if (!file && file.error().code == ErrorCode::kNotFound) return std::optional<ObjectId>();
  if (!file) return file.error();
  if (file->size() < kPoolHeaderSize) return std::optional<ObjectId>();
  PoolHeader header;
  FEDGE_TRY_VOID(file->read(0, std::as_writable_bytes(std::span(&header, 1))));
  if (header.magic != kPoolMagic) return std::optional<ObjectId>();
  return std::optional(header.id);
}

// Returns false if one of the object's chunks is not in the file, or the file has gone meanwhile.
Result<bool> read_chunks(const std::filesystem::path& from, const Manifest& manifest,
                         const StoredFiles::Take& take) {
  const auto file = ReadOnlyFile::open(from);
  if (!file && file.error().code == ErrorCode::kNotFound) return false;
  if (!file) return file.error();
  if (file->size() < kPoolHeaderSize + manifest.payload_size) return false;
  AlignedBuffer<std::byte> buffer(manifest.chunk_count() > 0 ? manifest.chunk_length(0) : 0);
  for (std::size_t chunk = 0; chunk < manifest.chunk_count(); ++chunk) {
    const auto bytes = buffer.span().first(manifest.chunk_length(chunk));
    const auto read = file->read(kPoolHeaderSize + std::uint64_t{chunk} * manifest.chunk_size, bytes);
    if (!read && read.error().code == ErrorCode::kCorrupt) return false;  // cut meanwhile
    if (!read) return read.error();
    if (!verify_chunk(manifest, chunk, bytes)) return false;
    FEDGE_TRY_VOID(take(bytes));
  }
  return true;
}

Result<bool> copy_chunks(const std::filesystem::path& from, const Manifest& manifest, const Descriptor& fd,
                         const std::filesystem::path& to) {
  AlignedBuffer<std::byte> page(kPoolHeaderSize);
  const PoolHeader header{kPoolMagic, manifest.id()};
  std::ranges::fill(page.span(), std::byte{});
  std::ranges::copy(std::as_bytes(std::span(&header, 1)), page.span().begin());
  FEDGE_TRY_VOID(write_all(fd.get(), page.span(), to));
  return read_chunks(from, manifest,
                     [&](std::span<const std::byte> bytes) { return write_all(fd.get(), bytes, to); });
}

Result<bool> copy_file(const std::filesystem::path& from, const Manifest& manifest,
                       const std::filesystem::path& to) {
  const Descriptor fd(::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (fd.get() < 0) return system_error("cannot create", to, errno);
  auto copied = copy_chunks(from, manifest, fd, to);
  if (copied && *copied && ::fsync(fd.get()) != 0) copied = system_error("cannot sync", to, errno);
  if (!copied || !*copied) ::unlink(to.c_str());
  return copied;
}

}  // namespace

Result<StoredFiles> StoredFiles::list(const std::filesystem::path& directory) {
  StoredFiles files;
  std::error_code error;
  std::filesystem::directory_iterator entry(directory, error);
  if (error == std::errc::no_such_file_or_directory) return files;
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::filesystem::path& path = entry->path();
    if (path.extension() != kPoolExtension) continue;
    std::error_code unknown;
    if (std::filesystem::is_symlink(path, unknown))
      return Error{ErrorCode::kRefused,
                   path.string() + " is a symbolic link; symbolic links are not followed"};
    FEDGE_TRY(id, named_in(path));
    if (id) files.files_.emplace(*id, path);
  }
  if (error) return system_error("cannot list", directory, error.value());
  return files;
}

Result<bool> StoredFiles::read(const Manifest& manifest, const Take& take) const {
  const auto [first, last] = files_.equal_range(manifest.id());
  bool begun = false;
  for (auto file = first; file != last && !begun; ++file) {
    FEDGE_TRY(read, read_chunks(file->second, manifest, [&](std::span<const std::byte> bytes) {
                begun = true;
                return take(bytes);
              }));
    if (read) return true;
  }
  return false;
}

Result<bool> StoredFiles::copy(const Manifest& manifest, const std::filesystem::path& to) const {
  const auto [first, last] = files_.equal_range(manifest.id());
  for (auto file = first; file != last; ++file) {
    FEDGE_TRY(copied, copy_file(file->second, manifest, to));
    if (copied) return true;
  }
  return false;
}

}  // namespace fedge::protocol
