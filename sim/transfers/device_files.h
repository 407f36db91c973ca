// DeviceFiles: which chunks of models a virtual device has on its disk, by the rules of the client's
// TaskFiles. A lost connection or a power cut repeats no download. A model stays until its update is kept or
// another model is fetched. A model that is mostly the same for the next task (adapters) stays until the next
// one has taken over its chunks, and one that is exchanged with other clients until the next one is known.
// The cache has room for all of them. Memory: one bit for each chunk.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "core/ids.h"
#include "protocol/chunks/manifest.h"
#include "swarm/chunk_set.h"

namespace fedge::sim {

class DeviceFiles {
 public:
  using Manifest = std::shared_ptr<const protocol::Manifest>;
  // Names the files that a task needs.
  struct Needed {
    Manifest model;
    std::vector<bool> chunks;  // of the model; empty: all
    Manifest control = {};     // null without one
    bool frozen = false;       // most of the model stays constant
  };

  // Begins a download, or continues one; removes what the task does not need.
  void begin(const Needed& needed);
  // Chunks of the model that are on the disk, and those that the task needs.
  const swarm::ChunkSet& held() const { return model_->held; }
  const swarm::ChunkSet& wanted() const { return model_->wanted; }
  // Returns the bytes on a link of all needed chunks that are missing.
  Bytes missing() const;
  // The first of the missing chunks have arrived, as far as these bytes on a link contain them.
  void arrived(Bytes bytes);
  // These chunks of the model have arrived.
  void arrived(const swarm::ChunkSet& chunks) { model_->held.add_all(chunks); }
  // Everything that the task needs has arrived.
  void completed();
  // The update is on the disk, so the model is released. Returns whether anything is left. `stays`: the model
  // is exchanged with other clients, or trained next.
  bool update_kept(bool stays = false);
  // The process has started again: it takes over no chunks of former models.
  void restarted();

 private:
  struct Object {
    Manifest manifest;
    swarm::ChunkSet held;
    swarm::ChunkSet wanted;
  };
  static bool holds(const std::optional<Object>& object, const Manifest& manifest);
  static Object place(std::optional<Object>&& before, const Manifest& manifest);

  std::optional<Object> model_;
  std::optional<Object> control_;
  std::optional<Object> former_;
  // A model that stays after its task, as long as other devices have it too.
  std::weak_ptr<const protocol::Manifest> staying_;
  swarm::ChunkSet staying_chunks_;
  bool keeps_former_ = false;
};

}  // namespace fedge::sim
