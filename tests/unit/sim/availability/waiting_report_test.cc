#include "sim/availability/waiting_report.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <vector>

#include "tests/support/at.h"
#include "tests/unit/sim/simulated_run.h"

using namespace fedge;
using fedge::sim::WaitingReport;
using fedge::test::at;

namespace {

WaitingReport::Waiting waits(std::uint32_t round, std::size_t clients) {
  return {RoundNumber(round), clients, 1000};
}

}  // namespace

TEST_CASE("waiting report: a wait is reported when it begins, and its changes after twice the time each") {
  WaitingReport report;
  std::vector<double> reports;
  const auto take_until = [&](double second) {
    for (auto due = report.due(); due && *due <= at(second); due = report.due()) {
      report.take(std::max(*due, at(second)));
      reports.push_back(second);
    }
  };
  for (int second = 100; second < 1100; ++second) {
    report.note(waits(1, static_cast<std::size_t>(second)), at(second));
    take_until(second);
  }
  CHECK(reports == std::vector<double>{100, 101, 102, 104, 108, 116, 132, 164, 228, 356, 612});
  CHECK(report.due() == at(1124));
  report.note(std::nullopt, at(1101));
  CHECK_FALSE(report.due());
  report.note(waits(2, 0), at(1102));
  CHECK(report.due() == at(1102));
  CHECK(report.take(at(1102)) == waits(2, 0));
  report.note(waits(2, 0), at(1200));
  CHECK_FALSE(report.due());
}

TEST_CASE("waiting report: a simulation reports that a round waits for clients, as a coordinator does") {
  test::TemporaryDirectory directory;
  const auto trace = directory.path() / "trace.csv";
  std::ofstream(trace) << "client,up_seconds,down_seconds\n0,0,900\n1,50,900\n2,60,900\n3,800,900\n";
  const sim::Outcome outcome = sim::simulate(
      {"data.partition.clients=4", "sampling.clients_per_round=2", "run.wait_for_clients=3", "run.rounds=1",
       "simulation.availability.kind=trace", "simulation.availability.file=" + trace.string()});
  CHECK(outcome.count("round.waiting round=1 clients=1 needed=3") == 1);
  CHECK(outcome.count("round.waiting round=1 clients=2 needed=3") == 1);
  CHECK(outcome.count("round.waiting") == 2);
}
