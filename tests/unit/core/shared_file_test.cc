// Files whose bytes processes have in memory once.
#include "core/platform/shared_file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "core/platform/files.h"

using namespace fedge;

namespace {

struct SharedDirectory {
  SharedDirectory() { REQUIRE(::mkdtemp(pattern) != nullptr); }
  ~SharedDirectory() { std::filesystem::remove_all(pattern); }
  std::filesystem::path path() const { return pattern; }
  char pattern[30] = "/tmp/fedge-shared-XXXXXX";
};

constexpr std::size_t kShared = 3 * 4096 + 5;

std::size_t count_files(const std::filesystem::path& directory) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(directory), {}));
}

void publish_of(const std::filesystem::path& path, char byte) {
  auto file = SharedFile::create(path.parent_path(), kShared);
  REQUIRE_MESSAGE(file, file.error().message);
  std::memset(file->data(), byte, kShared);
  REQUIRE(file->publish(path));
}

}  // namespace

TEST_CASE("shared file: what one process has published, others map, without being able to change it") {
  const SharedDirectory directory;
  const auto path = directory.path() / "a.weights";
  auto made = SharedFile::create(directory.path(), kShared);
  REQUIRE(made);
  CHECK(made->writable());
  CHECK(
      std::all_of(made->data(), made->data() + kShared, [](std::byte byte) { return byte == std::byte(0); }));
  made->data()[kShared - 1] = std::byte(7);
  CHECK(SharedFile::open(path, kShared).error().code == ErrorCode::kNotFound);
  REQUIRE(made->publish(path));
  CHECK_FALSE(made->writable());
  const auto opened = SharedFile::open(path, kShared);
  REQUIRE_MESSAGE(opened, opened.error().message);
  CHECK_FALSE(opened->writable());
  CHECK(opened->data()[kShared - 1] == std::byte(7));
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  // A process that writes to it nevertheless is ended.
  for (const std::byte* memory : std::vector<const std::byte*>{made->data(), opened->data()}) {
    const pid_t child = ::fork();
    if (child == 0) {
      for (const int number : {SIGSEGV, SIGBUS}) std::signal(number, SIG_DFL);
      *const_cast<std::byte*>(memory) = std::byte(1);
      ::_exit(0);
    }
    int outcome = 0;
    REQUIRE(::waitpid(child, &outcome, 0) == child);
    CHECK(WIFSIGNALED(outcome));
  }
}

TEST_CASE("shared file: a published file of the same name is replaced for those who open it afterwards") {
  const SharedDirectory directory;
  const auto path = directory.path() / "a.weights";
  publish_of(path, 'a');
  const auto before = SharedFile::open(path, kShared);
  publish_of(path, 'b');
  const auto after = SharedFile::open(path, kShared);
  REQUIRE((before && after));
  CHECK(before->data()[0] == std::byte('a'));
  CHECK(after->data()[0] == std::byte('b'));
  CHECK(count_files(directory.path()) == 1);
}

TEST_CASE("shared file: what is not published is removed, also after its process was killed") {
  const SharedDirectory directory;
  { REQUIRE(SharedFile::create(directory.path(), kShared)); }
  CHECK(count_files(directory.path()) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto file = SharedFile::create(directory.path(), kShared);
    ::kill(::getpid(), SIGKILL);
  }
  int outcome = 0;
  REQUIRE(::waitpid(child, &outcome, 0) == child);
  CHECK(count_files(directory.path()) == 1);
  const auto writing = SharedFile::create(directory.path(), kShared);
  REQUIRE(writing);
  SharedFile::remove_unused(directory.path(), ".weights", 0);
  CHECK(count_files(directory.path()) == 1);  // the one that this process is writing
}

TEST_CASE("shared file: of unopened files those stay that were opened last, and all that are not its own") {
  const SharedDirectory directory;
  for (const char* name : {"fedge-notes.txt", "unpublished", "x.unpublished"})
    REQUIRE(write_file_atomic(directory.path() / name, "x"));
  std::vector<std::filesystem::path> paths;
  for (const char name : {'a', 'b', 'c', 'd'}) {
    paths.push_back(directory.path() / (std::string(1, name) + ".weights"));
    publish_of(paths.back(), name);
    // In the order of the names, one second apart.
    const timespec opened{1'000'000 + name, 0};
    const timespec times[2] = {opened, opened};
    REQUIRE(::utimensat(AT_FDCWD, paths.back().c_str(), times, 0) == 0);
  }
  const auto reading = SharedFile::open(paths[1], kShared);
  { REQUIRE(SharedFile::open(paths[0], kShared)); }  // now the last
  SharedFile::remove_unused(directory.path(), ".weights", 2);
  CHECK(std::filesystem::exists(paths[0]));
  CHECK(std::filesystem::exists(paths[1]));
  CHECK_FALSE(std::filesystem::exists(paths[2]));
  CHECK(std::filesystem::exists(paths[3]));
  CHECK(count_files(directory.path()) == 3 + 3);
  CHECK(reading->data()[0] == std::byte('b'));
}

TEST_CASE(
    "shared file: another size, a link, a pipe, a writer and a full disk are errors that name the file") {
  const SharedDirectory directory;
  const auto path = directory.path() / "a.weights";
  publish_of(path, 'a');
  std::filesystem::create_symlink(path, directory.path() / "link.weights");
  REQUIRE(::mkfifo((directory.path() / "pipe.weights").c_str(), 0600) == 0);
  const auto check = [&](const std::filesystem::path& file, std::size_t bytes, ErrorCode code) {
    const auto opened = SharedFile::open(file, bytes);
    REQUIRE_FALSE(opened);
    CHECK(opened.error().code == code);
    CHECK_MESSAGE(opened.error().message.find(file.string()) != std::string::npos, opened.error().message);
  };
  check(path, kShared + 1, ErrorCode::kCorrupt);
  check(directory.path() / "link.weights", kShared, ErrorCode::kRefused);
  check(directory.path() / "pipe.weights", kShared, ErrorCode::kCorrupt);
  check(directory.path() / "none.weights", kShared, ErrorCode::kNotFound);
  REQUIRE(::chmod(path.c_str(), 0622) == 0);
  check(path, kShared, ErrorCode::kRefused);
  // A limit of file sizes stands for a disk without room.
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{4096, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  const auto full = SharedFile::create(directory.path(), kShared);
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
  std::signal(SIGXFSZ, handler);
  REQUIRE_FALSE(full);
  CHECK_MESSAGE(
      full.error().message.starts_with("cannot reserve 12293 bytes in " + directory.path().string()),
      full.error().message);
  CHECK(count_files(directory.path()) == 3);
}

TEST_CASE("shared file: a file that is being created is not taken for one that was left") {
  const SharedDirectory directory;
  std::atomic<bool> over = false;
  std::thread cleaner([&] {
    while (!over) SharedFile::remove_unused(directory.path(), ".kept", 0);
  });
  std::size_t published = 0;
  for (int i = 0; i < 1000; ++i) {
    auto file = SharedFile::create(directory.path(), 4096);
    if (file && file->publish(directory.path() / "one.other")) ++published;
  }
  over = true;
  cleaner.join();
  CHECK(published == 1000);
}
