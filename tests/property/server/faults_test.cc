// Federations in virtual time with constant faults of links, uploads, clients and coordinator. Each seed
// draws the rules, the clients, and the frequency of each fault. The engine is the coordinator's; clients,
// network and disk are simulated. FEDGE_FAULT_SEEDS=1000 plays that many seeds and prints the faults.
#include <doctest/doctest.h>

#include <array>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/unit/server/engine_harness.h"

using namespace fedge;
using namespace fedge::server;

namespace {

enum Fault { kCut, kCutInUpload, kDamaged, kGivenUp, kDoubled, kStale, kSlow, kRestart, kInCommit, kFaults };
constexpr std::array<const char*, kFaults> kFaultNames = {
    "links cut",      "links cut during an upload", "uploads damaged",
    "tasks given up", "offers made twice",          "offers of an old round",
    "slow clients",   "coordinators restarted",     "restarts during a commit"};

struct Tally {
  std::array<std::uint64_t, kFaults> faults{};
  double hours = 0;
  std::uint64_t rounds = 0;
  std::uint64_t updates = 0;
};

// Returns an engine's decisions as text, to compare them with those after a replay of the journal.
std::string text_of(const RunEngine::Effect& effect) {
  const auto task = [](const char* kind, ClientId client, TaskId of) {
    return std::string(kind) + " " + std::to_string(client.value()) + " " + std::to_string(of.round.value()) +
           "/" + std::to_string(of.track.value()) + "\n";
  };
  if (const auto* it = std::get_if<RunEngine::Assign>(&effect)) return task("assign", it->client, it->task);
  if (const auto* it = std::get_if<RunEngine::Fetch>(&effect))
    return task("fetch", it->client, it->offer.task());
  if (const auto* it = std::get_if<RunEngine::Fold>(&effect))
    return task("fold", it->client, it->task) + std::to_string(it->factor) + "\n";
  if (const auto* it = std::get_if<RunEngine::Discard>(&effect)) return task("discard", it->client, it->task);
  if (const auto* it = std::get_if<RunEngine::CloseRound>(&effect))
    return "close " + std::to_string(it->round.value()) + " " + std::to_string(it->completed) + " " +
           std::to_string(it->train_loss) + "\n";
  if (const auto* it = std::get_if<Event>(&effect)) return to_string(*it) + "\n";
  return std::to_string(effect.index()) + "\n";
}

struct Client {
  bool here = false;
  std::uint64_t session = 0;      // of its link: messages of earlier sessions do not arrive
  std::optional<TaskId> task;     // the current task
  std::optional<TaskId> trained;  // the last task it has trained, delivered or not
};

struct Federation : Harness {
  explicit Federation(std::uint64_t seed, bool buffered, Tally& tallied) : dice(seed), tally(tallied) {
    rules.rounds = 3 + static_cast<std::uint32_t>(dice.below(10));
    clients.resize(2 + dice.below(14));
    rules.clients_per_round = 1 + dice.below(clients.size());
    rules.first_round_clients = 1 + dice.below(clients.size());
    rules.min_available = 1 + dice.below(rules.first_round_clients);
    rules.over_selection = 1.0 + 0.25 * static_cast<double>(dice.below(4));
    rules.return_within = seconds(static_cast<double>(1 + dice.below(40)));
    if (buffered)
      schedule = aggregation::ScheduleSpec{.buffered = true, .buffer_size = 1 + dice.below(clients.size())};
    else if (dice.below(3) == 0)  // two tracks: a track phase for each in every round
      policy = {.clients = clients.size(),
                .disagreements = {{.kind = aggregation::DisagreementKind::kBidirectional,
                                   .clients = {ClientId(0)},
                                   .against = {ClientId(1)}}}};
    often = 0.007 + 0.1 * dice.uniform();
    for (std::uint32_t i = 0; i < clients.size(); ++i) come_later(i);
    after(60, [this] { perhaps_restart(); });
  }

  Rng dice;
  Tally& tally;
  std::vector<Client> clients;
  double often = 0;  // probability of each possible fault
  bool calm = false;
  bool finished = false;
  std::multimap<Time, std::function<void()>> agenda;
  std::vector<std::pair<Time, RunEngine::Input>> journal;
  std::string decided;
  std::uint64_t life = 0;  // number of the coordinator's process
  std::map<std::pair<std::uint32_t, TaskId>, int> counted;
  std::size_t folded = 0;  // since the last close
  std::uint64_t closes = 0;
  std::deque<RunEngine::Committed> committing;  // an asynchronous run's next model may wait for the previous
                                                // one

  bool goes_wrong(Fault fault) {
    const bool wrong = !calm && dice.uniform() < often;
    tally.faults[fault] += wrong ? 1U : 0U;
    return wrong;
  }
  // Performs the action within `most` seconds.
  void after(double most, std::function<void()> action) {
    agenda.emplace(now + seconds(most * dice.uniform()) + Duration(1), std::move(action));
  }

  // --- the coordinator ---
  void tell(const RunEngine::Input& input) {
    journal.emplace_back(now, input);
    feed(input);
    const auto done = effects;
    for (const auto& effect : done) decided += text_of(effect);
    for (const auto& effect : done) carry_out(effect, done);
  }
  void carry_out(const RunEngine::Effect& effect, const std::vector<RunEngine::Effect>& all) {
    if (const auto* work = std::get_if<RunEngine::Assign>(&effect)) return assigned(*work);
    if (const auto* fetch = std::get_if<RunEngine::Fetch>(&effect)) return upload(*fetch);
    if (const auto* send = std::get_if<RunEngine::Send>(&effect)) return answered(*send);
    if (const auto* fold = std::get_if<RunEngine::Fold>(&effect)) {
      REQUIRE(++counted[{fold->client.value(), fold->task}] == 1);  // N4
      ++folded;
      ++tally.updates;
      REQUIRE(std::ranges::any_of(all, [&](const auto& other) {  // an accumulated update is acknowledged
        const auto* send = std::get_if<RunEngine::Send>(&other);
        const auto* verdict =
            send == nullptr ? nullptr : std::get_if<protocol::UpdateVerdict>(&send->message);
        return verdict != nullptr && verdict->accepted && send->client == fold->client;
      }));
    } else if (const auto* close = std::get_if<RunEngine::CloseRound>(&effect)) {
      REQUIRE(close->completed == folded);  // N1
      REQUIRE((schedule || committing.empty()));
      folded = 0;
      if (close->ends_round) REQUIRE(close->round.value() == ++closes);  // N2
      REQUIRE(close->round.value() <= closes + 1);
      committing.push_back({close->round, close->track});
      if (committing.size() == 1) commit_later();
    } else if (std::holds_alternative<RunEngine::Finished>(effect)) {
      finished = true;
    }
  }
  void commit_later() {
    after(2, [this, of = life] {
      if (of != life) return;
      const RunEngine::Committed done = committing.front();
      committing.pop_front();
      if (!committing.empty()) commit_later();
      tell(done);
    });
  }
  void perhaps_restart() {
    after(60, [this] { perhaps_restart(); });
    if (goes_wrong(kRestart)) restart();
  }
  // A restart replays the journal into a new engine; work in progress is lost.
  void restart() {
    tally.faults[kInCommit] += committing.empty() ? 0U : 1U;
    ++life;
    const Time stopped = now;
    std::string again;
    engine_.reset();
    for (const auto& [when, input] : journal) {
      now = when;
      feed(input);
      for (const auto& effect : effects) again += text_of(effect);
    }
    now = stopped;
    REQUIRE(again == decided);  // N5
    for (std::uint32_t i = 0; i < clients.size(); ++i) {
      if (!std::exchange(clients[i].here, false)) continue;
      ++clients[i].session;
      come_later(i);
    }
    tell(RunEngine::Restarted{});
    if (!committing.empty()) commit_later();
  }

  // --- the clients ---
  void come_later(std::uint32_t i) {
    after(50, [this, i] {
      if (std::exchange(clients[i].here, true)) return;
      ++clients[i].session;
      tell(RunEngine::ClientArrived{ClientId(i), SampleCount(60)});
    });
  }
  void leave(std::uint32_t i) {
    if (!std::exchange(clients[i].here, false)) return;
    ++clients[i].session;
    tell(RunEngine::ClientLeft{ClientId(i)});
    come_later(i);
  }
  // Performs the action if the client is then still connected by the same link.
  void later(std::uint32_t i, double most, std::function<void()> action) {
    after(most, [this, i, session = clients[i].session, action = std::move(action)] {
      if (clients[i].session == session) action();
    });
  }
  void assigned(const RunEngine::Assign& work) {
    const std::uint32_t i = work.client.value();
    REQUIRE(clients[i].here);
    clients[i].task = work.task;
    if (clients[i].trained == work.task) return later(i, 1, [this, i] { offer_update(i); });
    later(i, goes_wrong(kSlow) ? 200 : 20, [this, i, task = work.task] {
      if (clients[i].task != task) return;
      if (goes_wrong(kGivenUp)) return give_up(i);
      clients[i].trained = task;
      if (goes_wrong(kCut)) return leave(i);
      offer_update(i);
    });
  }
  void give_up(std::uint32_t i) {
    protocol::TaskFailed failure;
    failure.run = kRun;
    failure.round = clients[i].task->round;
    failure.track = clients[i].task->track;
    failure.reason = "out of memory";
    clients[i].task.reset();
    tell(RunEngine::Failed{ClientId(i), failure});
  }
  void offer_update(std::uint32_t i) {
    if (!clients[i].task || clients[i].task != clients[i].trained) return;
    protocol::UpdateOffer made = offer(clients[i].task->round.value());
    made.track = clients[i].task->track;
    if (goes_wrong(kStale)) {
      protocol::UpdateOffer old = made;
      old.round = RoundNumber(made.round.value() - 1);
      tell(RunEngine::Offered{ClientId(i), old});
    }
    tell(RunEngine::Offered{ClientId(i), made});
    if (goes_wrong(kDoubled)) tell(RunEngine::Offered{ClientId(i), made});
  }
  void upload(const RunEngine::Fetch& fetch) {
    const std::uint32_t i = fetch.client.value();
    const TaskId task = fetch.offer.task();
    if (goes_wrong(kCutInUpload)) {
      later(i, 5, [this, i] { leave(i); });
      // The last chunk may have arrived before the link broke; its check ends later.
      if (dice.below(2) == 0)
        after(10, [this, i, task, of = life] {
          of == life ? tell(RunEngine::Stored{ClientId(i), task}) : void();
        });
      return;
    }
    later(i, 5, [this, i, task] {
      if (goes_wrong(kDamaged))
        return tell(RunEngine::Damaged{ClientId(i), task, {ErrorCode::kCorrupt, "a hash is wrong"}});
      tell(RunEngine::Stored{ClientId(i), task});
      if (goes_wrong(kDoubled)) offer_update(i);
    });
  }
  void answered(const RunEngine::Send& send) {
    const std::uint32_t i = send.client.value();
    if (const auto* verdict = std::get_if<protocol::UpdateVerdict>(&send.message)) {
      if (verdict->accepted) clients[i].trained = verdict->task();
    } else if (std::holds_alternative<protocol::CancelTask>(send.message)) {
      clients[i].task.reset();
    }
  }

  // Runs until the run is over. Once faults stop, it must end (N6).
  void run_to_the_end() {
    const Time wild = Time(seconds(1500));
    for (std::uint64_t steps = 0; !finished; ++steps) {
      REQUIRE_MESSAGE(steps < 200'000, "the run does not come to an end");
      calm = now > wild;
      const auto deadline = engine().next_deadline();
      REQUIRE_FALSE(agenda.empty());
      if (deadline && *deadline <= agenda.begin()->first) {
        now = std::max(now, *deadline);
        tell(Expired{});
        continue;
      }
      now = agenda.begin()->first;
      const auto action = std::move(agenda.begin()->second);
      agenda.erase(agenda.begin());
      action();
    }
    CHECK(closes == rules.rounds);
    tally.rounds += closes;
    tally.hours += to_seconds(now - Time{}) / 3600;
  }
};

void try_seeds(bool buffered) {
  const char* wanted = std::getenv("FEDGE_FAULT_SEEDS");
  const std::uint64_t seeds = wanted == nullptr ? 300 : std::strtoull(wanted, nullptr, 10);
  Tally tally;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    CAPTURE(seed);
    Federation federation(seed, buffered, tally);
    federation.run_to_the_end();
  }
  for (std::size_t kind = 0; kind < kFaults; ++kind)
    CHECK_MESSAGE(tally.faults[kind] > 0, "never: ", std::string(kFaultNames[kind]));
  if (wanted == nullptr) return;
  std::string said = std::to_string(seeds) + " seeds, " + std::to_string(tally.hours) + " hours, " +
                     std::to_string(tally.rounds) + " rounds, " + std::to_string(tally.updates) + " updates";
  for (std::size_t kind = 0; kind < kFaults; ++kind)
    said += ", " + std::to_string(tally.faults[kind]) + " " + kFaultNames[kind];
  MESSAGE(said);
}

}  // namespace

TEST_CASE(
    "N1 N2 N4 N5 N6, rounds: through cuts, damage, doubles, delays and restarts each update counts once") {
  try_seeds(false);
}

TEST_CASE(
    "N1 N2 N4 N5 N6, buffered: through cuts, damage, doubles, delays and restarts each update counts once") {
  try_seeds(true);
}
