#include "server/policy_file.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "core/platform/files.h"
#include "server/data_directory.h"

namespace fedge::server {
namespace {

constexpr std::size_t kMaxFile = config::kMaxDocumentBytes;

std::string on_one_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  std::replace(text.begin(), text.end(), '\n', ';');
  return text;
}

Result<aggregation::Policy> parse_policy(const std::string& text, const std::filesystem::path& file) {
  FEDGE_TRY(document, config::parse_toml(text, file.string()));
  return aggregation::read_policy(document);
}

}  // namespace

PolicyFile::PolicyFile(std::filesystem::path data_directory, RunNumber run)
    : data_directory_(std::move(data_directory)),
      run_(run),
      file_(run_directory(data_directory_, run) / "policy.toml") {}

Result<void> PolicyFile::replace(const aggregation::Policy& policy,
                                 const std::optional<AuditEvent>& event) const {
  const std::string text = "# The disagreements of run " + std::to_string(run_.value()) +
                           ". Change them with: fedge tracks add, fedge tracks lift\n" +
                           aggregation::to_toml(policy);
  if (text.size() > kMaxFile)
    return Error{ErrorCode::kResource,
                 file_.string() + " would be longer than " + std::to_string(kMaxFile) + " bytes"};
  if (event) FEDGE_TRY_VOID(AuditLog(data_directory_).append(*event));
  return write_file_atomic(file_, text);
}

Result<aggregation::Policy> PolicyFile::open(const aggregation::Policy& own) {
  const FileLock lock(lock_path());
  if (!lock.held()) return system_error("cannot lock", file_, errno);
  known_ = own;
  std::error_code ignored;
  if (!std::filesystem::exists(file_, ignored)) FEDGE_TRY_VOID(replace(own, std::nullopt));
  FEDGE_TRY(text, read_file(file_, kMaxFile));
  seen_ = std::move(text);
  FEDGE_TRY(policy, parse_policy(seen_, file_));
  if (policy.clients != own.clients || policy.names != own.names)
    return invalid(file_.string() + " names other clients than the run; remove the file");
  known_ = std::move(policy);
  return known_;
}

Result<std::optional<aggregation::Policy>> PolicyFile::changed() {
  const auto text = read_file(file_, kMaxFile);
  // Reports an error once, not at every read.
  const std::string& now = text ? *text : text.error().message;
  if (now == seen_) return std::optional<aggregation::Policy>();
  seen_ = now;
  if (!text) return text.error();
  FEDGE_TRY(policy, parse_policy(*text, file_));
  if (policy.clients != known_.clients || policy.names != known_.names)
    return invalid(file_.string() + " names other clients than the run");
  if (policy == known_) return std::optional<aggregation::Policy>();
  known_ = policy;
  return std::optional(std::move(policy));
}

Result<void> PolicyFile::must_exist() const {
  std::error_code ignored;
  if (std::filesystem::exists(file_, ignored)) return {};
  return Error{ErrorCode::kNotFound,
               "there is no " + file_.string() +
                   "; a coordinator creates this file when it starts a run with synchronous rounds and a "
                   "server, unless the run uses secure aggregation without enough client noise"};
}

Result<aggregation::Policy> PolicyFile::read() const {
  FEDGE_TRY_VOID(must_exist());
  FEDGE_TRY(text, read_file(file_, kMaxFile));
  return parse_policy(text, file_);
}

Result<void> PolicyFile::close(const std::string& reason) const {
  const FileLock lock(lock_path());
  if (!lock.held()) return system_error("cannot lock", file_, errno);
  std::error_code ignored;
  if (std::filesystem::exists(closed_path(), ignored)) return {};
  return write_file_atomic(closed_path(), reason);
}

Result<std::size_t> PolicyFile::add(const config::Table& disagreement) {
  FEDGE_TRY_VOID(must_exist());
  const FileLock lock(lock_path());
  if (!lock.held()) return system_error("cannot lock", file_, errno);
  if (const auto closed = read_file(closed_path(), kMaxFile)) return Error{ErrorCode::kRefused, *closed};
  FEDGE_TRY(text, read_file(file_, kMaxFile));
  FEDGE_TRY(document, config::parse_toml(text, file_.string()));
  config::Value& list =
      document.root.try_emplace("disagreement", config::Value{config::Array{}, file_.string()}).first->second;
  auto* entries = std::get_if<config::Array>(&list.data);
  if (entries == nullptr) return invalid(file_.string() + ": \"disagreement\" is not an array of tables");
  entries->push_back({disagreement, "the new one"});
  FEDGE_TRY(policy, aggregation::read_policy(document));
  const std::size_t place = policy.disagreements.size();
  FEDGE_TRY_VOID(replace(policy, event_by(actor_, "policy.added", "disagreement " + std::to_string(place),
                                          {{"run", std::to_string(run_.value())},
                                           {"entry", on_one_line(config::canonical_toml(disagreement))}})));
  return place;
}

Result<void> PolicyFile::lift(std::size_t place) {
  FEDGE_TRY_VOID(must_exist());
  const FileLock lock(lock_path());
  if (!lock.held()) return system_error("cannot lock", file_, errno);
  FEDGE_TRY(text, read_file(file_, kMaxFile));
  FEDGE_TRY(policy, parse_policy(text, file_));
  auto& all = policy.disagreements;
  if (place == 0 || place > all.size())
    return Error{ErrorCode::kNotFound, "there is no disagreement " + std::to_string(place) + " in " +
                                           file_.string() + ", which lists only " +
                                           std::to_string(all.size())};
  const aggregation::Disagreement& entry = all[place - 1];
  std::string lifted = std::string(aggregation::name_of(entry.kind)) + " of";
  for (const ClientId client : entry.clients) lifted += " " + policy.name(client);
  if (!entry.against.empty()) lifted += " against";
  for (const ClientId client : entry.against) lifted += " " + policy.name(client);
  all.erase(all.begin() + static_cast<std::ptrdiff_t>(place - 1));
  return replace(policy, event_by(actor_, "policy.lifted", "disagreement " + std::to_string(place),
                                  {{"run", std::to_string(run_.value())}, {"entry", lifted}}));
}

}  // namespace fedge::server
