#include "server/http/unix_path.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "core/platform/files.h"

namespace fedge::server {
namespace {

constexpr std::size_t kMostPathBytes = 107;  // of sockaddr_un::sun_path, without the final zero

}  // namespace

Result<UnixPath> UnixPath::of(const std::filesystem::path& path) {
  if (path.native().size() <= kMostPathBytes) return UnixPath(path.native(), -1);
  const std::filesystem::path parent = path.parent_path();
  const int directory = ::open(parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return system_error("cannot open", parent, errno);
  return UnixPath("/proc/self/fd/" + std::to_string(directory) + "/" + path.filename().string(), directory);
}

UnixPath::~UnixPath() {
  if (directory_ >= 0) ::close(directory_);
}

UnixPath::UnixPath(UnixPath&& other) noexcept
    : text_(std::move(other.text_)), directory_(std::exchange(other.directory_, -1)) {}

}  // namespace fedge::server
