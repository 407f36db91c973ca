// The participants of a run as NumPy columns: written, continued, read, damaged.
#include "sim/participants/participants.h"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <string>

#include "core/platform/files.h"
#include "tests/support/text.h"
#include "tests/unit/learn/idx_fixture.h"

using namespace fedge;
using namespace fedge::sim;
using fedge::test::contains;
using learn::test::TemporaryDirectory;

namespace {

Participants::Training training(std::uint32_t client) {
  return {.track = TrackId(0),
          .client = ClientId(client),
          .samples = 60,
          .steps = 3,
          .arrived = Time(std::chrono::seconds(client)),
          .loss = 0.5,
          .norm = 2};
}

Participants::Evaluation evaluation(std::uint32_t client, double accuracy) {
  return {.track = TrackId(0), .client = ClientId(client), .samples = 10, .loss = 1, .accuracy = accuracy};
}

// Three rounds of two trainings and one evaluation each.
void write_rounds(Participants& participants, std::uint32_t from, std::uint32_t to) {
  for (std::uint32_t round = from; round <= to; ++round) {
    participants.add(training(round));
    participants.add(training(7));
    participants.add(evaluation(round, 0.1 * round));
    REQUIRE(participants.end_round());
  }
}

std::string column(const TemporaryDirectory& place, const std::string& name) {
  return *read_file(place.path() / "participants" / (name + ".npy"), 1 << 20);
}

}  // namespace

TEST_CASE("participants: each column is a NumPy file of version 1.0 with its type and number of rows") {
  const TemporaryDirectory place;
  auto participants = *Participants::open(place.path(), 0);
  write_rounds(participants, 1, 3);
  const std::string clients = column(place, "trainings/client");
  REQUIRE(clients.size() == 128 + 6 * 4);
  CHECK(clients.substr(0, 8) == std::string("\x93NUMPY\x01\x00", 8));
  CHECK(clients.substr(10).starts_with("{'descr': '<u4', 'fortran_order': False, 'shape': (6,), }"));
  CHECK(clients[127] == '\n');
  CHECK(clients.substr(128, 8) == std::string("\x01\0\0\0\x07\0\0\0", 8));
  CHECK(contains(column(place, "trainings/loss"), "'<f8'"));
  CHECK(column(place, "evaluations/accuracy").size() == 128 + 3 * 8);
}

TEST_CASE("participants: a continued run drops the rows of rounds that it repeats, and adds its own") {
  const TemporaryDirectory whole;
  {
    auto participants = *Participants::open(whole.path(), 0);
    write_rounds(participants, 1, 3);
  }
  const TemporaryDirectory parts;
  {
    auto participants = *Participants::open(parts.path(), 0);
    write_rounds(participants, 1, 2);
    participants.add(training(99));  // its round never ends
  }
  {
    auto participants = *Participants::open(parts.path(), 1);
    write_rounds(participants, 2, 3);
  }
  for (const char* name :
       {"trainings/round", "trainings/client", "trainings/arrived_seconds", "evaluations/accuracy"})
    CHECK_MESSAGE(column(parts, name) == column(whole, name), name);
}

TEST_CASE("participants: a run that starts again replaces the files, and remove() leaves none") {
  const TemporaryDirectory place;
  {
    auto participants = *Participants::open(place.path(), 0);
    write_rounds(participants, 1, 3);
  }
  REQUIRE(Participants::open(place.path(), 0));
  CHECK(column(place, "trainings/client").size() == 128);
  REQUIRE(Participants::remove(place.path()));
  CHECK_FALSE(std::filesystem::exists(place.path() / "participants"));
  CHECK(Participants::read(place.path())->trainings.empty());
}

TEST_CASE("participants: the summary counts each client's updates and has the last evaluation's accuracies") {
  const TemporaryDirectory place;
  auto participants = *Participants::open(place.path(), 0);
  write_rounds(participants, 1, 2);
  participants.add(evaluation(5, 0.9));
  participants.add(evaluation(6, 0.2));
  participants.add(evaluation(8, Participants::kUnknown));
  REQUIRE(participants.end_round());
  const auto summary = Participants::read(place.path());
  REQUIRE(summary);
  CHECK(summary->trainings == std::vector<double>{1, 1, 2});
  CHECK(summary->accuracies == std::vector<double>{0.2, 0.9});
}

TEST_CASE("participants: a missing, cut or foreign column is refused by name, when read and when continued") {
  const TemporaryDirectory place;
  {
    auto participants = *Participants::open(place.path(), 0);
    write_rounds(participants, 1, 3);
  }
  const auto file = place.path() / "participants" / "trainings" / "client.npy";
  const std::string whole = *read_file(file, 1 << 20);
  const auto refused = [&](const std::string& content) {
    REQUIRE(write_file_atomic(file, content));
    const auto read = Participants::read(place.path());
    const auto continued = Participants::open(place.path(), 2);
    REQUIRE_FALSE(read);
    REQUIRE_FALSE(continued);
    CHECK(contains(read.error().message, "client.npy"));
    CHECK(contains(continued.error().message, "client.npy"));
  };
  refused(whole.substr(0, whole.size() - 1));
  refused(whole.substr(0, 50));
  refused("");
  std::string other = whole;
  refused(other.replace(other.find("<u4"), 3, "<f4"));
  std::string huge = whole;
  refused(huge.replace(huge.find("(6,), }"), 27, "(99999999999999999999,), } "));
  std::filesystem::remove(file);
  CHECK_FALSE(Participants::open(place.path(), 2));
}
