// Tracker: who exchanges an object with whom, and for how long. The coordinator keeps it: newcomers get some
// of the members as neighbours, drawn at random, and those get the newcomer. Who accepts no links is only
// brought together with those who do. A member may go on giving the object to others after its task is done:
// a swarm is over when the last task is. It knows no chunk. Not thread-safe.
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
  // For one task. The newcomer gets so many neighbours, if there are as many that it can have. Members are to
  // be told before it: whom it connects to should know it. A member that joins again is told anew whom it
  // has.
  std::vector<Tell> join(const protocol::ObjectId& object, const protocol::SwarmMember& newcomer,
                         std::size_t neighbours, Rng rng);
  // One task of this member's is done. True: it was the last, the swarm is over.
  bool done(const protocol::ObjectId& object, ClientId member);
  struct Left {
    std::vector<Tell> tells;
    std::vector<protocol::ObjectId> over;
  };
  // It is gone, and so are its tasks.
  Left leave(ClientId member);
  bool has(const protocol::ObjectId& object) const { return swarms_.contains(object); }

 private:
  struct Member {
    protocol::SwarmMember self;
    std::set<ClientId> neighbours;
    std::size_t tasks = 0;
  };
  struct Swarm {
    std::map<ClientId, Member> members;
    std::size_t tasks = 0;
  };
  static void part(Swarm& swarm, const protocol::ObjectId& object, ClientId member, std::vector<Tell>& tells);

  std::map<protocol::ObjectId, Swarm> swarms_;
};

}  // namespace fedge::swarm
