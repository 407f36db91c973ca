#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <deque>
#include <mutex>
#include <optional>

#include "core/platform/files.h"
#include "protocol/chunks/stored_object.h"

namespace fedge::protocol {
namespace {

constexpr const char* kExtension = ".chunks";
// A file begins with a page that says whose chunks it holds, so that a later process can take it up again.
// What it says is a hint: chunks are believed for their hashes alone.
constexpr std::uint64_t kHeaderSize = 4096;
struct Header {
  std::array<char, 8> magic{};
  ObjectId id{};
};
static_assert(sizeof(Header) == 40);
constexpr std::array<char, 8> kMagic{'F', 'E', 'D', 'G', 'E', 'O', 'B', '1'};

struct Descriptor {
  explicit Descriptor(int number) : fd(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { ::close(fd); }
  const int fd;
};

struct File {
  File() = default;
  File(File&& other) noexcept { swap(other); }
  File& operator=(File&& other) noexcept {
    swap(other);
    return *this;
  }
  ~File() {
    if (!keep && !path.empty()) ::unlink(path.c_str());
  }
  void swap(File& other) noexcept {
    std::swap(descriptor, other.descriptor);
    std::swap(path, other.path);
    std::swap(size, other.size);
    std::swap(id, other.id);
    std::swap(linked, other.linked);
    std::swap(keep, other.keep);
  }
  int fd() const { return descriptor->fd; }

  std::shared_ptr<const Descriptor> descriptor;  // null while it rests
  std::filesystem::path path;
  std::uint64_t size = 0;      // of payload, allocated on disk
  std::optional<ObjectId> id;  // that its header says
  bool linked = false;         // its name in the directory is durable
  bool keep = false;           // when the process ends
};

// What the file is open with, or a descriptor of the caller's own.
Result<std::shared_ptr<const Descriptor>> open_file(const File& file) {
  if (file.descriptor) return file.descriptor;
  const int fd = ::open(file.path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return system_error("cannot open", file.path, errno);
  return std::make_shared<const Descriptor>(fd);
}

// Reserves the space now, so that a full disk shows here and not in the middle of a transfer.
Result<void> reserve(File& file, std::uint64_t size) {
  if (file.size >= size) return {};
  const auto length = static_cast<off_t>(kHeaderSize + size);
  int error = ::fallocate(file.fd(), 0, 0, length) == 0 ? 0 : errno;
  if (error == EOPNOTSUPP) error = ::ftruncate(file.fd(), length) == 0 ? 0 : errno;
  if (error != 0)
    return system_error("cannot reserve " + std::to_string(size) + " bytes for", file.path, error);
  file.size = size;
  return {};
}

Result<void> read_at(const File& file, int fd, std::uint64_t offset, std::span<std::byte> out) {
  while (!out.empty()) {
    const ssize_t got = ::pread(fd, out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error("cannot read", file.path, errno);
    if (got == 0)
      return Error{ErrorCode::kCorrupt, file.path.string() + " is shorter than what was stored in it"};
    out = out.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
  return {};
}

Result<void> write_at(const File& file, int fd, std::uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return system_error("cannot write", file.path, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
  return {};
}

Result<void> label(File& file, const ObjectId& id) {
  const Header header{kMagic, id};
  FEDGE_TRY_VOID(write_at(file, file.fd(), 0, std::as_bytes(std::span(&header, 1))));
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
      FEDGE_TRY(file, take_up(entries->path()));
      if (file) {
        found.emplace_back(changed, std::move(*file));
      } else if (::unlink(entries->path().c_str()) != 0) {
        return system_error("cannot remove", entries->path(), errno);
      }
    }
    if (error) return system_error("cannot list", directory_, error.value());
    std::ranges::sort(found, {}, [](const auto& entry) { return std::pair(entry.first, entry.second.path); });
    const std::lock_guard lock(mutex_);
    for (auto& [changed, file] : found) {
      idle_ += file.size;
      spares_.push_back(std::move(file));
    }
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
    while (!reserved && reserved.error().code == ErrorCode::kResource && !spares_.empty() && may_drop()) {
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
  Result<std::optional<File>> revive(const ObjectId& id, std::uint64_t size) {
    const std::lock_guard lock(mutex_);
    const auto known = std::ranges::find_if(
        spares_, [&](const File& spare) { return spare.id == id && spare.size >= size; });
    if (known == spares_.end()) return std::optional<File>();
    FEDGE_TRY(file, open_spare(known));
    if (!file) return std::optional<File>();
    used_ += file->size;
    ::futimens(file->fd(), nullptr);  // for a later process, which goes by it to tell the oldest
    return file;
  }

  void give_back(File file) {
    file.descriptor.reset();
    const std::lock_guard lock(mutex_);
    used_ -= file.size;
    if (closed_) return;
    idle_ += file.size;
    spares_.push_back(std::move(file));
    drop_spares();
  }

  void settle() {
    const std::lock_guard lock(mutex_);
    settled_ = true;
    drop_spares();
  }

  // What comes back from now on has not been removed: a later process may want it.
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }

  Result<void> sync(File& file, int fd) const {
    if (::fdatasync(fd) != 0) return system_error("cannot make durable", file.path, errno);
    if (file.linked) return {};
    FEDGE_TRY_VOID(sync_directory(directory_));
    file.linked = true;
    return {};
  }

 private:
  // None if it cannot be an object's. An error may pass, and the file may be wanted: nothing is removed for
  // it.
  Result<std::optional<File>> take_up(const std::filesystem::path& path) {
    if (!options_.durable) return std::optional<File>();
    struct stat info {};
    if (::lstat(path.c_str(), &info) != 0) return system_error("cannot look at", path, errno);
    if (!S_ISREG(info.st_mode) || static_cast<std::uint64_t>(info.st_size) < kHeaderSize)
      return std::optional<File>();
    File file;
    file.path = path;
    file.keep = true;
    FEDGE_TRY(opened, open_file(file));
    Header header;
    FEDGE_TRY_VOID(read_at(file, opened->fd, 0, std::as_writable_bytes(std::span(&header, 1))));
    if (header.magic != kMagic) return std::optional<File>();
    file.size = static_cast<std::uint64_t>(info.st_size) - kHeaderSize;
    file.id = header.id;
    std::uint64_t number = 0;
    const std::string stem = path.stem().string();
    if (std::from_chars(stem.data(), stem.data() + stem.size(), number).ec == std::errc())
      next_name_ = std::max(next_name_, number + 1);
    return std::optional<File>(std::move(file));
  }

  // A spare that is large enough and leaves the bound alone, else a new file. While what an earlier process
  // left may still be wanted, none is written over as long as there is room.
  Result<File> take_spare(std::uint64_t size) {
    const std::uint64_t room = options_.max_bytes - used_;
    const bool may_write_over = settled_ || (may_drop() && (idle_ > room || size > room - idle_));
    while (may_write_over) {
      const auto best = best_spare(size, room);
      if (best == spares_.end()) break;
      FEDGE_TRY(file, open_spare(best));
      if (file) return std::move(*file);
    }
    // Instead of the oldest spare, which was too small.
    if (settled_ && !spares_.empty()) drop_oldest_spare();
    File file;
    const auto path = directory_ / (std::to_string(next_name_++) + kExtension);
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) return system_error("cannot create", path, errno);
    file.descriptor = std::make_shared<const Descriptor>(fd);
    file.path = path;
    file.keep = options_.durable;
    return file;
  }

  // The smallest that is large enough; of those the oldest.
  std::deque<File>::iterator best_spare(std::uint64_t size, std::uint64_t room) {
    auto best = spares_.end();
    for (auto spare = spares_.begin(); spare != spares_.end(); ++spare) {
      if (spare->size < size || spare->size > room) continue;
      if (best == spares_.end() || spare->size < best->size) best = spare;
      if (best->size == size) break;
    }
    return best;
  }
  // None if somebody has removed it; after another error it stays a spare.
  Result<std::optional<File>> open_spare(std::deque<File>::iterator spare) {
    auto opened = open_file(*spare);
    if (!opened && opened.error().code != ErrorCode::kNotFound) return opened.error();
    std::optional<File> file = withdraw(spare);
    if (!opened) return std::optional<File>();
    file->descriptor = std::move(*opened);
    return file;
  }
  File withdraw(std::deque<File>::iterator spare) {
    File file = std::move(*spare);
    spares_.erase(spare);
    idle_ -= file.size;
    return file;
  }

  // Nobody will ask for what an earlier process left, or he can do without.
  bool may_drop() const { return settled_ || !options_.all_wanted; }
  // Spares count towards the bound as well, but give way to objects; the oldest first. What is free on the
  // disk must not be less than what they hold.
  void drop_spares() {
    if (!may_drop()) return;
    const std::uint64_t room = options_.max_bytes - std::min<std::uint64_t>(used_, options_.max_bytes);
    const std::uint64_t kept = settled_ ? std::min(room, free_on_disk()) : room;
    while (idle_ > kept) drop_oldest_spare();
  }
  void drop_oldest_spare() {
    File oldest = withdraw(spares_.begin());
    oldest.keep = false;
  }
  std::uint64_t free_on_disk() const {
    struct statvfs disk {};
    if (::statvfs(directory_.c_str(), &disk) != 0) return 0;
    return std::uint64_t{disk.f_bavail} * disk.f_frsize;
  }

  std::mutex mutex_;
  std::filesystem::path directory_;
  FileStoreOptions options_;
  bool settled_;
  bool closed_ = false;
  std::uint64_t used_ = 0;  // on disk, by files of objects
  std::uint64_t next_name_ = 1;
  // Files of objects that are gone, kept to be written over, the oldest first: to fill pages that are there
  // already takes a third of the time, and neither making nor syncing the file concerns the directory.
  std::deque<File> spares_;
  std::uint64_t idle_ = 0;  // on disk, by them
};

class FileObject final : public ObjectBase {
 public:
  FileObject(const Manifest& manifest, File file, std::shared_ptr<FilePool> pool)
      : ObjectBase(manifest), file_(std::move(file)), pool_(std::move(pool)) {}
  ~FileObject() override { pool_->give_back(std::move(file_)); }

  Result<void> sync() override {
    FEDGE_TRY(descriptor, opened());
    return pool_->sync(file_, descriptor->fd);
  }
  void rest() override {
    const std::lock_guard lock(mutex_);
    file_.descriptor.reset();
  }
  Result<void> label(const ObjectId& id) { return protocol::label(file_, id); }

 private:
  Result<std::shared_ptr<const Descriptor>> opened() const {
    const std::lock_guard lock(mutex_);
    return open_file(file_);
  }
  Result<void> load(std::uint64_t offset, std::span<std::byte> out) override {
    FEDGE_TRY(descriptor, opened());
    return read_at(file_, descriptor->fd, kHeaderSize + offset, out);
  }
  Result<void> save(std::uint64_t offset, std::span<const std::byte> bytes) override {
    FEDGE_TRY(descriptor, opened());
    return write_at(file_, descriptor->fd, kHeaderSize + offset, bytes);
  }

  mutable std::mutex mutex_;  // of the file's descriptor
  File file_;
  std::shared_ptr<FilePool> pool_;
};

class FileStore final : public StoreBase {
 public:
  explicit FileStore(std::shared_ptr<FilePool> pool) : pool_(std::move(pool)) {}
  ~FileStore() override { pool_->close(); }
  void settle() override { pool_->settle(); }

 private:
  Result<std::shared_ptr<ObjectBase>> allocate(const Manifest& manifest) override {
    FEDGE_TRY(file, pool_->take(manifest.payload_size));
    return std::shared_ptr<ObjectBase>(std::make_shared<FileObject>(manifest, std::move(file), pool_));
  }
  Result<std::shared_ptr<ObjectBase>> revive(const Manifest& manifest) override {
    FEDGE_TRY(file, pool_->revive(manifest.id(), manifest.payload_size));
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
