// Where the chunks of objects (models, updates) are kept: in memory or in files. One object is one
// payload; chunks may be written in any order, each once verified against the manifest.
// A store may be used by several threads, an object by one at a time (but for read_bytes); objects may be
// used after the store is gone.
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

// Chunks that can be read: what a link serves to its peer.
class ChunkSource {
 public:
  virtual ~ChunkSource() = default;
  // Fills `out` with the chunk's bytes, from this one of them on.
  virtual Result<void> read_part(std::size_t chunk, std::size_t from, std::span<std::byte> out) = 0;
  // Fills `out`, which has the chunk's length.
  Result<void> read(std::size_t chunk, std::span<std::byte> out) { return read_part(chunk, 0, out); }
  // A link has written the chunk, in a frame of so many bytes. It may have read parts of it several times.
  virtual void sent(std::size_t /*chunk*/, std::size_t /*frame_size*/) {}
};

// Where a link puts the chunks it fetches, already verified against the manifest.
class ChunkSink {
 public:
  virtual ~ChunkSink() = default;
  // True if this chunk need not be fetched (already here from before a cut link).
  virtual bool has(std::size_t chunk) const = 0;
  // An error ends the fetch and reaches its caller as it is.
  virtual Result<void> write(std::size_t chunk, std::span<const std::byte> bytes) = 0;
};

class StoredObject : public ChunkSource, public ChunkSink {
 public:
  virtual const Manifest& manifest() const = 0;
  virtual bool complete() const = 0;
  // A stretch of the payload of a complete object, across chunk borders. From any thread.
  virtual Result<void> read_bytes(std::uint64_t offset, std::span<std::byte> out) = 0;
  // When this returns, what has been written survives a power cut. After an error nothing may be believed
  // of the file, and trying again proves nothing.
  virtual Result<void> sync() = 0;
  // Nobody reads it for a while: closes what is open for it, after sync(). Reading opens it again.
  virtual void rest() {}
};

class ChunkStore {
 public:
  virtual ~ChunkStore() = default;
  // An empty object for this manifest, or the one already there under the same id; a durable store also
  // takes up what an earlier process left of it: each chunk that has its hash.
  virtual Result<std::shared_ptr<StoredObject>> create(const Manifest& manifest) = 0;
  // Makes an object from data of our own: fill(i, bytes) produces chunk i, in ascending order; the
  // store hashes it on the way. `shape` is the manifest without chunk hashes. Never the whole
  // payload in memory (file store). An error of `fill` removes the half-made object.
  virtual Result<std::shared_ptr<StoredObject>> build(
      Manifest shape, const std::function<Result<void>(std::size_t, std::span<std::byte>)>& fill) = 0;
  virtual std::shared_ptr<StoredObject> find(const ObjectId& id) = 0;  // null if absent
  // Forgets the object; its space is freed when the last user lets go.
  virtual void remove(const ObjectId& id) = 0;
  // A durable store: what was wanted of an earlier process's objects has been taken up, the rest may go, and
  // so may what is removed from now on. Before, an earlier process's objects are kept as long as there is
  // room, and so are the two that were removed last, to be taken up by create(); the oldest give way first.
  virtual void settle() = 0;
  // What is kept to be written over gives way to whatever else has filled the disk since.
  virtual void trim() = 0;
};

// All in memory, at most `max_bytes` of payload; beyond that create() is kResource.
std::unique_ptr<ChunkStore> make_memory_chunk_store(std::size_t max_bytes);
struct FileStoreOptions {
  std::size_t max_bytes;  // of payload
  bool durable = false;   // objects outlive the process; else leftovers go when the directory is opened
  // Nothing of an earlier process gives way before settle(): a full disk is an error instead. Else what is
  // not in use is a cache.
  bool all_wanted = false;
};
// One file an object under `directory` (made if absent), read and written in place so that the process holds
// no payload. Disk errors name the file.
Result<std::unique_ptr<ChunkStore>> open_file_chunk_store(const std::filesystem::path& directory,
                                                          const FileStoreOptions& options);

}  // namespace fedge::protocol
