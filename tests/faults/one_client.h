// A short run with one real client and a real coordinator, with whatever happens to the client in between.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/platform/files.h"
#include "server/report/metrics.h"
#include "tests/faults/process.h"
#include "tests/integration/run_program.h"
#include "tests/support/tiny_dataset.h"

namespace fedge::test {

struct OneClient {
  std::string strategy;  // of the run file
  TemporaryDirectory data;
  TemporaryDirectory place;
  std::filesystem::path state = place.path() / "client";
  std::filesystem::path out = place.path() / "out";

  std::vector<std::size_t> completed;  // of each round, afterwards
  // A client that need not end by itself: it may have come back after the run has ended.
  std::unique_ptr<Process> last;

  explicit OneClient(std::string of) : strategy(std::move(of)) { write_tiny_dataset(data); }

  std::vector<std::string> client(std::vector<std::string> before = {}) const {
    before.insert(before.end(), {std::string(FEDGE_BINARY_DIR) + "/fedge-client", "--state-dir",
                                 state.string(), "run", "--once"});
    return before;
  }

  // The hashes of the models of all rounds, once the coordinator has ended. `client` does whatever it takes.
  std::string run_with(const std::function<void()>& client) {
    completed.clear();
    const auto file = place.path() / "run.toml";
    REQUIRE(write_file_atomic(
        file,
        "[run]\nname = \"faults\"\nrounds = 3\nseed = 5\nchunk_size = 8192\n"
        "[model]\nkind = \"softmax\"\n[training]\nbatch_size = 5\n[data]\ndirectory = \"" +
            data.path().string() + "\"\npartition = { clients = 1 }\n[sampling]\nclients_per_round = 1\n" +
            strategy));
    const auto coordinator = (place.path() / "coordinator").string();
    Process server({std::string(FEDGE_BINARY_DIR) + "/fedge-coordinator", "--data-dir", coordinator, "--run",
                    file.string(), "--out", out.string(), "--listen", "127.0.0.1:0"});
    REQUIRE_MESSAGE(server.read_until("coordinator.listening"), server.log());
    server.read_until("\n");
    const auto address = read_file(coordinator + "/address", 1000);
    REQUIRE(address);
    const Outcome token = run("fedge token create --data-dir " + coordinator + " --address " +
                              address->substr(0, address->size() - 1));
    REQUIRE_MESSAGE(token.code == 0, token.output);
    const Outcome joined = run("fedge-client --state-dir " + state.string() + " join " + token.output);
    REQUIRE_MESSAGE(joined.code == 0, joined.output);
    client();
    CHECK_MESSAGE(server.wait() == 0, server.log());
    if (last) {
      last->read_until("client.");  // from then on it can be told to end
      last->signal(SIGTERM);
      const int code = last->wait();
      const bool ended = last->log().find("run.ended") != std::string::npos;  // then a signal ends it at once
      const bool well = code == 0 || (ended && code == 128 + SIGTERM);
      CHECK_MESSAGE(well, last->log());
    }
    const auto rounds = server::read_metrics(out / "metrics.jsonl");
    REQUIRE(rounds);
    std::string hashes;
    for (const auto& round : *rounds) {
      completed.push_back(round.clients_completed);
      hashes += round.model_hash + " ";
    }
    CHECK(rounds->size() == 3);
    return hashes;
  }
};

// What keeps something from task to task.
inline const char* const kScaffold = "[strategy]\nkind = \"scaffold\"\n";
inline const char* const kFeedback =
    "[compression]\nkind = \"top_k\"\nfraction = 0.05\nerror_feedback = true\n";

// The run without a fault.
inline std::string undisturbed(const char* strategy) {
  OneClient example(strategy);
  return example.run_with([&] {
    Process client(example.client());
    CHECK_MESSAGE(client.wait() == 0, client.log());
  });
}

}  // namespace fedge::test
