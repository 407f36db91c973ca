#include "server/report/results_place.h"

#include <sys/file.h>

#include <cerrno>
#include <system_error>

#include "core/config/document.h"
#include "core/platform/files.h"
#include "server/report/event_file.h"
#include "server/report/model_files.h"

namespace fedge::server {
namespace {

constexpr const char* kClaimed = "metrics.jsonl";  // the file that a claim locks

bool is_of_run(const std::filesystem::path& directory, const std::optional<std::string>& run_file) {
  if (!run_file) return false;
  const auto text = read_file(directory / "run.toml", config::kMaxDocumentBytes);
  return text && *text == *run_file;
}

std::filesystem::path default_place(int number) {
  return kDefaultResults + (number == 1 ? std::string() : "-" + std::to_string(number));
}

Result<ResultsClaim> claim_default(const ResultsChoice& choice) {
  if (choice.force) return ResultsClaim::take(kDefaultResults);
  std::optional<std::filesystem::path> own;
  int number = 1;
  for (; holds_results(default_place(number)); ++number)
    if (is_of_run(default_place(number), choice.going_on)) own = default_place(number);
  if (is_of_run(default_place(number), choice.going_on)) own = default_place(number);
  if (own) return ResultsClaim::take(*own);
  for (;; ++number) {
    if (holds_results(default_place(number))) continue;
    auto claim = ResultsClaim::take(default_place(number));
    if (claim || claim.error().code != ErrorCode::kUnavailable) return claim;
  }
}

}  // namespace

Result<ResultsClaim> ResultsClaim::take(const std::filesystem::path& directory) {
  FEDGE_TRY_VOID(make_directory(directory));
  const auto path = directory / kClaimed;
  File file(std::fopen(path.c_str(), "ae"));
  if (!file) return system_error("cannot write", path, errno);
  if (::flock(::fileno(file.get()), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    return Error{ErrorCode::kUnavailable,
                 directory.string() + " is being written by another run; name another directory with --out"};
  return ResultsClaim(directory, std::move(file));
}

bool holds_results(const std::filesystem::path& directory) {
  std::error_code ignored;
  for (const char* name : {"model.safetensors", "report.html"})
    if (std::filesystem::exists(directory / name, ignored)) return true;
  const auto size = std::filesystem::file_size(directory / kClaimed, ignored);
  return !ignored && size > 0;
}

Result<ResultsClaim> choose_results(const ResultsChoice& choice) {
  if (!choice.out) return claim_default(choice);
  const std::filesystem::path directory = *choice.out;
  std::error_code ignored;
  const bool allowed = choice.force || !holds_results(directory) || is_of_run(directory, choice.going_on);
  if (allowed || std::filesystem::exists(directory / kClaimed, ignored)) {
    FEDGE_TRY(claim, ResultsClaim::take(directory));
    if (allowed) return claim;
  }
  return Error{ErrorCode::kRefused,
               "--out " + directory.string() + " holds the results of " +
                   (choice.going_on ? "another run (its run.toml is not this run file)" : "a run") +
                   "; name another directory, or add --force to overwrite them"};
}

Result<void> remove_results(const std::filesystem::path& directory, const std::filesystem::path& base) {
  std::error_code error;
  // The file of the claim stays: its lock would go with it.
  if (const auto path = directory / kClaimed; std::filesystem::exists(path, error)) {
    std::filesystem::resize_file(path, 0, error);
    if (error) return system_error("cannot empty", path, error.value());
  }
  for (const char* name : {"metrics.csv", "tracks.csv", "report.html", "model.safetensors", kEventFileName}) {
    const std::filesystem::path path = directory / name;
    if (!base.empty() && std::filesystem::equivalent(path, base, error)) continue;
    if (!std::filesystem::remove(path, error) && error)
      return system_error("cannot remove", path, error.value());
  }
  remove_models_after(directory, 0);
  return {};
}

Result<void> check_new_file(const std::filesystem::path& path, bool force) {
  std::error_code ignored;
  if (force || !std::filesystem::is_regular_file(path, ignored)) return {};
  return Error{ErrorCode::kRefused,
               "--out " + path.string() + " exists; name another file, or add --force to overwrite it"};
}

}  // namespace fedge::server
