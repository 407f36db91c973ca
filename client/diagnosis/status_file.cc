#include "client/diagnosis/status_file.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <string_view>
#include <utility>

#include "client/client_engine.h"
#include "core/detail/json.h"
#include "core/platform/files.h"
#include "core/text.h"

namespace fedge::client {
namespace {

constexpr std::size_t kMaxStatusFile = 512 << 10;
constexpr std::size_t kMaxShownFault = 300;  // bytes

std::int64_t calendar_now() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string text_of(const Event& event, std::string_view key) {
  for (const auto& [name, value] : event.fields)
    if (const auto* text = std::get_if<std::string>(&value); name == key && text != nullptr) return *text;
  return {};
}

std::int64_t number_of(const Event& event, std::string_view key) {
  for (const auto& [name, value] : event.fields)
    if (const auto* number = std::get_if<std::int64_t>(&value); name == key && number != nullptr)
      return *number;
  return 0;
}

// The verdict on an update that this event reports; empty for other events.
std::string_view verdict_of(const Event& event) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kVerdicts = {
      {{"update.accepted", "accepted"},
       {"update.refused", "refused"},
       {"update.dropped", "dropped"},
       {"task.failed", "failed"}}};
  for (const auto& [name, verdict] : kVerdicts)
    if (event.name == name) return verdict;
  return {};
}

// Visits each field with its name in the file.
template <class Status, class Visit>
void for_each_field(Status& status, const Visit& visit) {
  visit("link", status.activity.link);
  visit("pid", status.pid);
  visit("link_since", status.link_since);
  visit("link_reason", status.link_reason);
  visit("verdict", status.verdict);
  visit("verdict_round", status.verdict_round);
  visit("verdict_at", status.verdict_at);
  visit("verdict_reason", status.verdict_reason);
  visit("accepted", status.accepted);
  visit("written", status.written);
}

template <class Stream, class Visit>
void for_each_stream_field(Stream& stream, const Visit& visit) {
  visit("name", stream.name);
  visit("state", stream.state);
  visit("source", stream.source);
  visit("kept", stream.kept);
  visit("kept_at", stream.kept_at);
  visit("bytes", stream.bytes);
  visit("fault", stream.fault);
  visit("fault_at", stream.fault_at);
}

bool take(const nlohmann::json& json, const char* name, std::string& out) {
  if (!json.contains(name) || !json[name].is_string()) return false;
  out = json[name].get<std::string>();
  return true;
}
bool take(const nlohmann::json& json, const char* name, std::int64_t& out) {
  if (!json.contains(name) || !json[name].is_number_integer()) return false;
  out = json[name].get<std::int64_t>();
  return true;
}
bool take(const nlohmann::json& json, RunActivity& out) {
  std::int64_t round = 0;
  std::int64_t track = 0;
  if (take(json, "round", round) && take(json, "track", track))
    out.task =
        TaskId{RoundNumber(static_cast<std::uint32_t>(round)), TrackId(static_cast<std::uint32_t>(track))};
  take(json, "reason", out.reason);
  return take(json, "name", out.name) && take(json, "work", out.work);
}

bool take(const nlohmann::json& json, std::vector<RunActivity>& out) {
  if (!json.contains("runs") || !json["runs"].is_array() || json["runs"].size() > kMaxRuns) return false;
  for (const auto& run : json["runs"])
    if (!run.is_object() || !take(run, out.emplace_back())) return false;
  return true;
}

// A daemon of an earlier version writes no streams.
bool take(const nlohmann::json& json, std::vector<StreamActivity>& out) {
  if (!json.contains("streams")) return true;
  if (!json["streams"].is_array() || json["streams"].size() > kMaxStreams) return false;
  bool whole = true;
  for (const auto& stream : json["streams"]) {
    if (!stream.is_object()) return false;
    StreamActivity& one = out.emplace_back();
    for_each_stream_field(one,
                          [&](const char* name, auto& field) { whole = whole && take(stream, name, field); });
  }
  return whole;
}

nlohmann::ordered_json json_of(const RunActivity& run) {
  nlohmann::ordered_json json{{"name", run.name}, {"work", run.work}};
  if (run.task) {
    json["round"] = run.task->round.value();
    json["track"] = run.task->track.value();
  }
  if (!run.reason.empty()) json["reason"] = run.reason;
  return json;
}

}  // namespace

std::filesystem::path status_file(const std::filesystem::path& state_directory) {
  return state_directory / "status.json";
}

Result<DaemonStatus> read_status(const std::filesystem::path& state_directory) {
  const auto file = status_file(state_directory);
  FEDGE_TRY(text, read_file(file, kMaxStatusFile));
  const auto json = parse_json(text);
  DaemonStatus status;
  bool whole = json.is_object();
  for_each_field(status, [&](const char* name, auto& field) { whole = whole && take(json, name, field); });
  if (!whole || !take(json, status.activity.runs) || !take(json, status.streams))
    return Error{ErrorCode::kCorrupt,
                 file.string() + " is damaged; the next start of fedge-client run writes it again"};
  return status;
}

// Tries the lock only if some process may hold it: a daemon that is just starting must not find it taken.
bool daemon_runs(const std::filesystem::path& state_directory) {
  const auto status = read_status(state_directory);
  if (!status || status->activity.link == "stopped" || status->pid <= 0) return false;
  if (::kill(static_cast<pid_t>(status->pid), 0) != 0 && errno == ESRCH) return false;
  return !DirectoryLock::acquire(state_directory);
}

StatusFile::StatusFile(std::filesystem::path state_directory) : directory_(std::move(state_directory)) {
  status_.activity.link = "starting";
  status_.pid = ::getpid();
  status_.link_since = calendar_now();
}

void StatusFile::note(const Event& event) {
  if (event.name == "client.disconnected") status_.link_reason = text_of(event, "reason");
  if (event.name == "client.revoked")
    status_.link_reason = text_of(event, "reason") + "; " + text_of(event, "remedy");
  if (event.name.starts_with("stream.")) note_stream(event);
  const std::string_view verdict = verdict_of(event);
  if (verdict.empty()) return;
  status_.verdict = verdict;
  status_.verdict_round = number_of(event, "round");
  status_.verdict_reason = text_of(event, "reason");
  status_.verdict_at = calendar_now();
  if (verdict == "accepted") ++status_.accepted;
  changed_ = true;
}

void StatusFile::note_stream(const Event& event) {
  const std::string name = text_of(event, "stream");
  auto& streams = status_.streams;
  auto stream = std::ranges::find(streams, name, &StreamActivity::name);
  if (stream == streams.end()) {
    if (streams.size() == kMaxStreams) return;
    stream = streams.insert(stream, {.name = name, .state = "reading", .source = {}});
  }
  changed_ = true;
  if (event.name == "stream.started") {
    stream->state = "reading";
    stream->source = text_of(event, "source");
    stream->bytes = number_of(event, "segment_bytes");
  } else if (event.name == "stream.kept") {
    ++stream->kept;
    stream->kept_at = calendar_now();
    stream->bytes = number_of(event, "segment_bytes");
  } else if (event.name == "stream.ended") {
    stream->state = "ended";
  } else {
    stream->fault = clean_text(text_of(event, "reason"), kMaxShownFault);
    stream->fault_at = calendar_now();
  }
}

void StatusFile::set(Activity activity) {
  if (activity == status_.activity) return;
  if (activity.link != status_.activity.link) status_.link_since = calendar_now();
  status_.activity = std::move(activity);
  changed_ = true;
}

void StatusFile::write() {
  if (!std::exchange(changed_, false)) return;
  status_.written = calendar_now();
  nlohmann::ordered_json json;
  for_each_field(std::as_const(status_), [&](const char* name, const auto& field) { json[name] = field; });
  json["runs"] = nlohmann::ordered_json::array();
  for (const RunActivity& run : status_.activity.runs) json["runs"].push_back(json_of(run));
  json["streams"] = nlohmann::ordered_json::array();
  for (const StreamActivity& stream : status_.streams) {
    auto& one = json["streams"].emplace_back();
    for_each_stream_field(stream, [&](const char* name, const auto& field) { one[name] = field; });
  }
  const auto file = status_file(directory_);
  const std::filesystem::path fresh = file.string() + ".new";
  // json_text escapes invalid UTF-8: a reason may contain bytes of a peer.
  const std::string text = json_text(json, 1) + "\n";
  std::ofstream out(fresh, std::ios::binary);
  out << text;
  out.close();
  if (!out) return;
  std::error_code error;
  std::filesystem::rename(fresh, file, error);
}

}  // namespace fedge::client
