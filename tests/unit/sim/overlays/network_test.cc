// The driver of overlays: time, timeouts, counters, faults of single nodes, and hooks.
#include "sim/overlays/network.h"

#include <map>

#include "sim/event_queue.h"
#include "sim/overlays/time_wheel.h"
#include "tests/unit/sim/overlays/networks.h"

using namespace fedge;
using namespace fedge::dht;
using namespace fedge::sim;

namespace {

std::uint64_t trace_of(OverlayKind kind, std::uint64_t seed) {
  OverlayOptions options = options_for(kind);
  options.loss = 0.02;
  OverlayNetwork network(options, 40, Rng(seed));
  join_all(network, 0.3, 10);
  network.publish(3, {.key = 5, .bytes = bytes_of("v")});
  network.stop(7, true);
  network.stop(8, false);
  run_for(network, 10);
  return network.trace_hash();
}

}  // namespace

TEST_CASE("time wheel: gives what the event queue gives, near and far, also what is scheduled in between") {
  TimeWheel<int> wheel;
  EventQueue<int> queue;
  Rng rng(6);
  Time now{};
  int next = 0;
  const auto push = [&] {
    const std::uint64_t spans[] = {0, 1000, 3'000'000, 900'000'000, 9'000'000'000};
    const std::uint64_t span = rng.below(5) == 0 ? spans[rng.below(5)] : rng.below(2'000'000'000);
    const Time at = now + Duration(static_cast<std::int64_t>(span));
    wheel.push(at, next);
    queue.push(at, next++);
  };
  for (int i = 0; i < 200; ++i) push();
  for (int i = 0; i < 20000; ++i) {
    REQUIRE(!wheel.empty());
    CHECK(wheel.next().at == queue.next().at);
    const auto got = wheel.pop();
    const auto expected = queue.pop();
    REQUIRE(got.payload == expected.payload);
    now = got.at;
    if (i < 19000 || rng.below(2) == 0) push();
    if (queue.empty()) break;
  }
  while (!queue.empty()) CHECK(wheel.pop().payload == queue.pop().payload);
  CHECK(wheel.empty());
}

// Invariant 8.
TEST_CASE("overlay: the same seed gives the same events in the same order, another seed gives others") {
  for (const OverlayKind kind : kAllKinds) {
    const std::uint64_t first = trace_of(kind, 1);
    CHECK(trace_of(kind, 1) == first);
    CHECK(trace_of(kind, 2) != first);
  }
}

// Invariant 10.
TEST_CASE("overlay: messages sent are those received, lost and in flight, at any moment") {
  for (const OverlayKind kind : kAllKinds) {
    OverlayOptions options = options_for(kind);
    options.loss = 0.05;
    OverlayNetwork network(options, 40, Rng(2));
    for (Address address = 0; address < 40; ++address) {
      network.start(address);
      run_for(network, 0.37);
      if (address % 5 == 4) network.stop(address - 2, address % 2 == 0);
      const NetworkCounters& c = network.counters();
      CHECK(c.messages_sent == c.messages_received + c.messages_lost + c.in_flight);
      std::uint64_t by_purpose = 0;
      for (const std::uint64_t count : c.sent.messages) by_purpose += count;
      CHECK(by_purpose == c.messages_sent);
    }
    CHECK(network.counters().messages_lost > 0);
  }
}

TEST_CASE(
    "overlay: a message's bytes are a header, 26 a contact, and values with what they say of themselves") {
  Message message;
  CHECK(message.bytes() == 40);
  message.contacts.resize(3);
  CHECK(message.bytes() == 40 + 3 * 26);
  message.values.push_back({.bytes = bytes_of("seven!!")});
  CHECK(message.bytes() == 40 + 3 * 26 + 24 + 7);
}

TEST_CASE("overlay: a lookup of two nodes takes one request and its reply, whose delays add up") {
  OverlayNetwork network(options_for(OverlayKind::kChord), 2, Rng(3));
  network.start_static(everybody(2));
  const Contact other = network.node(1).self();
  network.publish(1, {.key = other.id, .bytes = bytes_of("v")});
  network.node(0).store().clear();
  run_for(network, 0.001);
  network.node(0).store().clear();  // drops node 0's own of the two copies
  const std::uint64_t before = network.counters().sent.messages[2];
  LookupResult result;
  const Time begin = network.now();
  Time end{};
  network.lookup(0, other.id, [&](const LookupResult& got) {
    result = got;
    end = network.now();
  });
  run_for(network, 3);
  CHECK(result.ok);
  CHECK(result.hops == 1);
  CHECK(result.messages == 2);
  CHECK(network.counters().sent.messages[2] - before == 2);
  CHECK(result.latency == end - begin);
  const Duration base = network.latency().base(0, 1);
  CHECK(result.latency > base / 2);
  CHECK(result.latency < 6 * base);
}

TEST_CASE("overlay: a request to a dead node costs exactly the time-out, then the next is asked") {
  OverlayOptions options = options_for(OverlayKind::kKademlia);
  options.kademlia.alpha = 1;
  OverlayNetwork network(options, 3, Rng(4));
  network.start_static(everybody(3));
  const Id key = network.node(1).self().id;
  network.publish(2, {.key = key, .bytes = bytes_of("v")});
  run_for(network, 1);
  network.node(0).store().clear();
  network.stop(1, false);
  const LookupResult result = look_up(network, 0, key);
  CHECK(result.ok);
  CHECK(result.timeouts == 1);
  CHECK(result.holder.address == 2);
  CHECK(result.latency > std::chrono::milliseconds(500));
  CHECK(result.latency < std::chrono::milliseconds(500) + 6 * network.latency().base(0, 2));
}

// The round trip exceeds the timeout for all nodes: every request fails, and late replies are ignored.
TEST_CASE("overlay: a reply that comes after the time-out does nothing") {
  OverlayOptions options = options_for(OverlayKind::kKademlia);
  options.rpc_timeout = std::chrono::milliseconds(20);
  OverlayNetwork network(options, 3, Rng(5));
  network.start_static(everybody(3));
  network.node(1).store().offer({.key = 9, .expires = Time(seconds(100)), .bytes = bytes_of("v")}, Time{});
  const LookupResult result = look_up(network, 0, 9, 5);
  CHECK(!result.ok);
  CHECK(result.timeouts == 2);
  CHECK(result.latency == std::chrono::milliseconds(20));  // both requests ran in parallel
}

TEST_CASE("overlay: who finds its bootstrap dead takes another one") {
  for (const OverlayKind kind : kAllKinds) {
    OverlayNetwork network(options_for(kind), 10, Rng(6));
    for (Address address = 0; address < 9; ++address) {
      network.start(address);
      run_for(network, 1);
    }
    network.stop(4, false);
    network.start(9, Address{4});
    run_for(network, 15);
    CHECK(network.node(9).member());
    CHECK(network.members().size() == 9);
  }
}

TEST_CASE("overlay: a lookup from a node that knows nobody ends without a value, and at once") {
  for (const OverlayKind kind : kAllKinds) {
    OverlayNetwork network(options_for(kind), 2, Rng(7));
    network.start(0);
    const LookupResult alone = look_up(network, 0, 5, 1);
    CHECK(!alone.ok);
    CHECK(alone.messages == 0);
    const LookupResult down = look_up(network, 1, 5, 1);  // node 1 is down
    CHECK(!down.ok);
    CHECK(down.latency == Duration{});
  }
}

TEST_CASE("overlay: a node that has lost everybody finds back through a bootstrap") {
  for (const OverlayKind kind : kAllKinds) {
    OverlayNetwork network(options_for(kind), 12, Rng(8));
    network.start_static({0, 1, 2});
    for (Address address = 3; address < 12; ++address) network.start(address);
    run_for(network, 5);
    network.stop(1, false);
    network.stop(2, false);
    for (Address address = 3; address < 12; ++address) network.stop(address, false);
    run_for(network, 60);  // node 0 notices that all others are down
    CHECK(network.node(0).routing().contacts() == 0);
    network.start(1);
    network.start(2);
    run_for(network, 40);
    CHECK(network.members().size() == 3);
    network.publish(0, {.key = 1, .bytes = bytes_of("v")});
    run_for(network, 3);
    CHECK(look_up(network, 2, 1, 5).ok);
  }
}

TEST_CASE("overlay: a lookup whose node goes away is reported, once, as aborted") {
  OverlayNetwork network(options_for(OverlayKind::kPastry), 40, Rng(9));
  network.start_static(everybody(40));
  int calls = 0;
  bool aborted = false;
  network.lookup(3, network.node(30).self().id, [&](const LookupResult& result) {
    ++calls;
    aborted = result.aborted;
  });
  network.stop(3, false);
  run_for(network, 10);
  CHECK(calls == 1);
  CHECK(aborted);
}

// The hooks that hostile nodes use.
TEST_CASE("overlay: a node's answers can be replaced, changed or kept back") {
  OverlayOptions options = options_for(OverlayKind::kChord);
  OverlayNetwork network(options, 8, Rng(10));
  network.start_static(everybody(8));
  const Id key = 77;
  network.publish(0, {.key = key, .bytes = bytes_of("true")});
  run_for(network, 3);
  const auto owners = ranking(OverlayKind::kChord, network.members(), key);
  const Address asking = owners.back().address;
  network.set_answer(owners[0].address, [](const Message& request, Message& reply, const auto& honest) {
    const bool answered = honest(request, reply);
    for (Value& value : reply.values) value.bytes = bytes_of("lie");
    return answered;
  });
  CHECK(text_of(look_up(network, asking, key, 3).values.at(0)) == "lie");
  network.set_answer(owners[0].address, [](const Message&, Message&, const auto&) { return false; });
  const LookupResult result = look_up(network, asking, key, 5);
  CHECK(result.timeouts == 1);
  CHECK(text_of(result.values.at(0)) == "true");
}

TEST_CASE("overlay: stores take no value that is too large, too many, expired, or against the policy") {
  const auto no_odd = [](const Value*, const Value& offered) { return offered.sequence % 2 == 0; };
  ValueStore store({.values = 2, .value_bytes = 3}, no_odd);
  const Time later(seconds(5));
  CHECK(store.offer({.key = 1, .expires = later, .bytes = bytes_of("abc")}, Time{}) != nullptr);
  CHECK(store.offer({.key = 2, .expires = later, .bytes = bytes_of("abcd")}, Time{}) == nullptr);
  CHECK(store.offer({.key = 2, .sequence = 1, .expires = later, .bytes = bytes_of("a")}, Time{}) == nullptr);
  CHECK(store.offer({.key = 2, .expires = later, .bytes = bytes_of("a")}, later) == nullptr);
  CHECK(store.offer({.key = 2, .expires = later, .bytes = bytes_of("a")}, Time{}) != nullptr);
  CHECK(store.offer({.key = 3, .expires = later, .bytes = bytes_of("a")}, Time{}) == nullptr);
  CHECK(store.offer({.key = 1, .expires = later, .bytes = bytes_of("b")}, Time{}) != nullptr);
  std::vector<Value> found;
  store.find(1, Time{}, found);
  REQUIRE(found.size() == 1);
  CHECK(text_of(found[0]) == "b");
  store.find(1, later, found);
  CHECK(found.size() == 1);
}

TEST_CASE("overlay: it can be driven from event to event, as in another loop") {
  OverlayNetwork stepped(options_for(OverlayKind::kKademlia), 10, Rng(11));
  OverlayNetwork at_once(options_for(OverlayKind::kKademlia), 10, Rng(11));
  stepped.start_static(everybody(10));
  at_once.start_static(everybody(10));
  const Time end(seconds(20));
  while (stepped.next_event_time() && *stepped.next_event_time() <= end)
    stepped.run_until(*stepped.next_event_time());
  at_once.run_until(end);
  CHECK(stepped.trace_hash() == at_once.trace_hash());
  CHECK(stepped.counters().events == at_once.counters().events);
}
