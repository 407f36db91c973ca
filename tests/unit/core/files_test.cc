#include "core/platform/files.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

using namespace fedge;

namespace {

struct FilesDirectory {
  FilesDirectory() { REQUIRE(::mkdtemp(pattern) != nullptr); }
  ~FilesDirectory() { std::filesystem::remove_all(pattern); }
  std::filesystem::path operator/(const char* name) const { return std::filesystem::path(pattern) / name; }
  char pattern[30] = "/tmp/fedge-files-XXXXXX";
};

}  // namespace

TEST_CASE(
    "files: a pipe is refused instead of waiting for who writes, and a device instead of never ending") {
  const FilesDirectory directory;
  const auto pipe = directory / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const auto link = directory / "link";
  std::filesystem::create_symlink("/dev/zero", link);
  for (const std::filesystem::path& path :
       {pipe, link, std::filesystem::path("/dev/zero"), std::filesystem::path(directory.pattern)}) {
    CAPTURE(path);
    const auto text = read_file(path, 1 << 30);
    REQUIRE_FALSE(text);
    CHECK(text.error().message == "cannot read " + path.string() + ": it is not a regular file");
    const auto pieces = ReadOnlyFile::open(path);
    REQUIRE_FALSE(pieces);
    CHECK(pieces.error().message == text.error().message);
  }
}

TEST_CASE("files: a file is read up to its bound, and one that is larger is not begun") {
  const FilesDirectory directory;
  const auto path = directory / "file";
  std::ofstream(path) << "twelve bytes";
  CHECK(*read_file(path, 12) == "twelve bytes");
  CHECK(read_file(path, 11).error().code == ErrorCode::kResource);
  CHECK(read_file(directory / "none", 12).error().code == ErrorCode::kNotFound);
  // A sparse file of a terabyte: larger than the memory.
  REQUIRE(::truncate(path.c_str(), off_t{1} << 40) == 0);
  CHECK(read_file(path, 1 << 20).error().code == ErrorCode::kResource);
  // Files of /proc report a size of 0.
  CHECK(read_file("/proc/self/stat", 1 << 20)->size() > 10);
  CHECK(read_file("/proc/self/stat", 10).error().code == ErrorCode::kResource);
}
