// What a coordinator says of itself in the directory, and when.
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
};

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

}  // namespace fedge::server
