// Checks from the order of system calls what is durable before a coordinator or a client reports it. A test
// cannot cut the power, but a power failure loses nothing that was synced before.
#include <doctest/doctest.h>

#include <filesystem>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "tests/faults/system_calls.h"
#include "tests/faults/whole_run.h"

using namespace fedge;
using test::Setting;
using test::SystemCall;
using test::Trace;
using test::WholeRun;

namespace {

// A strategy whose clients keep state from task to task.
const Setting kSetting{"scaffold", "[strategy]\nkind = \"scaffold\"\n", 1, 2};

// The offset of a chunk file's payload; the name of its content comes before.
constexpr std::size_t kPayload = 4096;

std::string parent_of(const std::string& path) { return std::filesystem::path(path).parent_path(); }

// A run of one client from joining to the end, with both programs under strace.
struct TracedRun {
  WholeRun whole{kSetting};
  learn::test::TemporaryDirectory traces;
  std::filesystem::path state = traces.path() / "client";

  TracedRun() {
    whole.start(test::strace_into(traces.path() / "coordinator"));
    REQUIRE_MESSAGE(whole.server->wait_for("coordinator.listening"), whole.server_log());
    const auto address = read_file(whole.data() / "address", 1000);
    REQUIRE(address);
    const test::Outcome token = test::run("fedge token create --data-dir " + whole.data().string() +
                                          " --address " + address->substr(0, address->size() - 1));
    REQUIRE_MESSAGE(token.code == 0, token.output);
    auto command = test::strace_into(traces.path() / "client.trace");
    command.insert(command.end(),
                   {std::string(FEDGE_BINARY_DIR) + "/fedge-client", "--state-dir", state.string(), "run",
                    "--once", "--token", token.output.substr(0, token.output.find('\n'))});
    test::LoggedProcess client(command, whole.log_of("client 0"));
    REQUIRE_MESSAGE(client.wait() == 0, client.log());
    REQUIRE_MESSAGE(whole.server->wait() == 0, whole.server_log());
  }

  Trace coordinator() const { return Trace(traces.path() / "coordinator"); }
  Trace client() const { return Trace(traces.path() / "client.trace"); }
  std::string updates() const { return (whole.data() / "runs" / "1" / "chunks" / "updates").string(); }
  std::string models() const { return (whole.data() / "runs" / "1" / "chunks" / "models").string(); }
  std::string journal() const { return (whole.data() / "runs.db-wal").string(); }
};

struct Verdict {
  const SystemCall* received;  // received the last bytes of the update
  const SystemCall* sent;
};

// The coordinator requests all chunks of such a small update at once. The first message after the last chunk
// is therefore the verdict.
std::vector<Verdict> verdicts(const TracedRun& run, const Trace& trace) {
  std::vector<Verdict> all;
  const SystemCall* received = nullptr;
  for (const SystemCall& call : trace.calls()) {
    if (call.is_write() && parent_of(call.file) == run.updates() && call.offset >= kPayload) received = &call;
    if (!call.is_send() || received == nullptr) continue;
    all.push_back({received, &call});
    received = nullptr;
  }
  REQUIRE(all.size() == kSetting.rounds);
  return all;
}

// Returns whether the journal was written after line `after` and durable before line `before`.
bool recorded(const TracedRun& run, const Trace& trace, std::size_t after, std::size_t before) {
  const auto* entry = trace.first(
      after, [&](const SystemCall& call) { return call.is_write() && call.file == run.journal(); });
  return entry != nullptr && trace.durable(*entry, before);
}

// Checks files that replace others: the content must be durable before the rename, and the new name before
// the writer's next step. Files that a power failure may lose are exempt.
std::set<std::string> check_replacements(const Trace& trace) {
  std::set<std::string> names;
  for (const SystemCall& call : trace.calls()) {
    if (!call.is_rename()) continue;
    const std::string& beside = call.paths.at(0);
    const std::string& name = call.paths.at(1);
    if (name.ends_with("/status.json")) continue;
    CAPTURE(name);
    names.insert(std::filesystem::path(name).filename());
    const auto* written = trace.last(
        call.begin, [&](const SystemCall& other) { return other.is_write() && other.file == beside; });
    REQUIRE(written != nullptr);
    const SystemCall* bytes = trace.first_sync(beside, written->end);
    CHECK_MESSAGE((bytes != nullptr && bytes->end < call.begin), "not synced before it has its name");
    const auto* next = trace.first(call.end, [&](const SystemCall& other) {
      return other.thread == call.thread && other.name != "openat";
    });
    CHECK_MESSAGE((next != nullptr && next->is_sync() && next->file == parent_of(name)),
                  "its folder is not synced after it has its name");
  }
  return names;
}

}  // namespace

TEST_CASE("N1, durable: a coordinator has update, name and journal on the disk before it says accepted") {
  if (!test::strace_works()) return;
  const TracedRun run;
  const Trace trace = run.coordinator();
  for (const Verdict& verdict : verdicts(run, trace)) {
    CAPTURE(verdict.sent->begin);
    CHECK(trace.durable(*verdict.received, verdict.sent->begin));
    // The journal never refers to data that could still be lost.
    const SystemCall* payload = trace.first_sync(verdict.received->file, verdict.received->end);
    CHECK((payload != nullptr && recorded(run, trace, payload->end, verdict.sent->begin)));
  }
}

TEST_CASE("N2, durable: a coordinator has models and checkpoint on the disk before the next round's begin") {
  if (!test::strace_works()) return;
  const TracedRun run;
  const Trace trace = run.coordinator();
  const Verdict first = verdicts(run, trace).front();
  const SystemCall* handed_out = trace.first_send(first.sent->begin);
  REQUIRE(handed_out != nullptr);
  std::set<std::string> files;
  std::size_t synced = 0;
  for (const SystemCall& call : trace.calls()) {
    if (!call.is_write() || parent_of(call.file) != run.models()) continue;
    if (call.begin < first.received->end || call.begin > handed_out->begin) continue;
    CAPTURE(call.file);
    files.insert(call.file);
    CHECK(trace.durable(call, handed_out->begin));
    if (const SystemCall* bytes = trace.first_sync(call.file, call.end))
      synced = std::max(synced, bytes->end);
  }
  CHECK(files.size() == 3);  // model, control variate, and the state for the next process
  CHECK(recorded(run, trace, synced, handed_out->begin));
}

TEST_CASE("A1, durable: an enrolment is in the audit log, then in the book, before the client is welcome") {
  if (!test::strace_works()) return;
  const TracedRun run;
  const Trace trace = run.coordinator();
  const std::string log = (run.whole.data() / "audit.log").string();
  const std::string book = (run.whole.data() / "enrolment.db").string();
  // The enrolment is the last record before the first client is admitted.
  const auto* change = trace.last(std::numeric_limits<std::size_t>::max(), [&](const SystemCall& call) {
    return call.is_write() && call.file == book;
  });
  REQUIRE(change != nullptr);
  const auto* entry =
      trace.last(change->begin, [&](const SystemCall& call) { return call.is_write() && call.file == log; });
  REQUIRE(entry != nullptr);
  const SystemCall* recorded = trace.first_sync(log, entry->end);
  CHECK((recorded != nullptr && recorded->end < change->begin));
  const SystemCall* welcome = trace.first_send(entry->end);
  REQUIRE(welcome != nullptr);
  const SystemCall* kept = trace.first_sync(book, change->end);
  CHECK((kept != nullptr && kept->end < welcome->begin));
}

TEST_CASE("N1, durable: a client has its update and the note of it on the disk before it offers it") {
  if (!test::strace_works()) return;
  const TracedRun run;
  const Trace trace = run.client();
  std::size_t notes = 0;
  for (const SystemCall& note : trace.calls()) {
    if (!note.is_rename() || parent_of(note.paths.at(1)) != run.state / "pending") continue;
    ++notes;
    CAPTURE(notes);
    const auto* payload = trace.last(note.begin, [&](const SystemCall& call) {
      return call.is_write() && parent_of(call.file) == run.state / "chunks";
    });
    REQUIRE(payload != nullptr);
    CHECK(trace.durable(*payload, note.begin));
    const SystemCall* named = trace.first_sync(run.state / "pending", note.end);
    const SystemCall* offer = trace.first_send(payload->end);
    REQUIRE(offer != nullptr);
    CHECK((named != nullptr && named->end < offer->begin));
  }
  CHECK(notes == kSetting.rounds);
}

TEST_CASE("N2 row 4, durable: what takes a file's place is synced before, and its folder after") {
  if (!test::strace_works()) return;
  const TracedRun run;
  const auto of_coordinator = check_replacements(run.coordinator());
  for (const char* name : {"address", "enrolment.db", "model.safetensors", "policy.toml", "run.toml"})
    CHECK_MESSAGE(of_coordinator.contains(name), name);
  const auto of_client = check_replacements(run.client());
  for (const char* name : {"membership.json", "node.key", "task-1", "task-2"})
    CHECK_MESSAGE(of_client.contains(name), name);
}

TEST_CASE("R3 N1 row 5, durable: where an update cannot be synced nobody hears accepted, and the run stops") {
  if (!test::strace_works()) return;
  const std::string expected = test::undisturbed(kSetting);
  WholeRun whole(kSetting);
  const std::string file = (whole.data() / "runs" / "1" / "chunks" / "updates" / "1.chunks").string();
  whole.begin({"strace", "-f", "-qq", "-o", "/dev/null", "-P", file, "-e", "trace=fdatasync", "-e",
               "inject=fdatasync:error=EIO:when=1"});
  CHECK_MESSAGE(whole.server->wait() == 1, whole.server_log());
  CHECK(test::contains(whole.server_log(), "cannot sync " + file + ": Input/output error"));
  whole.kill_clients();
  CHECK_FALSE(test::contains(whole.client_logs(), "update.accepted"));
  whole.restart();
  whole.start_clients();
  whole.check(expected);
}
