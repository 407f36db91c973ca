#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <mutex>
#include <optional>

#include "core/platform/files.h"
#include "protocol/chunks/stored_object.h"

namespace fedge::protocol {
namespace {

constexpr const char* kExtension = ".chunks";
// Files of objects that are gone, kept to be written over: pages that are in the cache already cost
// about a third of fresh ones.
constexpr std::size_t kMaxSpares = 8;

// A file begins with a page that says whose chunks it holds, so that a later process can take it up again.
// What it says is a hint: chunks are believed for their hashes alone.
constexpr std::uint64_t kHeaderSize = 4096;
struct Header {
  std::array<char, 8> magic{};
  ObjectId id{};
};
static_assert(sizeof(Header) == 40);
constexpr std::array<char, 8> kMagic{'F', 'E', 'D', 'G', 'E', 'O', 'B', '1'};

struct File {
  File() = default;
  File(File&& other) noexcept { swap(other); }
  File& operator=(File&& other) noexcept {
    swap(other);
    return *this;
  }
  ~File() {
    if (fd < 0) return;
    ::close(fd);
    if (!keep) ::unlink(path.c_str());
  }
  void swap(File& other) noexcept {
    std::swap(fd, other.fd);
    std::swap(path, other.path);
    std::swap(size, other.size);
    std::swap(id, other.id);
    std::swap(linked, other.linked);
    std::swap(keep, other.keep);
  }

  int fd = -1;
  std::filesystem::path path;
  std::uint64_t size = 0;      // of payload, allocated on disk
  std::optional<ObjectId> id;  // that its header says
  bool linked = false;         // its name in the directory is durable
  bool keep = false;           // when the process ends
};

// Reserves the space now, so that a full disk shows here and not in the middle of a transfer.
Result<void> reserve(File& file, std::uint64_t size) {
  if (file.size >= size) return {};
  const auto length = static_cast<off_t>(kHeaderSize + size);
  int error = ::fallocate(file.fd, 0, 0, length) == 0 ? 0 : errno;
  if (error == EOPNOTSUPP) error = ::ftruncate(file.fd, length) == 0 ? 0 : errno;
  if (error != 0)
    return system_error("cannot reserve " + std::to_string(size) + " bytes for", file.path, error);
  file.size = size;
  return {};
}

Result<void> read_at(const File& file, std::uint64_t offset, std::span<std::byte> out) {
  while (!out.empty()) {
    const ssize_t got = ::pread(file.fd, out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error("cannot read", file.path, errno);
    if (got == 0)
      return Error{ErrorCode::kCorrupt, file.path.string() + " is shorter than what was stored in it"};
    out = out.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
  return {};
}

Result<void> write_at(const File& file, std::uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(file.fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return system_error("cannot write", file.path, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
  return {};
}

Result<void> label(File& file, const ObjectId& id) {
  const Header header{kMagic, id};
  FEDGE_TRY_VOID(write_at(file, 0, std::as_bytes(std::span(&header, 1))));
  file.id = id;
  return {};
}

// The files of a store and the bytes they take. Objects come back to it from any thread, and may
// outlive the store.
class FilePool {
 public:
  FilePool(std::filesystem::path directory, const FileStoreOptions& options)
      : directory_(std::move(directory)), options_(options), settled_(!options.durable) {}

  // Takes over what a process before this one left in the directory; other files are not ours.
  Result<void> open() {
    std::error_code error;
    std::filesystem::directory_iterator entries(directory_, error);
    std::vector<std::pair<std::filesystem::file_time_type, File>> found;
    for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
      if (entries->path().extension() != kExtension) continue;
      std::error_code unknown;
      const auto changed = std::filesystem::last_write_time(entries->path(), unknown);
      if (auto file = options_.durable ? take_up(entries->path()) : std::nullopt) {
        found.emplace_back(changed, std::move(*file));
      } else if (::unlink(entries->path().c_str()) != 0) {
        return system_error("cannot remove", entries->path(), errno);
      }
    }
    if (error) return system_error("cannot list", directory_, error.value());
    std::ranges::sort(found, {}, [](const auto& entry) { return std::pair(entry.first, entry.second.path); });
    for (auto& [changed, file] : found) spares_.push_back(std::move(file));
    const std::lock_guard lock(mutex_);
    drop_spares();
    return {};
  }

  // For a payload of so many bytes; what the file says that it holds is no longer so.
  Result<File> take(std::uint64_t size) {
    const std::lock_guard lock(mutex_);
    if (used_ > options_.max_bytes || size > options_.max_bytes - used_)
      return store_full(size, used_, options_.max_bytes);
    FEDGE_TRY(file, take_spare(size));
    auto reserved = reserve(file, size);
    // A disk that is full is so of old objects as well.
    while (!reserved && reserved.error().code == ErrorCode::kResource && !spares_.empty()) {
      drop_oldest_spare();
      reserved = reserve(file, size);
    }
    if (!reserved) {
      file.keep = false;
      return reserved.error();
    }
    file.id.reset();
    used_ += file.size;
    drop_spares();
    return file;
  }

  // The file that an object with this id was in, if it is still there and large enough.
  std::optional<File> revive(const ObjectId& id, std::uint64_t size) {
    const std::lock_guard lock(mutex_);
    const auto known = std::ranges::find_if(
        spares_, [&](const File& spare) { return spare.id == id && spare.size >= size; });
    if (known == spares_.end()) return std::nullopt;
    File file = std::move(*known);
    spares_.erase(known);
    used_ += file.size;
    ::futimens(file.fd, nullptr);  // for a later process, which goes by it to tell the oldest
    return file;
  }

  void give_back(File file) {
    const std::lock_guard lock(mutex_);
    used_ -= file.size;
    spares_.push_back(std::move(file));
    drop_spares();
  }

  void settle() {
    const std::lock_guard lock(mutex_);
    settled_ = true;
    drop_spares();
  }

  Result<void> sync(File& file) const {
    if (::fdatasync(file.fd) != 0) return system_error("cannot make durable", file.path, errno);
    if (file.linked) return {};
    FEDGE_TRY_VOID(sync_directory(directory_));
    file.linked = true;
    return {};
  }

 private:
  // None if it cannot be an object's, or not be read.
  std::optional<File> take_up(const std::filesystem::path& path) {
    File file;
    file.fd = ::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (file.fd < 0) return std::nullopt;
    file.path = path;
    file.keep = true;
    struct stat info {};
    Header header;
    if (::fstat(file.fd, &info) != 0 || !S_ISREG(info.st_mode) ||
        static_cast<std::uint64_t>(info.st_size) < kHeaderSize ||
        !read_at(file, 0, std::as_writable_bytes(std::span(&header, 1))) || header.magic != kMagic)
      return std::nullopt;
    file.size = static_cast<std::uint64_t>(info.st_size) - kHeaderSize;
    file.id = header.id;
    std::uint64_t number = 0;
    const std::string stem = path.stem().string();
    if (std::from_chars(stem.data(), stem.data() + stem.size(), number).ec == std::errc())
      next_name_ = std::max(next_name_, number + 1);
    return file;
  }

  // A spare that is large enough and leaves the bound alone, else a new file. While what an earlier process
  // left may still be wanted, none is written over as long as there is room.
  Result<File> take_spare(std::uint64_t size) {
    std::uint64_t idle = 0;
    for (const File& spare : spares_) idle += spare.size;
    const std::uint64_t room = options_.max_bytes - used_;
    auto best = spares_.end();
    if (settled_ || idle + size > room)
      for (auto spare = spares_.begin(); spare != spares_.end(); ++spare)
        if (spare->size >= size && spare->size <= room && (best == spares_.end() || spare->size < best->size))
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
    file.keep = options_.durable;
    return file;
  }

  // Spares count towards the bound as well, but give way to objects; the oldest first.
  void drop_spares() {
    std::uint64_t total = used_;
    for (const File& spare : spares_) total += spare.size;
    while (!spares_.empty() && ((settled_ && spares_.size() > kMaxSpares) || total > options_.max_bytes)) {
      total -= spares_.front().size;
      drop_oldest_spare();
    }
  }
  void drop_oldest_spare() {
    spares_.front().keep = false;
    spares_.erase(spares_.begin());
  }

  std::mutex mutex_;
  std::filesystem::path directory_;
  FileStoreOptions options_;
  bool settled_;
  std::uint64_t used_ = 0;  // on disk, by files of objects
  std::uint64_t next_name_ = 1;
  std::vector<File> spares_;  // the oldest first
};

class FileObject final : public ObjectBase {
 public:
  FileObject(const Manifest& manifest, File file, std::shared_ptr<FilePool> pool)
      : ObjectBase(manifest), file_(std::move(file)), pool_(std::move(pool)) {}
  ~FileObject() override { pool_->give_back(std::move(file_)); }

  Result<void> sync() override { return pool_->sync(file_); }
  Result<void> label(const ObjectId& id) { return protocol::label(file_, id); }

 private:
  Result<void> load(std::uint64_t offset, std::span<std::byte> out) override {
    return read_at(file_, kHeaderSize + offset, out);
  }
  Result<void> save(std::uint64_t offset, std::span<const std::byte> bytes) override {
    return write_at(file_, kHeaderSize + offset, bytes);
  }

  File file_;
  std::shared_ptr<FilePool> pool_;
};

class FileStore final : public StoreBase {
 public:
  explicit FileStore(std::shared_ptr<FilePool> pool) : pool_(std::move(pool)) {}
  void settle() override { pool_->settle(); }

 private:
  Result<std::shared_ptr<ObjectBase>> allocate(const Manifest& manifest) override {
    FEDGE_TRY(file, pool_->take(manifest.payload_size));
    return std::shared_ptr<ObjectBase>(std::make_shared<FileObject>(manifest, std::move(file), pool_));
  }
  Result<std::shared_ptr<ObjectBase>> revive(const Manifest& manifest) override {
    auto file = pool_->revive(manifest.id(), manifest.payload_size);
    if (!file) return std::shared_ptr<ObjectBase>();
    const auto object = std::make_shared<FileObject>(manifest, std::move(*file), pool_);
    FEDGE_TRY_VOID(object->find_chunks());
    return std::shared_ptr<ObjectBase>(object);
  }
  Result<void> name(ObjectBase& object) override {
    return static_cast<FileObject&>(object).label(object.manifest().id());
  }

  std::shared_ptr<FilePool> pool_;
};

}  // namespace

Result<std::unique_ptr<ChunkStore>> open_file_chunk_store(const std::filesystem::path& directory,
                                                          const FileStoreOptions& options) {
  FEDGE_TRY_VOID(make_directory(directory, 0700));
  const auto pool = std::make_shared<FilePool>(directory, options);
  FEDGE_TRY_VOID(pool->open());
  return std::unique_ptr<ChunkStore>(std::make_unique<FileStore>(pool));
}

}  // namespace fedge::protocol
