// Clients' records over sockets: daemons publish them, the coordinator's directory stores them, the sampler
// receives them.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/integration/hostile_peer.h"

namespace fedge::test {

TEST_CASE(
    "a run that selects by records goes through over sockets, and a hostile record is named and ignored") {
  Federation federation(3, {"sampling.kind=aw_psp", "sampling.labels=dp_histogram",
                            "status.every_seconds=0.05", "run.rounds=3"});
  federation.add_client();
  federation.add_client();
  HostilePeer peer(federation);
  peer.join(federation.token());
  peer.wait_for_task(1);
  peer.link->send(protocol::PublishRecord{peer.task->run, RoundNumber(1), 1, std::vector<std::byte>(50)});
  const auto update = peer.zero_update();
  for (std::uint32_t round = 1; round <= 3; ++round) {
    peer.wait_for_task(round);
    peer.send_update(peer.offer(update), update);
    CHECK(peer.verdict->accepted);
  }
  federation.run_to_the_end();
  CHECK(federation.rounds.size() == 3);
  CHECK(federation.count("record.refused") == 1);
  CHECK(federation.reported("record.refused client=2"));
}

TEST_CASE("a record of a run that does not ask for any is passed over") {
  Federation federation(2, {"run.rounds=1"});
  federation.add_client();
  HostilePeer peer(federation);
  peer.join(federation.token());
  peer.wait_for_task(1);
  peer.link->send(protocol::PublishRecord{peer.task->run, RoundNumber(1), 1, std::vector<std::byte>(50)});
  const auto update = peer.zero_update();
  peer.send_update(peer.offer(update), update);
  CHECK(peer.verdict->accepted);
  federation.run_to_the_end();
  CHECK_FALSE(federation.reported("record."));
}

}  // namespace fedge::test
