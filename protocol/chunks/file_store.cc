#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "core/platform/files.h"
#include "protocol/chunks/file_pool.h"
#include "protocol/chunks/stored_object.h"

namespace fedge::protocol {
namespace {

class FileObject final : public ObjectBase {
 public:
  FileObject(const Manifest& manifest, PoolFile file, std::shared_ptr<FilePool> pool)
      : ObjectBase(manifest), file_(std::move(file)), pool_(std::move(pool)) {}
  ~FileObject() override { pool_->give_back(std::move(file_)); }

  Result<void> sync() override {
    FEDGE_TRY(descriptor, opened());
    return pool_->sync(file_, *descriptor);
  }
  void rest() override {
    const std::lock_guard lock(mutex_);
    file_.rest();
  }
  Result<void> label(const ObjectId& id) { return file_.label(id); }

 private:
  Result<PoolFile::Open> opened() const {
    const std::lock_guard lock(mutex_);
    return file_.open();
  }
  Result<void> load(std::uint64_t offset, std::span<std::byte> out) override {
    FEDGE_TRY(descriptor, opened());
    return file_.read(*descriptor, offset, out);
  }
  Result<void> save(std::uint64_t offset, std::span<const std::byte> bytes) override {
    FEDGE_TRY(descriptor, opened());
    return file_.write(*descriptor, offset, bytes);
  }

  mutable std::mutex mutex_;  // guards the file's descriptor
  PoolFile file_;
  std::shared_ptr<FilePool> pool_;
};

class FileStore final : public StoreBase {
 public:
  explicit FileStore(std::shared_ptr<FilePool> pool) : pool_(std::move(pool)) {}
  ~FileStore() override { pool_->close(); }
  void settle() override { pool_->settle(); }
  void trim() override { pool_->trim(); }

 private:
  Result<std::shared_ptr<ObjectBase>> allocate(const Manifest& manifest) override {
    FEDGE_TRY(file, pool_->take(manifest.payload_size));
    return std::shared_ptr<ObjectBase>(std::make_shared<FileObject>(manifest, std::move(file), pool_));
  }
  // Several files may have the object's name: a process that was killed had built it, or was building another
  // one in a file with this name. Takes the one with the most chunks.
  Result<std::shared_ptr<ObjectBase>> revive(const Manifest& manifest) override {
    std::vector<std::shared_ptr<FileObject>> found;
    while (found.empty() || !found.back()->complete()) {
      FEDGE_TRY(file, pool_->revive(manifest.id(), manifest.payload_size));
      if (!file) break;
      found.push_back(std::make_shared<FileObject>(manifest, std::move(*file), pool_));
      FEDGE_TRY_VOID(found.back()->find_chunks());
    }
    const auto best =
        std::ranges::max_element(found, {}, [](const auto& each) { return each->chunks_here(); });
    return best == found.end() ? nullptr : std::shared_ptr<ObjectBase>(*best);
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
