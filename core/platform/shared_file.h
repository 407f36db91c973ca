// SharedFile: a file mapped into memory. Processes of one user that map the same file share one copy of its
// bytes. When memory is short, the system can evict it and read the file again. Move-only; the bytes keep
// their address when it is moved. Any thread.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "core/result.h"

namespace fedge {

class SharedFile {
 public:
  // Maps a published file for reading. kNotFound if it is absent; kRefused if it belongs to another user or
  // others may write to it; kCorrupt unless it has this many bytes.
  static Result<SharedFile> open(const std::filesystem::path& path, std::size_t bytes);
  // Maps a new file of zeros for writing, and reserves its room on the disk. Before publish(), open() does
  // not find it, and the destructor removes it. Errors say why there is no room.
  static Result<SharedFile> create(const std::filesystem::path& directory, std::size_t bytes);
  // Gives the new file this name in its directory, replacing any file that has it. From then on its memory is
  // read-only. Not durable: after a power cut the file may have other bytes.
  Result<void> publish(const std::filesystem::path& path);
  // Removes what create() left in the directory when its process was killed. Keeps the `kept` most recently
  // opened of the published files with this extension that no process has open. Ignores errors.
  static void remove_unused(const std::filesystem::path& directory, const std::string& extension,
                            std::size_t kept);

  ~SharedFile();
  SharedFile(SharedFile&& other) noexcept;
  SharedFile& operator=(SharedFile&& other) noexcept;

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  bool writable() const { return writable_; }

 private:
  SharedFile(std::filesystem::path path, int fd) : path_(std::move(path)), fd_(fd) {}
  Result<void> map(std::size_t bytes, bool writable);

  std::filesystem::path path_;
  int fd_ = -1;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  bool writable_ = false;
};

}  // namespace fedge
