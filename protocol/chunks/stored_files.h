// StoredFiles: the objects in the directory of a durable file store, read from outside while another process
// uses the store. For backups, and for models of runs that go on. The names in the files are hints: only
// chunks whose hashes match are copied. Any thread; an object costs one pass over its bytes.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "core/result.h"
#include "protocol/chunks/manifest.h"

namespace fedge::protocol {

class StoredFiles {
 public:
  // Reads the name of the object in each file of this directory. A directory that does not exist has no
  // objects. kRefused: one of the files is a symbolic link.
  static Result<StoredFiles> list(const std::filesystem::path& directory);

  // Passes the object's chunks to `take`, in order. Returns false if no file has all of them; `take` may have
  // received some then. Other errors are the disk's or those of `take`.
  using Take = std::function<Result<void>(std::span<const std::byte>)>;
  Result<bool> read(const Manifest& manifest, const Take& take) const;
  // Copies the object to the new file `to` and syncs it; a durable store takes that file up. Returns false,
  // without a new file, if no file has all chunks of the object. Other errors are the disk's.
  Result<bool> copy(const Manifest& manifest, const std::filesystem::path& to) const;

 private:
  std::multimap<ObjectId, std::filesystem::path> files_;
};

}  // namespace fedge::protocol
