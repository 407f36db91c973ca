// Tracker: who exchanges an object with whom. The coordinator keeps it: newcomers get some of the members as
// neighbours, drawn at random, and those get the newcomer. Who accepts no links is only brought together with
// those who do. It knows no chunk. Not thread-safe.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <vector>

#include "core/rng.h"
#include "protocol/messages.h"

namespace fedge::swarm {

class Tracker {
 public:
  struct Tell {
    ClientId to;
    protocol::SwarmMembers message;
  };
  // The newcomer gets so many neighbours, if there are as many that it can have. Members are to be told
  // before it: whom it connects to should know it. A member that joins again is told anew whom it has.
  std::vector<Tell> join(const protocol::ObjectId& object, const protocol::SwarmMember& newcomer,
                         std::size_t neighbours, Rng rng);
  // From this object; or from all.
  std::vector<Tell> leave(const protocol::ObjectId& object, ClientId member);
  std::vector<Tell> leave(ClientId member);
  // Nobody gets it any more.
  void forget(const protocol::ObjectId& object) { swarms_.erase(object); }
  std::size_t members(const protocol::ObjectId& object) const;

 private:
  struct Member {
    protocol::SwarmMember self;
    std::set<ClientId> neighbours;
  };
  std::map<protocol::ObjectId, std::map<ClientId, Member>> swarms_;
};

}  // namespace fedge::swarm
