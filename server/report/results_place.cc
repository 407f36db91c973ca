#include "server/report/results_place.h"

#include <system_error>

#include "core/config/document.h"
#include "core/platform/files.h"

namespace fedge::server {
namespace {

bool is_of_run(const std::filesystem::path& directory, const std::optional<std::string>& run_file) {
  if (!run_file) return false;
  const auto text = read_file(directory / "run.toml", config::kMaxDocumentBytes);
  return text && *text == *run_file;
}

std::filesystem::path choose_default(const ResultsChoice& choice) {
  std::optional<std::filesystem::path> own;
  std::filesystem::path place = kDefaultResults;
  for (int number = 2; holds_results(place); ++number) {
    if (is_of_run(place, choice.going_on)) own = place;
    place = std::string(kDefaultResults) + "-" + std::to_string(number);
  }
  if (is_of_run(place, choice.going_on)) own = place;
  return own.value_or(place);
}

}  // namespace

bool holds_results(const std::filesystem::path& directory) {
  std::error_code ignored;
  for (const char* name : {"model.safetensors", "report.html"})
    if (std::filesystem::exists(directory / name, ignored)) return true;
  const auto size = std::filesystem::file_size(directory / "metrics.jsonl", ignored);
  return !ignored && size > 0;
}

Result<std::filesystem::path> choose_results(const ResultsChoice& choice) {
  if (!choice.out) return choice.force ? std::filesystem::path(kDefaultResults) : choose_default(choice);
  const std::filesystem::path directory = *choice.out;
  if (choice.force || !holds_results(directory) || is_of_run(directory, choice.going_on)) return directory;
  return Error{ErrorCode::kRefused, "--out " + directory.string() +
                                        " holds the results of a run; name another directory, or add --force "
                                        "to overwrite them"};
}

Result<void> remove_results(const std::filesystem::path& directory, const std::filesystem::path& base) {
  for (const char* name :
       {"metrics.jsonl", "metrics.csv", "tracks.csv", "report.html", "model.safetensors"}) {
    const std::filesystem::path path = directory / name;
    std::error_code error;
    if (!base.empty() && std::filesystem::equivalent(path, base, error)) continue;
    if (!std::filesystem::remove(path, error) && error)
      return system_error("cannot remove", path, error.value());
  }
  return {};
}

Result<void> check_new_file(const std::filesystem::path& path, bool force) {
  std::error_code ignored;
  if (force || !std::filesystem::is_regular_file(path, ignored)) return {};
  return Error{ErrorCode::kRefused,
               "--out " + path.string() + " exists; name another file, or add --force to overwrite it"};
}

}  // namespace fedge::server
