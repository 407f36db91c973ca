// The start of tests of serverless runs: clients that accept links, and the models of a whole run.
#pragma once

#include <string>
#include <vector>

#include "tests/integration/hostile_peer.h"

namespace fedge::test {

inline void add_listening_clients(Federation& f, std::size_t clients) {
  f.swarm_of = [](std::size_t) {
    return client::SwarmOptions{.listen = protocol::Address{"127.0.0.1", 0}, .announce = {}};
  };
  for (std::size_t i = 0; i < clients; ++i) f.add_client();
}

inline std::vector<std::string> hashes_of(std::size_t clients, const std::vector<std::string>& settings) {
  Federation f(clients, settings);
  add_listening_clients(f, clients);
  f.run_to_the_end();
  return f.hashes();
}

}  // namespace fedge::test
