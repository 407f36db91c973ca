// Connections of virtual clients, and transfers of updates over them.
#include "sim/transfers/client_links.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "sim/transfers/virtual_uploads.h"

namespace fedge::sim {
namespace {

constexpr ClientId kClient(1);

SimulationSpec links_of_one_megabyte() {
  SimulationSpec spec;
  spec.latency = seconds(1);
  spec.down_mbps = spec.up_mbps = 8;
  return spec;
}

// Two clients with 1 MB/s in each direction and 1 s of latency.
struct Scene {
  // Makes all calls up to this time.
  void run_until(Duration end) {
    while (!world.idle() && world.next() <= Time(end)) world.begin_next()();
    if (world.idle() || world.next() > Time(end)) world.advance(Time(end));
  }

  SimulationSpec spec = links_of_one_megabyte();
  World world{Rng(1)};
  std::unique_ptr<Availability> availability = *make_availability({}, {2, nullptr}, world.root());
  Devices devices{spec, *availability, world.root()};
  ClientLinks links{world, devices, 2};
};

}  // namespace

TEST_CASE("links: bytes pass one after the other, and arrive one latency later") {
  Scene scene;
  scene.links.connect(kClient);
  std::vector<Time> arrived;
  for (int i = 0; i < 2; ++i)
    scene.links.send_up(kClient, Bytes(2'000'000), [&] { arrived.push_back(scene.world.now()); });
  scene.run_until(seconds(10));
  CHECK(arrived == std::vector{Time(seconds(3)), Time(seconds(5))});
  const ClientLinks::Traffic traffic = scene.links.take_traffic();
  CHECK(traffic.up == Bytes(4'000'000));
  CHECK(traffic.down == Bytes());
  CHECK(scene.links.take_traffic().up == Bytes());
}

TEST_CASE("links: what a lost connection carried does not arrive over the next one") {
  Scene scene;
  scene.links.connect(kClient);
  std::string arrived;
  scene.links.send_down(kClient, Bytes(2'000'000), [&] { arrived += "former "; });
  scene.run_until(seconds(1));
  scene.links.disconnect(kClient);
  CHECK_FALSE(scene.links.online(kClient));
  scene.links.connect(kClient);
  scene.links.send_down(kClient, Bytes(1'000'000), [&] { arrived += "later"; });
  scene.run_until(seconds(3));
  CHECK(arrived == "later");  // at second 3: the line is free since the connection was lost
}

TEST_CASE("links: a download that ends early counts what was sent") {
  Scene scene;
  scene.links.connect(kClient);
  const Line::Transfer transfer = scene.links.begin_download(kClient, Bytes(4'000'000));
  scene.run_until(seconds(1));
  scene.links.end_download(kClient, transfer, scene.world.now());
  CHECK(scene.links.take_traffic().down == Bytes(1'000'000));
  CHECK(scene.links.down(kClient).free() == Time(seconds(1)));
}

TEST_CASE("uploads: another fetch of the same update continues it, one of another update does not") {
  Scene scene;
  std::vector<Time> arrived;
  VirtualUploads uploads({.world = scene.world,
                          .links = scene.links,
                          .devices = scene.devices,
                          .on_arrived = [&](ClientId, TaskId) { arrived.push_back(scene.world.now()); }},
                         2);
  protocol::UpdateOffer offer;
  offer.steps = 1;
  offer.update.chunk_size = 1'000'000;
  offer.update.payload_size = 4'000'000;
  offer.update.chunks.resize(4);
  scene.links.connect(kClient);
  uploads.fetch({kClient, offer});
  scene.run_until(seconds(5.5));
  uploads.lost(kClient);
  scene.links.disconnect(kClient);
  scene.links.connect(kClient);
  bool same = true;
  SUBCASE("the same") {}
  SUBCASE("another") {
    same = false;
    offer.steps = 2;
  }
  uploads.fetch({kClient, offer});
  scene.run_until(seconds(60));
  REQUIRE(arrived.size() == 1);
  // Three of four chunks have arrived at 5.5 s. A fetch takes two latencies and 1 s for each other chunk.
  CHECK((arrived[0] < Time(seconds(10))) == same);
}

TEST_CASE("world: the first failure counts, and each one stops the run") {
  World world{Rng(1)};
  int stopped = 0;
  world.stop_by([&] { ++stopped; });
  CHECK_FALSE(world.over());
  world.fail(invalid("the first"));
  world.fail(invalid("the second"));
  CHECK(world.over());
  CHECK(world.failure()->message == "the first");
  CHECK(stopped == 2);
}

}  // namespace fedge::sim
