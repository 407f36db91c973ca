#include "sim/checkpoint/checkpoints.h"

#include <algorithm>
#include <span>
#include <system_error>

#include "checkpoint/checkpoint.pb.h"
#include "core/crypto/sha256.h"
#include "core/platform/files.h"
#include "server/store/saved_state.h"

namespace fedge::sim {
namespace {

constexpr std::size_t kMostRecords = std::size_t{1} << 20;  // bytes in memory
constexpr std::size_t kMostContent = std::size_t{1} << 31;
constexpr std::uint32_t kChunkSize = 1 << 20;  // of former models
constexpr int kLeastShare = 50;                // of the time that a checkpoint takes, between two
constexpr double kBytesPerSecond = 200e6;      // of a disk, until a checkpoint has been written
constexpr const char* kContent = "checkpoint";

Error damaged(const std::filesystem::path& path, const std::string& what) {
  return {ErrorCode::kCorrupt, path.string() + ": " + what + "; --force starts the run from the beginning"};
}

Result<void> remove_tree(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (error) return system_error("cannot remove", path, error.value());
  return {};
}

// Returns the path of a directory while it is removed: it must not be taken for a run that goes on.
std::filesystem::path old_of(std::filesystem::path directory) { return directory += ".old"; }

}  // namespace

struct Checkpoints::Content {
  checkpoint::v1::Checkpoint saved;
};

Checkpoints::Checkpoints(Options options, std::unique_ptr<protocol::ChunkStore> store)
    : options_(std::move(options)),
      store_(std::move(store)),
      log_hash_(std::make_unique<Sha256>()),
      content_(std::make_unique<Content>()) {}
Checkpoints::Checkpoints(Checkpoints&&) noexcept = default;
Checkpoints::~Checkpoints() = default;

Result<Checkpoints> Checkpoints::open(Options options, bool going_on) {
  const std::filesystem::path directory = options.directory;
  FEDGE_TRY_VOID(remove_tree(old_of(directory)));
  if (!going_on) FEDGE_TRY_VOID(remove_tree(directory));
  FEDGE_TRY_VOID(make_directory(directory));
  remove_unfinished(directory / kContent);
  FEDGE_TRY(store, protocol::open_file_chunk_store(
                       directory / "models", {.max_bytes = SIZE_MAX, .durable = true, .all_wanted = true}));
  FEDGE_TRY(log, ScratchFile::open(directory / "log"));
  Checkpoints made(std::move(options), std::move(store));
  made.log_.emplace(std::move(log));
  FEDGE_TRY_VOID(made.load());
  return made;
}

Result<std::vector<protocol::Manifest>> Checkpoints::objects() const {
  const checkpoint::v1::Checkpoint& saved = content_->saved;
  if (saved.rounds() == 0) return std::vector<protocol::Manifest>();
  FEDGE_TRY(all, server::objects_of(saved.state()));
  for (const auto& version : saved.versions())
    for (const std::string* const object : {&version.model(), &version.control()}) {
      if (object->empty()) continue;
      FEDGE_TRY(manifest, server::decode_object(*object));
      all.push_back(std::move(manifest));
    }
  return all;
}

Result<void> Checkpoints::show(SharedWork& shared) {
  shared.broadcast(content_->saved.SerializeAsString());
  shared.broadcast(former_log_);
  FEDGE_TRY(manifests, objects());
  for (const protocol::Manifest& manifest : manifests) {
    FEDGE_TRY(object, find(manifest));
    std::string payload(manifest.payload_size, 0);
    FEDGE_TRY_VOID(object->read_bytes(0, std::as_writable_bytes(std::span(payload))));
    shared.broadcast(payload);
  }
  return {};
}

Result<Checkpoints> Checkpoints::receive(Options options, SharedWork& shared) {
  Checkpoints made(std::move(options), protocol::make_memory_chunk_store(SIZE_MAX));
  FEDGE_TRY(saved, shared.broadcast_of_first({}));
  if (!made.content_->saved.ParseFromString(saved)) return RunLog::does_not_fit();
  FEDGE_TRY(log, shared.broadcast_of_first({}));
  made.former_log_ = std::move(log);
  FEDGE_TRY(manifests, made.objects());
  for (protocol::Manifest& manifest : manifests) {
    FEDGE_TRY(payload, shared.broadcast_of_first({}));
    const auto bytes = std::as_bytes(std::span(payload));
    manifest.chunks.clear();
    FEDGE_TRY(object,
              made.store_->build(manifest, [&](std::size_t chunk, std::span<std::byte> out) -> Result<void> {
                std::ranges::copy(bytes.subspan(chunk * manifest.chunk_size, out.size()), out.begin());
                return {};
              }));
    made.received_.push_back(std::move(object));
  }
  return made;
}

Result<void> Checkpoints::load() {
  const std::filesystem::path path = options_.directory / kContent;
  const auto bytes = read_file(path, kMostContent);
  if (!bytes && bytes.error().code == ErrorCode::kNotFound) {
    store_->settle();
    return {};
  }
  if (!bytes) return bytes.error();
  checkpoint::v1::Checkpoint& saved = content_->saved;
  if (!saved.ParseFromString(*bytes) || saved.rounds() == 0) return damaged(path, "is not a checkpoint");
  if (saved.program() != options_.program)
    return Error{ErrorCode::kRefused,
                 path.string() + ": was written by " + saved.program() + ", and this is " + options_.program +
                     "; continue with that program, or start the run again with --force"};
  if (RunId(saved.run()) != options_.run) return damaged(path, "belongs to another run");
  const bool states =
      std::ranges::any_of(saved.clients(), [](const auto& rank) { return rank.states_size() > 0; });
  if (const auto ranks = static_cast<std::size_t>(saved.clients_size()); states && ranks != options_.ranks)
    return Error{ErrorCode::kRefused,
                 path.string() + ": was written by a run on " + std::to_string(ranks) +
                     " ranks, each of which has states of clients; continue with as many ranks, or start the "
                     "run again with --force"};
  former_log_.resize(saved.log_size());
  const auto log = std::as_writable_bytes(std::span(former_log_));
  if (const auto read = log_->read(0, log); !read) return damaged(options_.directory / "log", "ends early");
  log_hash_->add(log);
  const Digest hash = log_hash_->so_far();
  if (!std::ranges::equal(hash, saved.log_hash(), {}, {},
                          [](char c) { return static_cast<std::uint8_t>(c); }))
    return damaged(options_.directory / "log", "is damaged");
  log_size_ = saved.log_size();
  return {};
}

std::uint64_t Checkpoints::rounds() const { return content_->saved.rounds(); }

std::chrono::duration<double> Checkpoints::wall() const {
  return std::chrono::duration<double>(content_->saved.wall_seconds());
}

std::string Checkpoints::take_log() { return std::exchange(former_log_, {}); }

Result<std::shared_ptr<protocol::StoredObject>> Checkpoints::find(const protocol::Manifest& manifest) {
  FEDGE_TRY(object, store_->create(manifest));
  if (!object->complete())
    return damaged(options_.directory / "models",
                   "object " + short_hex(manifest.id()) + " is missing or damaged");
  objects_.insert(manifest.id());
  return object;
}

Result<void> Checkpoints::restore(server::RunState& state, const server::RunState::Descriptions& descriptions,
                                  protocol::ChunkStore& store, ClientStates& clients) {
  const checkpoint::v1::Checkpoint& saved = content_->saved;
  FEDGE_TRY(manifests, server::objects_of(saved.state()));
  std::vector<std::shared_ptr<protocol::StoredObject>> restored;
  for (const protocol::Manifest& manifest : manifests) {
    FEDGE_TRY(object, find(manifest));
    protocol::Manifest shape = manifest;
    shape.chunks.clear();
    FEDGE_TRY(copy, store.build(shape, [&](std::size_t chunk, std::span<std::byte> out) {
      return object->read(chunk, out);
    }));
    restored.push_back(std::move(copy));
  }
  FEDGE_TRY_VOID(state.restore(saved.state(), descriptions));
  if (options_.rank >= static_cast<std::size_t>(saved.clients_size())) return {};
  const auto& own = saved.clients(static_cast<int>(options_.rank));
  const ClientStates::Index index{.states = {own.states().begin(), own.states().end()},
                                  .unused = {own.unused_places().begin(), own.unused_places().end()},
                                  .end = own.file_size()};
  if (const auto taken = clients.restore(index); !taken) return damaged(client_file(), "ends early");
  return {};
}

Result<LiveStates> Checkpoints::load_live(const std::shared_ptr<const ParameterLayout>& layout) {
  const auto load = [&](const std::string& bytes) -> Result<std::shared_ptr<const ParameterVector>> {
    FEDGE_TRY(manifest, server::decode_object(bytes));
    FEDGE_TRY(object, find(manifest));
    ParameterVector values(layout);
    FEDGE_TRY_VOID(object->read_bytes(0, std::as_writable_bytes(values.values())));
    return std::make_shared<const ParameterVector>(std::move(values));
  };
  LiveStates states;
  for (const auto& version : content_->saved.versions()) {
    GlobalState& state = states[version.number()];
    FEDGE_TRY(model, load(version.model()));
    state.model = std::move(model);
    if (version.control().empty()) continue;
    FEDGE_TRY(control, load(version.control()));
    state.control = std::move(control);
  }
  store_->settle();
  *content_ = {};
  received_.clear();
  return states;
}

bool Checkpoints::due(const ClientStates& clients) const {
  const Clock::duration since = Clock::now() - last_;
  if (options_.every.count() == 0) return true;
  const double bytes = static_cast<double>(clients.bytes_in_memory() + clients.bytes_in_file());
  return since >= options_.every && since >= kLeastShare * cost_ &&
         since >= kLeastShare * std::chrono::duration<double>(bytes / kBytesPerSecond);
}

Result<void> Checkpoints::add(RunLog& log) {
  return log.size() < kMostRecords ? Result<void>() : write_log(log);
}

Result<void> Checkpoints::write_log(RunLog& log) {
  const std::string records = log.take();
  const auto bytes = std::as_bytes(std::span(records));
  FEDGE_TRY_VOID(log_->write(log_size_, bytes));
  log_hash_->add(bytes);
  log_size_ += bytes.size();
  return {};
}

Result<std::string> Checkpoints::keep(protocol::StoredObject& object) {
  protocol::Manifest shape = object.manifest();
  shape.chunks.clear();
  const protocol::ObjectId id = object.manifest().id();
  if (!objects_.contains(id) && !kept_.contains(id)) {
    FEDGE_TRY(made, store_->build(shape, [&](std::size_t chunk, std::span<std::byte> out) {
      return object.read(chunk, out);
    }));
    FEDGE_TRY_VOID(made->sync());
  }
  kept_.insert(id);
  return server::encode_object(object.manifest());
}

Result<std::string> Checkpoints::keep(const ParameterVector& values) {
  const auto bytes = std::as_bytes(values.values());
  const protocol::Manifest shape{.layout = values.layout().hash(),
                                 .coverage = Coverage::all(values.values().size()),
                                 .payload_size = bytes.size(),
                                 .chunk_size = kChunkSize};
  FEDGE_TRY(made, store_->build(shape, [&](std::size_t chunk, std::span<std::byte> out) -> Result<void> {
    std::ranges::copy(bytes.subspan(chunk * kChunkSize, out.size()), out.begin());
    return {};
  }));
  FEDGE_TRY_VOID(made->sync());
  kept_.insert(made->manifest().id());
  return server::encode_object(made->manifest());
}

Result<std::string> Checkpoints::save_states(ClientStates& clients) {
  FEDGE_TRY(index, clients.save_all());
  checkpoint::v1::Checkpoint::Clients out;
  out.mutable_states()->Add(index.states.begin(), index.states.end());
  out.mutable_unused_places()->Add(index.unused.begin(), index.unused.end());
  out.set_file_size(index.end);
  return out.SerializeAsString();
}

Result<void> Checkpoints::save(const Saved& saved, const std::vector<std::string>& clients,
                               server::RunState& state, RunLog& log) {
  const Clock::time_point begin = Clock::now();
  checkpoint::v1::Checkpoint out;
  out.set_program(options_.program);
  out.set_run(options_.run.value());
  out.set_rounds(saved.rounds);
  out.set_wall_seconds(saved.wall.count());
  FEDGE_TRY(models, state.save());
  out.set_state(std::move(models));
  kept_.clear();
  for (const auto& object : state.saved_objects())
    if (const auto done = keep(*object); !done) return done.error();
  for (const auto& [number, live] : saved.live) {
    auto* version = out.add_versions();
    version->set_number(number);
    FEDGE_TRY(model, keep(*live.model));
    version->set_model(std::move(model));
    if (!live.control) continue;
    FEDGE_TRY(control, keep(*live.control));
    version->set_control(std::move(control));
  }
  FEDGE_TRY_VOID(write_log(log));
  FEDGE_TRY_VOID(log_->sync());
  out.set_log_size(log_size_);
  const Digest hash = log_hash_->so_far();
  out.set_log_hash(hash.data(), hash.size());
  for (const std::string& rank : clients)
    if (!out.add_clients()->ParseFromString(rank)) return RunLog::does_not_fit();
  if (!options_.results.empty()) {
    FEDGE_TRY(results, ScratchFile::open(options_.results));
    FEDGE_TRY_VOID(results.sync());
  }
  FEDGE_TRY_VOID(write_file_atomic(options_.directory / kContent, out.SerializeAsString()));
  for (const protocol::ObjectId& id : std::exchange(objects_, std::move(kept_)))
    if (!objects_.contains(id)) store_->remove(id);
  last_ = Clock::now();
  cost_ = last_ - begin;
  return {};
}

Result<void> Checkpoints::remove() {
  store_.reset();
  const std::filesystem::path old = old_of(options_.directory);
  std::error_code error;
  std::filesystem::rename(options_.directory, old, error);
  if (error) return system_error("cannot rename", options_.directory, error.value());
  return remove_tree(old);
}

}  // namespace fedge::sim
