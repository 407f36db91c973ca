// RunState, part 2: checkpoints.
#include <algorithm>
#include <utility>

#include "core/crypto/sha256.h"
#include "server/run_state.h"
#include "server/store/saved_state.h"

namespace fedge::server {

Result<std::string> RunState::save() {
  SavedState state{
      .participation = participation_.counts(), .charges = ledger_.charges(), .statistics = sums_.save()};
  const std::vector<protocol::ObjectId> former = std::exchange(memories_, {});
  for (auto& [id, entry] : tracks_) {
    FEDGE_TRY(saved, entry.model.save());
    SavedTrack track{.id = id, .turn = entry.turn, .hash = saved.hash, .model = saved.model->manifest()};
    if (saved.control) track.control = saved.control->manifest();
    if (saved.memory) track.memory = saved.memory->manifest();
    if (saved.memory) memories_.push_back(saved.memory->manifest().id());
    state.tracks.push_back(std::move(track));
  }
  for (const protocol::ObjectId& id : former)
    if (std::ranges::find(memories_, id) == memories_.end()) store_->remove(id);
  if (config_->selection.on()) {
    state.progress.emplace(SavedProgress{.state = progress_.state()});
    for (const auto& [track, object] : best_) state.progress->models[track] = object->manifest();
  }
  return encode_state(state);
}

std::vector<std::shared_ptr<protocol::StoredObject>> RunState::saved_objects() const {
  std::vector<std::shared_ptr<protocol::StoredObject>> objects;
  for (const auto& [id, entry] : tracks_) {
    objects.push_back(entry.model.object());
    if (entry.model.control_object()) objects.push_back(entry.model.control_object());
  }
  for (const protocol::ObjectId& id : memories_) objects.push_back(store_->find(id));
  if (config_->selection.on())
    for (const auto& [track, object] : best_) objects.push_back(object);
  return objects;
}

Result<std::shared_ptr<protocol::StoredObject>> RunState::take_up(const protocol::Manifest& manifest) const {
  FEDGE_TRY(object, store_->create(manifest));
  if (!object->complete())
    return Error{
        ErrorCode::kCorrupt,
        "object " + short_hex(manifest.id()) +
            " of the last checkpoint is missing or damaged; it was in a file of chunks/models in the "
            "run's directory; restore the data directory from a backup"};
  return object;
}

Result<void> RunState::restore_progress(const std::optional<SavedProgress>& saved) {
  if (!config_->selection.on()) return {};
  if (!saved)
    return Error{ErrorCode::kCorrupt,
                 "the checkpoint lacks the best results so far (run.keep_best, run.stop_when)"};
  progress_.restore(saved->state);
  for (const auto& [track, manifest] : saved->models) {
    FEDGE_TRY(object, take_up(manifest));
    const bool owned = std::ranges::any_of(tracks_, [id = manifest.id()](const auto& each) {
      return each.second.model.object()->manifest().id() == id;
    });
    if (!owned) store_->remove(manifest.id());
    best_.emplace(track, std::move(object));
  }
  return {};
}

Result<void> RunState::restore(std::string_view saved, const Descriptions& descriptions) {
  FEDGE_TRY(state, decode_state(saved));
  if (state.tracks.empty() || state.participation.size() < participation_.expected())
    return Error{ErrorCode::kCorrupt, "the checkpoint belongs to another run"};
  const run::TrackModel parent = std::move(tracks_.begin()->second.model);
  tracks_.clear();
  for (const SavedTrack& track : state.tracks) {
    run::TrackModel::Saved objects{.hash = track.hash};
    FEDGE_TRY(model, take_up(track.model));
    objects.model = std::move(model);
    if (track.control) {
      FEDGE_TRY(control, take_up(*track.control));
      objects.control = std::move(control);
    }
    if (track.memory) {
      FEDGE_TRY(memory, take_up(*track.memory));
      objects.memory = std::move(memory);
      memories_.push_back(track.memory->id());
    }
    FEDGE_TRY(restored, parent.restored(objects));
    const auto description = descriptions.find(track.id);
    tracks_.emplace(
        track.id, TrackEntry{std::move(restored),
                             description == descriptions.end() ? nullptr : description->second, track.turn});
  }
  FEDGE_TRY_VOID(ledger_.take_up(std::move(state.charges)));
  FEDGE_TRY_VOID(sums_.restore(std::move(state.statistics)));
  FEDGE_TRY_VOID(restore_progress(state.progress));
  participation_ = Participation(participation_.expected(), std::move(state.participation));
  const auto& initial = parent.object();
  if (std::ranges::none_of(tracks_, [&](const auto& each) { return each.second.model.object() == initial; }))
    store_->remove(initial->manifest().id());
  return {};
}

}  // namespace fedge::server
