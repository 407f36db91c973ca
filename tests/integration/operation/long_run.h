// A simulation that keeps state on the clients and at the server, as a user starts it.
#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/platform/files.h"
#include "server/report/metrics.h"
#include "tests/integration/run_program.h"
#include "tests/support/tiny_dataset.h"

namespace fedge::test {

// A run of the tiny data set with state on the clients and at the server.
struct LongRun {
  learn::test::TemporaryDirectory data;
  learn::test::TemporaryDirectory place;
  LongRun() { write_tiny_dataset(data); }
  std::string file(const std::string& name) const { return (place.path() / name).string(); }
  std::vector<std::string> command(const std::string& out, const std::vector<std::string>& more) const {
    std::vector<std::string> words = {FEDGE_BINARY_DIR "/fedge-sim", "run",
                                      FEDGE_SOURCE_DIR "/examples/fashion-mlp.toml", "--out", file(out)};
    for (const std::string& setting :
         {"data.directory=" + data.path().string(), std::string("data.partition.clients=10"),
          std::string("sampling.clients_per_round=4"), std::string("run.rounds=60"),
          std::string("model.kind=softmax"), std::string("strategy.kind=scaffold"),
          std::string("run.keep_best=accuracy"), std::string("simulation.dropout.probability=0.2"),
          std::string("run.tensorboard=true"), std::string("simulation.participants=true")})
      words.insert(words.end(), {"--set", setting});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  Outcome run(const std::string& out, const std::vector<std::string>& more) const {
    std::string line;
    for (const std::string& word : command(out, more)) line += "'" + word + "' ";
    return run_command(line);
  }
  std::vector<server::RoundMetrics> rounds(const std::string& out) const {
    auto read = server::read_metrics(file(out) + "/metrics.jsonl");
    REQUIRE(read);
    for (server::RoundMetrics& round : *read) round.wall_seconds = 0;
    return std::move(*read);
  }
  // The columns of the participants, by path.
  std::map<std::string, std::string> participants(const std::string& out) const {
    std::map<std::string, std::string> columns;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(file(out + "/participants")))
      if (entry.is_regular_file())
        columns[entry.path().lexically_relative(file(out)).string()] = *read_file(entry.path(), 1 << 26);
    return columns;
  }
  std::string content(const std::string& path) const {
    auto read = read_file(file(path), 1 << 26);
    REQUIRE_MESSAGE(read, read.error().message);
    return std::move(*read);
  }
};

}  // namespace fedge::test
