// Routes of models: the file of a run's model after a round, also while the run goes on.
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <span>
#include <utility>

#include "core/config/document.h"
#include "core/crypto/sha256.h"
#include "core/platform/files.h"
#include "core/safetensors.h"
#include "core/text.h"
#include "protocol/chunks/stored_files.h"
#include "server/api/detail/call.h"
#include "server/coordinator/run_parts.h"
#include "server/data_directory.h"
#include "server/report/metrics.h"
#include "server/report/metrics_csv.h"
#include "server/report/model_files.h"
#include "server/store/saved_state.h"

namespace fedge::server {
namespace {

constexpr int kReadAttempts = 10;

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

// The track of these metrics that excludes the same clients; null if there is none.
const TrackMetrics* same_track(const std::optional<RoundMetrics>& metrics, const TrackDescription& track) {
  if (!metrics) return nullptr;
  const auto found = std::ranges::find(metrics->tracks, track.exclude,
                                       [](const TrackMetrics& one) { return one.track.exclude; });
  return found == metrics->tracks.end() ? nullptr : &*found;
}

// The phases of a checkpoint's tracks have the order of its last round, not that of the best one.
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
  FEDGE_TRY(last, metrics_of(store, run, checkpoint->rounds));
  FEDGE_TRY(place, place_of(run, last, wanted.exclude));
  const auto track = std::ranges::find(state.tracks, place, &SavedTrack::turn);
  if (track == state.tracks.end()) return not_there(run, "the checkpoint has no such track");
  kept.object = track->model;
  if (wanted.best) {
    const auto best = progress->models.find(track->id);
    if (best == progress->models.end()) return not_there(run, "the track is younger than the best round");
    kept.object = best->second;
  }
  kept.main = place == 0;
  FEDGE_TRY(metrics, metrics_of(store, run, kept.round));
  if (metrics) kept.hash = metrics->model_hash;
  if (last && place < last->tracks.size()) {
    const TrackMetrics* then = same_track(metrics, last->tracks[place].track);
    if (then == nullptr) return not_there(run, "the track is younger than the best round");
    kept.hash = then->model_hash;
    kept.track = then->track;
  }
  return kept;
}

// Removes the files of earlier requests but the newest ones: another request may be about to open its file.
void remove_old_files(const std::filesystem::path& directory) {
  constexpr std::size_t kKeptFiles = 4;
  std::error_code ignored;
  std::vector<std::pair<std::filesystem::file_time_type, std::filesystem::path>> files;
  std::filesystem::directory_iterator entry(directory, ignored);
  for (; !ignored && entry != std::filesystem::directory_iterator(); entry.increment(ignored)) {
    std::error_code unknown;
    files.emplace_back(std::filesystem::last_write_time(entry->path(), unknown), entry->path());
  }
  std::ranges::sort(files);
  for (std::size_t i = 0; i + kKeptFiles < files.size(); ++i) {
    std::error_code stays;
    std::filesystem::remove(files[i].second, stays);
  }
}

// Whether the file is that of this model.
bool is_of(const std::filesystem::path& path, const Kept& kept) {
  const auto file = ReadOnlyFile::open(path);
  if (!file) return false;
  const auto header = read_safetensors_header(*file);
  if (!header) return false;
  const auto hash = header->metadata.find("model_hash");
  return hash != header->metadata.end() && hash->second == kept.hash;
}

// Writes a model of a checkpoint to a file, unless an earlier request did, and returns its path. Holds one
// chunk of the model at a time.
Result<std::filesystem::path> write_kept(const Call& call, const RunRecord& run, const Kept& kept) {
  const auto& data = call.stores.parts().data_directory;
  const std::filesystem::path directory = asked_models_of(data, run.number);
  const std::filesystem::path file =
      directory / kept_model("", kept.round, kept.main ? std::nullopt : kept.track).filename();
  if (is_of(file, kept)) return file;
  FEDGE_TRY(described, model_of(run));
  const auto& [config, model] = described;
  auto metadata = run_metadata({.config = config, .round = kept.round}, kept.track ? &*kept.track : nullptr);
  metadata["model_hash"] = kept.hash;
  FEDGE_TRY(header, safetensors_header(*model->layout(), metadata));
  FEDGE_TRY_VOID(make_directory(directory, 0700));
  remove_old_files(directory);
  const std::filesystem::path unfinished = directory / "unfinished";
  std::ofstream out(unfinished, std::ios::binary | std::ios::trunc);
  out << header;
  Sha256 hash;
  FEDGE_TRY(files, protocol::StoredFiles::list(models_of(data, run.number)));
  FEDGE_TRY(whole, files.read(kept.object, [&](std::span<const std::byte> chunk) -> Result<void> {
    hash.add(chunk);
    out.write(reinterpret_cast<const char*>(chunk.data()), static_cast<std::streamsize>(chunk.size()));
    return out ? Result<void>() : Result<void>(system_error("cannot write", unfinished, errno));
  }));
  // The store has replaced it meanwhile.
  if (!whole) return not_there(run, "its model changes too fast to be read; ask again");
  out.close();
  if (!out) return system_error("cannot write", unfinished, errno);
  if (to_hex(hash.finish()) != kept.hash)
    return Error{ErrorCode::kCorrupt, name_of(run) + "the model of round " + std::to_string(kept.round) +
                                          " has another hash than the metrics record"};
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
    if (file || file.error().code != ErrorCode::kNotFound || attempt == kReadAttempts) return file;
  }
}

// The round of the model that is the result of a run that has ended; nothing if it is not in the data
// directory.
std::optional<std::uint64_t> round_of_result(const std::filesystem::path& results) {
  const auto model = ReadOnlyFile::open(results / "model.safetensors");
  if (!model) return std::nullopt;
  const auto header = read_safetensors_header(*model);
  if (!header) return std::nullopt;
  const auto found = header->metadata.find("round");
  std::uint64_t round = 0;
  const std::string text = found == header->metadata.end() ? "" : found->second;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), round);
  return error == std::errc() ? std::optional(round) : std::nullopt;
}

bool keeps_best(const RunRecord& run) {
  const auto document = config::parse_toml(run.document, "run", config::PlaceStyle::kStored);
  return document && config::find(document->root, "run.keep_best") != nullptr;
}

// A model of a run that has ended: its result, which is the best model if run.keep_best is set.
Result<std::filesystem::path> result_of(const Call& call, RunStore& store, const RunRecord& run,
                                        const Wanted& wanted) {
  const std::filesystem::path results = results_in(call, run);
  const auto round = round_of_result(results);
  if (!round)
    return not_there(run,
                     "its results are not in the data directory, or it ended before a round was complete");
  if (wanted.best && !keeps_best(run))
    return not_there(run, "no best model was kept: the run file does not set run.keep_best");
  if (wanted.round != 0 && wanted.round != *round)
    return not_there(run, "the model of round " + std::to_string(wanted.round) +
                              " was not kept; set run.keep_models in the run file to keep models of rounds");
  FEDGE_TRY(metrics, metrics_of(store, run, 0));
  FEDGE_TRY(place, place_of(run, metrics, wanted.exclude));
  if (place == 0) return results / "model.safetensors";
  return results / "tracks" / (file_name(metrics->tracks[place].track) + ".safetensors");
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
  FEDGE_TRY(rounds, store->rounds(run.number));
  std::optional<std::uint64_t> last = rounds == 0 ? std::nullopt : std::optional(rounds);
  std::optional<std::uint64_t> best;
  if (run.is_over()) {
    const auto result = round_of_result(results_in(call, run));
    if (keeps_best(run)) best = result;
    if (result != last) last.reset();
  } else {
    FEDGE_TRY(checkpoint, store->checkpoint(run.number));
    if (checkpoint) {
      FEDGE_TRY(state, decode_state(checkpoint->state));
      if (state.progress && state.progress->state.kept) best = state.progress->state.kept->round;
    }
  }
  Json json;
  json["last"] = last ? Json(*last) : Json();
  json["best"] = best ? Json(*best) : Json();
  json["rounds"] = Json::array();
  for (const std::uint64_t round : kept_rounds(results_in(call, run)))
    if (round <= rounds) json["rounds"].push_back(round);
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
