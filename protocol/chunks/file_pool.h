// Private to the file store: its files, one an object, of which some are kept to be written over: to fill
// pages that are there already takes a third of the time, and neither making nor syncing the file concerns
// the directory. Objects come back to the pool from any thread, and may outlive the store.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "core/result.h"
#include "protocol/chunks/chunk_store.h"

namespace fedge::protocol {

class PoolFile {
 public:
  struct Descriptor {
    explicit Descriptor(int number) : fd(number) {}
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    ~Descriptor();
    const int fd;
  };
  using Open = std::shared_ptr<const Descriptor>;

  PoolFile() = default;
  PoolFile(PoolFile&& other) noexcept { swap(other); }
  PoolFile& operator=(PoolFile&& other) noexcept {
    swap(other);
    return *this;
  }
  ~PoolFile();

  // What the file is open with, or a descriptor of the caller's own while it rests.
  Result<Open> open() const;
  // Of the payload. kCorrupt if the file ends before.
  Result<void> read(const Descriptor& open, std::uint64_t offset, std::span<std::byte> out) const;
  Result<void> write(const Descriptor& open, std::uint64_t offset, std::span<const std::byte> bytes) const;
  // Writes into its header whose payload it holds.
  Result<void> label(const ObjectId& id);
  // Closes what is open for it.
  void rest() { descriptor_.reset(); }

 private:
  friend class FilePool;
  void swap(PoolFile& other) noexcept;
  Result<void> reserve(std::uint64_t size);

  Open descriptor_;  // null while it rests
  std::filesystem::path path_;
  std::uint64_t size_ = 0;      // of payload, allocated on disk
  std::optional<ObjectId> id_;  // that its header says
  bool linked_ = false;         // its name in the directory is durable
  bool keep_ = false;           // when the process ends
  bool inherited_ = false;      // an earlier process left it, and nobody has taken it up yet
};

class FilePool {
 public:
  FilePool(std::filesystem::path directory, const FileStoreOptions& options)
      : directory_(std::move(directory)), options_(options), settled_(!options.durable) {}

  // Takes over what a process before this one left in the directory; other files are not ours.
  Result<void> open();
  // For a payload of so many bytes; what the file says that it holds is no longer so.
  Result<PoolFile> take(std::uint64_t size);
  // The file that an object with this id was in, if it is still there and large enough.
  Result<std::optional<PoolFile>> revive(const ObjectId& id, std::uint64_t size);
  void give_back(PoolFile file);
  // When this returns, what has been written survives a power cut.
  Result<void> sync(PoolFile& file, const PoolFile::Descriptor& open) const;
  // ChunkStore's.
  void settle();
  void trim();
  // What comes back from now on has not been removed: a later process may want it.
  void close();

 private:
  using Spare = std::deque<PoolFile>::iterator;
  Result<std::optional<PoolFile>> take_up(const std::filesystem::path& path);
  Result<std::optional<PoolFile>> take_spare(std::uint64_t size);
  Result<PoolFile> make_file();
  Spare best_spare(std::uint64_t size);
  bool is_recent(Spare spare) const;
  Result<std::optional<PoolFile>> open_spare(Spare spare);
  PoolFile withdraw(Spare spare);
  // Nobody will ask for it, or he can do without.
  bool may_drop(const PoolFile& spare) const { return settled_ || !options_.all_wanted || !spare.inherited_; }
  bool drop_oldest_spare();
  void drop_spares();
  std::uint64_t free_on_disk() const;

  std::mutex mutex_;
  std::filesystem::path directory_;
  FileStoreOptions options_;
  bool settled_;
  bool closed_ = false;
  std::uint64_t used_ = 0;  // on disk, by files of objects
  std::uint64_t next_name_ = 1;
  std::deque<PoolFile> spares_;  // files of objects that are gone, the oldest first
  std::uint64_t idle_ = 0;       // on disk, by them
};

}  // namespace fedge::protocol
