#include "server/policy_file.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "core/platform/files.h"

namespace fedge::server {
namespace {

constexpr std::size_t kMaxFile = config::kMaxDocumentBytes;

std::string first_line_of(RunId run) {
  char id[17];
  std::snprintf(id, sizeof id, "%016llx", static_cast<unsigned long long>(run.value()));
  return std::string("# The disagreements of run ") + id +
         ". Change them with: fedge tracks add, fedge tracks lift\n";
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n') + 1); }

std::string on_one_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  std::replace(text.begin(), text.end(), '\n', ';');
  return text;
}

Result<aggregation::Policy> parse(const std::string& text, const std::filesystem::path& file) {
  FEDGE_TRY(document, config::parse_toml(text, file.string()));
  return aggregation::read_policy(document);
}

}  // namespace

PolicyFile::PolicyFile(std::filesystem::path data_directory)
    : directory_(std::move(data_directory)), file_(directory_ / "policy.toml") {}

Result<void> PolicyFile::replace(const std::string& first_line, const aggregation::Policy& policy,
                                 const std::optional<AuditEvent>& event) const {
  const std::string text = first_line + aggregation::to_toml(policy);
  if (text.size() > kMaxFile)
    return Error{ErrorCode::kResource,
                 file_.string() + " would be longer than " + std::to_string(kMaxFile) + " bytes"};
  if (event) FEDGE_TRY_VOID(AuditLog(directory_).append(*event));
  return write_file_atomic(file_, text);
}

Result<aggregation::Policy> PolicyFile::open(RunId run, const aggregation::Policy& own) {
  const FileLock lock(directory_ / "policy.lock");
  if (!lock.held()) return system_error("cannot lock the policy in", directory_, errno);
  auto text = read_file(file_, kMaxFile);
  if (!text && text.error().code != ErrorCode::kNotFound) return text.error();
  known_ = own;
  if (!text || first_line(*text) != first_line_of(run)) {
    if (text) FEDGE_TRY_VOID(write_file_atomic(directory_ / "policy-before.toml", *text));
    FEDGE_TRY_VOID(replace(first_line_of(run), own, std::nullopt));
    FEDGE_TRY(written, read_file(file_, kMaxFile));
    seen_ = std::move(written);
    return known_;
  }
  seen_ = std::move(*text);
  FEDGE_TRY(policy, parse(seen_, file_));
  if (policy.clients != own.clients || policy.names != own.names)
    return invalid(file_.string() + " speaks of other clients than the run; remove it");
  known_ = std::move(policy);
  return known_;
}

Result<void> PolicyFile::remove() const {
  std::error_code error;
  std::filesystem::remove(file_, error);
  return error ? Result<void>(system_error("cannot remove", file_, error.value())) : Result<void>();
}

Result<std::optional<aggregation::Policy>> PolicyFile::changed() {
  const auto text = read_file(file_, kMaxFile);
  // What is wrong is said once, not each time that somebody looks.
  const std::string& now = text ? *text : text.error().message;
  if (now == seen_) return std::optional<aggregation::Policy>();
  seen_ = now;
  if (!text) return text.error();
  FEDGE_TRY(policy, parse(*text, file_));
  if (policy.clients != known_.clients || policy.names != known_.names)
    return invalid(file_.string() + " speaks of other clients than the run");
  if (policy == known_) return std::optional<aggregation::Policy>();
  known_ = policy;
  return std::optional(std::move(policy));
}

Result<std::string> PolicyFile::read_text() const {
  auto text = read_file(file_, kMaxFile);
  if (!text && text.error().code == ErrorCode::kNotFound)
    return Error{ErrorCode::kNotFound,
                 "there is no " + file_.string() +
                     "; a coordinator makes it when it begins a run of synchronous rounds"};
  return text;
}

Result<aggregation::Policy> PolicyFile::read() const {
  FEDGE_TRY(text, read_text());
  return parse(text, file_);
}

Result<std::size_t> PolicyFile::add(const config::Table& disagreement) {
  const FileLock lock(directory_ / "policy.lock");
  if (!lock.held()) return system_error("cannot lock the policy in", directory_, errno);
  FEDGE_TRY(text, read_text());
  FEDGE_TRY(document, config::parse_toml(text, file_.string()));
  config::Value& list =
      document.root.try_emplace("disagreement", config::Value{config::Array{}, file_.string()}).first->second;
  auto* entries = std::get_if<config::Array>(&list.data);
  if (entries == nullptr) return invalid(file_.string() + ": disagreement is not a list of tables");
  entries->push_back({disagreement, "the new one"});
  FEDGE_TRY(policy, aggregation::read_policy(document));
  const std::size_t place = policy.disagreements.size();
  FEDGE_TRY_VOID(replace(first_line(text), policy,
                         AuditEvent{operator_name(),
                                    "policy.added",
                                    "disagreement " + std::to_string(place),
                                    {{"entry", on_one_line(config::canonical_toml(disagreement))}}}));
  return place;
}

Result<void> PolicyFile::lift(std::size_t place) {
  const FileLock lock(directory_ / "policy.lock");
  if (!lock.held()) return system_error("cannot lock the policy in", directory_, errno);
  FEDGE_TRY(text, read_text());
  FEDGE_TRY(policy, parse(text, file_));
  auto& all = policy.disagreements;
  if (place == 0 || place > all.size())
    return Error{ErrorCode::kNotFound, "there is no disagreement " + std::to_string(place) + " in " +
                                           file_.string() + ", which has " + std::to_string(all.size())};
  all.erase(all.begin() + static_cast<std::ptrdiff_t>(place - 1));
  return replace(first_line(text), policy,
                 AuditEvent{operator_name(), "policy.lifted", "disagreement " + std::to_string(place), {}});
}

}  // namespace fedge::server
