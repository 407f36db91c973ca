#include "server/report/results_place.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <iterator>
#include <string>

#include "core/platform/files.h"
#include "tests/support/tiny_dataset.h"

using namespace fedge;
using learn::test::TemporaryDirectory;

namespace {

void write_results(const std::filesystem::path& directory, const std::string& run_file) {
  REQUIRE(make_directory(directory));
  REQUIRE(write_file_atomic(directory / "run.toml", run_file));
  REQUIRE(write_file_atomic(directory / "metrics.jsonl", "{}\n"));
}

}  // namespace

TEST_CASE("results place: a directory with another run's results is refused unless they may be overwritten") {
  const TemporaryDirectory directory;
  const std::string out = (directory.path() / "out").string();
  CHECK(server::choose_results({.out = out}));
  write_results(out, "a = 1\n");
  const auto refused = server::choose_results({.out = out});
  REQUIRE(!refused);
  CHECK(refused.error().code == ErrorCode::kRefused);
  CHECK(refused.error().message.find(out) != std::string::npos);
  CHECK(refused.error().message.find("--force") != std::string::npos);
  CHECK(server::choose_results({.out = out, .force = true}));
  CHECK(server::choose_results({.out = out, .going_on = "a = 1\n"}));
  CHECK_FALSE(server::choose_results({.out = out, .going_on = "a = 2\n"}));
}

TEST_CASE("results place: each of a run's lasting files counts as results, an empty directory does not") {
  for (const char* name : {"metrics.jsonl", "model.safetensors", "report.html"}) {
    const TemporaryDirectory directory;
    CHECK_FALSE(server::holds_results(directory.path()));
    REQUIRE(write_file_atomic(directory.path() / name, "x"));
    CHECK(server::holds_results(directory.path()));
  }
  const TemporaryDirectory begun;  // a run interrupted before its first round
  REQUIRE(write_file_atomic(begun.path() / "metrics.jsonl", ""));
  CHECK_FALSE(server::holds_results(begun.path()));
}

TEST_CASE("results place: results are removed, but not the run file and the model that the next run reads") {
  const TemporaryDirectory directory;
  const auto write = [&] {
    write_results(directory.path(), "a = 1\n");
    for (const char* name : {"metrics.csv", "tracks.csv", "report.html", "model.safetensors",
                             "events.out.tfevents.fedge", "own.txt"})
      REQUIRE(write_file_atomic(directory.path() / name, "x"));
  };
  const auto files = [&] {
    return std::distance(std::filesystem::directory_iterator(directory.path()),
                         std::filesystem::directory_iterator());
  };
  write();
  CHECK(server::remove_results(directory.path(), ""));
  CHECK_FALSE(server::holds_results(directory.path()));
  CHECK(files() == 3);
  CHECK(std::filesystem::file_size(directory.path() / "metrics.jsonl") == 0);
  CHECK(std::filesystem::exists(directory.path() / "run.toml"));
  CHECK(std::filesystem::exists(directory.path() / "own.txt"));
  write();
  CHECK(server::remove_results(directory.path(), directory.path() / "." / "model.safetensors"));
  CHECK(files() == 4);
  CHECK(std::filesystem::exists(directory.path() / "model.safetensors"));
  CHECK(server::remove_results(directory.path() / "none", ""));
  REQUIRE(make_directory(directory.path() / "report.html" / "occupied"));
  const auto stuck = server::remove_results(directory.path(), "");
  REQUIRE(!stuck);
  CHECK(stuck.error().message.find("report.html") != std::string::npos);
}

TEST_CASE("results place: without --out the next free default is taken, or that of the run that goes on") {
  const TemporaryDirectory directory;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(directory.path());
  CHECK(server::choose_results({})->directory() == "fedge-out");
  write_results("fedge-out", "a = 1\n");
  CHECK(server::choose_results({})->directory() == "fedge-out-2");
  write_results("fedge-out-2", "a = 2\n");
  CHECK(server::choose_results({})->directory() == "fedge-out-3");
  CHECK(server::choose_results({.going_on = "a = 1\n"})->directory() == "fedge-out");
  CHECK(server::choose_results({.force = true})->directory() == "fedge-out");
  std::filesystem::current_path(before);
}

TEST_CASE(
    "results place: a directory is taken while another run writes into it, even before its first round") {
  const TemporaryDirectory directory;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(directory.path());
  {
    const auto first = server::choose_results({});
    REQUIRE(first);
    CHECK(first->directory() == "fedge-out");
    CHECK(server::choose_results({})->directory() == "fedge-out-2");
    for (const std::optional<std::string>& out : {std::optional<std::string>("fedge-out"), {}}) {
      const auto refused = server::choose_results({.out = out, .force = true});
      REQUIRE(!refused);
      CHECK(refused.error().message ==
            "fedge-out is being written by another run; name another directory with --out");
    }
  }
  CHECK(server::choose_results({})->directory() == "fedge-out");
  std::filesystem::current_path(before);
}
