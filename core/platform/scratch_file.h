// ScratchFile: a file without a name, for data that do not fit into memory. The system frees it when the
// process ends, also if it is killed. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "core/result.h"

namespace fedge {

class ScratchFile {
 public:
  // Creates it in this directory, which must exist.
  static Result<ScratchFile> create(const std::filesystem::path& directory);
  ~ScratchFile();
  ScratchFile(ScratchFile&& other) noexcept;
  ScratchFile& operator=(ScratchFile&& other) noexcept;

  // Errors name the directory. kResource: the disk is full.
  Result<void> write(std::uint64_t offset, std::span<const std::byte> bytes);
  // The bytes must have been written.
  Result<void> read(std::uint64_t offset, std::span<std::byte> out) const;

 private:
  ScratchFile(std::filesystem::path directory, int fd) : directory_(std::move(directory)), fd_(fd) {}
  std::filesystem::path directory_;
  int fd_ = -1;
};

}  // namespace fedge
