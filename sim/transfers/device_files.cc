#include "sim/transfers/device_files.h"

#include <utility>

#include "sim/transfers/transfer_size.h"

namespace fedge::sim {

bool DeviceFiles::holds(const std::optional<Object>& object, const Manifest& manifest) {
  return object && manifest && (object->manifest == manifest || *object->manifest == *manifest);
}

DeviceFiles::Object DeviceFiles::place(std::optional<Object>&& before, const Manifest& manifest) {
  if (holds(before, manifest)) return std::move(*before);
  return {manifest, swarm::ChunkSet(manifest->chunk_count()), swarm::ChunkSet()};
}

void DeviceFiles::begin(const Needed& needed) {
  if (keeps_former_ && model_ && !holds(model_, needed.model)) former_ = std::move(model_);
  if (!needed.frozen) former_.reset();
  keeps_former_ = needed.frozen;
  const Manifest staying = std::exchange(staying_, {}).lock();
  if (staying && *staying == *needed.model)
    model_ = Object{needed.model, std::move(staying_chunks_), swarm::ChunkSet()};
  else
    model_ = place(holds(former_, needed.model) ? std::exchange(former_, {}) : std::exchange(model_, {}),
                   needed.model);
  const std::size_t chunks = needed.model->chunk_count();
  model_->wanted = swarm::ChunkSet(chunks);
  for (std::size_t i = 0; i < chunks; ++i) {
    if (needed.chunks.empty() || needed.chunks[i]) model_->wanted.add(i);
    if (former_ && former_->held.has(i) && former_->manifest->chunks[i] == needed.model->chunks[i])
      model_->held.add(i);
  }
  former_.reset();
  if (!needed.control) return control_.reset();
  control_ = place(std::exchange(control_, {}), needed.control);
  control_->wanted = swarm::ChunkSet::full(needed.control->chunk_count());
}

Bytes DeviceFiles::missing() const {
  Bytes bytes;
  for (const auto* object : {&model_, &control_})
    if (*object)
      (*object)->wanted.for_each_without((*object)->held, [&](std::size_t chunk) {
        bytes += transfer_size_of(*(*object)->manifest, chunk);
      });
  return bytes;
}

void DeviceFiles::arrived(Bytes bytes) {
  for (auto* object : {&model_, &control_}) {
    if (!*object) continue;
    const swarm::ChunkSet before = (*object)->held;
    (*object)->wanted.for_each_without(before, [&](std::size_t chunk) {
      const Bytes size = transfer_size_of(*(*object)->manifest, chunk);
      if (size > bytes) return void(bytes = {});
      bytes = bytes - size;
      (*object)->held.add(chunk);
    });
  }
}

void DeviceFiles::completed() {
  for (auto* object : {&model_, &control_})
    if (*object) (*object)->held.add_all((*object)->wanted);
}

bool DeviceFiles::update_kept(bool stays) {
  stays = stays && !keeps_former_ && model_;
  staying_ = stays ? model_->manifest : nullptr;
  staying_chunks_ = stays ? std::move(model_->held) : swarm::ChunkSet();
  former_ = keeps_former_ ? std::exchange(model_, {}) : std::nullopt;
  model_.reset();
  control_.reset();
  return former_ || stays;
}

void DeviceFiles::restarted() {
  if (!model_) model_ = std::exchange(former_, {});
  former_.reset();
  staying_.reset();
  keeps_former_ = false;
}

}  // namespace fedge::sim
