#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>

#include "core/platform/files.h"
#include "protocol/chunks/stored_object.h"

namespace fedge::protocol {
namespace {

constexpr const char* kExtension = ".chunks";
// Files of objects that are gone, kept to be written over: pages that are in the cache already cost
// about a third of fresh ones.
constexpr std::size_t kMaxSpares = 8;

struct File {
  File() = default;
  File(File&& other) noexcept
      : fd(std::exchange(other.fd, -1)), path(std::move(other.path)), size(other.size) {}
  File& operator=(File&& other) noexcept {
    std::swap(fd, other.fd);
    std::swap(path, other.path);
    std::swap(size, other.size);
    return *this;
  }
  ~File() {
    if (fd < 0) return;
    ::close(fd);
    ::unlink(path.c_str());
  }

  int fd = -1;
  std::filesystem::path path;
  std::uint64_t size = 0;  // allocated on disk
};

// Reserves the space now, so that a full disk shows here and not in the middle of a transfer.
Result<void> reserve(File& file, std::uint64_t size) {
  if (file.size >= size) return {};
  int error = ::fallocate(file.fd, 0, 0, static_cast<off_t>(size)) == 0 ? 0 : errno;
  if (error == EOPNOTSUPP) error = ::ftruncate(file.fd, static_cast<off_t>(size)) == 0 ? 0 : errno;
  if (error != 0)
    return system_error("cannot reserve " + std::to_string(size) + " bytes for", file.path, error);
  file.size = size;
  return {};
}

// The files of a store and the bytes they take. Objects come back to it from any thread, and may
// outlive the store.
class FilePool {
 public:
  FilePool(std::filesystem::path directory, std::uint64_t max_bytes)
      : directory_(std::move(directory)), max_bytes_(max_bytes) {}

  Result<File> take(std::uint64_t size) {
    const std::lock_guard lock(mutex_);
    if (used_ > max_bytes_ || size > max_bytes_ - used_) return store_full(size, used_, max_bytes_);
    FEDGE_TRY(file, take_spare(size));
    FEDGE_TRY_VOID(reserve(file, size));
    used_ += file.size;
    drop_spares();
    return file;
  }

  void give_back(File file) {
    const std::lock_guard lock(mutex_);
    used_ -= file.size;
    spares_.push_back(std::move(file));
    drop_spares();
  }

 private:
  // The smallest spare that is large enough and leaves the bound alone, else a new file.
  Result<File> take_spare(std::uint64_t size) {
    auto best = spares_.end();
    for (auto spare = spares_.begin(); spare != spares_.end(); ++spare)
      if (spare->size >= size && spare->size <= max_bytes_ - used_ &&
          (best == spares_.end() || spare->size < best->size))
        best = spare;
    if (best != spares_.end()) {
      File file = std::move(*best);
      spares_.erase(best);
      return file;
    }
    File file;
    const auto path = directory_ / (std::to_string(next_name_++) + kExtension);
    file.fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file.fd < 0) return system_error("cannot create", path, errno);
    file.path = path;
    return file;
  }

  // Spares count towards the bound as well, but give way to objects.
  void drop_spares() {
    std::uint64_t total = used_;
    for (const File& spare : spares_) total += spare.size;
    while (!spares_.empty() && (spares_.size() > kMaxSpares || total > max_bytes_)) {
      total -= spares_.front().size;
      spares_.erase(spares_.begin());
    }
  }

  std::mutex mutex_;
  std::filesystem::path directory_;
  std::uint64_t max_bytes_;
  std::uint64_t used_ = 0;  // on disk, by files of objects
  std::uint64_t next_name_ = 1;
  std::vector<File> spares_;
};

class FileObject final : public ObjectBase {
 public:
  FileObject(const Manifest& manifest, File file, std::shared_ptr<FilePool> pool)
      : ObjectBase(manifest), file_(std::move(file)), pool_(std::move(pool)) {}
  ~FileObject() override { pool_->give_back(std::move(file_)); }

 private:
  Result<void> load(std::uint64_t offset, std::span<std::byte> out) override {
    while (!out.empty()) {
      const ssize_t got = ::pread(file_.fd, out.data(), out.size(), static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return system_error("cannot read", file_.path, errno);
      if (got == 0)
        return Error{ErrorCode::kResource, file_.path.string() + " is shorter than what was stored in it"};
      out = out.subspan(static_cast<std::size_t>(got));
      offset += static_cast<std::uint64_t>(got);
    }
    return {};
  }
  Result<void> save(std::uint64_t offset, std::span<const std::byte> bytes) override {
    while (!bytes.empty()) {
      const ssize_t written = ::pwrite(file_.fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return system_error("cannot write", file_.path, errno);
      bytes = bytes.subspan(static_cast<std::size_t>(written));
      offset += static_cast<std::uint64_t>(written);
    }
    return {};
  }

  File file_;
  std::shared_ptr<FilePool> pool_;
};

class FileStore final : public StoreBase {
 public:
  explicit FileStore(std::shared_ptr<FilePool> pool) : pool_(std::move(pool)) {}

 private:
  Result<std::shared_ptr<ObjectBase>> allocate(const Manifest& manifest) override {
    FEDGE_TRY(file, pool_->take(manifest.payload_size));
    return std::shared_ptr<ObjectBase>(std::make_shared<FileObject>(manifest, std::move(file), pool_));
  }

  std::shared_ptr<FilePool> pool_;
};

// What a store that was killed left behind; other files in the directory are not ours to delete.
Result<void> remove_leftovers(const std::filesystem::path& directory) {
  std::error_code error;
  std::filesystem::directory_iterator entries(directory, error);
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error))
    if (entries->path().extension() == kExtension && ::unlink(entries->path().c_str()) != 0)
      return system_error("cannot remove", entries->path(), errno);
  if (error) return system_error("cannot list", directory, error.value());
  return {};
}

}  // namespace

Result<std::unique_ptr<ChunkStore>> open_file_chunk_store(const std::filesystem::path& directory,
                                                          std::size_t max_bytes) {
  FEDGE_TRY_VOID(make_directory(directory, 0700));
  FEDGE_TRY_VOID(remove_leftovers(directory));
  return std::unique_ptr<ChunkStore>(
      std::make_unique<FileStore>(std::make_shared<FilePool>(directory, max_bytes)));
}

}  // namespace fedge::protocol
