// UnixPath: a path for a Unix socket. The system limits it to 107 bytes; a longer one goes through the
// descriptor of its directory, which this object keeps open.
#pragma once

#include <filesystem>
#include <string>

#include "core/result.h"

namespace fedge::server {

class UnixPath {
 public:
  // The directory must exist.
  static Result<UnixPath> of(const std::filesystem::path& path);
  ~UnixPath();
  UnixPath(UnixPath&& other) noexcept;
  UnixPath& operator=(UnixPath&&) = delete;
  UnixPath(const UnixPath&) = delete;
  UnixPath& operator=(const UnixPath&) = delete;

  // Valid while this object exists.
  const std::string& text() const { return text_; }

 private:
  UnixPath(std::string text, int directory) : text_(std::move(text)), directory_(directory) {}
  std::string text_;
  int directory_ = -1;
};

}  // namespace fedge::server
