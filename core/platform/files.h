// Files: whole-file reads and writes with errors that name the file and what the system said.
// A shell's tool: decision code never touches a disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/result.h"

namespace fedge {

// The whole file as text; kNotFound if it is not there, kResource above max_bytes, and then it is not read.
// kInvalid for what is not a regular file: a device never ends, a pipe waits for whoever writes.
Result<std::string> read_file(const std::filesystem::path& path, std::size_t max_bytes);

Result<std::string> read_standard_input(std::size_t max_bytes);

// Replaces the file so that after a crash either the old or the new content is there, whole: writes
// beside it, syncs, renames, syncs the directory. A new file gets this mode; one that is replaced keeps its
// owner and mode, and kRefused says that this process may not give it to that owner.
Result<void> write_file_atomic(const std::filesystem::path& path, std::span<const std::byte> bytes,
                               unsigned mode = 0644);
Result<void> write_file_atomic(const std::filesystem::path& path, std::string_view text,
                               unsigned mode = 0644);
// The pieces one after the other, so that a header and a large payload need not be joined in memory.
Result<void> write_file_atomic(const std::filesystem::path& path,
                               std::span<const std::span<const std::byte>> pieces, unsigned mode = 0644);
// Writes these bytes at this offset, which is at most the file's size (kCorrupt otherwise): after a crash
// they are there, or a part of them. A new file gets this mode.
Result<void> write_file_at(const std::filesystem::path& path, std::uint64_t offset,
                           std::span<const std::byte> bytes, unsigned mode = 0644);
// Removes what writers of this file that were killed have left beside it. Nobody else may be writing it.
void remove_unfinished(const std::filesystem::path& path);

// A regular file to be read in pieces, from any thread. Closed at the end.
class ReadOnlyFile {
 public:
  static Result<ReadOnlyFile> open(const std::filesystem::path& path);
  ~ReadOnlyFile();
  ReadOnlyFile(ReadOnlyFile&& other) noexcept;
  ReadOnlyFile& operator=(ReadOnlyFile&& other) noexcept;
  ReadOnlyFile(const ReadOnlyFile&) = delete;
  ReadOnlyFile& operator=(const ReadOnlyFile&) = delete;

  std::uint64_t size() const { return size_; }
  const std::filesystem::path& path() const { return path_; }
  // Fills `out` from this offset on; kCorrupt if the file ends before.
  Result<void> read(std::uint64_t offset, std::span<std::byte> out) const;

 private:
  ReadOnlyFile(std::filesystem::path path, int fd, std::uint64_t size)
      : path_(std::move(path)), fd_(fd), size_(size) {}
  std::filesystem::path path_;
  int fd_ = -1;
  std::uint64_t size_ = 0;
};

// Makes the directory and its parents, durably; an existing directory is fine, anything else there is an
// error.
Result<void> make_directory(const std::filesystem::path& path, unsigned mode = 0755);

// What has been made, renamed or removed in the directory is so after a power cut, too.
Result<void> sync_directory(const std::filesystem::path& directory);

// $HOME/.local/share/fedge: where data that a user has fetched lie; kNotFound if HOME is not set.
Result<std::filesystem::path> user_data_directory();

// Lets this process have as many files and connections open as the system permits it; shells and service
// managers start it with fewer.
void raise_open_files_limit();

// "cannot open /x/y: No such file or directory", with the code that fits the system's error number.
Error system_error(const std::string& what, const std::filesystem::path& path, int error_number);

// Serialises changes of a file between processes: waits for whoever holds it, and holds it while it lives.
// Lies beside the file, since that is replaced whole.
class FileLock {
 public:
  explicit FileLock(const std::filesystem::path& path);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  bool held() const { return fd_ >= 0; }  // else errno says why not

 private:
  int fd_;
};

// What tells a file from another at the same path.
struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  bool operator==(const FileIdentity&) const = default;
};
Result<FileIdentity> identity_of(const std::filesystem::path& path);

// kRefused if the file belongs to another user than the one this program runs as; an absent one is nobody's.
Result<void> check_owner(const std::filesystem::path& path);

// An exclusive lock on a directory, held until destruction; kUnavailable if another process has it.
class DirectoryLock {
 public:
  static Result<DirectoryLock> acquire(const std::filesystem::path& directory);
  ~DirectoryLock();
  DirectoryLock(DirectoryLock&& other) noexcept;
  DirectoryLock& operator=(DirectoryLock&& other) noexcept;
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

 private:
  explicit DirectoryLock(int fd) : fd_(fd) {}
  int fd_ = -1;
};

}  // namespace fedge
