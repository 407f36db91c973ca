#include "client/loaded_model.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string>
#include <utility>

#include "core/crypto/sha256.h"
#include "core/platform/files.h"
#include "core/platform/shared_file.h"

namespace fedge::client {
namespace {

using learn::CompactWeights;

constexpr const char* kExtension = ".fedge-base";
constexpr const char* kLock = "fedge-bases.lock";
constexpr std::size_t kUnopenedFiles = 4;  // kept for later tasks
constexpr std::chrono::seconds kPatience{60};

struct Loading {
  const std::shared_ptr<const ParameterLayout>& layout;
  const BaseKeeping& keeping;
  TaskFiles& files;
  const TaskFiles::Download& download;
  const std::stop_token& stop;
};

bool has_trainable(const ParameterLayout& layout, std::size_t begin, std::size_t end) {
  return std::ranges::any_of(layout.tensors(), [&](const TensorInfo& tensor) {
    return tensor.trainable && tensor.offset < end && begin < tensor.offset + tensor.size;
  });
}

// The name of the file for this base: the hash of its type, its layout, and its wanted chunks without
// trainable parameters, which stay the same from round to round. Nothing if there is no such chunk.
std::optional<std::string> file_name(const Loading& loading) {
  const protocol::Manifest& manifest = loading.download.model->manifest();
  const std::vector<bool>& wanted = loading.download.wanted;
  std::string text = "fedge base 1 " +
                     learn::base_dtype_names().at(static_cast<std::size_t>(loading.keeping.dtype)) + " " +
                     to_hex(loading.layout->hash());
  bool found = false;
  for (std::size_t i = 0; i < manifest.chunk_count(); ++i) {
    const std::size_t begin = manifest.first_value(i);
    const std::size_t end = begin + manifest.chunk_length(i) / sizeof(float);
    if ((!wanted.empty() && !wanted[i]) || has_trainable(*loading.layout, begin, end)) continue;
    text += " " + std::to_string(begin) + " " + to_hex(manifest.chunks[i]);
    found = true;
  }
  if (!found) return std::nullopt;
  return to_hex(sha256(text)) + kExtension;
}

Result<void> load_into(LoadedModel& loaded, const Loading& loading) {
  FEDGE_TRY(model, loading.files.load(loading.download.model, loading.layout, loading.download.wanted,
                                      loaded.base ? &*loaded.base : nullptr));
  loaded.model = std::move(model);
  return {};
}

// Loads the model with its matrices in the published file. Returns false if there is none that can be used.
Result<bool> load_published(LoadedModel& loaded, const Loading& loading, const std::filesystem::path& path) {
  const learn::BaseDtype dtype = loading.keeping.dtype;
  auto file = SharedFile::open(path, CompactWeights::bytes_of(*loading.layout, dtype));
  if (!file) return false;
  loaded.base.emplace(loading.layout, dtype, std::move(*file));
  const auto done = load_into(loaded, loading);
  if (!done && done.error().code == ErrorCode::kStale) return false;
  if (!done) return done.error();  // of the client's own files
  return true;
}

// Loads the model with its matrices in memory of this client alone.
Result<void> load_private(LoadedModel& loaded, const Loading& loading) {
  loaded.base.reset();
  if (loading.keeping.dtype != learn::BaseDtype::kFloat32)
    loaded.base.emplace(loading.layout, loading.keeping.dtype);
  return load_into(loaded, loading);
}

// If the disk has no room for a new file, files that no client has open are removed.
Result<SharedFile> create_file(const Loading& loading) {
  const std::filesystem::path& directory = loading.keeping.shared;
  const std::size_t bytes = CompactWeights::bytes_of(*loading.layout, loading.keeping.dtype);
  auto file = SharedFile::create(directory, bytes);
  if (file) return file;
  SharedFile::remove_unused(directory, kExtension, 0);
  return SharedFile::create(directory, bytes);
}

Result<void> load_shared(LoadedModel& loaded, const Loading& loading, const std::string& name) {
  const std::filesystem::path& directory = loading.keeping.shared;
  const std::filesystem::path path = directory / name;
  FEDGE_TRY(found, load_published(loaded, loading, path));
  SharedFile::remove_unused(directory, kExtension, kUnopenedFiles);
  if (found) return {};
  // One of several clients that find no file writes it, and the others wait.
  const FileLock lock(directory / kLock, kPatience, loading.stop);
  if (!lock.held()) {
    loaded.unshared = system_error("cannot lock", directory / kLock, errno);
    return load_private(loaded, loading);
  }
  FEDGE_TRY(written, load_published(loaded, loading, path));
  if (written) return {};
  auto file = create_file(loading);
  if (!file) {
    loaded.unshared = file.error();
    return load_private(loaded, loading);
  }
  loaded.base.emplace(loading.layout, loading.keeping.dtype, std::move(*file));
  FEDGE_TRY_VOID(load_into(loaded, loading));
  if (const auto done = loaded.base->publish(path); !done) loaded.unshared = done.error();
  return {};
}

}  // namespace

Result<void> prepare_shared_bases(const std::filesystem::path& directory) {
  FEDGE_TRY_VOID(make_directory(directory, 0700));
  FEDGE_TRY_VOID(check_owner(directory));
  std::error_code error;
  const auto status = std::filesystem::status(directory, error);
  if (error) return system_error("cannot stat", directory, error.value());
  using std::filesystem::perms;
  if ((status.permissions() & (perms::group_write | perms::others_write)) != perms::none)
    return Error{ErrorCode::kRefused, directory.string() +
                                          " can be written by other users, who could then end this client; "
                                          "run: chmod go-w " +
                                          directory.string()};
  return {};
}

Result<std::shared_ptr<const LoadedModel>> load_model(const std::shared_ptr<const ParameterLayout>& layout,
                                                      const BaseKeeping& keeping, TaskFiles& files,
                                                      const TaskFiles::Download& download,
                                                      const std::stop_token& stop) {
  LoadedModel loaded;
  const Loading loading{layout, keeping, files, download, stop};
  const auto name = keeping.shared.empty() ? std::nullopt : file_name(loading);
  FEDGE_TRY_VOID(name ? load_shared(loaded, loading, *name) : load_private(loaded, loading));
  if (download.control) {
    FEDGE_TRY(second, files.load(download.control, layout));
    loaded.control = std::move(second);
  }
  return std::make_shared<const LoadedModel>(std::move(loaded));
}

}  // namespace fedge::client
