#include "core/tracing/trace_id.h"

#include <doctest/doctest.h>

#include <set>

namespace fedge {
namespace {

const RunId kTracedRun(0x0123456789abcdef);

}  // namespace

// The expected ids come from Python: hashlib.sha256(b"fedge trace\nround\n0123456789abcdef\n1").
TEST_CASE("trace ids: they are the documented hashes") {
  const std::string trace = trace_of(kTracedRun, {RoundNumber(1), {}});
  CHECK(trace == "0322ccd992977de1e56049eb24b72bc3");
  CHECK(trace_of(kTracedRun, {RoundNumber(1), {}, TaskKind::kStatistics}) ==
        "8c15059a20df31af0e82896787ea66a5");
  CHECK(trace_of_buffer(kTracedRun, RoundNumber(1)) == "924e408cc65bf6ccb60734026fa99339");
  CHECK(span_of(trace, {.name = "round"}) == "0efb01eba3ceb925");
  const TaskId task{RoundNumber(1), TrackId(2)};
  CHECK(span_of(trace, {"task", task, ClientId(7), 3}) == "b5d99acc61881038");
  const TaskId evaluation{RoundNumber(1), TrackId(2), TaskKind::kEvaluation};
  CHECK(span_of(trace, {"task", evaluation, ClientId(7), 3}) == "54a9dc964fa0c4b5");
}

TEST_CASE(
    "trace ids: all tracks and the evaluation of a round are one trace, and other rounds and runs are not") {
  const std::string trace = trace_of(kTracedRun, {RoundNumber(3), {}});
  CHECK(trace_of(kTracedRun, {RoundNumber(3), TrackId(1)}) == trace);
  CHECK(trace_of(kTracedRun, {RoundNumber(3), {}, TaskKind::kEvaluation}) == trace);
  std::set<std::string> others = {trace};
  for (std::uint32_t round = 0; round < 40; ++round)
    for (std::uint64_t run = 0; run < 5; ++run) {
      others.insert(trace_of(RunId(run), {RoundNumber(round), {}}));
      others.insert(trace_of(RunId(run), {RoundNumber(round), {}, TaskKind::kStatistics}));
      others.insert(trace_of_buffer(RunId(run), RoundNumber(round)));
    }
  CHECK(others.size() == 1 + std::size_t{40} * 5 * 3);
}

TEST_CASE("trace ids: each part of a span's key makes another span") {
  const std::string trace = trace_of(kTracedRun, {RoundNumber(1), {}});
  std::set<std::string> spans;
  for (const char* name : {"round", "task", "upload"})
    for (const std::uint32_t track : {0U, 1U, 11U})
      for (const TaskKind kind : {TaskKind::kTraining, TaskKind::kEvaluation, TaskKind::kStatistics})
        for (const std::optional<ClientId> client : {std::optional<ClientId>(), std::optional(ClientId(0)),
                                                     std::optional(ClientId(1)), std::optional(ClientId(11))})
          for (const std::uint32_t attempt : {0U, 1U, 11U})
            spans.insert(span_of(trace, {name, {{}, TrackId(track), kind}, client, attempt}));
  CHECK(spans.size() == std::size_t{3} * 3 * 3 * 4 * 3);
}

}  // namespace fedge
