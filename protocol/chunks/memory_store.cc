#include <atomic>
#include <cstring>

#include "protocol/chunks/stored_object.h"

namespace fedge::protocol {
namespace {

using Used = std::atomic<std::uint64_t>;  // atomic: the last user of an object may run on any thread

class MemoryObject final : public ObjectBase {
 public:
  MemoryObject(const Manifest& manifest, std::shared_ptr<Used> used)
      : ObjectBase(manifest),
        used_(std::move(used)),
        bytes_(static_cast<std::size_t>(manifest.payload_size)) {
    *used_ += manifest.payload_size;
  }
  ~MemoryObject() override { *used_ -= manifest().payload_size; }

 private:
  Result<void> load(std::uint64_t offset, std::span<std::byte> out) override {
    std::memcpy(out.data(), bytes_.data() + offset, out.size());
    return {};
  }
  Result<void> save(std::uint64_t offset, std::span<const std::byte> bytes) override {
    std::memcpy(bytes_.data() + offset, bytes.data(), bytes.size());
    return {};
  }

  std::shared_ptr<Used> used_;
  AlignedBuffer<std::byte> bytes_;
};

class MemoryStore final : public StoreBase {
 public:
  explicit MemoryStore(std::size_t max_bytes) : max_bytes_(max_bytes) {}

 private:
  Result<std::shared_ptr<ObjectBase>> allocate(const Manifest& manifest) override {
    const std::uint64_t used = *used_;
    if (used > max_bytes_ || manifest.payload_size > max_bytes_ - used)
      return store_full(manifest.payload_size, used, max_bytes_);
    return std::shared_ptr<ObjectBase>(std::make_shared<MemoryObject>(manifest, used_));
  }

  std::uint64_t max_bytes_;
  std::shared_ptr<Used> used_ = std::make_shared<Used>(0);
};

}  // namespace

std::unique_ptr<ChunkStore> make_memory_chunk_store(std::size_t max_bytes) {
  return std::make_unique<MemoryStore>(max_bytes);
}

}  // namespace fedge::protocol
