#include "learn/tables/text_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>

#include "core/platform/files.h"

namespace fedge::learn {
namespace {

constexpr unsigned kZlibBuffer = 128U << 10;

}  // namespace

void TextFile::Close::operator()(void* file) const { ::gzclose_r(static_cast<gzFile>(file)); }

Result<TextFile> TextFile::open(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return system_error("cannot open", path, errno);
  struct stat status {};
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(fd);
    return invalid(path.string() + " is not a regular file");
  }
  const gzFile file = ::gzdopen(fd, "rb");
  if (file == nullptr) {
    ::close(fd);
    return Error{ErrorCode::kResource, path.string() + ": no memory to read it"};
  }
  ::gzbuffer(file, kZlibBuffer);
  return TextFile(path, file);
}

Result<std::size_t> TextFile::read(std::span<char> out) {
  const auto file = static_cast<gzFile>(file_.get());
  const int count = ::gzread(file, out.data(), static_cast<unsigned>(out.size()));
  int code = Z_OK;
  const char* reason = ::gzerror(file, &code);
  // gzread() reports a truncated gzip file only as Z_BUF_ERROR, with what it could unpack.
  if (count < 0 || code == Z_BUF_ERROR || code == Z_DATA_ERROR)
    return Error{ErrorCode::kCorrupt, path_.string() + ": the file is damaged or truncated: " + reason};
  return static_cast<std::size_t>(count);
}

}  // namespace fedge::learn
