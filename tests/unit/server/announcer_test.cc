// The records that a coordinator publishes in the directory, and when.
#include "server/directory/announcer.h"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <vector>

#include "dht/memory_directory.h"

namespace fedge::server {
namespace {

SecretKey coordinator() {
  std::array<std::uint8_t, 32> seed{};
  seed[0] = 1;
  return SecretKey::from_seed(seed);
}

struct World {
  dht::MemoryDirectory directory;
  Time now = Time(seconds(1'000'000'000));
  std::vector<Event> events;

  void set(Time time) {
    now = time;
    directory.advance(now);
  }
  Announcer::Options options() {
    directory.advance(now);
    return {.directory = directory,
            .key = coordinator(),
            .addresses = {{"192.0.2.7", 7433}},
            .now = [this] { return now; },
            .on_event = [this](const Event& event) { events.push_back(event); }};
  }
  std::vector<dht::Record> said() {
    std::vector<dht::Record> records;
    directory.lookup(dht::coordinator_key(coordinator().public_key()),
                     [&](const Result<std::vector<dht::Record>>& found) { records = *found; });
    return records;
  }
  // Returns the record of this kind under the key, if the coordinator has published one.
  template <class Kind>
  std::optional<Kind> at(const dht::Key& key) {
    std::optional<Kind> found;
    directory.lookup(key, [&](const Result<std::vector<dht::Record>>& records) {
      if (!records->empty()) found = std::get<Kind>(records->at(0).content);
    });
    return found;
  }
  RoundNumber announced_round(RunId run) {
    const auto pointer = at<dht::ModelPointer>(dht::model_key(coordinator().public_key(), run, TrackId{}));
    return pointer ? pointer->round : RoundNumber{};
  }
  bool has_holders(const protocol::Manifest& model) {
    return at<dht::PeerList>(dht::peers_key(model.id())).has_value();
  }
};

protocol::Manifest model_number(std::uint8_t number) {
  const std::array<std::byte, 4> payload{std::byte{number}};
  return protocol::make_manifest({}, {}, payload, 4096);
}

}  // namespace

TEST_CASE("announcer: what it says is signed anew every two minutes, and lasts five") {
  World world;
  Announcer announcer(world.options());
  REQUIRE(world.said().size() == 1);
  const Time first = world.now;
  CHECK(world.said()[0].expires == first + seconds(300));
  world.set(first + seconds(119));
  announcer.refresh();
  CHECK(world.said()[0].expires == first + seconds(300));
  world.set(first + seconds(120));
  announcer.refresh();
  CHECK(world.said()[0].expires == first + seconds(420));
  CHECK(world.events.empty());
}

TEST_CASE("N6 row 15: announcer: a calendar that is put back makes it announce again at once") {
  World world;
  Announcer announcer(world.options());
  const Time first = world.now;
  for (const double back : {2.0, 1'000.0, 900'000'000.0}) {
    world.set(first - seconds(back));
    announcer.refresh();
    REQUIRE(world.said().size() == 1);
    CHECK(world.said()[0].expires == world.now + seconds(300));
  }
  CHECK(world.events.empty());
}

TEST_CASE("announcer: models of fast rounds are said every five seconds, and the last one without fail") {
  World world;
  Announcer announcer(world.options());
  const Time first = world.now;
  std::vector<protocol::Manifest> models;
  for (std::uint32_t round = 1; round <= 4; ++round) {
    models.push_back(model_number(static_cast<std::uint8_t>(round)));
    world.set(first + seconds(round));
    announcer.set_model(RunId(1), TrackId{}, {RoundNumber(round), models.back()});
    CHECK(world.announced_round(RunId(1)) == RoundNumber(1));
  }
  CHECK_FALSE(world.has_holders(models[3]));
  world.set(first + seconds(6));
  announcer.refresh();
  CHECK(world.announced_round(RunId(1)) == RoundNumber(4));
  CHECK(world.has_holders(models[3]));
  CHECK_FALSE(world.has_holders(models[2]));
  world.set(first - seconds(1'000));  // a corrected calendar does not delay the announcement
  announcer.set_model(RunId(1), TrackId{}, {RoundNumber(5), models[0]});
  CHECK(world.announced_round(RunId(1)) == RoundNumber(5));
  CHECK(world.events.empty());
}

TEST_CASE("announcer: who has a model is said as long as it is some run's, and no longer") {
  World world;
  Announcer announcer(world.options());
  const protocol::Manifest model = model_number(1);
  announcer.set_runs({{RunId(1), "one"}, {RunId(2), "two"}});
  announcer.set_model(RunId(1), TrackId{}, {RoundNumber(1), model});
  announcer.set_model(RunId(2), TrackId{}, {RoundNumber(1), model});
  const auto six_minutes_later = [&] {  // records that are not renewed have expired by then
    for (int i = 0; i < 3; ++i) {
      world.set(world.now + seconds(120));
      announcer.refresh();
    }
  };
  announcer.set_runs({{RunId(2), "two"}});
  six_minutes_later();
  CHECK(world.announced_round(RunId(1)) == RoundNumber{});
  CHECK(world.announced_round(RunId(2)) == RoundNumber(1));
  CHECK(world.has_holders(model));
  announcer.set_runs({});
  six_minutes_later();
  CHECK_FALSE(world.has_holders(model));
  CHECK(world.events.empty());
}

}  // namespace fedge::server
