// Routes of models: the file of a run's model after a round, also while the run goes on.
#include <algorithm>
#include <filesystem>
#include <span>
#include <utility>

#include "core/crypto/sha256.h"
#include "core/platform/files.h"
#include "core/safetensors.h"
#include "core/text.h"
#include "protocol/chunks/chunk_store.h"
#include "server/api/detail/call.h"
#include "server/coordinator/run_parts.h"
#include "server/data_directory.h"
#include "server/report/metrics.h"
#include "server/report/metrics_csv.h"
#include "server/report/model_files.h"
#include "server/store/saved_state.h"

namespace fedge::server {
namespace {

constexpr int kAttempts = 10;

std::string name_of(const RunRecord& run) { return "run " + std::to_string(run.number.value()) + ": "; }

Error not_there(const RunRecord& run, const std::string& why) {
  return {ErrorCode::kNotFound, name_of(run) + why};
}

// The results of runs of `fedge-coordinator --run` are elsewhere.
std::filesystem::path results_in(const Call& call, const RunRecord& run) {
  return run_results(call.stores.parts().data_directory, run.number);
}

// The metrics of a round, 0 for the last one.
Result<std::optional<RoundMetrics>> metrics_of(RunStore& store, const RunRecord& run, std::uint64_t round) {
  FEDGE_TRY(last, store.rounds(run.number));
  const std::uint64_t wanted = round == 0 ? last : round;
  if (wanted == 0 || wanted > last) return std::optional<RoundMetrics>();
  FEDGE_TRY(lines, store.metrics(run.number, wanted - 1, 1));
  if (lines.empty()) return std::optional<RoundMetrics>();
  FEDGE_TRY(metrics, parse_metrics(lines.front(), name_of(run)));
  return std::optional(std::move(metrics));
}

// Position of the track that excludes these clients among the tracks of a round: 0, the run's main model,
// without a name.
Result<std::size_t> place_of(const RunRecord& run, const std::optional<RoundMetrics>& metrics,
                             const std::string& exclude) {
  if (exclude.empty()) return 0;
  if (metrics)
    for (std::size_t i = 0; i < metrics->tracks.size(); ++i)
      if (joined_names(metrics->tracks[i].track.exclude, ',') == exclude) return i;
  return not_there(run, "no track excludes the clients '" + clean_text(exclude, 200) + "'");
}

struct Wanted {
  std::uint64_t round = 0;  // 0: the last one
  bool best = false;
  std::string exclude;
};

// A model in a checkpoint, and what its file says.
struct Kept {
  protocol::Manifest object;
  std::uint64_t round = 0;
  std::string hash;
  std::optional<TrackDescription> track;
  bool main = true;
};

Result<Kept> find_kept(RunStore& store, const RunRecord& run, const Wanted& wanted) {
  FEDGE_TRY(checkpoint, store.checkpoint(run.number));
  if (!checkpoint) return not_there(run, "no round is complete yet, so there is no model");
  FEDGE_TRY(state, decode_state(checkpoint->state));
  const auto& progress = state.progress;
  if (wanted.best && (!progress || !progress->state.kept))
    return not_there(run,
                     "no best model is kept: the run file does not set run.keep_best, or no model was "
                     "evaluated yet");
  Kept kept{.round = wanted.best ? progress->state.kept->round : checkpoint->rounds};
  FEDGE_TRY(metrics, metrics_of(store, run, kept.round));
  FEDGE_TRY(place, place_of(run, metrics, wanted.exclude));
  const auto track = std::ranges::find(state.tracks, place, &SavedTrack::turn);
  if (track == state.tracks.end()) return not_there(run, "the checkpoint has no such track");
  kept.object = track->model;
  if (wanted.best) {
    const auto best = progress->models.find(track->id);
    if (best == progress->models.end()) return not_there(run, "the track is younger than the best round");
    kept.object = best->second;
  }
  kept.main = place == 0;
  if (metrics) kept.hash = metrics->model_hash;
  if (metrics && place < metrics->tracks.size()) {
    kept.hash = metrics->tracks[place].model_hash;
    kept.track = metrics->tracks[place].track;
  }
  return kept;
}

// Writes a model of a checkpoint to a file, unless an earlier request did, and returns its path. Holds one
// chunk of the model at a time.
Result<std::filesystem::path> write_kept(const Call& call, const RunRecord& run, const Kept& kept) {
  const auto& data = call.stores.parts().data_directory;
  const std::filesystem::path directory = asked_models_of(data, run.number);
  const std::filesystem::path file =
      directory / kept_model("", kept.round, kept.main ? std::nullopt : kept.track).filename();
  std::error_code ignored;
  if (std::filesystem::exists(file, ignored)) return file;
  FEDGE_TRY(described, model_of(run));
  const auto& [config, model] = described;
  const ParameterLayout& layout = *model->layout();
  auto metadata = run_metadata({.config = config, .round = kept.round}, kept.track ? &*kept.track : nullptr);
  if (!kept.hash.empty()) metadata["model_hash"] = kept.hash;
  FEDGE_TRY(header, safetensors_header(layout, metadata));
  std::filesystem::remove_all(directory, ignored);  // models of earlier rounds
  FEDGE_TRY_VOID(make_directory(directory, 0700));
  const std::filesystem::path unfinished = directory / "unfinished";
  FEDGE_TRY_VOID(write_file_at(unfinished, 0, std::as_bytes(std::span(header)), 0600));
  std::uint64_t offset = header.size();
  FEDGE_TRY_VOID(protocol::read_kept_object(models_of(data, run.number), kept.object,
                                            [&](std::span<const std::byte> chunk) -> Result<void> {
                                              FEDGE_TRY_VOID(write_file_at(unfinished, offset, chunk, 0600));
                                              offset += chunk.size();
                                              return {};
                                            }));
  std::error_code error;
  std::filesystem::rename(unfinished, file, error);
  if (error) return system_error("cannot rename", unfinished, error.value());
  return file;
}

// A model of a run that has not ended. A round may be closed meanwhile, and its model replaces the one that
// was found.
Result<std::filesystem::path> present_model(const Call& call, RunStore& store, const RunRecord& run,
                                            const Wanted& wanted) {
  for (int attempt = 1;; ++attempt) {
    FEDGE_TRY(kept, find_kept(store, run, wanted));
    if (wanted.round != 0 && wanted.round != kept.round)
      return not_there(run, "the model of round " + std::to_string(wanted.round) +
                                " is not kept; set run.keep_models in the run file to keep models of rounds");
    auto file = write_kept(call, run, kept);
    if (file || file.error().code != ErrorCode::kNotFound || attempt == kAttempts) return file;
  }
}

// A model of a run that has ended.
Result<std::filesystem::path> result_of(const Call& call, RunStore& store, const RunRecord& run,
                                        const Wanted& wanted) {
  const std::filesystem::path results = results_in(call, run);
  std::filesystem::path file = results / "model.safetensors";
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored))
    return not_there(run,
                     "its results are not in the data directory, or it ended before a round was complete");
  FEDGE_TRY(model, ReadOnlyFile::open(file));
  FEDGE_TRY(header, read_safetensors_header(model));
  const auto round = header.metadata.find("round");
  const bool other =
      wanted.round != 0 && (round == header.metadata.end() || round->second != std::to_string(wanted.round));
  if (other)
    return not_there(run, "the model of round " + std::to_string(wanted.round) +
                              " was not kept; set run.keep_models in the run file to keep models of rounds");
  FEDGE_TRY(metrics, metrics_of(store, run, 0));
  FEDGE_TRY(place, place_of(run, metrics, wanted.exclude));
  if (place > 0) file = results / "tracks" / (file_name(metrics->tracks[place].track) + ".safetensors");
  return file;
}

Result<Reply> get_model(Call& call) {
  Wanted wanted{.exclude = call.query_text("exclude")};
  FEDGE_TRY(round, call.query_number("round", 0, 1'000'000));
  wanted.round = round;
  const std::string which = call.query_text("which");
  if (which != "" && which != "last" && which != "best")
    return invalid("which is '" + clean_text(which, 40) + "', but must be last or best");
  wanted.best = which == "best";
  if (wanted.best && wanted.round != 0) return invalid("give only one of round and which=best");
  FEDGE_TRY(store, call.stores.runs());
  FEDGE_TRY(run, call.find_run(*store, Role::kViewer));
  if (wanted.round != 0) {
    FEDGE_TRY(metrics, metrics_of(*store, run, wanted.round));
    FEDGE_TRY(place, place_of(run, metrics, wanted.exclude));
    const auto track = place == 0 ? std::nullopt : std::optional(metrics->tracks[place].track);
    const auto file = kept_model(results_in(call, run), wanted.round, track);
    std::error_code ignored;
    // A file of a round that is not durable may change once more.
    if (metrics && std::filesystem::exists(file, ignored)) return Reply{.file = file};
  }
  FEDGE_TRY(file,
            run.is_over() ? result_of(call, *store, run, wanted) : present_model(call, *store, run, wanted));
  return Reply{.file = std::move(file)};
}

Result<Reply> list_models(Call& call) {
  FEDGE_TRY(store, call.stores.runs());
  FEDGE_TRY(run, call.find_run(*store, Role::kViewer));
  FEDGE_TRY(last, store->rounds(run.number));
  FEDGE_TRY(checkpoint, store->checkpoint(run.number));
  std::optional<std::uint64_t> best;
  if (checkpoint) {
    FEDGE_TRY(state, decode_state(checkpoint->state));
    if (state.progress && state.progress->state.kept) best = state.progress->state.kept->round;
  }
  Json json;
  json["last"] = last == 0 ? Json() : Json(last);
  json["best"] = best ? Json(*best) : Json();
  json["rounds"] = Json::array();
  for (const std::uint64_t round : kept_rounds(results_in(call, run)))
    if (round <= last) json["rounds"].push_back(round);
  return Reply{200, std::move(json)};
}

}  // namespace

std::vector<ApiRoute> model_routes() {
  return {{.method = "GET",
           .path = "/runs/{run}/models",
           .operation = "listModels",
           .summary = "List the rounds whose models are there",
           .role = Role::kViewer,
           .handler = list_models,
           .answer = "Models"},
          {.method = "GET",
           .path = "/runs/{run}/model",
           .operation = "getModel",
           .summary = "Get the file of a run's model (safetensors); without a round, the last one",
           .role = Role::kViewer,
           .handler = get_model,
           .query = {{"round", "integer", "Round after which the model is wanted"},
                     {"which", "string", "last, or best: the model of the best round (run.keep_best)"},
                     {"exclude", "string",
                      "Names of clients, with commas between them: the model of the track that excludes "
                      "them. Without it, the run's main model"}},
           .file = true}};
}

}  // namespace fedge::server
