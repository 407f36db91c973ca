// A short run with one real client and a real coordinator; the test disturbs the client.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/faults/whole_run.h"

namespace fedge::test {

inline const char* const kScaffold = "[strategy]\nkind = \"scaffold\"\n";
inline const char* const kFeedback =
    "[compression]\nkind = \"top_k\"\nfraction = 0.05\nerror_feedback = true\n";
inline const char* const kOverlap = "overlap = \"stale\"\n[strategy]\nkind = \"parablock\"\n";

inline const char* const kSplitClient = "split";

inline Setting one_client(const std::string& strategy) {
  if (strategy == kSplitClient) return split_setting(1, 3);
  // Rounds overlap only in a model of several blocks.
  const char* model = strategy == kOverlap ? "kind = \"mlp\"\nhidden = [8, 6]" : "kind = \"softmax\"";
  return {"one client", strategy, 1, 3, true, model};
}

struct OneClient {
  WholeRun whole;
  std::filesystem::path state = whole.state_of(0);
  std::filesystem::path log = whole.log_of("client 0");
  // The last client; it need not end by itself, because it may have reconnected after the end of the run.
  std::unique_ptr<LoggedProcess> last;

  explicit OneClient(const std::string& strategy) : whole(one_client(strategy)) {}

  std::vector<std::string> client(std::vector<std::string> before = {}) const {
    return whole.client_command(0, std::move(before));
  }

  // Runs `client`, waits for the coordinator and returns the hashes of the models of all rounds.
  std::string run_with(const std::function<void()>& client) {
    whole.make_tokens();
    whole.restart();
    const Outcome joined = run("fedge-client --state-dir " + state.string() + " join " + whole.token_of(0));
    REQUIRE_MESSAGE(joined.code == 0, joined.output);
    client();
    CHECK_MESSAGE(whole.server->wait() == 0, whole.server->log());
    if (last) {
      (void)last->wait_for("client.");  // from here on it handles SIGTERM
      last->signal(SIGTERM);
      const int code = last->wait();
      const bool ended = contains(last->log(), "run.ended");  // then a signal ends it at once
      const bool well = code == 0 || (ended && code == 128 + SIGTERM);
      CHECK_MESSAGE(well, last->log());
    }
    CHECK(whole.rounds().size() == 3);
    return whole.hashes();
  }
  // Returns the completed clients of each round after the run.
  std::vector<std::size_t> completed() const {
    std::vector<std::size_t> all;
    for (const auto& round : whole.rounds()) all.push_back(round.clients_completed);
    return all;
  }
};

// Settings with which a client keeps state from task to task.

// Returns the hashes of such a run without a fault.
inline std::string undisturbed(const char* strategy) { return undisturbed(one_client(strategy)); }

}  // namespace fedge::test
