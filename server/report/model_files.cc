#include "server/report/model_files.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <string_view>

#include "core/crypto/sha256.h"
#include "core/platform/files.h"
#include "core/safetensors.h"
#include "learn/model_file.h"
#include "server/report/metrics_csv.h"
#include "server/report/results_place.h"

namespace fedge::server {
namespace {

constexpr std::string_view kRoundPrefix = "round-";

std::filesystem::path models_of(const std::filesystem::path& results) { return results / "models"; }

std::optional<std::uint64_t> round_of(const std::filesystem::path& file) {
  const std::string name = file.filename().string();
  if (!name.starts_with(kRoundPrefix) || file.extension() != ".safetensors") return std::nullopt;
  std::uint64_t round = 0;
  const char* last = name.data() + name.size();
  const auto [end, error] = std::from_chars(name.data() + kRoundPrefix.size(), last, round);
  if (error != std::errc()) return std::nullopt;
  // Behind the number, at most the hash of a track: other files are not ours.
  const std::string_view rest(end, static_cast<std::size_t>(last - end));
  const std::string_view hash = rest.substr(0, rest.size() - std::string_view(".safetensors").size());
  const bool ours = hash.empty() || (hash.size() == 33 && hash.front() == '-' &&
                                     hash.find_first_not_of("0123456789abcdef", 1) == std::string_view::npos);
  return ours ? std::optional(round) : std::nullopt;
}

// Removes what a process that was killed has left of a file.
void remove_unfinished_models(const std::filesystem::path& results) {
  std::error_code ignored;
  std::filesystem::directory_iterator entry(models_of(results), ignored);
  for (; !ignored && entry != std::filesystem::directory_iterator(); entry.increment(ignored)) {
    std::error_code stays;
    if (entry->path().filename().string().starts_with("." + std::string(kRoundPrefix)))
      std::filesystem::remove(entry->path(), stays);
  }
}

template <class Which>
void remove_models(const std::filesystem::path& results, const Which& which) {
  std::error_code ignored;
  std::filesystem::directory_iterator entry(models_of(results), ignored);
  for (; !ignored && entry != std::filesystem::directory_iterator(); entry.increment(ignored)) {
    const auto round = round_of(entry->path());
    std::error_code stays;
    if (round && which(*round)) std::filesystem::remove(entry->path(), stays);
  }
}

}  // namespace

std::string file_name(const TrackDescription& track) {
  std::string text;
  for (const std::string& name : track.exclude) text += name + "\n";
  return to_hex(sha256(text)).substr(0, 32);
}

std::map<std::string, std::string> run_metadata(const ModelFacts& facts, const TrackDescription* track) {
  const run::RunConfig& config = facts.config;
  std::map<std::string, std::string> metadata =
      learn::task_metadata(config.task_text, config.task.data, config.seed);
  metadata.insert({{"run", config.name}, {"round", std::to_string(facts.round)}});
  if (!facts.version.empty()) metadata[kVersionMetadata] = facts.version;
  if (!facts.failure.empty()) metadata[kFailureMetadata] = facts.failure;
  if (track != nullptr) metadata["exclude"] = joined_names(track->exclude, ',');
  return metadata;
}

std::map<std::string, std::string> model_metadata(const ModelFacts& facts, const FinalModel& model) {
  auto metadata = run_metadata(facts, model.track.get());
  metadata["model_hash"] = to_hex(model_hash(model.values.values()));
  return metadata;
}

bool keeps_model(const run::RunConfig& config, std::uint64_t round) {
  return config.keep_models > 0 && round % config.keep_models_every == 0;
}

Result<void> keep_models(const std::filesystem::path& results, const ModelFacts& facts,
                         std::span<const FinalModel> models) {
  FEDGE_TRY_VOID(make_directory(models_of(results)));
  for (const FinalModel& model : models) {
    std::optional<TrackDescription> track;
    if (&model != &models.front()) track = model.track ? *model.track : TrackDescription{};
    FEDGE_TRY_VOID(write_safetensors(kept_model(results, facts.round, track), model.values,
                                     model_metadata(facts, model)));
  }
  const std::vector<std::uint64_t> rounds = kept_rounds(results);
  if (rounds.size() <= facts.config.keep_models) return {};
  const std::uint64_t first = rounds[rounds.size() - facts.config.keep_models];
  remove_models(results, [first](std::uint64_t round) { return round < first; });
  return {};
}

std::vector<std::uint64_t> kept_rounds(const std::filesystem::path& results) {
  std::set<std::uint64_t> rounds;
  std::error_code ignored;
  std::filesystem::directory_iterator entry(models_of(results), ignored);
  for (; !ignored && entry != std::filesystem::directory_iterator(); entry.increment(ignored))
    if (const auto round = round_of(entry->path())) rounds.insert(*round);
  return {rounds.begin(), rounds.end()};
}

std::filesystem::path kept_model(const std::filesystem::path& results, std::uint64_t round,
                                 const std::optional<TrackDescription>& track) {
  std::string number = std::to_string(round);
  number.insert(0, 6 - std::min<std::size_t>(number.size(), 6), '0');
  return models_of(results) /
         (std::string(kRoundPrefix) + number + (track ? "-" + file_name(*track) : "") + ".safetensors");
}

void remove_models_after(const std::filesystem::path& results, std::uint64_t after) {
  remove_unfinished_models(results);
  remove_models(results, [after](std::uint64_t round) { return round > after; });
}

}  // namespace fedge::server
