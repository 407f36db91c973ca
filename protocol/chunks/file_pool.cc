#include "protocol/chunks/file_pool.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <utility>

#include "core/platform/files.h"
#include "protocol/chunks/stored_object.h"

namespace fedge::protocol {
namespace {

// A cache keeps the files of this many removed objects while it has room, in case a task is assigned again.
constexpr std::ptrdiff_t kRecentSpares = 2;

Result<void> read_at(const std::filesystem::path& path, int fd, std::uint64_t offset,
                     std::span<std::byte> out) {
  while (!out.empty()) {
    const ssize_t got = ::pread(fd, out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error("cannot read", path, errno);
    if (got == 0)
      return Error{ErrorCode::kCorrupt,
                   path.string() + " is truncated: it is shorter than the data stored in it"};
    out = out.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
  return {};
}

Result<void> write_at(const std::filesystem::path& path, int fd, std::uint64_t offset,
                      std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return system_error("cannot write", path, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
  return {};
}

}  // namespace

PoolFile::Descriptor::~Descriptor() { ::close(fd); }

PoolFile::~PoolFile() {
  if (!keep_ && !path_.empty()) ::unlink(path_.c_str());
}

void PoolFile::swap(PoolFile& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(path_, other.path_);
  std::swap(size_, other.size_);
  std::swap(id_, other.id_);
  std::swap(linked_, other.linked_);
  std::swap(keep_, other.keep_);
  std::swap(inherited_, other.inherited_);
}

Result<PoolFile::Open> PoolFile::open() const {
  if (descriptor_) return descriptor_;
  const int fd = ::open(path_.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return system_error("cannot open", path_, errno);
  return std::make_shared<const Descriptor>(fd);
}

Result<void> PoolFile::read(const Descriptor& open, std::uint64_t offset, std::span<std::byte> out) const {
  return read_at(path_, open.fd, kPoolHeaderSize + offset, out);
}

Result<void> PoolFile::write(const Descriptor& open, std::uint64_t offset,
                             std::span<const std::byte> bytes) const {
  return write_at(path_, open.fd, kPoolHeaderSize + offset, bytes);
}

Result<void> PoolFile::label(const ObjectId& id) {
  const PoolHeader header{kPoolMagic, id};
  FEDGE_TRY_VOID(write_at(path_, descriptor_->fd, 0, std::as_bytes(std::span(&header, 1))));
  id_ = id;
  return {};
}

// Reserves the space now, so that a full disk shows here and not in the middle of a transfer.
Result<void> PoolFile::reserve(std::uint64_t size) {
  if (size_ >= size) return {};
  const auto length = static_cast<off_t>(kPoolHeaderSize + size);
  int error = ::fallocate(descriptor_->fd, 0, 0, length) == 0 ? 0 : errno;
  if (error == EOPNOTSUPP) error = ::ftruncate(descriptor_->fd, length) == 0 ? 0 : errno;
  if (error != 0) return system_error("cannot reserve " + std::to_string(size) + " bytes for", path_, error);
  size_ = size;
  return {};
}

Result<void> FilePool::open() {
  std::error_code error;
  std::filesystem::directory_iterator entries(directory_, error);
  std::vector<std::pair<std::filesystem::file_time_type, PoolFile>> found;
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    if (entries->path().extension() != kPoolExtension) continue;
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
  std::ranges::sort(found, {}, [](const auto& entry) { return std::pair(entry.first, entry.second.path_); });
  const std::lock_guard lock(mutex_);
  for (auto& [changed, file] : found) {
    idle_ += file.size_;
    spares_.push_back(std::move(file));
  }
  drop_spares();
  return {};
}

// Nothing if the file cannot be an object's. Removes nothing on an error: it may be temporary.
Result<std::optional<PoolFile>> FilePool::take_up(const std::filesystem::path& path) {
  if (!options_.durable) return std::optional<PoolFile>();
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return system_error("cannot stat", path, errno);
  if (!S_ISREG(info.st_mode) || static_cast<std::uint64_t>(info.st_size) < kPoolHeaderSize)
    return std::optional<PoolFile>();
  PoolFile file;
  file.path_ = path;
  file.keep_ = true;
  file.inherited_ = true;
  FEDGE_TRY(opened, file.open());
  PoolHeader header;
  FEDGE_TRY_VOID(read_at(path, opened->fd, 0, std::as_writable_bytes(std::span(&header, 1))));
  if (header.magic != kPoolMagic) return std::optional<PoolFile>();
  file.size_ = static_cast<std::uint64_t>(info.st_size) - kPoolHeaderSize;
  file.id_ = header.id;
  std::uint64_t number = 0;
  const std::string stem = path.stem().string();
  if (std::from_chars(stem.data(), stem.data() + stem.size(), number).ec == std::errc())
    next_name_ = std::max(next_name_, number + 1);
  return std::optional<PoolFile>(std::move(file));
}

Result<PoolFile> FilePool::take(std::uint64_t size) {
  const std::lock_guard lock(mutex_);
  if (used_ > options_.max_bytes || size > options_.max_bytes - used_)
    return store_full(size, used_, options_.max_bytes);
  FEDGE_TRY(spare, take_spare(size));
  if (!spare) {
    // Drop the oldest spare, which was too small, for the new file.
    if (settled_) drop_oldest_spare();
    FEDGE_TRY(made, make_file());
    spare = std::move(made);
  }
  PoolFile file = std::move(*spare);
  auto reserved = file.reserve(size);
  // If the disk is full, drop old objects.
  while (!reserved && reserved.error().code == ErrorCode::kResource && drop_oldest_spare())
    reserved = file.reserve(size);
  if (!reserved) {
    file.keep_ = false;
    return reserved.error();
  }
  file.id_.reset();
  used_ += file.size_;
  drop_spares();
  return file;
}

// A spare that is large enough and keeps the store within its limit.
Result<std::optional<PoolFile>> FilePool::take_spare(std::uint64_t size) {
  for (auto best = best_spare(size); best != spares_.end(); best = best_spare(size)) {
    auto file = open_spare(best);
    if (file && *file) return std::move(*file);
    if (file) continue;
    if (file.error().code == ErrorCode::kResource) return file.error();
    (void)withdraw(best);  // the disk cannot read it: try another
  }
  return std::optional<PoolFile>();
}

Result<PoolFile> FilePool::make_file() {
  PoolFile file;
  const auto path = directory_ / (std::to_string(next_name_++) + kPoolExtension);
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return system_error("cannot create", path, errno);
  file.descriptor_ = std::make_shared<const PoolFile::Descriptor>(fd);
  file.path_ = path;
  file.keep_ = options_.durable;
  return file;
}

// The smallest spare that is large enough; among equals the oldest. Before settle() a spare that may still
// be requested is skipped: with all_wanted an earlier process's objects, else recent ones unless the cache
// is full.
FilePool::Spare FilePool::best_spare(std::uint64_t size) {
  const std::uint64_t room = options_.max_bytes - used_;
  const bool full = idle_ > room || size > room - idle_;
  auto best = spares_.end();
  for (auto spare = spares_.begin(); spare != spares_.end(); ++spare) {
    if (spare->size_ < size || spare->size_ > room) continue;
    const bool wanted = options_.all_wanted ? spare->inherited_ : !full && is_recent(spare);
    if (!settled_ && wanted) continue;
    if (best == spares_.end() || spare->size_ < best->size_) best = spare;
    if (best->size_ == size) break;
  }
  return best;
}

// Whether the spare's object may be requested again: it is an earlier process's or one of the last removed.
bool FilePool::is_recent(Spare spare) const {
  return spare->inherited_ || spares_.cend() - spare <= kRecentSpares;
}

Result<std::optional<PoolFile>> FilePool::revive(const ObjectId& id, std::uint64_t size) {
  const std::lock_guard lock(mutex_);
  const auto known = std::ranges::find_if(
      spares_, [&](const PoolFile& spare) { return spare.id_ == id && spare.size_ >= size; });
  if (known == spares_.end()) return std::optional<PoolFile>();
  FEDGE_TRY(file, open_spare(known));
  if (!file) return std::optional<PoolFile>();
  used_ += file->size_;
  ::futimens(file->descriptor_->fd, nullptr);  // a later process uses the time to find the oldest
  return file;
}

// Nothing if the file has been deleted; after another error it stays a spare.
Result<std::optional<PoolFile>> FilePool::open_spare(Spare spare) {
  auto opened = spare->open();
  if (!opened && opened.error().code != ErrorCode::kNotFound) return opened.error();
  std::optional<PoolFile> file = withdraw(spare);
  if (!opened) return std::optional<PoolFile>();
  file->descriptor_ = std::move(*opened);
  file->inherited_ = false;
  return file;
}

PoolFile FilePool::withdraw(Spare spare) {
  PoolFile file = std::move(*spare);
  spares_.erase(spare);
  idle_ -= file.size_;
  return file;
}

void FilePool::give_back(PoolFile file) {
  file.rest();
  const std::lock_guard lock(mutex_);
  used_ -= file.size_;
  if (closed_) return;
  idle_ += file.size_;
  spares_.push_back(std::move(file));
  drop_spares();
}

// The kernel reports a lost page only once: a second fdatasync() that succeeds would prove nothing.
Result<void> FilePool::sync(PoolFile& file, const PoolFile::Descriptor& open) const {
  if (::fdatasync(open.fd) != 0)
    return Error{ErrorCode::kUnavailable, system_error("cannot sync", file.path_, errno).message};
  if (file.linked_) return {};
  if (const auto synced = sync_directory(directory_); !synced)
    return Error{ErrorCode::kUnavailable, synced.error().message};
  file.linked_ = true;
  return {};
}

void FilePool::settle() {
  const std::lock_guard lock(mutex_);
  settled_ = true;
  drop_spares();
}

void FilePool::trim() {
  const std::lock_guard lock(mutex_);
  drop_spares();
}

// Keeps an earlier process's files for the next process. Drops this process's spares, which would look like
// them but hold nothing that is needed.
void FilePool::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  if (settled_ || !options_.all_wanted) return;
  while (drop_oldest_spare()) {
  }
}

// False if no spare may be dropped.
bool FilePool::drop_oldest_spare() {
  const auto oldest =
      std::ranges::find_if(spares_, [this](const PoolFile& spare) { return may_drop(spare); });
  if (oldest == spares_.end()) return false;
  PoolFile file = withdraw(oldest);
  file.keep_ = false;
  return true;
}

// Keeps the spares within the limit and, once settled, not larger than the free space on the disk. Objects
// have priority; the oldest spares are dropped first.
void FilePool::drop_spares() {
  const std::uint64_t room = options_.max_bytes - std::min<std::uint64_t>(used_, options_.max_bytes);
  const std::uint64_t kept = settled_ ? std::min(room, free_on_disk()) : room;
  while (idle_ > kept && drop_oldest_spare()) {
  }
}

std::uint64_t FilePool::free_on_disk() const {
  struct statvfs disk {};
  if (::statvfs(directory_.c_str(), &disk) != 0) return 0;
  return std::uint64_t{disk.f_bavail} * disk.f_frsize;
}

}  // namespace fedge::protocol
