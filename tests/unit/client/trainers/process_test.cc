#include "client/trainers/process.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/stat.h>

#include <cerrno>
#include <fstream>
#include <string>
#include <vector>

#include "client/trainers/line_log.h"
#include "client/trainers/trainer_update.h"
#include "core/platform/files.h"
#include "core/safetensors.h"
#include "tests/support/tiny_dataset.h"

namespace fedge::client {
namespace {

using Words = std::vector<std::string>;

Words split(const std::string& text) {
  const auto words = split_command(text);
  return words ? *words : Words{"error: " + words.error().message};
}

// Runs a shell script with these options and returns how it ended.
std::string outcome(ProcessOptions options, const std::string& script) {
  options.command = {"/bin/sh", "-c", script};
  const auto process = ChildProcess::start(options);
  REQUIRE_MESSAGE(process, process.error().message);
  REQUIRE((*process)->ends_within(seconds(60)));
  return (*process)->end(Duration::zero());
}

std::vector<std::string> fed(LineLog& log, const std::string& bytes, double at) {
  std::vector<std::string> lines;
  log.feed(bytes, Time(seconds(at)), [&](const std::string& line) { lines.push_back(line); });
  return lines;
}

}  // namespace

TEST_CASE("command: split at blanks, with quotation marks and backslashes as a shell has them") {
  CHECK(split("python3 train.py") == Words{"python3", "train.py"});
  CHECK(split("  a\tb \n c ") == Words{"a", "b", "c"});
  CHECK(split("'my program' \"x y\"z \\\"q\\ r") == Words{"my program", "x yz", "\"q r"});
  CHECK(split("a '' \"\"") == Words{"a", "", ""});
  CHECK(split("a 'b\\' \"c\\\"d\"") == Words{"a", "b\\", "c\"d"});
  CHECK(split("echo $HOME; rm *") == Words{"echo", "$HOME;", "rm", "*"});
  CHECK(split("") == Words{"error: the command names no program"});
  CHECK(split("'' x") == Words{"error: the command names no program"});
  CHECK(split("a 'b") == Words{"error: the command has an unclosed ' quote"});
}

TEST_CASE("process: how it ended is told") {
  CHECK(outcome({}, "exit 7") == "ended with exit status 7");
  CHECK(outcome({}, "kill -SEGV $$") == "was ended by signal 11 (Segmentation fault)");
}

TEST_CASE("process: a program that ignores the request to end is killed") {
  const test::TemporaryDirectory directory;
  const auto ready = directory.path() / "ready";
  REQUIRE(::mkfifo(ready.c_str(), 0600) == 0);
  const auto process = ChildProcess::start(
      {.command = {"/bin/sh", "-c",
                   "trap '' TERM; echo ready > '" + ready.string() + "'; exec tail -f /dev/null"}});
  REQUIRE(process);
  std::string word;
  std::ifstream(ready) >> word;  // blocks until the process is ready
  REQUIRE(word == "ready");
  CHECK((*process)->end(seconds(0.2)) == "was ended by signal 9 (Killed)");
  CHECK((*process)->end(seconds(0.2)) == "");
}

TEST_CASE("process: what a program leaves behind in sessions of its own ends with the last program") {
  const test::TemporaryDirectory directory;
  const auto started = [&](const std::string& name) {
    const auto text = read_file(directory.path() / name, 100);
    REQUIRE(text);
    return static_cast<pid_t>(std::stoi(*text));
  };
  // A process in a new session and its child are out of reach of the process group.
  const std::string script =
      "cd '" + directory.path().string() +
      "'; mkfifo ready; setsid sh -c 'tail -f /dev/null & echo $! > inner; echo > ready; wait' & "
      "echo $! > outer; read line < ready; exit 3";
  auto other = ChildProcess::start({.command = {"tail", "-f", "/dev/null"}});
  REQUIRE(other);
  CHECK(outcome({}, script) == "ended with exit status 3");
  for (const char* name : {"inner", "outer"}) CHECK(::kill(started(name), 0) == 0);
  (*other)->end(Duration::zero());
  for (const char* name : {"inner", "outer"}) {
    const bool there = ::kill(started(name), 0) == 0;
    CHECK_FALSE(there);
    CHECK((there || errno == ESRCH));
  }
}

TEST_CASE("process: with a memory limit a program that takes more fails, one that takes less does not") {
  const auto python = [](std::uint64_t limit, const char* bytes) {
    const auto process =
        ChildProcess::start({.command = {"/usr/bin/python3", "-c", std::string("bytearray(") + bytes + ")"},
                             .memory_bytes = limit});
    REQUIRE_MESSAGE(process, process.error().message);
    REQUIRE((*process)->ends_within(seconds(60)));
    return (*process)->end(Duration::zero());
  };
  CHECK(python(std::uint64_t{200} << 20, "100 * 2**20") == "ended with exit status 0");
  CHECK(python(std::uint64_t{200} << 20, "300 * 2**20") == "ended with exit status 1");
  CHECK(python(0, "300 * 2**20") == "ended with exit status 0");
}

TEST_CASE("process: writing to one that reads no more is an error and not this program's end") {
  const auto process = ChildProcess::start({.command = {"/bin/true"}});
  REQUIRE(process);
  REQUIRE((*process)->ends_within(seconds(60)));
  const auto written = (*process)->write("x", 1);
  REQUIRE_FALSE(written);
  CHECK(written.error().code == ErrorCode::kUnavailable);
}

TEST_CASE("line log: lines are cleaned and cut, and of one second's only so many are told") {
  LineLog log;
  CHECK(fed(log, "one\ntw", 10).size() == 1);
  CHECK(fed(log, "o\x1b[2J\n", 10) == std::vector<std::string>{"two?[2J"});
  CHECK(fed(log, std::string(2000, 'x') + "\n", 10) == std::vector<std::string>{std::string(500, 'x')});
  std::string flood;
  for (int i = 0; i < 1000; ++i) flood += "again\n";
  CHECK(fed(log, flood, 10.5).size() == 97);  // three lines were logged in the same second
  CHECK(fed(log, flood, 10.9).empty());
  const auto next = fed(log, "later\n", 11);
  CHECK(next == std::vector<std::string>{"(1903 more lines in the same second were dropped)", "later"});
  CHECK(fed(log, "no end", 11).empty());
  std::vector<std::string> last;
  log.finish([&](const std::string& line) { last.push_back(line); });
  CHECK(last == std::vector<std::string>{"no end"});
}

TEST_CASE("trained difference: tensors in another order, odd addresses, and ranges across tensors") {
  ParameterLayout layout;
  layout.add("a", {2}).add("b", {2, 2}).add("c", {1});
  ParameterLayout sent;
  sent.add("c", {1}).add("a", {2}).add("b", {2, 2});
  const auto header = safetensors_header(sent, {{"made", "by hand"}});
  REQUIRE(header);
  const std::vector<float> values = {70, 10, 20, 30, 40, 50, 60};  // c, a, b
  // One leading byte misaligns the floats.
  std::string bytes = "x" + *header;
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  const auto payload = std::as_bytes(std::span(bytes)).subspan(1);
  const std::vector<float> model = {1, 2, 3, 4, 5, 6, 7};
  const auto difference = [&](const Coverage& coverage) {
    std::vector<float> update(coverage.count());
    const auto done = trained_difference(payload, {layout, model, coverage}, update);
    REQUIRE_MESSAGE(done, done.error().message);
    return update;
  };
  CHECK(difference(Coverage::all(7)) == std::vector<float>{9, 18, 27, 36, 45, 54, 63});
  CHECK(difference(Coverage::of({{1, 3}, {4, 5}, {6, 7}})) == std::vector<float>{18, 27, 45, 63});
  CHECK(difference(Coverage::of({{3, 7}})) == std::vector<float>{36, 45, 54, 63});
  CHECK(difference(Coverage::of({{5, 6}})) == std::vector<float>{54});
}

}  // namespace fedge::client
