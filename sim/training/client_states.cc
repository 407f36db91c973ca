#include "sim/training/client_states.h"

#include <algorithm>
#include <span>
#include <utility>

#include "core/check.h"
#include "core/crypto/sha256.h"

namespace fedge::sim {
namespace {

using client::ClientMemory;
using Lock = std::lock_guard<std::mutex>;

std::size_t bytes_of(const ClientMemory& state) {
  return sizeof state + state.control.size() * sizeof state.control[0] +
         (state.residual.size() + state.personal.size()) * sizeof(float);
}

std::uint64_t checksum_of(const ClientMemory& state) {
  Sha256 hash;
  hash.add(std::as_bytes(std::span(state.control)));
  hash.add(std::as_bytes(std::span(state.residual)));
  hash.add(std::as_bytes(std::span(state.personal)));
  const Digest digest = hash.finish();
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < sizeof sum; ++i) sum = sum << 8 | digest[i];
  return std::max<std::uint64_t>(sum, 1);
}

}  // namespace

std::size_t ClientStates::Place::bytes() const {
  return control * sizeof(std::int64_t) + (residual + personal) * sizeof(float);
}

void ClientStates::spill_to(const std::filesystem::path& directory, std::size_t budget) {
  const Lock lock(mutex_);
  directory_ = directory;
  budget_ = budget;
}

Result<void> ClientStates::keep_in(const std::filesystem::path& file, std::size_t budget) {
  const Lock lock(mutex_);
  FEDGE_TRY(opened, ScratchFile::open(file));
  file_.emplace(std::move(opened));
  budget_ = budget;
  durable_ = true;
  return {};
}

Result<ClientStates::Index> ClientStates::save_all() {
  const Lock lock(mutex_);
  Index index;
  for (auto& [key, state] : states_) {
    if (!state.place) FEDGE_TRY_VOID(write(state));
    Place& place = *state.place;
    if (place.checksum == 0 && state.memory) place.checksum = checksum_of(*state.memory);
    if (place.checksum == 0) {
      FEDGE_TRY(written, read(key, place));
      place.checksum = checksum_of(written);
    }
    const auto& [client, track, round] = key;
    index.states.insert(index.states.end(), {client.value(), track.value(), round.value(), place.offset,
                                             place.control, place.residual, place.personal, place.checksum});
  }
  for (const Places* places : {&free_, &former_})
    for (const auto& [bytes, offsets] : *places)
      for (const std::uint64_t offset : offsets) index.unused.insert(index.unused.end(), {bytes, offset});
  index.end = end_;
  FEDGE_TRY_VOID(file_->sync());
  return index;
}

void ClientStates::forget_former() {
  const Lock lock(mutex_);
  for (auto& [bytes, offsets] : std::exchange(former_, {}))
    free_[bytes].insert(free_[bytes].end(), offsets.begin(), offsets.end());
}

Result<void> ClientStates::restore(const Index& index) {
  const Lock lock(mutex_);
  for (std::size_t i = 0; i + 7 < index.states.size(); i += 8) {
    const auto number = [&](std::size_t part) { return index.states[i + part]; };
    const Place place{.offset = number(3),
                      .control = number(4),
                      .residual = number(5),
                      .personal = number(6),
                      .checksum = number(7)};
    states_.insert_or_assign(
        Key{ClientId(static_cast<std::uint32_t>(number(0))), TrackId(static_cast<std::uint32_t>(number(1))),
            RoundNumber(static_cast<std::uint32_t>(number(2)))},
        State{.memory = {}, .used = 0, .place = place});
    in_file_ += place.bytes();
  }
  for (std::size_t i = 0; i + 1 < index.unused.size(); i += 2)
    free_[index.unused[i]].push_back(index.unused[i + 1]);
  end_ = index.end;
  std::byte last{};
  return end_ > 0 ? file_->read(end_ - 1, std::span(&last, 1)) : Result<void>();
}

Result<ClientMemory> ClientStates::load(ClientId client, TrackId track, RoundNumber round) {
  const Lock lock(mutex_);
  auto state = states_.lower_bound({client, track, RoundNumber()});
  const auto of_client = [&] {
    return state != states_.end() && std::get<0>(state->first) == client &&
           std::get<1>(state->first) == track;
  };
  std::optional<States::iterator> wanted;
  while (of_client()) {
    const auto current = state++;
    if (std::get<2>(current->first) == round)
      wanted = current;
    else
      erase(current);
  }
  if (round == RoundNumber()) return ClientMemory{};
  FEDGE_CHECK(wanted.has_value(), "a simulated client has lost its state");
  State& found = (*wanted)->second;
  if (!found.memory) return read((*wanted)->first, *found.place);
  by_use_.erase(std::exchange(found.used, ++uses_));
  by_use_.emplace(found.used, (*wanted)->first);
  return *found.memory;
}

void ClientStates::save(ClientId client, TrackId track, ClientMemory memory) {
  const Lock lock(mutex_);
  const Key key{client, track, memory.round};
  if (const auto former = states_.find(key); former != states_.end()) erase(former);
  in_memory_ += bytes_of(memory);
  by_use_.emplace(++uses_, key);
  states_.emplace(key, State{.memory = std::move(memory), .used = uses_, .place = {}});
}

Result<void> ClientStates::shrink() {
  const Lock lock(mutex_);
  while ((durable_ || !directory_.empty()) && in_memory_ > budget_ && !by_use_.empty()) {
    State& state = states_.at(by_use_.begin()->second);
    if (!state.place) FEDGE_TRY_VOID(write(state));
    in_memory_ -= bytes_of(*state.memory);
    state.memory.reset();
    by_use_.erase(by_use_.begin());
  }
  return {};
}

void ClientStates::forget(TrackId track) {
  const Lock lock(mutex_);
  for (auto state = states_.begin(); state != states_.end();) {
    const auto current = state++;
    if (std::get<1>(current->first) == track) erase(current);
  }
}

std::size_t ClientStates::bytes_in_memory() const {
  const Lock lock(mutex_);
  return in_memory_;
}

std::uint64_t ClientStates::bytes_in_file() const {
  const Lock lock(mutex_);
  return in_file_;
}

std::uint64_t ClientStates::file_size() const {
  const Lock lock(mutex_);
  return end_;
}

void ClientStates::erase(States::iterator state) {
  if (state->second.memory) {
    in_memory_ -= bytes_of(*state->second.memory);
    by_use_.erase(state->second.used);
  }
  if (const auto& place = state->second.place) {
    in_file_ -= place->bytes();
    (place->checksum != 0 ? former_ : free_)[place->bytes()].push_back(place->offset);
  }
  states_.erase(state);
}

Result<ClientMemory> ClientStates::read(const Key& key, const Place& place) const {
  ClientMemory memory{.round = std::get<2>(key),
                      .control = std::vector<std::int64_t>(place.control),
                      .residual = std::vector<float>(place.residual),
                      .personal = std::vector<float>(place.personal)};
  std::uint64_t offset = place.offset;
  const auto take = [&](std::span<std::byte> part) -> Result<void> {
    FEDGE_TRY_VOID(file_->read(offset, part));
    offset += part.size();
    return {};
  };
  FEDGE_TRY_VOID(take(std::as_writable_bytes(std::span(memory.control))));
  FEDGE_TRY_VOID(take(std::as_writable_bytes(std::span(memory.residual))));
  FEDGE_TRY_VOID(take(std::as_writable_bytes(std::span(memory.personal))));
  if (place.checksum != 0 && checksum_of(memory) != place.checksum)
    return Error{ErrorCode::kCorrupt, file_->name() + ": the state of client " +
                                          std::to_string(std::get<0>(key).value()) +
                                          " is damaged; --force starts the run from the beginning"};
  return memory;
}

Result<void> ClientStates::write(State& state) {
  if (!file_) {
    FEDGE_TRY(file, ScratchFile::create(directory_));
    file_.emplace(std::move(file));
  }
  const ClientMemory& memory = *state.memory;
  Place place{.control = memory.control.size(),
              .residual = memory.residual.size(),
              .personal = memory.personal.size()};

  const std::size_t bytes = place.bytes();
  std::vector<std::uint64_t>& free = free_[bytes];
  place.offset = free.empty() ? end_ : free.back();
  std::uint64_t offset = place.offset;
  const auto put = [&](std::span<const std::byte> part) -> Result<void> {
    FEDGE_TRY_VOID(file_->write(offset, part));
    offset += part.size();
    return {};
  };
  FEDGE_TRY_VOID(put(std::as_bytes(std::span(memory.control))));
  FEDGE_TRY_VOID(put(std::as_bytes(std::span(memory.residual))));
  FEDGE_TRY_VOID(put(std::as_bytes(std::span(memory.personal))));
  if (free.empty())
    end_ += bytes;
  else
    free.pop_back();
  in_file_ += bytes;
  state.place = place;
  return {};
}

}  // namespace fedge::sim
