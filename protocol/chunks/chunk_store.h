// ChunkStore: keeps the chunks of objects (models, updates) in memory or in files. One object is one
// payload. Chunks may be written in any order, after they have been verified against the manifest. Several
// threads may use a store, but only one at a time an object (except read_bytes). Objects stay usable after
// the store is destroyed.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>

#include "core/aligned_buffer.h"
#include "core/result.h"
#include "protocol/chunks/manifest.h"

namespace fedge::protocol {

// Readable chunks, which a link serves to its peer.
class ChunkSource {
 public:
  virtual ~ChunkSource() = default;
  // Fills `out` with bytes of the chunk, beginning at offset `from`.
  virtual Result<void> read_part(std::size_t chunk, std::size_t from, std::span<std::byte> out) = 0;
  // Fills `out`, which must have the chunk's length.
  Result<void> read(std::size_t chunk, std::span<std::byte> out) { return read_part(chunk, 0, out); }
  // Called after a link has sent the chunk in a frame of this size; the link may have read parts of it
  // repeatedly.
  virtual void sent(std::size_t /*chunk*/, std::size_t /*frame_size*/) {}
};

// Where a link puts fetched chunks, already verified against the manifest.
class ChunkSink {
 public:
  virtual ~ChunkSink() = default;
  // True if this chunk need not be fetched, for example because it was stored before a disconnect.
  virtual bool has(std::size_t chunk) const = 0;
  // An error ends the fetch and is passed on to its caller.
  virtual Result<void> write(std::size_t chunk, std::span<const std::byte> bytes) = 0;
};

class StoredObject : public ChunkSource, public ChunkSink {
 public:
  virtual const Manifest& manifest() const = 0;
  virtual bool complete() const = 0;
  // Reads part of a complete object's payload, across chunk borders. From any thread.
  virtual Result<void> read_bytes(std::uint64_t offset, std::span<std::byte> out) = 0;
  // Makes the written chunks durable. After an error the file's contents are unknown, and a second sync()
  // that succeeds does not prove anything.
  virtual Result<void> sync() = 0;
  // Closes the file of an object that will not be read for a while; call sync() first. Reading reopens it.
  virtual void rest() {}
};

class ChunkStore {
 public:
  virtual ~ChunkStore() = default;
  // An empty object for this manifest, or the existing one with the same id. A durable store also keeps the
  // chunks of an earlier process's object whose hashes match.
  virtual Result<std::shared_ptr<StoredObject>> create(const Manifest& manifest) = 0;
  // Makes an object from local data: fill(i, bytes) produces chunk i, in ascending order, and the store
  // hashes it. `shape` is the manifest without chunk hashes. A file store never holds the whole payload in
  // memory. An error of `fill` removes the unfinished object.
  virtual Result<std::shared_ptr<StoredObject>> build(
      Manifest shape, const std::function<Result<void>(std::size_t, std::span<std::byte>)>& fill) = 0;
  virtual std::shared_ptr<StoredObject> find(const ObjectId& id) = 0;  // null if absent
  // Removes the object; its space is freed when the last user releases it.
  virtual void remove(const ObjectId& id) = 0;
  // Durable store: declares that every needed object of an earlier process has been created again. Until
  // then such objects and the two removed last stay for create() as long as there is room; the oldest are
  // dropped first. Afterwards all unused objects may be dropped.
  virtual void settle() = 0;
  // Drops files kept for reuse if other data has filled the disk.
  virtual void trim() = 0;
};

// Keeps everything in memory, at most `max_bytes` of payload; beyond that create() fails with kResource.
std::unique_ptr<ChunkStore> make_memory_chunk_store(std::size_t max_bytes);
struct FileStoreOptions {
  std::size_t max_bytes;  // of payload
  bool durable = false;   // keep objects across processes; else delete leftovers at opening
  // Until settle(), keep all objects of an earlier process and fail when the disk is full. Otherwise unused
  // objects are a cache.
  bool all_wanted = false;
};
// Keeps one file for each object in `directory` (created if absent). Reads and writes in place, so that the
// process holds no payload. Disk errors name the file.
Result<std::unique_ptr<ChunkStore>> open_file_chunk_store(const std::filesystem::path& directory,
                                                          const FileStoreOptions& options);

}  // namespace fedge::protocol
