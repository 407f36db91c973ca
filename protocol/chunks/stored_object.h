// Common parts of the memory store and the file store: an object's manifest, its stored chunks, and
// building an object from local data. Private to the chunk stores.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/check.h"
#include "protocol/chunks/chunk_store.h"
#include "protocol/limits.h"

namespace fedge::protocol {

class ObjectBase : public StoredObject {
 public:
  explicit ObjectBase(Manifest manifest)
      : manifest_(std::move(manifest)), present_(manifest_.chunk_count()) {}

  const Manifest& manifest() const final { return manifest_; }
  bool complete() const final { return present_count_ == present_.size(); }
  std::size_t chunks_here() const { return present_count_; }
  bool has(std::size_t chunk) const final { return chunk < present_.size() && present_[chunk]; }

  Result<void> read_part(std::size_t chunk, std::size_t from, std::span<std::byte> out) final {
    FEDGE_CHECK(chunk < present_.size() && from + out.size() <= manifest_.chunk_length(chunk),
                "no such chunk or length");
    if (!present_[chunk])
      return Error{ErrorCode::kNotFound, "chunk " + std::to_string(chunk) + " of object " +
                                             short_hex(manifest_.id()) + " has not been stored yet"};
    return load(offset(chunk) + from, out);
  }
  Result<void> write(std::size_t chunk, std::span<const std::byte> bytes) final {
    FEDGE_CHECK(chunk < present_.size() && bytes.size() == manifest_.chunk_length(chunk),
                "no such chunk or length");
    FEDGE_TRY_VOID(save(offset(chunk), bytes));
    if (!present_[chunk]) ++present_count_;
    present_[chunk] = true;
    return {};
  }

  Result<void> sync() override { return {}; }

  Result<void> read_bytes(std::uint64_t first, std::span<std::byte> out) final {
    FEDGE_CHECK(complete() && first + out.size() <= manifest_.payload_size,
                "a stretch of a complete payload");
    return load(first, out);
  }

  // Finds the chunks that are already stored: those whose hash matches. Errors are the disk's.
  Result<void> find_chunks() {
    AlignedBuffer<std::byte> buffer(manifest_.chunk_count() > 0 ? manifest_.chunk_length(0) : 0);
    for (std::size_t i = 0; i < manifest_.chunk_count(); ++i) {
      const auto bytes = buffer.span().first(manifest_.chunk_length(i));
      FEDGE_TRY_VOID(load(offset(i), bytes));
      if (sha256(std::span<const std::byte>(bytes)) != manifest_.chunks[i]) continue;
      present_[i] = true;
      ++present_count_;
    }
    return {};
  }

  // Fills every chunk and writes its hash into the manifest.
  Result<void> build(const std::function<Result<void>(std::size_t, std::span<std::byte>)>& fill) {
    AlignedBuffer<std::byte> buffer(manifest_.chunk_length(0));
    for (std::size_t i = 0; i < manifest_.chunk_count(); ++i) {
      const auto bytes = buffer.span().first(manifest_.chunk_length(i));
      FEDGE_TRY_VOID(fill(i, bytes));
      manifest_.chunks[i] = sha256(std::span<const std::byte>(bytes));
      FEDGE_TRY_VOID(write(i, bytes));
    }
    return {};
  }

 protected:
  virtual Result<void> load(std::uint64_t offset, std::span<std::byte> out) = 0;
  virtual Result<void> save(std::uint64_t offset, std::span<const std::byte> bytes) = 0;

 private:
  std::uint64_t offset(std::size_t chunk) const { return std::uint64_t{chunk} * manifest_.chunk_size; }

  Manifest manifest_;
  std::vector<bool> present_;
  std::size_t present_count_ = 0;
};

// Finds, creates and removes objects; a derived store only decides where an object's bytes are.
class StoreBase : public ChunkStore {
 public:
  Result<std::shared_ptr<StoredObject>> create(const Manifest& manifest) final {
    FEDGE_TRY_VOID(validate(manifest));
    const ObjectId id = manifest.id();
    if (auto known = find(id)) return known;
    FEDGE_TRY(object, revive(manifest));
    if (!object) {
      FEDGE_TRY(fresh, allocate(manifest));
      FEDGE_TRY_VOID(name(*fresh));
      object = std::move(fresh);
    }
    const std::lock_guard lock(mutex_);
    objects_[id] = object;
    return std::shared_ptr<StoredObject>(std::move(object));
  }

  Result<std::shared_ptr<StoredObject>> build(
      Manifest shape, const std::function<Result<void>(std::size_t, std::span<std::byte>)>& fill) final {
    FEDGE_CHECK(shape.chunk_size > 0, "a chunk size");
    shape.chunks.assign((shape.payload_size + shape.chunk_size - 1) / shape.chunk_size, Digest{});
    FEDGE_TRY_VOID(validate(shape));
    FEDGE_TRY(object, allocate(shape));
    FEDGE_TRY_VOID(object->build(fill));
    const ObjectId id = object->manifest().id();
    if (auto known = find(id); known && known->complete()) return known;
    FEDGE_TRY_VOID(name(*object));
    const std::lock_guard lock(mutex_);
    objects_[id] = object;
    return std::shared_ptr<StoredObject>(std::move(object));
  }

  std::shared_ptr<StoredObject> find(const ObjectId& id) final {
    const std::lock_guard lock(mutex_);
    const auto known = objects_.find(id);
    return known == objects_.end() ? nullptr : known->second;
  }
  void remove(const ObjectId& id) final {
    std::shared_ptr<ObjectBase> last;  // destroyed after the lock is released
    const std::lock_guard lock(mutex_);
    if (const auto known = objects_.find(id); known != objects_.end()) {
      last = std::move(known->second);
      objects_.erase(known);
    }
  }
  void settle() override {}
  void trim() override {}

 protected:
  // The object that an earlier process left; null if there is none.
  virtual Result<std::shared_ptr<ObjectBase>> revive(const Manifest&) {
    return std::shared_ptr<ObjectBase>();
  }
  // Called when the object's id is known.
  virtual Result<void> name(ObjectBase&) { return {}; }
  virtual Result<std::shared_ptr<ObjectBase>> allocate(const Manifest& manifest) = 0;

 private:
  std::mutex mutex_;
  std::map<ObjectId, std::shared_ptr<ObjectBase>> objects_;
};

inline Error store_full(std::uint64_t wanted, std::uint64_t used, std::uint64_t max_bytes) {
  return {ErrorCode::kResource, "no space for an object of " + std::to_string(wanted) +
                                    " bytes: " + std::to_string(used) + " of the " +
                                    std::to_string(max_bytes) + " bytes allowed are in use"};
}

}  // namespace fedge::protocol
