// ScratchFile: a file for data that do not fit into memory. Without a name, the system frees it when the
// process ends, also if it is killed. With a name it stays for a later process. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "core/result.h"

namespace fedge {

class ScratchFile {
 public:
  // Creates it in this directory, which must exist.
  static Result<ScratchFile> create(const std::filesystem::path& directory);
  // Opens the file of this name, or creates it.
  static Result<ScratchFile> open(const std::filesystem::path& path);
  ~ScratchFile();
  ScratchFile(ScratchFile&& other) noexcept;
  ScratchFile& operator=(ScratchFile&& other) noexcept;

  // Errors name the directory, or the file if it has a name. kResource: the disk is full.
  Result<void> write(std::uint64_t offset, std::span<const std::byte> bytes);
  // The bytes must have been written.
  Result<void> read(std::uint64_t offset, std::span<std::byte> out) const;
  const std::string& name() const { return name_; }  // for errors
  // Makes what was written durable.
  Result<void> sync() const;

 private:
  ScratchFile(std::string name, int fd) : name_(std::move(name)), fd_(fd) {}
  std::string name_;  // in errors
  int fd_ = -1;
};

}  // namespace fedge
