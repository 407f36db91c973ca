#include "server/split/half_files.h"

#include <charconv>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

#include "core/aligned_buffer.h"
#include "core/crypto/sha256.h"
#include "core/platform/files.h"

namespace fedge::server {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 36;

}  // namespace

std::filesystem::path HalfFiles::path(ClientId client, RoundNumber round) const {
  return directory_ / (std::to_string(round.value()) + "-" + std::to_string(client.value()));
}

// The values, and then their hash.
Result<void> HalfFiles::write(ClientId client, RoundNumber round, std::span<const float> values) const {
  FEDGE_TRY_VOID(make_directory(directory_, 0700));
  const auto bytes = std::as_bytes(values);
  const Digest hash = sha256(bytes);
  std::vector<std::byte> content(bytes.size() + hash.size());
  if (!bytes.empty()) std::memcpy(content.data(), bytes.data(), bytes.size());
  std::memcpy(content.data() + bytes.size(), hash.data(), hash.size());
  return write_file_atomic(path(client, round), content);
}

Result<std::vector<float>> HalfFiles::read(ClientId client, RoundNumber round) const {
  FEDGE_TRY(content, read_file(path(client, round), kMostBytes));
  const auto bytes = std::as_bytes(std::span(content));
  Digest hash{};
  const Error damaged{ErrorCode::kCorrupt, path(client, round).string() + " is damaged"};
  if (bytes.size() < hash.size() || (bytes.size() - hash.size()) % sizeof(float) != 0) return damaged;
  const auto values = bytes.first(bytes.size() - hash.size());
  std::memcpy(hash.data(), bytes.data() + values.size(), hash.size());
  if (sha256(values) != hash) return damaged;
  std::vector<float> half(values.size() / sizeof(float));
  if (!half.empty()) std::memcpy(half.data(), values.data(), values.size());
  return half;
}

void HalfFiles::remove_until(RoundNumber round) const {
  std::error_code ignored;
  for (std::filesystem::directory_iterator file(directory_, ignored), end; !ignored && file != end;
       file.increment(ignored)) {
    const std::string name = file->path().filename().string();
    std::uint32_t of = 0;
    const auto [after, error] = std::from_chars(name.data(), name.data() + name.size(), of);
    if (error == std::errc() && *after == '-' && RoundNumber(of) <= round) {
      std::error_code busy;
      std::filesystem::remove(file->path(), busy);
    }
  }
}

Result<run::StoredUpdate> HalfFiles::join(ClientId client, RoundNumber round, run::StoredUpdate update,
                                          const RunState& state, protocol::ChunkStore& store) const {
  const protocol::Manifest& shape = update.plain->manifest();
  auto half = read(client, round);
  if (!half && half.error().code == ErrorCode::kNotFound)
    return invalid("the coordinator has not trained its half of this update");
  // A damaged file is this machine's fault, not the client's.
  if (!half) return Error{ErrorCode::kUnavailable, half.error().message};
  AlignedBuffer<float> below(shape.coverage.count());
  FEDGE_TRY_VOID(run::StoredValues(update.plain).read(0, below.span()));
  FEDGE_TRY(both, state.split()->joined(shape.coverage, below.span(), *half));
  protocol::Manifest joined = shape;
  joined.coverage = state.changed_by(shape.coverage);
  FEDGE_TRY(plain, run::store_values(both.span(), joined, store));
  if (update.plain != update.arrived) store.remove(update.plain->manifest().id());
  update.plain = std::move(plain);
  FEDGE_TRY(norm, run::inspect_values(state.value_rules(), joined.coverage, run::StoredValues(update.plain)));
  update.norm = norm;
  return update;
}

}  // namespace fedge::server
