#include "client/task_files.h"

#include <string>
#include <utility>

#include "client/prepared_run.h"

namespace fedge::client {
namespace {

Error too_large(const char* what, std::uint64_t bytes, std::size_t max_bytes) {
  return {ErrorCode::kResource, std::string(what) + " takes " + std::to_string(bytes) +
                                    " bytes, the cache of "
                                    "this client holds " +
                                    std::to_string(max_bytes) + "; start it with a larger --cache-mb"};
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

std::optional<TaskFiles::Update> TaskFiles::take_up(const std::function<void(const Event&)>& report) {
  const auto drop = [&](const std::string& reason) {
    report(Event{Severity::kWarning, "update.dropped", {}}.with("reason", reason));
    forget();
    return std::nullopt;
  };
  auto pending = read_pending_update(directory_);
  if (!pending) return drop(pending.error().message);
  if (!*pending) return std::nullopt;
  auto payload = store_->create((*pending)->offer.update);
  if (!payload) return drop("the payload of the pending update cannot be read: " + payload.error().message);
  payload_ = *payload;
  if (!payload_->complete())
    return drop("the payload of the pending update is not whole in " + chunk_cache(directory_).string());
  return Update{std::move(**pending), payload_};
}

Result<TaskFiles::Download> TaskFiles::download(const ParameterLayout& layout,
                                                const protocol::Manifest& model,
                                                const std::optional<protocol::Manifest>& control) {
  for (const auto* offered : {&model, control ? &*control : &model})
    if (offered->layout != layout.hash() || offered->coverage != Coverage::all(layout.size()))
      return invalid("what is offered is not of the run's model");
  const std::uint64_t bytes = model.payload_size + (control ? control->payload_size : 0);
  if (bytes > max_bytes_) return too_large("the model", bytes, max_bytes_);
  const auto wanted = [&](const std::shared_ptr<protocol::StoredObject>& object) {
    return object && (object->manifest() == model || (control && object->manifest() == *control));
  };
  for (const auto* object : {&download_.model, &download_.control})
    if (*object && !wanted(*object)) store_->remove((*object)->manifest().id());
  download_ = {};
  FEDGE_TRY(first, store_->create(model));
  download_.model = std::move(first);
  if (control) {
    FEDGE_TRY(second, store_->create(*control));
    download_.control = std::move(second);
  }
  return download_;
}

Result<ParameterVector> TaskFiles::load(const std::shared_ptr<protocol::StoredObject>& object,
                                        const std::shared_ptr<const ParameterLayout>& layout) {
  const protocol::Manifest& manifest = object->manifest();
  ParameterVector vector(layout);
  const auto all = std::as_writable_bytes(vector.values());
  for (std::size_t i = 0; i < manifest.chunk_count(); ++i) {
    const auto chunk = all.subspan(i * manifest.chunk_size, manifest.chunk_length(i));
    FEDGE_TRY_VOID(object->read(i, chunk));
    if (const auto sound = protocol::verify_chunk(manifest, i, chunk); !sound) {
      store_->remove(manifest.id());
      release_download();
      return sound.error().with_prefix("the model in " + chunk_cache(directory_).string() + " is damaged: ");
    }
  }
  return vector;
}

void TaskFiles::release_download() {
  for (const auto& object : {download_.model, download_.control})
    if (object) store_->remove(object->manifest().id());
  download_ = {};
}

Result<void> TaskFiles::write_payload(const PendingUpdate& pending, const WorkResult& update) {
  FEDGE_TRY(object, store_->create(pending.offer.update));
  payload_ = std::move(object);
  const protocol::Manifest& manifest = payload_->manifest();
  for (std::size_t i = 0; i < manifest.chunk_count(); ++i)
    if (!payload_->has(i))
      FEDGE_TRY_VOID(
          payload_->write(i, update.payload().subspan(i * manifest.chunk_size, manifest.chunk_length(i))));
  FEDGE_TRY_VOID(payload_->sync());
  return write_pending_update(directory_, pending);
}

Result<TaskFiles::Update> TaskFiles::keep(const protocol::TrainRequest& request, const WorkResult& update) {
  release_download();
  forget();
  const std::uint64_t bytes = update.payload().size();
  if (bytes > max_bytes_) return too_large("the update", bytes, max_bytes_);
  const PendingUpdate pending{request, offer_of(update, request)};
  pending_ = true;
  if (const auto written = write_payload(pending, update); !written) {
    forget();
    return written.error().with_prefix("the update cannot be kept: ");
  }
  return Update{pending, payload_};
}

void TaskFiles::forget() {
  // First what names the payload.
  if (std::exchange(pending_, false)) remove_pending_update(directory_);
  if (payload_) store_->remove(payload_->manifest().id());
  payload_.reset();
}

}  // namespace fedge::client
