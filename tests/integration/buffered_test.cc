// Asynchronous runs (FedBuff) over real links: they do not wait for stragglers or dropouts.
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <filesystem>

#include "core/platform/files.h"
#include "server/policy_file.h"
#include "tests/integration/hostile_peer.h"

using namespace fedge;
using test::Federation;
using test::HostilePeer;

namespace {

// `fedge-client` as a user starts it; the destructor kills it if it still runs.
class ClientProcess {
 public:
  explicit ClientProcess(const std::filesystem::path& state) : log_(state / "log") {
    const std::string program = FEDGE_BINARY_DIR "/fedge-client";
    std::vector<std::string> arguments = {program, "--state-dir", state.string(), "run", "--once"};
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t files;
    REQUIRE(::posix_spawn_file_actions_init(&files) == 0);
    REQUIRE(::posix_spawn_file_actions_addopen(&files, 2, log_.c_str(), O_WRONLY | O_CREAT, 0600) == 0);
    REQUIRE(::posix_spawn(&pid_, program.c_str(), &files, nullptr, argv.data(), environ) == 0);
    ::posix_spawn_file_actions_destroy(&files);
  }
  ~ClientProcess() {
    if (pid_ > 0) kill();
  }
  ClientProcess(const ClientProcess&) = delete;
  ClientProcess& operator=(const ClientProcess&) = delete;

  // Kills the client; afterwards its sockets are closed.
  void kill() {
    ::kill(pid_, SIGKILL);
    wait();
  }
  // Returns the exit code, or 128 plus the signal that ended it.
  int wait() {
    int status = 0;
    REQUIRE(::waitpid(pid_, &status, 0) == pid_);
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  std::string log() const {
    const auto text = read_file(log_, 1 << 20);
    return text ? *text : text.error().message;
  }

 private:
  std::filesystem::path log_;
  pid_t pid_ = 0;
};

// Returns the events from the first one that contains `text`.
std::vector<std::string> since(const Federation& f, const std::string& text) {
  const auto first = std::find_if(f.events.begin(), f.events.end(), [&](const std::string& event) {
    return event.find(text) != std::string::npos;
  });
  return {first, f.events.end()};
}

bool any(const std::vector<std::string>& events, const std::string& text) {
  return std::any_of(events.begin(), events.end(),
                     [&](const std::string& event) { return event.find(text) != std::string::npos; });
}

void check_moves(const Federation& f, std::size_t moves, std::size_t buffer) {
  REQUIRE(f.rounds.size() == moves);
  for (std::size_t i = 0; i < moves; ++i) {
    CHECK(f.rounds[i].round == i + 1);
    CHECK(f.rounds[i].clients_completed == buffer);
    if (i > 0) CHECK(f.rounds[i].model_hash != f.rounds[i - 1].model_hash);
  }
  CHECK(f.reported("run.ending reason=\"all rounds are done\""));
  CHECK(f.rounds.back().model_hash == to_hex(model_hash((*f.final_models)->front().values.values())));
}

}  // namespace

TEST_CASE("fedbuff: the model moves without the slow client, whose update then counts with its staleness") {
  Federation f(3, {"strategy.kind=fedbuff", "strategy.schedule.buffer_size=2", "run.wait_for_clients=3",
                   "run.rounds=4"});
  f.add_client();
  f.add_client();
  HostilePeer slow(f);
  slow.join(f.token());
  slow.wait_for_task(1);
  const auto update = slow.zero_update();
  const auto offer = slow.offer(update);
  f.run_until([&] { return f.rounds.size() == 2; });
  CHECK(!f.reported("update.buffered client=2"));
  // Without the others the model does not move: their unsubmitted updates are lost.
  f.stop_client(0);
  f.stop_client(1);
  f.run_until([&] { return f.count("client.disconnected") == 2; });
  slow.send_update(offer, update);
  CHECK_MESSAGE(slow.verdict->accepted, slow.verdict->reason);
  CHECK(f.reported("update.buffered client=2 task=1 staleness=2"));
  slow.wait_for_task(2);  // from the current model; it never delivers this one
  f.start_client(0);
  f.run_to_the_end();
  check_moves(f, 4, 2);
  CHECK(f.count("update.buffered client=2") == 1);
  f.run_until([&] { return slow.closed; });
  CHECK(slow.ended);
  f.io.run_for(std::chrono::seconds(20));
  CHECK(f.io.stopped());  // all have ended, and no work is pending
}

TEST_CASE("fedbuff: an update staler than the bound is refused by name, and its client gets a fresh task") {
  Federation f(2, {"strategy.kind=fedbuff", "strategy.schedule.buffer_size=1", "run.wait_for_clients=2",
                   "strategy.schedule.max_staleness=1", "run.rounds=3"});
  f.add_client();
  HostilePeer slow(f);
  slow.join(f.token());
  slow.wait_for_task(1);
  const auto update = slow.zero_update();
  const auto offer = slow.offer(update);
  f.run_until([&] { return f.rounds.size() == 2; });
  f.stop_client(0);
  f.run_until([&] { return f.count("client.disconnected") == 1; });
  slow.send_update(offer, update);
  CHECK(!slow.verdict->accepted);
  CHECK(slow.verdict->code == ErrorCode::kStale);
  CHECK(slow.verdict->reason ==
        "the model was updated 2 times since this task began; the limit (strategy.schedule.max_staleness) is "
        "1");
  slow.wait_for_task(2);
  slow.send_update(slow.offer(update), update);
  CHECK_MESSAGE(slow.verdict->accepted, slow.verdict->reason);
  f.run_to_the_end();
  REQUIRE(f.rounds.size() == 3);
  CHECK(f.rounds[2].model_hash == f.rounds[1].model_hash);  // moved by an update of zeros
}

TEST_CASE("fedbuff: a client process killed in the middle is not missed") {
  Federation f(2, {"strategy.kind=fedbuff", "strategy.schedule.buffer_size=2", "run.wait_for_clients=2",
                   "run.rounds=20"});
  ClientProcess victim(f.enrol("victim"));
  f.run_until([&] { return f.reported("client.connected client=0"); });
  ClientProcess survivor(f.enrol("survivor"));
  f.run_until([&] { return f.rounds.size() == 1; });
  // Both have tasks: the coordinator has just assigned them and handles nothing while this call blocks.
  victim.kill();
  const std::string lost = "client.dropped client=0 reason=\"connection lost\"";
  f.run_until([&] { return f.reported(lost); });
  CHECK(f.rounds.size() < 20);
  f.run_to_the_end();
  check_moves(f, 20, 2);
  CHECK(!any(since(f, lost), "update.buffered client=0"));
  CHECK(any(since(f, lost), "update.buffered client=1"));
  CHECK(f.count("client.dropped") == 1);
  f.io.run_for(std::chrono::seconds(20));
  CHECK(f.io.stopped());
  CHECK_MESSAGE(survivor.wait() == 0, survivor.log());
}

TEST_CASE("an asynchronous run: however fast its buffers fill, every move has figures of its own") {
  Federation f(4, {"run.rounds=60", "strategy.kind=fedbuff", "strategy.schedule.buffer_size=1"});
  for (int i = 0; i < 4; ++i) f.add_client();
  f.run_to_the_end();
  REQUIRE(f.rounds.size() == 60);
  for (std::size_t i = 0; i < 60; ++i) {
    CHECK(f.rounds[i].round == i + 1);
    CHECK(f.rounds[i].model_hash.size() == 64);
    CHECK(f.rounds[i].clients_completed == 1);
  }
}

TEST_CASE("an asynchronous run has one model for all, and so no policy to add a disagreement to") {
  Federation f(2, {"strategy.kind=fedbuff", "strategy.schedule.buffer_size=2"});
  const auto refused = f.policy().read();
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("synchronous rounds") != std::string::npos);
}
