// FilePool: the files of a file store, one for each object; some are kept for reuse. To overwrite existing
// pages takes a third of the time of a new file, and neither creation nor sync touches the directory.
// Objects return their files from any thread, and may outlive the store. Private to the file store.
#pragma once

#include <array>
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

inline constexpr const char* kPoolExtension = ".chunks";
// A file begins with a page that names its object, so that a later process can use it again. The name is a
// hint: the chunks' hashes decide.
inline constexpr std::uint64_t kPoolHeaderSize = 4096;
struct PoolHeader {
  std::array<char, 8> magic{};
  ObjectId id{};
};
static_assert(sizeof(PoolHeader) == 40);
inline constexpr std::array<char, 8> kPoolMagic{'F', 'E', 'D', 'G', 'E', 'O', 'B', '1'};

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

  // The open descriptor, or a newly opened one after rest().
  Result<Open> open() const;
  // Reads from the payload. kCorrupt if the file is too short.
  Result<void> read(const Descriptor& open, std::uint64_t offset, std::span<std::byte> out) const;
  Result<void> write(const Descriptor& open, std::uint64_t offset, std::span<const std::byte> bytes) const;
  // Writes the id of the payload's object into the file's header.
  Result<void> label(const ObjectId& id);
  // Closes the file.
  void rest() { descriptor_.reset(); }

 private:
  friend class FilePool;
  void swap(PoolFile& other) noexcept;
  Result<void> reserve(std::uint64_t size);

  Open descriptor_;  // null after rest()
  std::filesystem::path path_;
  std::uint64_t size_ = 0;      // of payload, allocated on disk
  std::optional<ObjectId> id_;  // as in the file's header
  bool linked_ = false;         // its name in the directory is durable
  bool keep_ = false;           // when the process ends, instead of deleting it
  bool inherited_ = false;      // left by an earlier process and not used since
};

class FilePool {
 public:
  FilePool(std::filesystem::path directory, const FileStoreOptions& options)
      : directory_(std::move(directory)), options_(options), settled_(!options.durable) {}

  // Takes over the files that an earlier process left in the directory; ignores files of other types.
  Result<void> open();
  // A file for a payload of this size; its earlier contents are void.
  Result<PoolFile> take(std::uint64_t size);
  // The file of an earlier object with this id, if it still exists and is large enough.
  Result<std::optional<PoolFile>> revive(const ObjectId& id, std::uint64_t size);
  void give_back(PoolFile file);
  // Makes the written data durable.
  Result<void> sync(PoolFile& file, const PoolFile::Descriptor& open) const;
  // As in ChunkStore.
  void settle();
  void trim();
  // Objects returned after this keep their files: they were not removed, and a later process may need them.
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
  // The object will not be requested again, or the caller can do without it.
  bool may_drop(const PoolFile& spare) const { return settled_ || !options_.all_wanted || !spare.inherited_; }
  bool drop_oldest_spare();
  void drop_spares();
  std::uint64_t free_on_disk() const;

  std::mutex mutex_;
  std::filesystem::path directory_;
  FileStoreOptions options_;
  bool settled_;
  bool closed_ = false;
  std::uint64_t used_ = 0;  // on disk, by objects
  std::uint64_t next_name_ = 1;
  std::deque<PoolFile> spares_;  // unused files, oldest first
  std::uint64_t idle_ = 0;       // on disk, by spares
};

}  // namespace fedge::protocol
