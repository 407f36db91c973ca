#include "sim/training/client_states.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <vector>

#include "core/rng.h"
#include "tests/support/tiny_dataset.h"
#include "tests/unit/sim/simulated_run.h"

using namespace fedge;
using namespace fedge::sim;
using client::ClientMemory;

namespace {

ClientMemory state_of(std::uint32_t round, std::size_t size = 3) {
  ClientMemory state{.round = RoundNumber(round)};
  for (std::size_t i = 0; i < size; ++i) {
    state.control.push_back(static_cast<std::int64_t>(round) * 1000 - static_cast<std::int64_t>(i));
    state.residual.push_back(static_cast<float>(i) / 2);
  }
  state.personal = {static_cast<float>(round), -1};
  return state;
}

bool same(const ClientMemory& a, const ClientMemory& b) {
  return a.round == b.round && a.control == b.control && a.residual == b.residual && a.personal == b.personal;
}

}  // namespace

TEST_CASE(
    "client states: a client continues from the task that was accepted last, in memory and in the file") {
  const learn::test::TemporaryDirectory directory;
  for (const std::size_t budget : {std::size_t{1} << 20, std::size_t{1}}) {
    ClientStates states;
    states.spill_to(directory.path(), budget);
    const ClientId client(7);
    const auto save = [&](std::uint32_t round) {
      states.save(client, TrackId(), state_of(round));
      REQUIRE(states.shrink());
    };
    const auto fresh = states.load(client, TrackId(), RoundNumber(0));
    REQUIRE(fresh);
    CHECK(fresh->control.empty());
    save(3);
    REQUIRE(states.load(client, TrackId(), RoundNumber(3)));
    save(5);  // the verdict on its update is still unknown
    const auto refused = states.load(client, TrackId(), RoundNumber(3));
    REQUIRE(refused);
    CHECK(same(*refused, state_of(3)));
    save(6);
    const auto accepted = states.load(client, TrackId(), RoundNumber(6));
    REQUIRE(accepted);
    CHECK(same(*accepted, state_of(6)));
    CHECK((budget > 1) == (states.bytes_in_file() == 0));
    REQUIRE(states.load(client, TrackId(), RoundNumber(0)));
    CHECK(states.bytes_in_file() == 0);
    CHECK(states.bytes_in_memory() == 0);
  }
}

TEST_CASE("client states: memory stays within the budget, and every state keeps its bits") {
  const learn::test::TemporaryDirectory directory;
  const std::size_t budget = 20'000;
  ClientStates states;
  states.spill_to(directory.path(), budget);
  std::map<std::uint32_t, ClientMemory> expected;
  Rng rng(3);
  std::size_t in_file = 0;
  for (std::uint32_t round = 1; round < 400; ++round) {
    const auto client = static_cast<std::uint32_t>(rng.below(40));
    const auto known = expected.find(client);
    const auto loaded = states.load(ClientId(client), TrackId(1),
                                    known == expected.end() ? RoundNumber() : known->second.round);
    REQUIRE(loaded);
    if (known != expected.end()) CHECK(same(*loaded, known->second));
    expected[client] = state_of(round, 50 + rng.below(3));  // places of several sizes in the file
    states.save(ClientId(client), TrackId(1), expected[client]);
    REQUIRE(states.shrink());
    CHECK(states.bytes_in_memory() <= budget);
    in_file = std::max<std::size_t>(in_file, states.bytes_in_file());
  }
  CHECK(in_file > 0);
  // At most two states a client: places are used again.
  CHECK(states.file_size() < std::uint64_t{2} * 40 * 52 * 13);
  CHECK(std::filesystem::is_empty(directory.path()));  // the file has no name
  states.forget(TrackId(1));
  CHECK(states.bytes_in_memory() == 0);
  CHECK(states.bytes_in_file() == 0);
}

TEST_CASE("client states: tracks and clients do not share states") {
  ClientStates states;
  states.save(ClientId(1), TrackId(0), state_of(4));
  states.save(ClientId(1), TrackId(2), state_of(5));
  states.save(ClientId(2), TrackId(0), state_of(6));
  REQUIRE(states.load(ClientId(1), TrackId(2), RoundNumber(5)));
  states.forget(TrackId(2));
  const auto other_track = states.load(ClientId(1), TrackId(0), RoundNumber(4));
  REQUIRE(other_track);
  CHECK(same(*other_track, state_of(4)));
  const auto other_client = states.load(ClientId(2), TrackId(0), RoundNumber(6));
  REQUIRE(other_client);
  CHECK(same(*other_client, state_of(6)));
}

TEST_CASE("client states: without a directory for the file everything stays in memory") {
  ClientStates states;
  for (std::uint32_t client = 0; client < 100; ++client)
    states.save(ClientId(client), TrackId(), state_of(1, 1000));
  REQUIRE(states.shrink());
  CHECK(states.bytes_in_memory() > 1'000'000);
  CHECK(states.bytes_in_file() == 0);
}

TEST_CASE("client states: an error of the file names the directory") {
  ClientStates states;
  states.spill_to("/nonexistent/results", 1);
  states.save(ClientId(0), TrackId(), state_of(1));
  const auto shrunk = states.shrink();
  REQUIRE(!shrunk);
  CHECK(shrunk.error().message ==
        "cannot create a scratch file in /nonexistent/results: No such file or directory");
}

TEST_CASE("client states: models are the same, in memory and in the file, whatever clients keep") {
  const learn::test::TemporaryDirectory directory;
  for (const Settings& method :
       {Settings{"strategy.kind=scaffold"}, Settings{"strategy.kind=feddyn"}, Settings{"strategy.kind=moon"},
        Settings{"compression.kind=top_k", "compression.error_feedback=true"}}) {
    CAPTURE(method.front());
    const Settings all = method + Settings{"run.rounds=6", "model.kind=mlp", "model.hidden=[8]"};
    const Outcome in_memory = simulate(all);
    CHECK(simulate(all, {.spill = directory.path()}).hashes() == in_memory.hashes());
    CHECK(simulate(all, {.threads = 3, .spill = directory.path()}).hashes() == in_memory.hashes());
    // A file that cannot be made ends the run: clients do keep something, and it goes there.
    const auto failed = try_simulate(all, {.spill = directory.path() / "absent"}).failure;
    REQUIRE(failed);
    CHECK(failed->message.find("cannot create a scratch file in") != std::string::npos);
  }
}

TEST_CASE(
    "client states: until the next checkpoint is complete, a later process finds those of the last one") {
  const learn::test::TemporaryDirectory directory;
  const auto file = directory.path() / "clients";
  constexpr std::uint32_t kClients = 20;
  ClientStates states;
  REQUIRE(states.keep_in(file, 0));
  const auto save = [&](std::uint32_t round) {
    for (std::uint32_t client = 0; client < kClients; ++client) {
      REQUIRE(states.load(ClientId(client), TrackId(), RoundNumber(round - 1)));
      states.save(ClientId(client), TrackId(), state_of(round, 100 + client));
      REQUIRE(states.shrink());
    }
  };
  const auto check = [&](const ClientStates::Index& index, std::uint32_t round) {
    ClientStates later;
    REQUIRE(later.keep_in(file, 1 << 20));
    REQUIRE(later.restore(index));
    for (std::uint32_t client = 0; client < kClients; ++client) {
      const auto state = later.load(ClientId(client), TrackId(), RoundNumber(round));
      REQUIRE_MESSAGE(state, state.error().message);
      CHECK(same(*state, state_of(round, 100 + client)));
    }
  };
  save(1);
  auto last = states.save_all();
  REQUIRE(last);
  const std::uint64_t once = states.file_size();
  std::uint32_t round = 1;
  for (int checkpoint = 0; checkpoint < 5; ++checkpoint) {
    const std::uint32_t saved = round;
    for (int more = 0; more < 4; ++more) save(++round);
    check(*last, saved);
    const auto next = states.save_all();
    REQUIRE(next);
    check(*last, saved);  // killed before the checkpoint was complete
    check(*next, round);
    states.forget_former();
    last = next;
  }
  // A client has two states for a moment, and those of the last checkpoint stay.
  CHECK(states.file_size() <= 4 * once);
  std::filesystem::resize_file(file, last->end - 1);
  ClientStates later;
  REQUIRE(later.keep_in(file, 0));
  CHECK_FALSE(later.restore(*last));
}
