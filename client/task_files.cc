#include "client/task_files.h"

#include <algorithm>
#include <string>
#include <utility>

#include "client/client_engine.h"
#include "client/prepared_run.h"
#include "protocol/chunks/chunk_selection.h"

namespace fedge::client {
namespace {

bool has(const std::shared_ptr<protocol::StoredObject>& object, const protocol::Manifest& manifest) {
  return object && object->manifest() == manifest;
}

// Copies consecutive values from `begin` on, except those of tensors that compact weights hold.
void copy_others(std::span<const float> values, std::size_t begin, ParameterVector& to) {
  for (const TensorInfo& tensor : to.layout().tensors()) {
    const std::size_t from = std::max(begin, tensor.offset);
    const std::size_t end = std::min(begin + values.size(), tensor.offset + tensor.size);
    if (from < end && !learn::CompactWeights::holds(tensor))
      std::copy_n(values.data() + (from - begin), end - from, to.values().data() + from);
  }
}

}  // namespace

std::filesystem::path chunk_cache(const std::filesystem::path& state_directory) {
  return state_directory / "chunks";
}

std::uint64_t chunk_cache_use(const std::filesystem::path& state_directory) {
  std::uint64_t used = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(chunk_cache(state_directory), error), end;
       !error && entry != end; entry.increment(error)) {
    std::error_code gone;
    const auto size = entry->file_size(gone);
    if (!gone) used += size;
  }
  return used;
}

Result<std::unique_ptr<TaskFiles>> TaskFiles::open(const std::filesystem::path& state_directory,
                                                   std::size_t max_bytes) {
  FEDGE_TRY(store, protocol::open_file_chunk_store(chunk_cache(state_directory),
                                                   {.max_bytes = max_bytes, .durable = true}));
  return std::unique_ptr<TaskFiles>(new TaskFiles(state_directory, std::move(store), max_bytes));
}

std::vector<TaskFiles::Update> TaskFiles::take_up(const std::function<void(const Event&)>& report) {
  std::vector<Update> updates;
  const auto drop = [&](const std::filesystem::path& file, const std::string& reason) {
    report(Event{Severity::kWarning, "update.dropped", {}}.with("reason", reason));
    std::error_code ignored;
    std::filesystem::remove(file, ignored);
  };
  // Earlier versions, limited to one run, kept the update in a file of this name.
  if (const auto old = directory_ / "pending"; std::filesystem::is_regular_file(old))
    drop(old, old.string() + " was written by an earlier version of this program");
  for (const auto& file : pending_updates(directory_)) {
    auto update =
        updates.size() < kMaxRuns
            ? take_up(file)
            : Error{ErrorCode::kResource,
                    file.string() + " belongs to a run beyond the maximum number of runs of a client"};
    if (update) {
      updates.push_back(std::move(*update));
    } else {
      drop(file, update.error().message);
    }
  }
  return updates;
}

Result<TaskFiles::Update> TaskFiles::take_up(const std::filesystem::path& file) {
  FEDGE_TRY(pending, read_pending_update(file));
  auto payload = store_->create(pending.offer.update);
  if (!payload) return payload.error().with_prefix("cannot read the payload of the pending update: ");
  if (!(*payload)->complete()) {
    store_->remove(pending.offer.update.id());
    return Error{ErrorCode::kCorrupt,
                 "the payload of the pending update is incomplete in " + chunk_cache(directory_).string()};
  }
  payloads_[pending.request.run] = *payload;
  return Update{std::move(pending), std::move(*payload)};
}

// Checks that the cache has room for `bytes` besides the updates and held objects, which must stay.
Result<void> TaskFiles::check_room(const char* what, std::uint64_t bytes) const {
  std::uint64_t kept = 0;
  for (const auto& [run, payload] : payloads_) kept += payload->manifest().payload_size;
  for (const auto& [run, objects] : held_)
    for (const auto& [id, object] : objects) kept += object->manifest().payload_size;
  if (bytes + kept <= max_bytes_) return {};
  const std::string beside = kept == 0 ? ""
                                       : " in addition to " + std::to_string(kept) +
                                             " bytes of updates in rounds that have not ended";
  return Error{ErrorCode::kResource, std::string(what) + " takes " + std::to_string(bytes) + " bytes" +
                                         beside + ", but the cache of this client holds only " +
                                         std::to_string(max_bytes_) +
                                         "; start the client with a larger --cache-mb"};
}

Result<TaskFiles::Download> TaskFiles::download(const ParameterLayout& layout, const Offer& offer) {
  const auto& [model, control, needed, frozen, present] = offer;
  for (const auto* offered : {&model, control ? &*control : &model})
    if (offered->layout != layout.hash() || offered->coverage != Coverage::all(layout.size()))
      return invalid("the offered model does not match the run's model");
  const std::uint64_t bytes = model.payload_size + (control ? control->payload_size : 0);
  FEDGE_TRY_VOID(check_room("the model", bytes));
  const auto wanted = [&](const std::shared_ptr<protocol::StoredObject>& object) {
    return has(object, model) || (control && has(object, *control));
  };
  if (keeps_former_ && download_.model && !wanted(download_.model)) release_download();
  for (const auto* object : {&download_.model, &download_.control})
    if (*object && !wanted(*object)) store_->remove((*object)->manifest().id());
  download_ = {};
  if (former_ && (!frozen || former_->manifest().layout != model.layout)) let_go_of_former();
  make_room(bytes);
  download_.model = has(present, model) ? present : nullptr;
  if (!download_.model) {
    FEDGE_TRY(first, store_->create(model));
    download_.model = std::move(first);
  }
  download_.wanted = protocol::chunks_of(model, needed);
  keeps_former_ = frozen && 3 * bytes <= max_bytes_;
  if (download_.model != present) {
    FEDGE_TRY_VOID(take_over(model));
  } else if (const auto former = std::exchange(former_, nullptr); former && former != present) {
    store_->remove(former->manifest().id());  // another thread may use `present`, so nothing is written to it
  }
  if (control) {
    FEDGE_TRY(second, store_->create(*control));
    download_.control = std::move(second);
  }
  return download_;
}

// Copies the chunks that the former model and this one have in common.
Result<void> TaskFiles::take_over(const protocol::Manifest& model) {
  const auto former = std::exchange(former_, nullptr);
  if (!former || former->manifest().id() == model.id()) return {};
  const protocol::Manifest& had = former->manifest();
  if (had.layout == model.layout && had.chunk_size == model.chunk_size) {
    AlignedBuffer<std::byte> buffer(model.chunk_length(0));
    for (std::size_t i = 0; i < model.chunk_count(); ++i) {
      if (had.chunks[i] != model.chunks[i] || download_.model->has(i) || !former->has(i)) continue;
      const auto chunk = buffer.span().first(model.chunk_length(i));
      if (!former->read(i, chunk) || !protocol::verify_chunk(model, i, chunk))
        continue;  // it will be fetched
      FEDGE_TRY_VOID(download_.model->write(i, chunk));
    }
  }
  store_->remove(had.id());
  return {};
}

// Reads a chunk of a model and checks it. Lets go of a model that is damaged.
Result<void> TaskFiles::read(const std::shared_ptr<protocol::StoredObject>& object, std::size_t chunk,
                             std::span<std::byte> bytes) {
  auto sound = object->read(chunk, bytes);
  if (sound) sound = protocol::verify_chunk(object->manifest(), chunk, bytes);
  if (sound) return sound;
  store_->remove(object->manifest().id());
  keeps_former_ = false;
  release_download();
  return Error{ErrorCode::kCorrupt,
               "the model in " + chunk_cache(directory_).string() + " is damaged: " + sound.error().message};
}

Result<ParameterVector> TaskFiles::load(const std::shared_ptr<protocol::StoredObject>& object,
                                        const std::shared_ptr<const ParameterLayout>& layout,
                                        const std::vector<bool>& wanted, learn::CompactWeights* base) {
  const protocol::Manifest& manifest = object->manifest();
  // Beside a base, the vector has little more than adapters and norms.
  ParameterVector vector(layout, base == nullptr ? Pages::kHuge : Pages::kSmall);
  AlignedBuffer<float> buffer(base == nullptr ? 0 : manifest.chunk_size / sizeof(float));
  for (std::size_t i = 0; i < manifest.chunk_count(); ++i) {
    if (!wanted.empty() && !wanted[i]) continue;
    const std::size_t begin = manifest.first_value(i);
    const std::size_t count = manifest.chunk_length(i) / sizeof(float);
    const auto chunk = (base == nullptr ? vector.values().subspan(begin) : buffer.span()).first(count);
    FEDGE_TRY_VOID(read(object, i, std::as_writable_bytes(chunk)));
    if (base == nullptr) continue;
    FEDGE_TRY_VOID(base->add(begin, chunk));
    copy_others(chunk, begin, vector);
  }
  return vector;
}

void TaskFiles::let_go_of_former() {
  if (former_) store_->remove(former_->manifest().id());
  former_ = nullptr;
}

// Removes the former model if it leaves no room for `bytes` more.
void TaskFiles::make_room(std::uint64_t bytes) {
  if (former_ && !check_room("", bytes + former_->manifest().payload_size)) let_go_of_former();
}

void TaskFiles::release_download() {
  if (keeps_former_ && download_.model) {
    let_go_of_former();
    former_ = std::exchange(download_.model, nullptr);
  }
  for (const auto& object : {download_.model, download_.control})
    if (object) store_->remove(object->manifest().id());
  download_ = {};
}

Result<TaskFiles::Update> TaskFiles::write(const PendingUpdate& pending, const OutgoingUpdate& update) {
  FEDGE_TRY(payload, store_->create(pending.offer.update));
  payloads_[pending.request.run] = payload;
  const protocol::Manifest& manifest = payload->manifest();
  for (std::size_t i = 0; i < manifest.chunk_count(); ++i)
    if (!payload->has(i))
      FEDGE_TRY_VOID(
          payload->write(i, update.payload().subspan(i * manifest.chunk_size, manifest.chunk_length(i))));
  FEDGE_TRY_VOID(payload->sync());
  FEDGE_TRY_VOID(write_pending_update(directory_, pending));
  return Update{pending, std::move(payload)};
}

Result<TaskFiles::Update> TaskFiles::keep(const protocol::TrainRequest& request,
                                          const OutgoingUpdate& update) {
  release_download();
  forget(request.run);
  FEDGE_TRY_VOID(check_room("the update", update.payload().size()));
  make_room(update.payload().size());
  auto kept = write({request, update.offer(request)}, update);
  if (kept) return kept;
  forget(request.run);
  return kept.error().with_prefix("cannot save the update: ");
}

void TaskFiles::forget(RunId run) {
  const auto payload = payloads_.find(run);
  if (payload == payloads_.end()) return;
  // First remove the file that names the payload.
  std::error_code ignored;
  std::filesystem::remove(pending_file(directory_, run), ignored);
  store_->remove(payload->second->manifest().id());
  payloads_.erase(payload);
}

Result<std::shared_ptr<protocol::StoredObject>> TaskFiles::hold(
    RunId run, const protocol::Manifest& manifest, const std::shared_ptr<protocol::StoredObject>& present) {
  const protocol::ObjectId id = manifest.id();
  if (has(present, manifest)) return held_[run][id] = present;
  if (const auto known = held_[run].find(id); known != held_[run].end()) return known->second;
  FEDGE_TRY_VOID(check_room("the data that clients exchange in this round", manifest.payload_size));
  FEDGE_TRY(object, store_->create(manifest));
  held_[run][id] = object;
  return object;
}

void TaskFiles::let_go(RunId run) {
  for (const auto& [id, object] : std::exchange(held_[run], {})) {
    const bool used = object == download_.model || std::ranges::any_of(payloads_, [&](const auto& payload) {
                        return payload.second == object;
                      });
    if (!used) store_->remove(id);
  }
  held_.erase(run);
}

void TaskFiles::forget_others(std::span<const RunId> held) {
  std::vector<RunId> gone;
  for (const auto& [run, payload] : payloads_)
    if (std::ranges::find(held, run) == held.end()) gone.push_back(run);
  for (const RunId run : gone) forget(run);
}

}  // namespace fedge::client
