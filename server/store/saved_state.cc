#include "server/store/saved_state.h"

#include <algorithm>
#include <utility>

#include "store/journal.pb.h"

namespace fedge::server {
namespace {

using Stored = journal::v1::Checkpoint;

void put(Stored::Object& out, const protocol::Manifest& manifest) {
  out.set_layout(manifest.layout.data(), manifest.layout.size());
  out.set_size(manifest.payload_size);
  out.set_chunk_size(manifest.chunk_size);
  std::string hashes;
  for (const Digest& chunk : manifest.chunks)
    hashes.append(reinterpret_cast<const char*>(chunk.data()), chunk.size());
  out.set_chunks(std::move(hashes));
}

bool take(std::string_view bytes, Digest& out) {
  if (bytes.size() != out.size()) return false;
  std::copy_n(reinterpret_cast<const std::uint8_t*>(bytes.data()), out.size(), out.begin());
  return true;
}

Result<protocol::Manifest> manifest_of(const Stored::Object& object) {
  const Error wrong{ErrorCode::kCorrupt, "the parts of an object in the checkpoint do not match"};
  protocol::Manifest manifest{.layout = {},
                              .coverage = Coverage::all(object.size() / sizeof(float)),
                              .payload_size = object.size(),
                              .chunk_size = object.chunk_size()};
  const std::string_view hashes = object.chunks();
  if (!take(object.layout(), manifest.layout) || hashes.size() % sizeof(Digest) != 0) return wrong;
  manifest.chunks.resize(hashes.size() / sizeof(Digest));
  for (std::size_t i = 0; i < manifest.chunks.size(); ++i)
    take(hashes.substr(i * sizeof(Digest), sizeof(Digest)), manifest.chunks[i]);
  if (!protocol::validate(manifest)) return wrong;
  return manifest;
}

}  // namespace

std::string encode_object(const protocol::Manifest& manifest) {
  Stored::Object object;
  put(object, manifest);
  return object.SerializeAsString();
}

Result<protocol::Manifest> decode_object(std::string_view bytes) {
  Stored::Object object;
  if (!object.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return Error{ErrorCode::kCorrupt, "it does not describe an object"};
  return manifest_of(object);
}

std::string encode_state(const SavedState& state) {
  Stored out;
  for (const SavedTrack& track : state.tracks) {
    auto* made = out.add_tracks();
    made->set_id(track.id.value());
    made->set_turn(track.turn);
    made->set_hash(track.hash.data(), track.hash.size());
    put(*made->mutable_model(), track.model);
    if (track.control) put(*made->mutable_control(), *track.control);
    if (track.memory) put(*made->mutable_memory(), *track.memory);
  }
  out.mutable_participation()->Add(state.participation.begin(), state.participation.end());
  out.set_statistics_charges(state.charges.statistics);
  for (const auto& [chance, releases] : state.charges.rounds) {
    auto* charge = out.add_charges();
    charge->set_chance(chance);
    charge->set_releases(releases);
  }
  if (state.statistics) {
    auto* made = out.mutable_statistics();
    made->mutable_edges()->Add(state.statistics->edges.begin(), state.statistics->edges.end());
    made->mutable_sums()->Add(state.statistics->sums.begin(), state.statistics->sums.end());
  }
  if (state.progress) {
    auto* made = out.mutable_progress();
    const auto put_best = [](auto* to, const RunProgress::Best& best) {
      to->set_round(best.round);
      to->set_value(best.value);
    };
    const RunProgress::State& progress = state.progress->state;
    if (progress.kept) put_best(made->mutable_kept(), *progress.kept);
    if (progress.reference) put_best(made->mutable_reference(), *progress.reference);
    made->set_worse(progress.worse);
    made->set_ended(progress.ended);
    for (const auto& [track, manifest] : state.progress->models) {
      auto* model = made->add_models();
      model->set_track(track.value());
      put(*model->mutable_model(), manifest);
    }
  }
  return out.SerializeAsString();
}

Result<std::vector<protocol::Manifest>> objects_of(std::string_view bytes) {
  FEDGE_TRY(state, decode_state(bytes));
  std::vector<protocol::Manifest> objects;
  for (SavedTrack& track : state.tracks) {
    objects.push_back(std::move(track.model));
    if (track.control) objects.push_back(std::move(*track.control));
    if (track.memory) objects.push_back(std::move(*track.memory));
  }
  if (state.progress)
    for (auto& [track, model] : state.progress->models) objects.push_back(std::move(model));
  return objects;
}

Result<SavedState> decode_state(std::string_view bytes) {
  Stored in;
  if (!in.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return Error{ErrorCode::kCorrupt, "it is not a checkpoint"};
  SavedState state;
  for (const auto& track : in.tracks()) {
    SavedTrack made{.id = TrackId(track.id()), .turn = static_cast<std::size_t>(track.turn())};
    if (!take(track.hash(), made.hash))
      return Error{ErrorCode::kCorrupt, "the hash of a model in the checkpoint is not valid"};
    FEDGE_TRY(model, manifest_of(track.model()));
    made.model = std::move(model);
    if (track.has_control()) {
      FEDGE_TRY(control, manifest_of(track.control()));
      made.control = std::move(control);
    }
    if (track.has_memory()) {
      FEDGE_TRY(memory, manifest_of(track.memory()));
      made.memory = std::move(memory);
    }
    state.tracks.push_back(std::move(made));
  }
  for (const auto& charge : in.charges()) state.charges.rounds[charge.chance()] = charge.releases();
  state.charges.statistics = in.statistics_charges();
  state.participation.assign(in.participation().begin(), in.participation().end());
  if (in.has_statistics())
    state.statistics = SavedStatistics{{in.statistics().edges().begin(), in.statistics().edges().end()},
                                       {in.statistics().sums().begin(), in.statistics().sums().end()}};
  if (!in.has_progress()) return state;
  const auto& progress = in.progress();
  SavedProgress& made = state.progress.emplace();
  if (progress.has_kept())
    made.state.kept = RunProgress::Best{progress.kept().round(), progress.kept().value()};
  if (progress.has_reference())
    made.state.reference = RunProgress::Best{progress.reference().round(), progress.reference().value()};
  made.state.worse = progress.worse();
  made.state.ended = progress.ended();
  for (const auto& model : progress.models()) {
    FEDGE_TRY(manifest, manifest_of(model.model()));
    made.models.emplace(TrackId(model.track()), std::move(manifest));
  }
  return state;
}

}  // namespace fedge::server
